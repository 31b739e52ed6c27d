#include "analyze/tree/ident.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "profile/profile.h"

void idents_init(struct idents *t, const struct profile *p, unsigned flags)
{
	*t = (struct idents){ .p = p, .flags = flags };
	strtab_init(&t->names);
	t->frame_first = mem_alloc((p->frames.n + 1) * sizeof(*t->frame_first));
	for (size_t i = 0; i < p->frames.n; i++)
		t->frame_first[i] = PROFILE_NONE;
}

void idents_done(struct idents *t)
{
	vec_done(&t->list);
	vec_done(&t->expanded);
	vec_done(&t->ranges);
	free(t->frame_first);
	free(t->own);
	strtab_done(&t->names);
	map_done(&t->index);
	*t = (struct idents){ 0 };
}

/* Strings are interned before they are compared, so that one pointer is one string. */
uint32_t idents_add(struct idents *t, const char *name, const char *module, enum ident_kind kind)
{
	uint32_t name_id = strtab_add(&t->names, name);
	uint32_t module_id = strtab_add(&t->names, t->flags & IDENTS_NAMES_ONLY ? "" : module);
	uint64_t key = map_hash(map_pair(name_id, module_id)) ^ kind;
	const char *n = strtab_get(&t->names, name_id), *m = strtab_get(&t->names, module_id);

	for (;; key++) {
		uint64_t *id = map_put(&t->index, key, PROFILE_NONE);

		if (*id == PROFILE_NONE) {
			*id = t->list.n;
			vec_push(&t->list, (struct ident){ .name = n, .module = m, .kind = kind });
			return t->list.n - 1;
		}
		if (t->list.v[*id].name == n && t->list.v[*id].module == m && t->list.v[*id].kind == kind)
			return *id;
	}
}

static const char *module_path(const struct profile *p, uint32_t module)
{
	return module < p->modules.n ? profile_str(p, p->modules.v[module].path) : "";
}

bool ident_frame_unnamed(const struct profile *p, uint32_t frame)
{
	return profile_frame_unnamed(p, frame);
}

static int compare_ranges(const void *a, const void *b)
{
	const struct profile_range *x = a, *y = b;

	return ORDER(x->module, y->module) ?: ORDER(x->start, y->start);
}

/* Where the function of a frame that was not symbolized yet starts, if another frame of it was; else its address. */
static uint64_t start_of(struct idents *t, const struct profile_frame *f)
{
	const struct profile_range *r;
	size_t low;

	if (!t->ranges.n && t->p->ranges.n) {
		for (size_t i = 0; i < t->p->ranges.n; i++)
			vec_push(&t->ranges, t->p->ranges.v[i]);
		vec_sort(&t->ranges, compare_ranges);
	}
	low = vec_search(i, 0, t->ranges.n, t->ranges.v[i].module < f->module ||
			 (t->ranges.v[i].module == f->module && t->ranges.v[i].start <= f->address));
	r = low ? &t->ranges.v[low - 1] : NULL;
	return r && r->module == f->module && f->address < r->end ? r->start : f->address;
}

/* The symbolizer names a frame for which it finds nothing by the function's start. */
static uint32_t add_unnamed(struct idents *t, const struct profile_frame *f)
{
	const struct profile *p = t->p;
	const char *path = module_path(p, f->module);
	_cleanup_free_ char *made = NULL;
	const char *name = "";

	if (!*path)
		return idents_add(t, "[unknown]", "", IDENT_UNNAMED);
	if (f->line_count)
		name = profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name);
	if (!*name)
		name = made = mem_printf("%s+0x%llx", str_base_name(path), (unsigned long long)start_of(t, f));
	return idents_add(t, name, path, IDENT_UNNAMED);
}

static uint32_t add_truncated(struct idents *t, const struct profile_frame *f)
{
	const struct profile *p = t->p;
	const char *reason = "unknown reason";
	char *name;
	uint32_t id;

	if (f->line_count)
		reason = profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name);
	name = mem_printf("[truncated: %s]", reason);
	id = idents_add(t, name, "", IDENT_TRUNCATED);
	free(name);
	return id;
}

static uint32_t add_line(struct idents *t, const struct profile_frame *f, const struct profile_line *line)
{
	const struct profile *p = t->p;
	const struct profile_function *function = &p->functions.v[line->function];
	enum ident_kind kind = f->kind == FRAME_KERNEL ? IDENT_KERNEL : f->kind == FRAME_NOTE ? IDENT_NOTE :
											  IDENT_USER;
	uint32_t module = f->module < p->modules.n ? f->module : function->module;

	if (kind == IDENT_USER && line->inlined && t->flags & IDENTS_SPLIT_INLINED)
		kind = IDENT_INLINED;
	return idents_add(t, profile_str(p, function->name), module_path(p, module), kind);
}

/* How many identities a frame has. */
static uint32_t frame_width(const struct idents *t, const struct profile_frame *f)
{
	return t->flags & IDENTS_NO_INLINE || f->line_count < 2 || f->kind == FRAME_TRUNCATED ?
		       1 : f->line_count;
}

const uint32_t *idents_of_frame(struct idents *t, uint32_t frame, uint32_t *ret_n)
{
	const struct profile *p = t->p;
	const struct profile_frame *f = &p->frames.v[frame];
	uint32_t width = frame_width(t, f), id;

	*ret_n = width;
	if (t->frame_first[frame] != PROFILE_NONE)
		return &t->expanded.v[t->frame_first[frame]];

	t->frame_first[frame] = t->expanded.n;
	if (f->kind == FRAME_TRUNCATED) {
		id = add_truncated(t, f);
		vec_push(&t->expanded, id);
	} else if (!f->line_count || ident_frame_unnamed(p, frame)) {
		id = add_unnamed(t, f);
		vec_push(&t->expanded, id);
	} else {
		for (uint32_t i = 0; i < width; i++) {
			id = add_line(t, f, &p->lines.v[f->first_line + f->line_count - 1 - i]);
			vec_push(&t->expanded, id);
		}
	}
	return &t->expanded.v[t->frame_first[frame]];
}

bool idents_is_inlined(const struct idents *t, uint32_t frame, uint32_t k)
{
	const struct profile_frame *f = &t->p->frames.v[frame];

	return k < f->line_count && t->p->lines.v[f->first_line + f->line_count - 1 - k].inlined;
}

int ident_compare(const void *a, const void *b)
{
	const struct ident *x = a, *y = b;

	return strcmp(x->name, y->name) ?: strcmp(x->module, y->module) ?: ORDER(x->kind, y->kind);
}

int ident_compare_at(const void *a, const void *b, void *list)
{
	const struct ident *idents = list;

	return ident_compare(&idents[*(const uint32_t *)a], &idents[*(const uint32_t *)b]);
}

uint32_t *idents_rank(const struct idents *t)
{
	_cleanup_free_ uint32_t *order = mem_alloc((t->list.n + 1) * sizeof(*order));
	uint32_t *rank = mem_alloc((t->list.n + 1) * sizeof(*rank));

	for (size_t i = 0; i < t->list.n; i++)
		order[i] = i;
	if (t->list.n > 1)
		qsort_r(order, t->list.n, sizeof(*order), ident_compare_at, t->list.v);
	for (size_t i = 0; i < t->list.n; i++)
		rank[order[i]] = i;
	return rank;
}
