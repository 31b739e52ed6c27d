/*
 * navigation.c - navigation: opens rows, pages, functions and threads, and goes back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "profile/profile.h"
#include "tui/detail/waitdetail.h"
#include "tui/state.h"

void detail_done(struct detail *d)
{
	free(d->name);
	free(d->module);
	free(d->what_before);
	tree_done(&d->tree);
	map_done(&d->open);
	code_text_done(&d->text);
}

void navigation_move(struct state *s, long row)
{
	struct spot *spot = state_spot(s);
	long last = (long)s->table.rows.n - 1;

	row = row > last ? last : row;
	row = row < 0 ? 0 : row;
	spot->cursor = row;
	spot->moved = row > 0;
	if (s->table.rows.n)
		spot->id = s->table.rows.v[row].id;
	s->redraw = true;
}

void navigation_open_page(struct state *s, int page)
{
	s->page = (page + PAGE_COUNT) % PAGE_COUNT;
	while (s->details.n) {
		struct detail *d = state_detail(s);

		if (d->restores)
			scope_set(&s->look.scope.what, d->what_before);
		detail_done(d);
		s->details.n--;
	}
	look_again(&s->look);
	s->refill = true;
}

static const struct row *row_at(struct state *s)
{
	return s->table.rows.n ? &s->table.rows.v[MIN(state_spot(s)->cursor, s->table.rows.n - 1)] : NULL;
}

/* Weighs that until the detail that is opened next is left. */
static void open_detail(struct state *s, enum detail_kind kind, const char *name, const char *module,
			const char *what)
{
	struct detail d = { .kind = kind, .name = mem_strdup(name), .module = mem_strdup(module) };
	uint32_t in_module;
	uint64_t address;

	code_text_init(&d.text);
	tree_init(&d.tree, kind == DETAIL_CALLERS ? TREE_CALLERS : TREE_CALLEES, name, module);
	if (what) {
		d.restores = true;
		d.what_before = mem_strdup(s->look.scope.what);
		scope_set(&s->look.scope.what, what);
		look_again(&s->look);
	}
	if (kind == DETAIL_CODE && s->source->code &&
	    code_hottest(&s->look.model, name, module, &in_module, &address))
		s->source->code(s->source->context, s->look.p, in_module, address, &d.text);
	if (*d.text.why)
		state_say(s, false, "%s", d.text.why);
	vec_push(&s->details, d);
	s->refill = true;
}

static void close_detail(struct state *s)
{
	struct detail *d = state_detail(s);

	if (d->restores) {
		scope_set(&s->look.scope.what, d->what_before);
		look_again(&s->look);
	}
	detail_done(d);
	s->details.n--;
	s->refill = true;
}

/* The function of the row at the cursor; false: it has none. */
static bool function_at(struct state *s, const char **name, const char **module, const char **what)
{
	struct model *m = &s->look.model;
	const struct row *r = row_at(s);
	const struct detail *d = state_detail(s);

	*what = NULL;
	if (d && (d->kind == DETAIL_LINES || d->kind == DETAIL_CODE || d->kind == DETAIL_WAIT)) {
		*name = d->name;
		*module = d->module;
		if (d->kind == DETAIL_WAIT)
			*what = "wait";
		return true;
	}
	if (!r)
		return false;
	if (d || s->page == PAGE_TREE) {
		const struct ident *id = &m->top.tree.idents.list.v[r->index];

		*name = id->name;
		*module = id->module;
		return true;
	}
	switch (s->page) {
	case PAGE_FUNCTIONS:
		*name = m->top.functions.v[r->index].name;
		*module = m->top.functions.v[r->index].module;
		return true;
	case PAGE_WAITS:
		*name = m->waits.sites.v[r->index].function;
		*module = m->waits.sites.v[r->index].module;
		*what = "wait";
		return true;
	case PAGE_IO: {
		const struct io_row *io =
			s->variant[PAGE_IO] ? &m->io.functions.v[r->index] : &m->io.files.v[r->index];

		*name = io->name;
		*module = io->module ? io->module : "";
		*what = io->read_bytes >= io->write_bytes && io->read_calls ? "read"
			: io->write_calls                                   ? "write"
									    : "sync";
		return true;
	}
	default:
		return false;
	}
}

void navigation_open_function(struct state *s, enum detail_kind kind)
{
	const char *name, *module, *what;
	_cleanup_free_ char *n = NULL, *m = NULL;
	struct detail *d = state_detail(s);

	if (!function_at(s, &name, &module, &what)) {
		state_say(s, false,
			  "There is no function here: the pages of functions, waits and I/O have some.");
		return;
	}
	n = mem_strdup(name); /* they may be freed with the closed view */
	m = mem_strdup(module);
	/* The same function in another view replaces the current one. */
	if (d && d->kind != DETAIL_WAIT && !strcmp(d->name, n) && !strcmp(d->module, m)) {
		char *before = d->what_before;
		bool restores = d->restores;

		d->what_before = NULL;
		d->restores = false;
		close_detail(s);
		open_detail(s, kind, n, m, NULL);
		state_detail(s)->what_before = before;
		state_detail(s)->restores = restores;
		return;
	}
	open_detail(s, kind, n, m, what);
}

static struct tree *tree_shown(struct state *s)
{
	struct detail *d = state_detail(s);

	if (d)
		return d->kind == DETAIL_CALLERS || d->kind == DETAIL_CALLEES ? &d->tree : NULL;
	return s->page == PAGE_TREE ? &s->calls : NULL;
}

static void open_thread(struct state *s, const struct row *r)
{
	char tid[16];

	snprintf(tid, sizeof(tid), "%u", s->look.p->threads.v[r->index].tid);
	scope_set(&s->look.scope.thread, tid);
	s->from_threads = true;
	navigation_open_page(s, PAGE_FUNCTIONS);
}

/* The time of a block, as functions on the CPU and waiting. A running program goes on, but its screen must not. */
static void open_block(struct state *s, const struct block_row *b)
{
	if (!b->wall_ns) {
		state_say(s, false, "This block is a moment: its log does not say how long it took.");
		return;
	}
	s->look.scope.from_ns = b->start_ns;
	s->look.scope.to_ns = b->start_ns + b->wall_ns;
	if (select_has_waits(s->look.p))
		scope_set(&s->look.scope.what, "wall");
	s->held = s->source->live && !s->look.paused;
	s->look.paused |= s->held;
	s->from_blocks = true;
	state_say(s, false, "%.60s: %s", b->name, b->reason ? b->reason : "Esc goes back to the blocks");
	navigation_open_page(s, PAGE_FUNCTIONS);
}

/* The awaits of a type of tasks, by the stacks that ended them: these lie below its frame. */
static void open_task(struct state *s, const struct tasks_type *t)
{
	_cleanup_free_ char *frame = mem_printf("task %s", t->name);

	if (profile_find_event(s->look.p, "await", "ns") == PROFILE_NONE)
		state_say(s, false, "Awaits of tasks were not recorded.");
	else
		open_detail(s, DETAIL_CALLEES, frame, "", "await");
}

static void open_wait(struct state *s, const struct waits_site *site)
{
	struct detail d = { .kind = DETAIL_WAIT, .name = mem_strdup(site->function), .module = mem_strdup(site->module),
			    .cause = site->cause };

	vec_push(&s->details, d);
	s->refill = true;
}

/* Within a wait: a waker's stack, or the place that the waker itself waited at. */
static void open_within_wait(struct state *s, struct detail *d, const struct row *r)
{
	const struct waits_site *next;

	if (r->mark) {
		*map_put(&d->open, r->id, 0) = r->mark == '+';
		s->refill = true;
		return;
	}
	next = waitdetail_next(&s->look.model, &(struct waitdetail_key){ d->name, d->module, d->cause }, r);
	if (next)
		open_wait(s, next);
	else
		state_say(s, false, "Nothing to open here: + has a stack, and rows of the chain lead to their wait.");
}

void navigation_open_row(struct state *s)
{
	const struct row *r = row_at(s);
	struct tree *tree = tree_shown(s);

	if (!r)
		return;
	if (tree) {
		if (r->mark == '+' || r->mark == '-')
			tree_open(tree, r->id, r->mark == '+');
		s->refill = true;
	} else if (s->details.n && state_detail(s)->kind == DETAIL_WAIT) {
		open_within_wait(s, state_detail(s), r);
	} else if (s->details.n) {
		return;
	} else if (s->page == PAGE_WAITS) {
		open_wait(s, &s->look.model.waits.sites.v[r->index]);
	} else if (s->page == PAGE_THREADS) {
		open_thread(s, r);
	} else if (s->page == PAGE_BLOCKS) {
		open_block(s, &s->look.model.blocks.rows.v[r->index]);
	} else if (s->page == PAGE_TASKS) {
		open_task(s, &s->look.model.tasks.types.v[r->index]);
	} else if (s->page == PAGE_MEMORY) {
		state_say(s, false, "Nothing to open here.");
	} else {
		navigation_open_function(s, DETAIL_CALLERS);
	}
}

/* Right opens a row of a tree, or goes to the first below it. */
void navigation_right(struct state *s)
{
	const struct row *r = row_at(s);

	if (r && tree_shown(s) && r->mark == '-')
		navigation_move(s, state_spot(s)->cursor + 1);
	else if (!tree_shown(s) || (r && r->mark == '+'))
		navigation_open_row(s);
}

/* Left closes it, or goes to the one above it. */
bool navigation_left(struct state *s)
{
	const struct row *r = row_at(s);
	struct tree *tree = tree_shown(s);
	size_t i = state_spot(s)->cursor;

	if (!tree || !r)
		return false;
	if (r->mark == '-') {
		tree_open(tree, r->id, false);
		s->refill = true;
		return true;
	}
	if (!r->depth)
		return false;
	while (i && s->table.rows.v[i].depth >= r->depth)
		i--;
	navigation_move(s, i);
	return true;
}

void navigation_back(struct state *s)
{
	struct spot *spot = state_spot(s);

	if (*spot->filter) {
		*spot->filter = 0;
		s->refill = true;
	} else if (s->details.n) {
		close_detail(s);
	} else if (s->from_blocks && !s->look.scope.thread && !s->look.scope.function) {
		s->look.scope.from_ns = s->look.scope.to_ns = 0;
		scope_set(&s->look.scope.what, NULL);
		s->from_blocks = false;
		s->look.paused &= !s->held;
		s->held = false;
		navigation_open_page(s, PAGE_BLOCKS);
	} else if (s->look.scope.thread || s->look.scope.function) {
		bool threads = s->from_threads && !s->look.scope.function;

		scope_set(s->look.scope.function ? &s->look.scope.function : &s->look.scope.thread, NULL);
		s->from_threads = s->from_threads && !threads;
		navigation_open_page(s, threads ? PAGE_THREADS : s->page);
	}
}
