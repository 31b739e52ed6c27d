#include "cmd/flamegraph/inlined.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "folded/collapse/perfline.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

/* Stands before the number of a frame in a name. */
enum { MARK = 1 };

struct entry {
	char *plain;      /* names of its line, outermost first */
	uint64_t address;
	uint32_t module;  /* string of the profile */
	uint32_t frame;   /* PROFILE_NONE: none was made */
};

struct inlined {
	struct perfline_options o;
	bool context;
	pthread_mutex_t lock;
	struct strtab texts; /* of frames */
	struct map numbers;  /* of these, to an index */
	VEC(struct entry) entries;
	struct map listed;   /* addresses of which the text itself lists what was inlined */
	struct profile *p;
};

struct inlined *inlined_new(const struct perfline_options *o, bool context)
{
	struct inlined *i = mem_alloc(sizeof(*i));

	i->o = *o;
	i->context = context;
	i->p = profile_new();
	strtab_init(&i->texts);
	pthread_mutex_init(&i->lock, NULL);
	return i;
}

void inlined_free(struct inlined *i)
{
	if (!i)
		return;
	for (size_t k = 0; k < i->entries.n; k++)
		free(i->entries.v[k].plain);
	vec_done(&i->entries);
	map_done(&i->numbers);
	map_done(&i->listed);
	strtab_done(&i->texts);
	pthread_mutex_destroy(&i->lock);
	profile_free(i->p);
	free(i);
}

/* --- frames --- */

/* "perf-\d+.map|kernel\.|\[[^\]]+\]": these have no file. */
static bool has_file(struct perfline_text module)
{
	const char *open = module.n ? memchr(module.s, '[', module.n) : NULL;

	return module.n && !memmem(module.s, module.n, "kernel.", 7) && !memmem(module.s, module.n, "/perf-", 6) &&
	       !(open && memchr(open, ']', module.s + module.n - open));
}

static bool take_address(struct perfline_text t, uint64_t *ret)
{
	_cleanup_free_ char *text = mem_strndup(t.s, t.n);
	char *end;

	*ret = strtoull(text, &end, 16);
	return t.n && t.n <= 16 && !*end;
}

static char *plain_names(const struct inlined *i, struct perfline_frame f, bool java)
{
	struct buf b = { 0 };
	bool first = true;

	while (perfline_take_name(&f, &i->o, first, java, &b, NULL)) {
		buf_putc(&b, ';');
		first = false;
	}
	if (b.n)
		b.data[--b.n] = 0;
	return b.data ? b.data : mem_strdup("");
}

/* The entry of a frame, made if it is new. */
static size_t entry_of(struct inlined *i, const struct perfline_frame *f, bool java, uint64_t address)
{
	struct buf key = { 0 };
	uint64_t *at;

	buf_putc(&key, java ? 'j' : ' ');
	buf_add(&key, f->pc.s, f->module.s + f->module.n - f->pc.s);
	at = map_put(&i->numbers, strtab_add_n(&i->texts, key.data, key.n), i->entries.n);
	buf_done(&key);
	if (*at == i->entries.n)
		vec_push(&i->entries, (struct entry){ plain_names(i, *f, java), address,
						      strtab_add_n(&i->p->strings, f->module.s, f->module.n), PROFILE_NONE });
	return *at;
}

bool inlined_take(void *inlined, const struct perfline_frame *f, bool java, struct buf *b)
{
	static const char listed[] = "inlined";
	struct inlined *i = inlined;
	uint64_t address;
	size_t number;

	if (!f->function.n || !has_file(f->module) || !take_address(f->pc, &address))
		return false;
	pthread_mutex_lock(&i->lock);
	if (f->module.n == strlen(listed) && !memcmp(f->module.s, listed, f->module.n)) {
		map_put(&i->listed, address, 1);
		pthread_mutex_unlock(&i->lock);
		return false;
	}
	number = entry_of(i, f, java, address);
	pthread_mutex_unlock(&i->lock);
	buf_printf(b, "%c%zu", MARK, number);
	return true;
}

/* --- names --- */

int inlined_resolve(struct inlined *i, struct err *err)
{
	struct profile *p = i->p;
	struct symbolizer *s = symbolizer_new(&(struct symbolize_options){ 0 }, NULL);
	struct map modules = { 0 };
	int r;

	for (size_t k = 0; k < i->entries.n; k++) {
		struct entry *e = &i->entries.v[k];
		uint64_t *module = map_put(&modules, e->module, PROFILE_NONE);

		if (map_get(&i->listed, e->address))
			continue;
		if (*module == PROFILE_NONE)
			*module = profile_add_module(p, &(struct profile_module){ .path = e->module, .process = PROFILE_NONE });
		e->frame = profile_frame(p, *module, FRAME_USER, e->address);
	}
	map_done(&modules);
	r = symbolize_profile(s, p, NULL, NULL, err);
	symbolizer_free(s);
	return r;
}

/* The name without arguments, as the text's names are tidied. */
static char *tidied(const struct inlined *i, const char *name)
{
	struct perfline_frame f = { { "0", 1 }, { name, strlen(name) }, { "", 0 } };

	return plain_names(i, f, false);
}

/* Does the debug information speak of the function that the text names? */
static bool agrees(const struct inlined *i, const struct entry *e, const struct profile_function *outer)
{
	_cleanup_free_ char *name = tidied(i, profile_str(i->p, outer->name)), *linkage = tidied(i, profile_str(i->p, outer->linkage));

	return outer->named < NAMED_START && (*e->plain == '[' || !strcmp(e->plain, name) || !strcmp(e->plain, linkage));
}

static void put_call(const struct inlined *i, const struct profile_line *line, struct buf *b)
{
	const struct profile_function *f = &i->p->functions.v[line->function];
	const char *file = str_base_name(profile_str(i->p, f->file));

	for (const char *s = profile_str(i->p, f->name); *s; s++)
		buf_putc(b, *s == ';' ? ':' : *s);
	if (!i->context)
		return;
	if (*file && line->line)
		buf_printf(b, ":%s:%u", file, line->line);
	else
		buf_printf(b, ":%s:?", *file ? file : "??");
}

bool inlined_replace(void *inlined, const char *name, struct buf *b)
{
	const struct inlined *i = inlined;
	const struct profile *p = i->p;
	const struct profile_frame *f = NULL;
	const struct entry *e;
	uint64_t number;

	if (*name != MARK || str_parse_uint(name + 1, 0, UINT32_MAX, &number) || number >= i->entries.n)
		return false;
	e = &i->entries.v[number];
	if (e->frame != PROFILE_NONE)
		f = &p->frames.v[e->frame];
	if (!f || !f->line_count || !agrees(i, e, &p->functions.v[p->lines.v[f->first_line + f->line_count - 1].function])) {
		buf_puts(b, e->plain);
		return true;
	}
	for (uint32_t k = f->line_count; k; k--) {
		put_call(i, &p->lines.v[f->first_line + k - 1], b);
		if (k > 1)
			buf_putc(b, ';');
	}
	return true;
}
