#include "tui/detail/code.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/tree/ident.h"
#include "base/text/str.h"
#include "profile/profile.h"
#include "tui/model.h"
#include "tui/page.h"
#include "tui/table.h"

#define NOT_THERE UINT32_MAX
enum { HOT_PERCENT = 5 }; /* of the function's own time, from which on an instruction stands out */

void code_text_init(struct code_text *t)
{
	*t = (struct code_text){ .module = PROFILE_NONE };
}

void code_text_done(struct code_text *t)
{
	vec_done_each(&t->list, e, free(e->text));
	t->module = PROFILE_NONE;
}

/* --- the frames of a function --- */

struct finder {
	const struct profile *p;
	const char *name, *module;
	uint32_t *line_of; /* by frame: its line that is in the function, as an index into lines; NOT_THERE =
			      none */
};

static const char *module_of(const struct profile *p, uint32_t module)
{
	return module < p->modules.n ? profile_str(p, p->modules.v[module].path) : "";
}

static uint32_t find_line(const struct finder *f, const struct profile_frame *frame)
{
	if (frame->kind != FRAME_USER && frame->kind != FRAME_KERNEL)
		return NOT_THERE;
	for (uint32_t i = 0; i < frame->line_count; i++) {
		const struct profile_function *function =
			&f->p->functions.v[f->p->lines.v[frame->first_line + i].function];

		if (strcmp(profile_str(f->p, function->name), f->name))
			continue;
		/* A kernel function's own module is where it is from, as ident.h shows it. */
		if (!*f->module || !strcmp(module_of(f->p, function->module), f->module) ||
		    !strcmp(module_of(f->p, frame->module), f->module))
			return frame->first_line + i;
	}
	return NOT_THERE;
}

static void finder_init(struct finder *f, const struct profile *p, const char *name, const char *module)
{
	*f = (struct finder){ p, name, module, mem_alloc((p->frames.n + 1) * sizeof(uint32_t)) };
	for (size_t i = 0; i < p->frames.n; i++)
		f->line_of[i] = find_line(f, &p->frames.v[i]);
}

/* The stack's leaf is a frame, notes below it aside. */
static uint32_t leaf_of(const struct profile *p, uint32_t stack)
{
	while (stack && p->frames.v[p->stacks.v[stack].frame].kind == FRAME_NOTE)
		stack = p->stacks.v[stack].parent;
	return stack;
}

/* Calls see for each place of the function in a stack, innermost first. self: the time is spent at it. */
typedef void place_fn(void *context, uint32_t frame, uint32_t line, uint64_t value, bool self);

static void each_place(const struct finder *f, const struct selection *s, place_fn *see, void *context)
{
	const struct profile *p = f->p;

	for (size_t i = 0; i < s->entries.n; i++) {
		uint32_t leaf = leaf_of(p, s->entries.v[i].stack);

		for (uint32_t stack = leaf; stack; stack = p->stacks.v[stack].parent) {
			uint32_t frame = p->stacks.v[stack].frame, line = f->line_of[frame];

			if (line == NOT_THERE)
				continue;
			/* Inlined into it is another function's self time, but at this place. */
			see(context, frame, line, s->entries.v[i].weight.value,
			    stack == leaf && line == p->frames.v[frame].first_line);
			break; /* recursion counts once, where it is innermost */
		}
	}
}

struct place {
	uint32_t frame, line; /* one of many that fall together */
	uint64_t key[2];
	uint64_t self, total;
};

struct places {
	const struct profile *p;
	VEC(struct place) list;
	struct map index;
	bool by_line; /* else by address */
};

static void add_place(void *context, uint32_t frame, uint32_t line, uint64_t value, bool self)
{
	struct places *all = context;
	const struct profile *p = all->p;
	const struct profile_frame *f = &p->frames.v[frame];
	struct place place = { .frame = frame, .line = line };
	uint64_t key;

	place.key[0] = all->by_line ? p->functions.v[p->lines.v[line].function].file : f->module;
	place.key[1] = all->by_line ? p->lines.v[line].line : f->address;
	for (key = map_hash(place.key[1]) + place.key[0];; key++) {
		uint64_t *at = map_put(&all->index, key, all->list.n);
		struct place *there;

		if (*at == all->list.n)
			vec_push(&all->list, place);
		there = &all->list.v[*at];
		if (memcmp(there->key, place.key, sizeof(place.key)))
			continue;
		there->total += value;
		there->self += self ? value : 0;
		return;
	}
}

static bool find_places(struct places *all, struct model *m, const char *name, const char *module)
{
	const struct selection *s = model_selection(m);
	struct finder f;

	all->p = m->p;
	if (!s)
		return false;
	finder_init(&f, m->p, name, module);
	each_place(&f, s, add_place, all);
	free(f.line_of);
	return all->list.n > 0;
}

static void places_done(struct places *all)
{
	vec_done(&all->list);
	map_done(&all->index);
}

/* --- lines --- */

enum line_column { LINE_NUMBER = WEIGHT_COLUMNS, LINE_FILE, LINE_PATH };

static const struct column line_columns[] = {
	[WEIGHT_SELF_PERCENT] = { "SELF%", "self_percent", COLUMN_PERCENT, 6, 0 },
	[WEIGHT_TOTAL_PERCENT] = { "TOTAL%", "total_percent", COLUMN_PERCENT, 6, 0 },
	[WEIGHT_SELF] = { "SELF", "self", COLUMN_VALUE, 8, 4 },
	[WEIGHT_TOTAL] = { "TOTAL", "total", COLUMN_VALUE, 8, 5 },
	[LINE_NUMBER] = { "LINE", "line", COLUMN_NUMBER, 6, 0 },
	[LINE_FILE] = { "FILE", "file", COLUMN_TEXT, 30, 0 },
	[LINE_PATH] = { "", "path", COLUMN_NAME, 0, 0 },
	{ 0 },
};

void code_lines(struct table *t, struct model *m, const char *name, const char *module)
{
	struct places all = { .by_line = true };

	table_init(t, line_columns);
	if (!find_places(&all, m, name, module))
		snprintf(t->empty, sizeof(t->empty), "It has no samples here now: Esc goes back.");
	t->sort = WEIGHT_TOTAL_PERCENT;
	for (size_t i = 0; i < all.list.n; i++) {
		const struct place *place = &all.list.v[i];
		const struct profile_line *line = &m->p->lines.v[place->line];
		const char *file = profile_str(m->p, m->p->functions.v[line->function].file);
		struct row *r = table_row(t);

		t->unit = m->selection.unit;
		r->value[WEIGHT_SELF_PERCENT] = str_percent(place->self, m->selection.all.value);
		r->value[WEIGHT_TOTAL_PERCENT] = str_percent(place->total, m->selection.all.value);
		r->value[WEIGHT_SELF] = place->self;
		r->value[WEIGHT_TOTAL] = place->total;
		r->value[LINE_NUMBER] = line->line ? line->line : NAN;
		r->text[LINE_FILE] = line->line ? str_base_name(file) : "(no line is known)";
		r->text[LINE_PATH] = file;
		r->id = map_pair(m->p->functions.v[line->function].file, line->line);
		r->index = i;
	}
	places_done(&all);
}

/* --- instructions --- */

/* There is no column for the total, only for its percentage. */
enum instruction_column { INSTRUCTION_ADDRESS = WEIGHT_TOTAL, INSTRUCTION_TEXT, INSTRUCTION_LINE };

static const struct column instruction_columns[] = {
	[WEIGHT_SELF_PERCENT] = { "SELF%", "self_percent", COLUMN_PERCENT, 6, 0 },
	[WEIGHT_TOTAL_PERCENT] = { "TOTAL%", "total_percent", COLUMN_PERCENT, 6, 0 },
	[WEIGHT_SELF] = { "SELF", "self", COLUMN_VALUE, 8, 4 },
	[INSTRUCTION_ADDRESS] = { "ADDRESS", "address", COLUMN_TEXT, 12, 3 },
	[INSTRUCTION_TEXT] = { "INSTRUCTION", "instruction", COLUMN_NAME, 0, 0 },
	[INSTRUCTION_LINE] = { "LINE", "line", COLUMN_TEXT, 18, 2 },
	{ 0 },
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return ORDER(x->key[0], y->key[0]) ?: ORDER(x->key[1], y->key[1]);
}

static struct row *put_address(struct table *t, uint64_t address, const char *text)
{
	struct row *r = table_row(t);
	char hex[24];

	snprintf(hex, sizeof(hex), "%llx", (unsigned long long)address);
	r->value[WEIGHT_SELF_PERCENT] = r->value[WEIGHT_TOTAL_PERCENT] = r->value[WEIGHT_SELF] = NAN; /* nothing, rather than zero */
	r->text[INSTRUCTION_ADDRESS] = table_text(t, hex);
	r->text[INSTRUCTION_TEXT] = text;
	r->id = address;
	return r;
}

static void add_weight(struct table *t, struct row *r, struct model *m, const struct place *place,
		       uint64_t hot)
{
	const struct profile *p = m->p;
	const struct profile_line *line = &p->lines.v[place->line];
	double self = (isnan(r->value[WEIGHT_SELF]) ? 0 : r->value[WEIGHT_SELF]) + place->self;

	r->value[WEIGHT_SELF_PERCENT] = str_percent(self, m->selection.all.value);
	r->value[WEIGHT_TOTAL_PERCENT] = (isnan(r->value[WEIGHT_TOTAL_PERCENT]) ? 0 : r->value[WEIGHT_TOTAL_PERCENT]) + str_percent(place->total, m->selection.all.value);
	r->value[WEIGHT_SELF] = self;
	if (self * 100 >= HOT_PERCENT * (double)hot)
		r->kind = ROW_HOT;
	if (line->line) {
		_cleanup_free_ char *where = mem_printf(
			"%s:%u", str_base_name(profile_str(p, p->functions.v[line->function].file)),
			line->line);

		r->text[INSTRUCTION_LINE] = table_text(t, where);
	}
}

/* A return address less one lies within the call, not at its beginning. */
static bool within(const struct code_instruction *c, uint64_t address)
{
	return address >= c->address && address - c->address < c->size;
}

void code_instructions(struct table *t, struct model *m, const char *name, const char *module,
		       const struct code_text *text)
{
	struct places all = { 0 };
	uint64_t self = 0;
	size_t next = 0;

	table_init(t, instruction_columns);
	t->fixed = true;
	if (!find_places(&all, m, name, module))
		snprintf(t->empty, sizeof(t->empty), "It has no samples here now: Esc goes back.");
	else
		t->unit = m->selection.unit;
	vec_sort(&all.list, compare_places);
	for (size_t i = 0; i < all.list.n; i++)
		self += all.list.v[i].self;
	self = MAX(self, 1);
	for (size_t i = 0; i < text->list.n; i++) {
		const struct code_instruction *c = &text->list.v[i];
		struct row *r = put_address(t, c->address, table_text(t, c->text));

		while (next < all.list.n && (all.list.v[next].key[0] < text->module ||
					     (all.list.v[next].key[0] == text->module &&
					      all.list.v[next].key[1] < c->address)))
			next++;
		for (; next < all.list.n && all.list.v[next].key[0] == text->module &&
		       within(c, all.list.v[next].key[1]); next++) {
			add_weight(t, r, m, &all.list.v[next], self);
			all.list.v[next].total = 0; /* shown */
		}
	}
	/* Without text, and copies that were inlined elsewhere. */
	for (size_t i = 0; i < all.list.n; i++)
		if (all.list.v[i].total)
			add_weight(t, put_address(t, all.list.v[i].key[1], ""), m, &all.list.v[i], self);
	places_done(&all);
}

bool code_hottest(struct model *m, const char *name, const char *module, uint32_t *ret_module,
		  uint64_t *ret_address)
{
	struct places all = { 0 };
	uint64_t most = 0;

	find_places(&all, m, name, module);
	for (size_t i = 0; i < all.list.n; i++) {
		const struct place *place = &all.list.v[i];

		if (place->total < most)
			continue;
		most = place->total;
		*ret_module = m->p->frames.v[place->frame].module;
		*ret_address = m->p->frames.v[place->frame].address;
	}
	places_done(&all);
	return most > 0;
}
