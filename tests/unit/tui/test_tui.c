#include "test.h"

#include <errno.h>
#include <math.h>

#include "base/buf.h"
#include "base/json.h"
#include "export/report/cleantext.h"
#include "tui/detail/code.h"
#include "tui/look.h"
#include "tui/table.h"
#include "tui/detail/tree.h"
#include "tui/detail/waitdetail.h"
#include "tui/tui.h"
#include "tui/window.h"
#include "tasks.h"
#include "waiting.h"

/* --- windows --- */

/* One thread: each second 300 ms on the CPU, 100 ms in the queue, 600 ms at a lock; and one that sleeps all along. */
static void record_second(struct waiting *w, struct window *win, unsigned second)
{
	struct profile *p = w->s.p;
	uint64_t begin = second * 1000 * MS;

	waiting_add(w, w->wait, w->rpc, w->lock, begin, 600 * MS, 1);
	waiting_add(w, w->queue, w->rpc, w->lock, begin, 60 * MS, 1);
	waiting_add(w, w->queue, w->rpc, w->preempted, begin + 700 * MS, 40 * MS, 9);
	w->s.now_ns = begin + 700 * MS;
	sample_add(&w->s, w->rpc, w->unlocks, 300);
	waiting_account(w, w->rpc, (second + 1) * 300 * MS, (second + 1) * 100 * MS, (second + 1) * 600 * MS);
	waiting_account(w, w->idle, 0, 0, begin + 1000 * MS);
	p->duration_ns = begin + 1000 * MS;
	window_take(win);
	/* As session_peek() does: what is under way, as if it ended now. */
	waiting_add(w, w->wait, w->idle, w->park, 0, begin + 1000 * MS, 1);
	window_look(win);
	assert_int_equal(p->samples.n, 0);
}

static uint64_t sum_of(const struct profile *p, uint32_t event, uint32_t thread)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->samples.n; i++)
		if (p->samples.v[i].event == event && p->samples.v[i].thread == thread)
			sum += p->samples.v[i].value;
	return sum;
}

static void a_window_is_a_recording_of_its_own(void **state)
{
	struct waiting w = waiting_empty();
	struct patterns patterns;
	struct causes causes;
	struct account a;
	struct window win;
	struct view v;

	window_init(&win, w.s.p, 3000 * MS);
	for (unsigned i = 0; i < 10; i++)
		record_second(&w, &win, i);
	window_view(&win, 3000 * MS, &v);
	assert_int_equal(v.profile.duration_ns, 3000 * MS);
	assert_int_equal(sum_of(&v.profile, w.s.cpu, w.rpc), 900 * MS);
	assert_int_equal(sum_of(&v.profile, w.wait, w.rpc), 1800 * MS);
	assert_int_equal(sum_of(&v.profile, w.queue, w.rpc), 300 * MS);
	/* A wait that began before the window is cut at its beginning. */
	assert_int_equal(sum_of(&v.profile, w.wait, w.idle), 3000 * MS);
	assert_int_equal(v.profile.threads.v[w.rpc].run_ns, 900 * MS);

	patterns_init(&patterns);
	patterns_add_builtin(&patterns);
	causes_init(&causes, &v.profile, &patterns);
	assert_true(account_make(&a, &v.profile, &(struct select_options){ 0 }, &causes));
	for (size_t i = 0; i < a.threads.n; i++) {
		const struct account_row *r = &a.threads.v[i];

		if (r->thread != w.rpc && r->thread != w.idle)
			continue;
		assert_int_equal(r->wall_ns, 3000 * MS);
		assert_int_equal(r->missing_ns, 0);
		if (r->thread == w.rpc) {
			assert_int_equal(r->ns[CAUSE_CPU], 900 * MS);
			assert_int_equal(r->ns[CAUSE_LOCK], 1800 * MS);
		} else {
			assert_int_equal(r->ns[CAUSE_IDLE], 3000 * MS);
		}
	}
	account_done(&a);
	causes_done(&causes);
	patterns_done(&patterns);
	view_done(&v);

	window_view(&win, 0, &v);
	assert_int_equal(v.profile.duration_ns, 10000 * MS);
	assert_int_equal(sum_of(&v.profile, w.s.cpu, w.rpc), 3000 * MS);
	assert_int_equal(sum_of(&v.profile, w.wait, w.rpc), 6000 * MS);
	assert_int_equal(sum_of(&v.profile, w.wait, w.idle), 10000 * MS);
	view_done(&v);
	window_done(&win);
	profile_free(w.s.p);
}

/* An hour of it takes no more room than a minute. */
static void a_window_does_not_grow(void **state)
{
	struct waiting w = waiting_empty();
	struct window win;
	size_t recent = 0;
	uint64_t bytes = 0;

	window_init(&win, w.s.p, 10000 * MS);
	for (unsigned i = 0; i < 600; i++) {
		record_second(&w, &win, i);
		if (i == 60) {
			recent = win.recent.n;
			bytes = window_bytes(&win);
		}
	}
	assert_true(recent > 0);
	assert_true(win.recent.n <= recent);
	assert_true(window_bytes(&win) <= bytes);
	assert_true(win.moments.n <= 12);
	assert_true(win.all.n <= 6);
	window_done(&win);
	profile_free(w.s.p);
}

/* Nor do the marks of long polls; blocks stay. */
static void a_window_keeps_the_last_long_polls(void **state)
{
	struct waiting w = waiting_empty();
	struct profile *p = w.s.p;
	uint32_t block = profile_string(p, "block"), poll = profile_string(p, "long poll");
	struct window win;

	window_init(&win, p, 10000 * MS);
	for (unsigned i = 0; i < 30000; i++)
		profile_add_mark(p, &(struct profile_mark){ .start_ns = i * MS, .end_ns = (i + 1) * MS, .kind = i % 3000 ? poll : block });
	window_take(&win);
	assert_int_equal(p->marks.n, 20000 + 10);
	assert_int_equal(p->marks.v[0].kind, block);
	assert_int_equal(p->marks.v[p->marks.n - 1].start_ns, 29999 * MS);
	window_done(&win);
	profile_free(p);
}

/* The recorder's tables move while somebody looks at a view of them. */
static void a_view_follows_its_tables(void **state)
{
	struct waiting w = waiting_empty();
	struct window win;
	struct view v;

	window_init(&win, w.s.p, 3000 * MS);
	record_second(&w, &win, 0);
	window_view(&win, 0, &v);
	for (int i = 0; i < 10000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function %d", i);
		profile_stack(w.s.p, 0, profile_named_frame(w.s.p, w.s.node, FRAME_USER, name));
	}
	view_sync(&v);
	assert_ptr_equal(v.profile.stacks.v, w.s.p->stacks.v);
	assert_string_equal(profile_str(&v.profile, v.profile.threads.v[w.rpc].name), "rpc-1");
	assert_int_equal(v.profile.duration_ns, 1000 * MS);
	view_done(&v);
	window_done(&win);
	profile_free(w.s.p);
}

/* --- tables --- */

static const struct column columns[] = {
	{ "PART", "part", COLUMN_PERCENT, 6, 0 }, { "TIME", "ns", COLUMN_TIME, 8, 2 },
	{ "WHAT", "what", COLUMN_TEXT, 10, 1 },   { "NAME", "name", COLUMN_NAME, 0, 0 },
	{ 0 },
};

static void add_row(struct table *t, double part, const char *what, const char *name)
{
	struct row *r = table_row(t);

	r->value[0] = part;
	r->value[1] = part * 1e6;
	r->text[2] = what;
	r->text[3] = name;
	r->id = t->rows.n;
}

static void a_table_sorts_and_filters(void **state)
{
	struct table t;

	table_init(&t, columns);
	add_row(&t, 10, "b", "beta::One");
	add_row(&t, 30, "a", "alpha::Two");
	add_row(&t, 20, "c", "gamma::one");
	table_sort(&t);
	assert_string_equal(t.rows.v[0].text[3], "alpha::Two");
	assert_string_equal(t.rows.v[2].text[3], "beta::One");
	t.sort = table_next_sort(&t, 3, 1); /* around */
	assert_int_equal(t.sort, 0);
	t.up = true;
	table_sort(&t);
	assert_string_equal(t.rows.v[0].text[3], "beta::One");
	t.sort = 3;
	t.up = false;
	table_sort(&t);
	assert_string_equal(t.rows.v[0].text[3], "alpha::Two");
	table_filter(&t, "ONE");
	assert_int_equal(t.rows.n, 2);
	assert_int_equal(t.all, 3);
	table_filter(&t, "nothing has this");
	assert_int_equal(t.rows.n, 0);
	assert_non_null(strstr(t.empty, "nothing has this"));
	table_done(&t);
}

/* Whatever the width, no line is longer; the name never goes. */
static void a_table_fits(void **state)
{
	struct table t;

	table_init(&t, columns);
	add_row(&t, 99.99, "\x1b[31mred\n", "\xff\x1b]0;title\x07" "evil<&\">::\xe2\x80\xae" "gnp.exe::fun\xc3\xa9");
	add_row(&t, 5, "x", "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once");
	for (unsigned width = 20; width < 240; width++) {
		unsigned widths[TABLE_COLUMNS], sum = 0, shown = 0;
		struct buf b = { 0 };
		char *line, *rest;

		table_layout(&t, width, widths);
		for (size_t i = 0; i < t.column_count; i++) {
			sum += widths[i];
			shown += widths[i] > 0;
		}
		assert_true(sum + shown - 1 <= width);
		assert_true(widths[3] >= 3);
		table_write(&t, width, 0, &b);
		for (rest = b.data; (line = strsep(&rest, "\n"));) {
			assert_true(cleantext_columns(line) <= width);
			for (char *c = line; *c; c++)
				assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
		}
		buf_done(&b);
	}
	table_done(&t);
}

static void a_table_as_json(void **state)
{
	struct table t;
	struct buf b = { 0 };
	struct json j = json_begin(&b);

	table_init(&t, columns);
	add_row(&t, 12.5, "a\"b", "x\\y\n");
	t.rows.v[0].value[1] = NAN;
	table_json(&t, 0, NULL, &j);
	assert_string_equal(b.data, "[{\"part\":12.500,\"ns\":null,\"what\":\"a\\\"b\",\"name\":\"x\\\\y\\u000a\"}]");
	buf_done(&b);
	table_done(&t);
}

static void a_bar_has_its_parts(void **state)
{
	uint64_t parts[CAUSE_COUNT] = { [CAUSE_CPU] = 50, [CAUSE_LOCK] = 25, [CAUSE_IDLE] = 25 };
	struct row r = { .parts = parts, .whole = 100 };
	uint8_t causes[32];
	char text[32];

	table_bar(&r, 20, text, causes);
	assert_string_equal(text, "##########LLLLL.....");
	assert_int_equal(causes[12], CAUSE_LOCK);
	r.whole = 200; /* half of the time it did not live */
	table_bar(&r, 8, text, causes);
	assert_string_equal(text, "##L.    ");
	r.parts = NULL;
	table_bar(&r, 4, text, causes);
	assert_string_equal(text, "    ");
}

/* --- pages --- */

struct looked {
	struct waiting w;
	struct source source;
	struct look look;
};

static const struct profile *give(void *context, uint64_t last_ns, bool hold, unsigned *ret_changes)
{
	return ((struct looked *)context)->w.s.p;
}

static void say_nothing(void *context, struct buf *b)
{
}

static void look_at(struct looked *l, struct waiting w, const struct scope *scope)
{
	*l = (struct looked){ .w = w };
	l->source = (struct source){ .context = l, .title = "test", .refresh = give, .state = say_nothing };
	look_init(&l->look, &l->source, scope, 0);
	assert_int_equal(look_begin(&l->look, NULL), 0);
}

static void looked_done(struct looked *l)
{
	look_done(&l->look);
	profile_free(l->w.s.p);
}

static const struct row *row_of(const struct table *t, size_t column, const char *text)
{
	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].text[column] && !strcmp(t->rows.v[i].text[column], text))
			return &t->rows.v[i];
	fail_msg("no row %s", text);
	return NULL;
}

static void pages_have_the_figures(void **state)
{
	struct looked l;
	const struct row *r;
	struct table t;
	struct buf b = { 0 };

	look_at(&l, waiting_make(), &(struct scope){ 0 });
	look_fill(&l.look, &t, PAGE_FUNCTIONS, 0, NULL);
	r = row_of(&t, FUNCTION_NAME, "reth::compute");
	assert_true(fabs(r->value[WEIGHT_SELF_PERCENT] - 1300 / 15.0) < 0.001); /* of 1,500 samples */
	assert_int_equal(r->value[WEIGHT_SELF], 1300 * MS);
	r = row_of(&t, FUNCTION_NAME, "start_thread");
	assert_int_equal(r->value[WEIGHT_TOTAL_PERCENT], 100);
	table_done(&t);

	look_fill(&l.look, &t, PAGE_THREADS, 0, NULL);
	r = row_of(&t, THREAD_NAME, "persistence");
	assert_int_equal(r->value[THREAD_TID], 110);
	assert_true(fabs(r->value[THREAD_RUN] - 20) < 0.001);
	assert_true(fabs(r->value[THREAD_QUEUE] - 2) < 0.001);
	assert_true(fabs(r->value[THREAD_WAIT] - 70) < 0.001);
	assert_string_equal(r->text[THREAD_CAUSE], "disk write");
	assert_string_equal(row_of(&t, THREAD_NAME, "rpc-1")->text[THREAD_CAUSE], "lock");
	assert_string_equal(row_of(&t, THREAD_NAME, "busy")->text[THREAD_CAUSE], "");
	/* Sleep is no waiting. */
	assert_string_equal(row_of(&t, THREAD_NAME, "engine")->text[THREAD_CAUSE], "");
	assert_true(row_of(&t, THREAD_NAME, "engine")->value[THREAD_WAIT] < 0.001);
	table_done(&t);

	look_fill(&l.look, &t, PAGE_WAITS, 0, NULL);
	assert_string_equal(t.rows.v[0].text[WAIT_CAUSE], "lock");
	assert_int_equal(t.rows.v[0].value[WAIT_TIME], 900 * MS);
	assert_string_equal(t.rows.v[1].text[WAIT_CALL], "fdatasync");
	assert_string_equal(t.rows.v[t.rows.n - 1].text[WAIT_CAUSE], "sleep");
	table_done(&t);

	look_fill(&l.look, &t, PAGE_BLOCKS, 0, NULL);
	assert_int_equal(t.rows.n, 0);
	assert_non_null(strstr(t.empty, "--log"));
	table_done(&t);
	profile_add_mark(l.w.s.p, &(struct profile_mark){ .start_ns = 1000 * MS, .end_ns = 1500 * MS, .thread = l.w.rpc,
							  .name = profile_string(l.w.s.p, "block 7"),
							  .kind = profile_string(l.w.s.p, "block"),
							  .block = { 7, 30000000, 12, BLOCK_NUMBER | BLOCK_GAS | BLOCK_TRANSACTIONS } });
	look_refresh(&l.look);
	look_fill(&l.look, &t, PAGE_BLOCKS, 0, NULL);
	r = row_of(&t, BLOCK_NAME, "block 7");
	assert_int_equal(r->value[BLOCK_WALL], 500 * MS);
	assert_int_equal(r->value[BLOCK_SPEED], 60);
	assert_int_equal(r->value[BLOCK_TXS], 12);
	assert_int_equal(r->whole, 500 * MS);
	table_done(&t);

	look_fill(&l.look, &t, PAGE_IO, 0, NULL);
	assert_int_equal(t.rows.n, 0);
	assert_non_null(strstr(t.empty, "-e io"));
	table_done(&t);
	look_fill(&l.look, &t, PAGE_TASKS, 0, NULL);
	assert_int_equal(t.rows.n, 0);
	assert_non_null(strstr(t.empty, "-e task"));
	table_done(&t);
	page_summary(&l.look.model, &b);
	assert_non_null(strstr(b.data, "1.60 run"));
	buf_done(&b);
	looked_done(&l);
}

static void types_of_tasks_have_their_rates(void **state)
{
	struct made_tasks made = made_tasks();
	const struct row *r;
	struct looked l;
	struct table t;

	look_at(&l, made.w, &(struct scope){ 0 });
	look_fill(&l.look, &t, PAGE_TASKS, 0, NULL);
	r = row_of(&t, TASK_NAME, "node::exec::run");
	assert_true(fabs(r->value[TASK_POLL_SHARE] - 90) < 0.001);
	assert_int_equal(r->value[TASK_POLLS], 1800);
	assert_int_equal(r->value[TASK_MEAN], MS / 2);
	assert_int_equal(r->value[TASK_LONGEST], MS * 9 / 10);
	assert_int_equal(r->kind, ROW_PLAIN);
	assert_int_equal(row_of(&t, TASK_NAME, "node::rpc::serve")->value[TASK_QUEUE], 300 * MS / 1000);
	r = row_of(&t, TASK_NAME, "node::db::flush");
	assert_int_equal(r->value[TASK_LONGEST], 20 * MS);
	assert_int_equal(r->kind, ROW_HOT);
	table_done(&t);

	/* In a window the counters, which are since the start, say nothing: only long polls are known one by one. */
	l.look.model.live = true;
	l.look.scope.from_ns = 300 * MS;
	l.look.scope.to_ns = 600 * MS;
	look_again(&l.look);
	look_fill(&l.look, &t, PAGE_TASKS, 0, NULL);
	r = row_of(&t, TASK_NAME, "node::exec::run");
	assert_true(fabs(r->value[TASK_POLL_SHARE] - 100) < 0.001);
	assert_int_equal(r->value[TASK_POLLS], 2000);
	assert_int_equal(row_of(&t, TASK_NAME, "node::db::flush")->value[TASK_LONGEST], 20 * MS);
	table_done(&t);
	looked_done(&l);
}

/* The columns of waitdetail.c: time, share, count, what, cause, function, thread. */
static void a_wait_names_its_wakers(void **state)
{
	struct waitdetail_key key = { 0 };
	_cleanup_(map_done) struct map open = { 0 };
	const struct waits *w;
	size_t before, chains = 0;
	struct looked l;
	struct table t;

	look_at(&l, waiting_make(), &(struct scope){ 0 });
	w = model_waits(&l.look.model);
	assert_int_equal(w->sites.v[0].wakers.n, 0); /* the page shows none, so none are looked for */
	key = (struct waitdetail_key){ mem_strdup(w->sites.v[0].function), mem_strdup(w->sites.v[0].module), CAUSE_LOCK };
	waitdetail_fill(&t, &l.look.model, &key, &open);
	w = model_waits(&l.look.model);
	assert_int_equal(t.rows.v[0].value[0], w->sites.v[0].waiters.v[0].ns);
	assert_string_equal(t.rows.v[0].text[4], "lock");
	assert_true(w->sites.v[0].wakers.n > 0);
	before = t.rows.n;
	for (size_t i = 0; i < t.rows.n; i++) {
		const struct waits_site *next = waitdetail_next(&l.look.model, &key, &t.rows.v[i]);

		if (!strcmp(t.rows.v[i].text[3], "released by"))
			assert_string_equal(t.rows.v[i].text[5], w->sites.v[0].wakers.v[0].function);
		if (t.rows.v[i].mark)
			*map_put(&open, t.rows.v[i].id, 0) = 1;
		chains += next != NULL;
		if (next)
			assert_string_equal(next->function, t.rows.v[i].text[5]);
	}
	assert_true(chains > 0);
	table_done(&t);
	waitdetail_fill(&t, &l.look.model, &key, &open);
	assert_true(t.rows.n > before); /* the stacks of the wakers */
	table_done(&t);
	free((char *)key.function);
	key.function = mem_strdup("nobody waits here");
	waitdetail_fill(&t, &l.look.model, &key, &open);
	assert_int_equal(t.rows.n, 0);
	assert_non_null(strstr(t.empty, "Esc"));
	table_done(&t);
	free((char *)key.function);
	free((char *)key.module);
	looked_done(&l);
}

static void scopes_choose(void **state)
{
	struct looked l;
	struct err err = { 0 };
	struct table t;
	struct scope bad = { .what = mem_strdup("nonsense") };

	look_at(&l, waiting_make(), &(struct scope){ .thread = mem_strdup("111"), .what = mem_strdup("wait") });
	look_fill(&l.look, &t, PAGE_FUNCTIONS, 0, NULL);
	assert_int_equal(row_of(&t, FUNCTION_NAME, "reth::Cache::get")->value[WEIGHT_TOTAL], 900 * MS);
	table_done(&t);
	scope_set(&l.look.scope.what, "cpu");
	look_again(&l.look);
	look_fill(&l.look, &t, PAGE_FUNCTIONS, 0, NULL);
	assert_int_equal(t.rows.n, 0);
	assert_non_null(strstr(t.empty, "111"));
	table_done(&t);
	scope_set(&l.look.scope.thread, NULL);
	l.look.scope.from_ns = 100 * MS;
	l.look.scope.to_ns = 200 * MS;
	look_again(&l.look);
	look_fill(&l.look, &t, PAGE_THREADS, 0, NULL);
	assert_true(fabs(row_of(&t, THREAD_NAME, "busy")->value[THREAD_RUN] - 100) < 0.001);
	assert_true(fabs(row_of(&t, THREAD_NAME, "rpc-1")->value[THREAD_WAIT] - 100) < 0.001);
	table_done(&t);
	looked_done(&l);

	l = (struct looked){ .w = waiting_make() };
	l.source = (struct source){ .context = &l, .title = "test", .refresh = give, .state = say_nothing };
	look_init(&l.look, &l.source, &bad, 0);
	assert_int_equal(look_begin(&l.look, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nonsense"));
	looked_done(&l);
}

static void events_go_round(void **state)
{
	struct looked l;
	unsigned n = 0;

	look_at(&l, waiting_make(), &(struct scope){ 0 });
	assert_string_equal(model_what(&l.look.model), "cpu");
	do {
		scope_set(&l.look.scope.what, model_next_what(&l.look.model, 1));
		look_again(&l.look);
		n++;
	} while (strcmp(model_what(&l.look.model), "cpu") && n < 20);
	assert_int_equal(n, 4); /* cpu, wait, queue, wall */
	looked_done(&l);
}

/* A profile without anything in it is no reason to fall over. */
static void nothing_is_fine(void **state)
{
	struct waiting w = { .s = sample_empty() };
	struct tree calls;
	struct looked l;
	struct table t;

	look_at(&l, w, &(struct scope){ 0 });
	tree_init(&calls, TREE_CALLS, NULL, NULL);
	for (int page = 0; page < PAGE_COUNT; page++)
		for (unsigned v = 0; v < pages[page].variants; v++) {
			struct buf b = { 0 };

			look_fill(&l.look, &t, page, v, &calls);
			table_sort(&t);
			table_write(&t, 80, 0, &b);
			assert_int_equal(t.rows.n, 0);
			assert_true(*t.empty != 0);
			table_done(&t);
			buf_done(&b);
		}
	tree_done(&calls);
	looked_done(&l);
}

/* --- trees --- */

static void fill_tree(struct looked *l, struct tree *tree, struct table *t)
{
	const struct top *top = model_top(&l->look.model);

	page_fill(t, PAGE_TREE, &l->look.model, 0);
	tree_fill(tree, &top->tree, top->all.value, t);
}

static void trees_open_and_close(void **state)
{
	struct waiting w = { .s = sample_make() };
	const struct row *r;
	struct looked l;
	struct tree tree;
	struct table t;
	uint64_t path;

	look_at(&l, w, &(struct scope){ 0 });
	tree_init(&tree, TREE_CALLS, NULL, NULL);
	fill_tree(&l, &tree, &t);
	assert_int_equal(t.rows.n, 3); /* _start, clone3, the one that was cut */
	assert_string_equal(t.rows.v[0].text[FUNCTION_NAME], "_start");
	assert_int_equal(t.rows.v[0].value[WEIGHT_TOTAL_PERCENT], 60);
	assert_int_equal(t.rows.v[0].mark, '+');
	path = t.rows.v[0].id;
	tree_open(&tree, path, true);
	table_done(&t);
	fill_tree(&l, &tree, &t);
	/* main is the only one below it, and opens with it. */
	assert_string_equal(t.rows.v[1].text[FUNCTION_NAME], "main");
	assert_int_equal(t.rows.v[1].depth, 1);
	r = row_of(&t, FUNCTION_NAME, "node::run");
	assert_int_equal(r->value[WEIGHT_TOTAL_PERCENT], 50);
	assert_int_equal(r->depth, 2);
	tree_open(&tree, path, false);
	table_done(&t);
	fill_tree(&l, &tree, &t);
	assert_int_equal(t.rows.n, 3);
	table_done(&t);
	tree_done(&tree);

	/* Recursion counts once. */
	tree_init(&tree, TREE_CALLERS, "node::fib", "/opt/node/bin/node");
	fill_tree(&l, &tree, &t);
	assert_int_equal(t.rows.v[0].value[WEIGHT_TOTAL], 700 * MS);
	assert_string_equal(t.rows.v[1].text[FUNCTION_NAME], "node::run");
	assert_int_equal(t.rows.v[1].value[WEIGHT_TOTAL], 700 * MS);
	assert_string_equal(t.rows.v[3].text[FUNCTION_NAME], "_start");
	assert_int_equal(t.rows.n, 4);
	table_done(&t);
	tree_done(&tree);

	tree_init(&tree, TREE_CALLERS, "alloy_trie::HashBuilder::update", "/opt/node/bin/node");
	fill_tree(&l, &tree, &t);
	assert_int_equal(t.rows.v[0].value[WEIGHT_TOTAL], 750 * MS);
	assert_int_equal(t.rows.n, 3); /* and its two callers */
	assert_string_equal(t.rows.v[1].text[FUNCTION_NAME], "reth_trie::state::StateRoot<T, H>::calculate");
	assert_int_equal(t.rows.v[1].value[WEIGHT_TOTAL], 500 * MS);
	assert_string_equal(t.rows.v[2].text[FUNCTION_NAME], "start_thread");
	assert_int_equal(t.rows.v[2].value[WEIGHT_TOTAL], 250 * MS);
	table_done(&t);
	tree_done(&tree);

	tree_init(&tree, TREE_CALLEES, "node::run", "/opt/node/bin/node");
	fill_tree(&l, &tree, &t);
	assert_int_equal(row_of(&t, FUNCTION_NAME, "node::fib")->value[WEIGHT_TOTAL], 700 * MS);
	assert_int_equal(row_of(&t, FUNCTION_NAME, "write")->value[WEIGHT_TOTAL], 300 * MS);
	table_done(&t);
	tree_done(&tree);

	tree_init(&tree, TREE_CALLERS, "no such function", "");
	fill_tree(&l, &tree, &t);
	assert_int_equal(t.rows.n, 0);
	table_done(&t);
	tree_done(&tree);
	looked_done(&l);
}

/* 4,000 frames deep. */
static void deep_trees_end(void **state)
{
	struct waiting w = { .s = sample_empty() };
	struct looked l;
	struct tree tree;
	struct table t;
	uint32_t stack = 0;

	for (int i = 0; i < 4000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%d", i);
		stack = profile_stack(w.s.p, stack, profile_named_frame(w.s.p, w.s.node, FRAME_USER, name));
	}
	sample_add(&w.s, w.s.main, stack, 10);
	look_at(&l, w, &(struct scope){ 0 });
	tree_init(&tree, TREE_CALLS, NULL, NULL);
	fill_tree(&l, &tree, &t);
	assert_true(t.rows.n > 500 && t.rows.n < 4000);
	table_done(&t);
	tree_done(&tree);
	looked_done(&l);
}

/* --- code --- */

/* One function with two lines, and one that is inlined into it. */
static void code_has_lines_and_addresses(void **state)
{
	struct waiting w = { .s = sample_empty() };
	struct profile *p = w.s.p;
	struct profile_function f = { .name = profile_string(p, "hot"), .file = profile_string(p, "src/hot.rs"),
				      .module = w.s.node };
	struct profile_function g = { .name = profile_string(p, "inlined"), .file = profile_string(p, "src/in.rs"),
				      .module = w.s.node };
	uint32_t hot = profile_function(p, &f), in = profile_function(p, &g);
	struct code_text text;
	struct looked l;
	struct table t;
	uint32_t module;
	uint64_t address;
	static const struct {
		uint64_t address;
		unsigned line, count;
		bool inlined;
	} places[] = { { 0x1000, 10, 30, false }, { 0x1004, 10, 15, false }, { 0x100b, 12, 40, true },
		       { 0x5000, 12, 15, false } };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		uint32_t frame = profile_frame(p, w.s.node, FRAME_USER, places[i].address);
		struct profile_line lines[2] = { { .function = in, .line = 3, .inlined = true },
						 { .function = hot, .line = places[i].line } };

		profile_set_lines(p, frame, places[i].inlined ? lines : lines + 1, 1 + places[i].inlined);
		sample_add(&w.s, w.s.main, profile_stack(p, 0, frame), places[i].count);
	}
	look_at(&l, w, &(struct scope){ 0 });
	code_lines(&t, &l.look.model, "hot", "/opt/node/bin/node");
	table_sort(&t);
	assert_int_equal(t.rows.n, 2);
	assert_int_equal(t.rows.v[0].value[4], 12); /* by total */
	assert_int_equal(t.rows.v[0].value[3], 55 * MS);
	assert_int_equal(t.rows.v[0].value[2], 15 * MS); /* what was inlined there is not its own */
	assert_string_equal(t.rows.v[0].text[5], "hot.rs");
	assert_int_equal(t.rows.v[1].value[2], 45 * MS);
	table_done(&t);

	assert_true(code_hottest(&l.look.model, "hot", "", &module, &address));
	assert_int_equal(address, 0x100b);
	assert_int_equal(module, w.s.node);
	code_text_init(&text);
	code_instructions(&t, &l.look.model, "hot", "/opt/node/bin/node", &text);
	assert_int_equal(t.rows.n, 4); /* addresses alone */
	assert_string_equal(t.rows.v[0].text[3], "1000");
	assert_int_equal(t.rows.v[0].value[2], 30 * MS);
	table_done(&t);

	text.module = w.s.node;
	vec_push(&text.list, (struct code_instruction){ 0x0ffc, 4, mem_strdup("push rbx") });
	vec_push(&text.list, (struct code_instruction){ 0x1000, 4, mem_strdup("mov eax, 1") });
	vec_push(&text.list, (struct code_instruction){ 0x1004, 4, mem_strdup("add eax, 2") });
	/* A call: samples of its callee say the return address less one. */
	vec_push(&text.list, (struct code_instruction){ 0x1008, 5, mem_strdup("call 0x2000") });
	code_instructions(&t, &l.look.model, "hot", "/opt/node/bin/node", &text);
	assert_int_equal(t.rows.n, 5); /* and the copy elsewhere */
	assert_true(isnan(t.rows.v[0].value[0]));
	assert_string_equal(t.rows.v[1].text[4], "mov eax, 1");
	assert_int_equal(t.rows.v[1].value[0], 30);
	assert_string_equal(t.rows.v[3].text[4], "call 0x2000");
	assert_int_equal(t.rows.v[3].value[1], 40);
	assert_string_equal(t.rows.v[3].text[5], "hot.rs:12");
	assert_string_equal(t.rows.v[4].text[3], "5000");
	table_done(&t);
	code_text_done(&text);
	looked_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_is_a_recording_of_its_own),
		cmocka_unit_test(a_window_does_not_grow),
		cmocka_unit_test(a_window_keeps_the_last_long_polls),
		cmocka_unit_test(a_view_follows_its_tables),
		cmocka_unit_test(a_table_sorts_and_filters),
		cmocka_unit_test(a_table_fits),
		cmocka_unit_test(a_table_as_json),
		cmocka_unit_test(a_bar_has_its_parts),
		cmocka_unit_test(pages_have_the_figures),
		cmocka_unit_test(types_of_tasks_have_their_rates),
		cmocka_unit_test(a_wait_names_its_wakers),
		cmocka_unit_test(scopes_choose),
		cmocka_unit_test(events_go_round),
		cmocka_unit_test(nothing_is_fine),
		cmocka_unit_test(trees_open_and_close),
		cmocka_unit_test(deep_trees_end),
		cmocka_unit_test(code_has_lines_and_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
