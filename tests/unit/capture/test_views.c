#include "capturefiles.h"

#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/sanitized.h"
#include "profile/keys.h"

/* --- the straightforward way: every sample walks up its stack --- */

/* A frame's names with their module, outermost first, as "name\tmodule". */
static void add_names(const struct profile *p, uint32_t frame, struct strtab *t, uint32_t *ret, size_t *ret_n)
{
	const struct profile_frame *f = &p->frames.v[frame];
	const char *path = f->module == PROFILE_NONE ? "" : profile_str(p, p->modules.v[f->module].path);
	const char *slash = strrchr(path, '/');
	char text[400];

	for (uint32_t i = 0; i < MAX(f->line_count, 1u); i++) {
		const struct profile_line *l = &p->lines.v[f->first_line + f->line_count - 1 - i];

		if (!f->line_count)
			snprintf(text, sizeof(text), "%s+0x%llx\t%s", slash ? slash + 1 : path,
				 (unsigned long long)f->address, path);
		else if (f->kind == FRAME_TRUNCATED)
			snprintf(text, sizeof(text), "[truncated: %s]\t",
				 profile_str(p, p->functions.v[l->function].name));
		else
			snprintf(text, sizeof(text), "%s\t%s", profile_str(p, p->functions.v[l->function].name),
				 path);
		ret[(*ret_n)++] = strtab_add(t, text);
	}
}

/* All of a stack, innermost last. */
static size_t names_of(const struct profile *p, uint32_t stack, struct strtab *t, uint32_t *ret)
{
	VEC(uint32_t) path = { 0 };
	size_t n = 0;

	for (; stack; stack = p->stacks.v[stack].parent)
		vec_push(&path, p->stacks.v[stack].frame);
	for (size_t i = path.n; i-- > 0;)
		add_names(p, path.v[i], t, ret, &n);
	vec_done(&path);
	return n;
}

/* A stack without the notes below its leaf. */
static uint32_t without_notes(const struct profile *p, uint32_t stack)
{
	while (stack && p->frames.v[p->stacks.v[stack].frame].kind == FRAME_NOTE)
		stack = p->stacks.v[stack].parent;
	return stack;
}

static uint64_t count_of(const struct profile_sample *s)
{
	return s->count ?: 1;
}

static uint64_t count_all(const struct profile *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->samples.n; i++)
		n += count_of(&p->samples.v[i]);
	return n;
}

/* The innermost function of user code, else of the kernel, else what there is, as "name\tmodule". */
static const char *site_of(const struct profile *p, uint32_t stack, struct strtab *t)
{
	uint32_t best[3] = { PROFILE_NONE, PROFILE_NONE, p->stacks.v[stack].frame }, names[16];
	size_t n = 0, which = 0;

	for (; stack; stack = p->stacks.v[stack].parent) {
		uint32_t frame = p->stacks.v[stack].frame, kind = p->frames.v[frame].kind;

		if (kind <= FRAME_KERNEL && best[kind] == PROFILE_NONE)
			best[kind] = frame;
	}
	while (which < 2 && best[which] == PROFILE_NONE)
		which++;
	if (best[which] == PROFILE_NONE)
		return "[unknown]\t";
	add_names(p, best[which], t, names, &n);
	return strtab_get(t, names[n - 1]);
}

#define MOST 4096 /* names, and names in a stack, of the small profile */

struct expected {
	struct strtab names;
	uint64_t self[2][MOST], total[2][MOST], whole[2];
	size_t functions[2]; /* with a total */
};

static void expect(struct expected *e, const struct profile *p)
{
	static uint32_t names[MOST];

	strtab_init(&e->names);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		size_t n = names_of(p, without_notes(p, s->stack), &e->names, names);

		e->whole[s->event] += s->value;
		if (n)
			e->self[s->event][names[n - 1]] += s->value;
		for (size_t k = 0; k < n; k++) {
			bool again = false;

			for (size_t j = 0; j < k; j++)
				again |= names[j] == names[k];
			if (again)
				continue;
			e->functions[s->event] += !e->total[s->event][names[k]];
			e->total[s->event][names[k]] += s->value;
		}
	}
	assert_true(e->names.n < MOST);
}

/* --- two events, recursion, empty and cut stacks --- */

/* Several waits in a sample; below a note, two notes, only notes; in the kernel only, cut, and empty. */
static void add_odd_waits(struct profile *p, uint32_t event, uint32_t stack)
{
	uint32_t file = profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, "/data/static_file");
	uint32_t part = profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, "header");
	uint32_t queue = profile_named_frame(p, PROFILE_NONE, FRAME_KERNEL, "[preempted]");
	uint32_t cut = profile_truncation_frame(p, "no table"), in_kernel = profile_stack(p, stack, queue);
	uint32_t noted = profile_stack(p, stack, file);
	const uint32_t stacks[] = { noted, profile_stack(p, noted, part), profile_stack(p, 0, file),
				    profile_stack(p, 0, queue), in_kernel, profile_stack(p, in_kernel, file),
				    profile_stack(p, 0, cut), profile_stack(p, profile_stack(p, 0, cut), file),
				    0 };

	for (uint32_t i = 0; i < 10 * ARRAY_LEN(stacks); i++)
		profile_add_sample(p, &(struct profile_sample){ .event = i % 7 ? event : 0,
								.value = 1 + i * 123457,
								.stack = stacks[i % ARRAY_LEN(stacks)],
								.thread = i % 3, .count = i % 5 * i });
}

static struct profile *make_two_events(void)
{
	struct profile *p = make_profile(&small);
	uint32_t wait = profile_add_event(p, "wait", "ns", "time off the CPU", 0), stack = 0, f[3];
	uint32_t named = profile_named_frame(p, PROFILE_NONE, FRAME_USER, "only_a_name");

	for (size_t i = 0; i < 3; i++)
		f[i] = 1 + i * 2;
	for (size_t i = 0; i < 60; i++)
		stack = profile_stack(p, stack, i == 30 ? named : f[i % 3]);
	for (size_t i = 0; i < 20; i++) {
		profile_add_sample(p, &(struct profile_sample){ .event = wait, .value = i * 1000, .stack = stack });
		profile_add_sample(p, &(struct profile_sample){ .event = wait, .value = 7, .thread = 1,
								.stack = p->samples.v[i].stack });
		profile_add_sample(p, &(struct profile_sample){ .event = 0, .value = 11, .stack = stack });
	}
	profile_add_sample(p, &(struct profile_sample){ .event = 0, .value = 12345 }); /* the empty stack */
	add_odd_waits(p, wait, stack);
	return p;
}

struct check {
	const struct profile *p;
	struct expected *e;
	size_t rows;
	uint64_t sum;
	char *text;
};

static int event_of(const char *name)
{
	assert_true(!strcmp(name, "cpu") || !strcmp(name, "wait"));
	return !strcmp(name, "wait");
}

static uint64_t number(const char *s)
{
	return strtoull(s, NULL, 10);
}

static void ask(const char *path, const char *sql, capture_row_fn *row, struct check *c)
{
	struct err err = { 0 };

	if (capture_query(path, sql, row, c, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
}

static int check_function(void *context, int columns, const char *const *names, const char *const *v,
			  const bool *numbers)
{
	struct check *c = context;
	char key[400];
	uint32_t id;
	int event;

	if (!v)
		return 0;
	event = event_of(v[0]);
	snprintf(key, sizeof(key), "%s\t%s", v[1], v[2]);
	id = strtab_add(&c->e->names, key);
	assert_int_equal(number(v[3]), c->e->self[event][id]);
	assert_int_equal(number(v[4]), c->e->total[event][id]);
	assert_true(labs((long)(atof(v[5]) * 100 - 1e4 * c->e->self[event][id] / c->e->whole[event])) <= 1);
	assert_true(labs((long)(atof(v[6]) * 100 - 1e4 * c->e->total[event][id] / c->e->whole[event])) <= 1);
	assert_true(numbers[3] && !numbers[1]);
	c->rows++;
	return 0;
}

static void top_functions_counts_recursion_once(void **state)
{
	_cleanup_free_ char *path = in_folder("top");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct expected *e = mem_alloc(sizeof(*e));
	struct check c = { .p = p, .e = e };

	save(p, path);
	expect(e, p);
	ask(path, "select event, function, module, self, total, self_percent, total_percent from top_functions",
	    check_function, &c);
	assert_int_equal(c.rows, e->functions[0] + e->functions[1]);
	assert_true(e->functions[1] > 0);
	strtab_done(&e->names);
	free(e);
}

static int check_stack(void *context, int columns, const char *const *names, const char *const *v,
		       const bool *numbers)
{
	static uint32_t ids[MOST];
	struct check *c = context;
	uint64_t samples = 0, value = 0;
	struct strtab t;
	struct buf text = { 0 };
	size_t n, depth = 0;
	uint32_t stack;

	if (!v)
		return 0;
	stack = number(v[1]);
	strtab_init(&t);
	n = names_of(c->p, stack, &t, ids);
	for (size_t i = 0; i < n; i++) {
		const char *name = strtab_get(&t, ids[i]);

		if (i)
			buf_putc(&text, ';');
		buf_add(&text, name, strcspn(name, "\t"));
	}
	assert_string_equal(v[3], text.data ?: "");
	for (uint32_t k = stack; k; k = c->p->stacks.v[k].parent)
		depth++;
	assert_int_equal(number(v[2]), depth);
	for (size_t i = 0; i < c->p->samples.n; i++) {
		const struct profile_sample *s = &c->p->samples.v[i];

		if (s->stack == stack && (int)s->event == event_of(v[0])) {
			samples += count_of(s);
			value += s->value;
		}
	}
	assert_int_equal(number(v[4]), samples);
	assert_int_equal(number(v[5]), value);
	c->rows++;
	c->sum += samples;
	buf_done(&text);
	strtab_done(&t);
	return 0;
}

static void stacks_are_text(void **state)
{
	_cleanup_free_ char *path = in_folder("stacks");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct check c = { .p = p };

	save(p, path);
	ask(path, "select event, id, depth, stack, samples, value from stacks", check_stack, &c);
	assert_int_equal(c.sum, count_all(p));
	assert_true(c.rows >= small.stacks / 2);
}

static int check_thread(void *context, int columns, const char *const *names, const char *const *v,
			const bool *numbers)
{
	struct check *c = context;
	uint64_t samples = 0, value = 0, whole = 0;

	if (!v)
		return 0;
	c->rows++;
	assert_int_equal(number(v[3]), 4242);
	if (!v[0]) { /* never sampled */
		assert_string_equal(v[1], "sleeper");
		assert_string_equal(v[4], "0");
		return 0;
	}
	for (size_t i = 0; i < c->p->samples.n; i++) {
		const struct profile_sample *s = &c->p->samples.v[i];

		if ((int)s->event != event_of(v[0]))
			continue;
		whole += s->value;
		if (c->p->threads.v[s->thread].tid != number(v[2]))
			continue;
		samples += count_of(s);
		value += s->value;
		assert_string_equal(profile_str(c->p, c->p->threads.v[s->thread].name), v[1]);
		assert_true(atof(v[7]) == c->p->threads.v[s->thread].cpu_ns / 1e9);
		assert_true(atof(v[8]) == c->p->threads.v[s->thread].run_ns / 1e9);
		assert_true(atof(v[9]) == c->p->threads.v[s->thread].queue_ns / 1e9);
		assert_true(atof(v[10]) == c->p->threads.v[s->thread].blocked_ns / 1e9);
	}
	assert_int_equal(number(v[4]), samples);
	assert_int_equal(number(v[5]), value);
	assert_true(labs((long)(atof(v[6]) * 100 - 1e4 * value / whole)) <= 1);
	c->sum += samples;
	return 0;
}

static void threads_have_shares(void **state)
{
	_cleanup_free_ char *path = in_folder("threads");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct check c = { .p = p };

	profile_add_thread(p, &(struct profile_thread){ .tid = 99, .name = profile_string(p, "sleeper") });
	save(p, path);
	ask(path, "select event, name, tid, pid, samples, value, share, cpu_seconds, run_seconds,"
		  " queue_seconds, blocked_seconds from threads", check_thread, &c);
	assert_int_equal(c.sum, count_all(p));
	assert_true(c.rows >= small.threads + 2); /* some have waited, too, and one slept */
}

static int check_module(void *context, int columns, const char *const *names, const char *const *v,
			const bool *numbers)
{
	struct check *c = context;
	uint64_t value = 0, samples = 0;

	if (!v)
		return 0;
	for (size_t i = 0; i < c->p->samples.n; i++) {
		const struct profile_sample *s = &c->p->samples.v[i];
		uint32_t stack = without_notes(c->p, s->stack);
		uint32_t frame = stack ? c->p->stacks.v[stack].frame : PROFILE_NONE;
		uint32_t module = frame == PROFILE_NONE ? PROFILE_NONE : c->p->frames.v[frame].module;
		const char *path = module == PROFILE_NONE ? "[unknown]" : profile_str(c->p, c->p->modules.v[module].path);

		if ((int)s->event == event_of(v[0]) && !strcmp(path, v[1])) {
			value += s->value;
			samples += count_of(s);
		}
	}
	assert_int_equal(number(v[2]), samples);
	assert_int_equal(number(v[3]), value);
	c->sum += samples;
	return 0;
}

static void modules_have_their_self(void **state)
{
	_cleanup_free_ char *path = in_folder("modules");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct check c = { .p = p };

	save(p, path);
	ask(path, "select event, module, samples, self from modules", check_module, &c);
	assert_int_equal(c.sum, count_all(p));
}

/* What a row of waits or notes must say: the sums of all samples with the same key. */
struct sums {
	struct strtab keys;
	uint64_t value[MOST], count[MOST], whole[2];
	size_t rows;
	long rounded; /* values may differ by this */
};

static void sum_up(struct sums *s, const char *key, const struct profile_sample *x)
{
	uint32_t id = strtab_add(&s->keys, key);

	assert_true(id < MOST);
	s->rows += !s->count[id];
	s->value[id] += x->value;
	s->count[id] += count_of(x);
}

struct check_sums {
	struct sums *sums;
	size_t rows;
};

/* Columns: key, key, key, value, count, share, event (a number). */
static int check_sum(void *context, int columns, const char *const *names, const char *const *v,
		     const bool *numbers)
{
	struct check_sums *c = context;
	struct sums *s = c->sums;
	char key[500];
	uint32_t id;

	if (!v)
		return 0;
	snprintf(key, sizeof(key), "%s\t%s\t%s", v[0], v[1], v[2]);
	id = strtab_add(&s->keys, key);
	assert_true(id < MOST);
	if (!s->count[id])
		fail_msg("there is no %s", key);
	assert_true(labs((long)(number(v[3]) - s->value[id])) <= s->rounded);
	assert_int_equal(number(v[4]), s->count[id]);
	assert_true(labs((long)(atof(v[5]) * 100 - 1e4 * s->value[id] / s->whole[number(v[6])])) <= 1);
	c->rows++;
	return 0;
}

static void ask_sums(const char *path, const char *sql, struct sums *sums)
{
	struct check_sums c = { .sums = sums };
	struct err err = { 0 };

	if (capture_query(path, sql, check_sum, &c, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
	assert_int_equal(c.rows, sums->rows);
	strtab_done(&sums->keys);
	free(sums);
}

static void waits_are_where_user_code_waited(void **state)
{
	_cleanup_free_ char *path = in_folder("waits");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct sums *sums = mem_alloc(sizeof(*sums));
	char key[500];

	strtab_init(&sums->keys);
	save(p, path);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		if (s->event != 1)
			continue;
		snprintf(key, sizeof(key), "%u\t%s", p->threads.v[s->thread].tid,
			 site_of(p, s->stack, &sums->keys));
		sum_up(sums, key, s);
		sums->whole[1] += s->value;
	}
	assert_true(sums->rows > 8);
	sums->rounded = 500; /* milliseconds with three digits */
	ask_sums(path, "select tid, function, module, cast(round(ms * 1e6) as integer), count, share, 1"
		       " from waits", sums);
}

static void notes_say_what_leaves_are_about(void **state)
{
	_cleanup_free_ char *path = in_folder("notes");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct sums *sums = mem_alloc(sizeof(*sums));
	char key[500];

	strtab_init(&sums->keys);
	save(p, path);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_frame *f = s->stack ? &p->frames.v[p->stacks.v[s->stack].frame] : NULL;
		const char *site;

		sums->whole[s->event] += s->value;
		if (!f || f->kind != FRAME_NOTE)
			continue;
		site = site_of(p, s->stack, &sums->keys);
		snprintf(key, sizeof(key), "%s\t%s\t%.*s", s->event ? "wait" : "cpu",
			 profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name),
			 (int)strcspn(site, "\t"), site);
		sum_up(sums, key, s);
	}
	assert_true(sums->rows > 5);
	ask_sums(path, "select event, note, function, value, samples, share, event = 'wait' from notes",
		 sums);
}

static int check_wake(void *context, int columns, const char *const *names, const char *const *v,
		      const bool *numbers)
{
	struct check *c = context;
	const struct profile_wake *w;
	struct strtab t;
	const char *site;

	if (!v)
		return 0;
	assert_true(c->rows < c->p->wakes.n);
	w = &c->p->wakes.v[c->rows++];
	strtab_init(&t);
	assert_true(atof(v[0]) == w->time_ns / 1e9);
	assert_string_equal(v[1], profile_str(c->p, c->p->threads.v[w->thread].name));
	assert_int_equal(number(v[2]), c->p->threads.v[w->thread].tid);
	site = site_of(c->p, w->stack, &t);
	assert_memory_equal(v[3], site, strlen(v[3]));
	assert_int_equal(strlen(v[3]), strcspn(site, "\t"));
	assert_true(labs((long)(atof(v[4]) * 1e6 - w->blocked_ns)) <= 500);
	assert_true(labs((long)(atof(v[5]) * 1e6 - w->queue_ns)) <= 500);
	assert_string_equal(v[6], profile_str(c->p, w->waker_name));
	if (w->waker == PROFILE_NONE)
		assert_null(v[7]);
	else
		assert_int_equal(number(v[7]), c->p->threads.v[w->waker].tid);
	site = site_of(c->p, w->waker_stack, &t);
	assert_memory_equal(v[8], site, strlen(v[8]));
	assert_int_equal(strlen(v[8]), strcspn(site, "\t"));
	strtab_done(&t);
	return 0;
}

static void assert_thread(const struct profile *p, uint32_t thread, const char *name, const char *tid)
{
	if (thread == PROFILE_NONE) {
		assert_null(name);
		assert_null(tid);
		return;
	}
	assert_string_equal(name, profile_str(p, p->threads.v[thread].name));
	assert_int_equal(number(tid), p->threads.v[thread].tid);
}

static int check_task_wake(void *context, int columns, const char *const *names, const char *const *v,
			   const bool *numbers)
{
	struct check *c = context;
	const struct profile_taskwake *w;

	if (!v)
		return 0;
	assert_true(c->rows < c->p->taskwakes.n);
	w = &c->p->taskwakes.v[c->rows++];
	assert_true(atof(v[0]) == w->time_ns / 1e9);
	assert_string_equal(v[1], profile_str(c->p, w->type));
	assert_int_equal(number(v[2]), w->task);
	assert_true(labs((long)(atof(v[3]) * 1e6 - w->await_ns)) <= 500);
	assert_true(labs((long)(atof(v[4]) * 1e6 - w->queue_ns)) <= 500);
	assert_thread(c->p, w->thread, v[5], v[6]);
	assert_thread(c->p, w->waker, v[7], v[8]);
	assert_int_equal(w->waker_type == 0, !v[9]);
	if (v[9])
		assert_string_equal(v[9], profile_str(c->p, w->waker_type));
	assert_int_equal(w->waker_task, v[10] ? number(v[10]) : 0);
	assert_int_equal(w->waker_stack != 0, v[11] != NULL);
	return 0;
}

static void wakes_of_tasks_say_who_ended_them(void **state)
{
	_cleanup_free_ char *path = in_folder("taskwakes");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct check c = { .p = p };

	save(p, path);
	ask(path, "select time, type, task, ms, queue_ms, thread, tid, waker, waker_tid, waker_type, waker_task, waker_function"
		  " from task_wakes", check_task_wake, &c);
	assert_int_equal(c.rows, p->taskwakes.n);
	assert_true(c.rows > 50);
}

static void wakes_say_who_ended_them(void **state)
{
	_cleanup_free_ char *path = in_folder("wakes");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct check c = { .p = p };

	save(p, path);
	ask(path, "select time, thread, tid, function, ms, queue_ms, waker, waker_tid, waker_function"
		  " from wakes", check_wake, &c);
	assert_int_equal(c.rows, p->wakes.n);
	assert_true(c.rows > 100);
}

static int check_mark(void *context, int columns, const char *const *names, const char *const *v,
		      const bool *numbers)
{
	struct check *c = context;
	const struct profile_mark *m;

	if (!v)
		return 0;
	assert_true(c->rows < c->p->marks.n);
	m = &c->p->marks.v[c->rows++];
	assert_true(atof(v[0]) == m->start_ns / 1e9);
	assert_true(labs((long)(atof(v[1]) * 1e6 - (m->end_ns - m->start_ns))) <= 500);
	assert_string_equal(v[2], profile_str(c->p, m->kind));
	assert_string_equal(v[3] ?: "", profile_str(c->p, m->name));
	if (m->thread == PROFILE_NONE) {
		assert_null(v[4]);
		assert_null(v[5]);
	} else {
		assert_string_equal(v[4], profile_str(c->p, c->p->threads.v[m->thread].name));
		assert_int_equal(number(v[5]), c->p->threads.v[m->thread].tid);
	}
	return 0;
}

static void marks_are_in_their_order(void **state)
{
	_cleanup_free_ char *path = in_folder("marks");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct check c = { .p = p };

	save(p, path);
	ask(path, "select start, ms, kind, name, thread, tid from marks", check_mark, &c);
	assert_int_equal(c.rows, p->marks.n);
	assert_true(c.rows >= 30);
}

static int keep_first(void *context, int columns, const char *const *names, const char *const *v,
		      const bool *numbers)
{
	struct check *c = context;

	if (v && !c->text)
		c->text = mem_strdup(v[0] ?: "null");
	c->rows += v != NULL;
	return 0;
}

/* Of the counters of a type; others of the same beginning or end are none. */
static void types_of_tasks_have_their_figures(void **state)
{
	_cleanup_free_ char *path = in_folder("tasks");
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	struct check c = { .p = p };

	profile_count_set_of(p, KEY_TASK_POLLS_OF, "node::rpc.v1", 7);
	profile_count_set_of(p, KEY_TASK_POLL_NS_OF, "node::rpc.v1", 2500000);
	profile_count_set_of(p, KEY_TASK_POLL_MAX_NS_OF, "node::rpc.v1", 1500000);
	profile_count_set_of(p, KEY_TASK_AWAIT_NS_OF, "node::rpc.v1", 1000000000);
	profile_count_set(p, KEY_TASK_LOST, 3);
	profile_count_set_of(p, KEY_IO_CALLS_OF, "x.polls", 9);
	save(p, path);
	ask(path, "select type || ' ' || polls || ' ' || poll_ms || ' ' || longest_ms || ' ' || await_ms || ' ' || queue_ms || ' ' || alive"
		  " from tasks where type like 'node%'", keep_first, &c);
	assert_string_equal(c.text, "node::rpc.v1 7 2.5 1.5 1000.0 0.0 0");
	free(c.text);
	c = (struct check){ .p = p };
	ask(path, "select count(*) from tasks where type not like 'node%'", keep_first, &c);
	assert_string_equal(c.text, "0");
	free(c.text);
}

/* CPU time of this process, so that a busy machine does not fail the test. A query that looks at all rows for each row
 * takes minutes; a processor that others share, twice as long as an idle one. */
static void views_of_a_long_recording_are_quick(void **state)
{
	static const struct shape shape = { OF_MANY(100000), OF_MANY(20000), OF_MANY(50000), OF_MANY(15000),
					    OF_MANY(5000), 60, 60 };
	static const char *const sql[] = { "select * from threads", "select * from modules",
					   "select * from top_functions", "select count(stack) from stacks",
					   "select * from waits", "select * from wakes",
					   "select * from task_wakes", "select * from notes" };
	_cleanup_free_ char *path = in_folder("quick");
	_cleanup_(profile_freep) struct profile *p = make_profile(&shape);
	uint32_t wait = profile_add_event(p, "wait", "ns", "time off the CPU", 0);

	for (size_t i = 0; i < shape.samples; i++)
		p->samples.v[i].event = i % 3 ? wait : 0;
	for (size_t i = 0; i < OF_MANY(100); i++)
		add_rest(p); /* 20,000 wakes, each with its stack */
	for (size_t i = 0; i < p->wakes.n; i++)
		profile_add_sample(p, &(struct profile_sample){ .event = wait, .value = p->wakes.v[i].blocked_ns,
								.stack = p->wakes.v[i].stack });
	save(p, path);
	for (size_t i = 0; i < ARRAY_LEN(sql); i++) {
		struct check c = { 0 };
		uint64_t start = clock_process_cpu_ns(), took;

		ask(path, sql[i], keep_first, &c);
		took = clock_process_cpu_ns() - start;
		print_message("%s: %.2f s of CPU (%zu stack nodes)\n", sql[i], took / 1e9, p->stacks.n);
		free(c.text);
		assert_true(SANITIZED || took < 8000000000);
	}
}

/* All of a query's answer, by SQLite alone: with the views of the file. */
static char *answer(const char *path, const char *sql)
{
	struct buf b = { 0 };
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW)
		for (int i = 0; i < sqlite3_column_count(s); i++)
			buf_printf(&b, "%s|", (const char *)sqlite3_column_text(s, i) ?: "null");
	sqlite3_finalize(s);
	sqlite3_close(db);
	buf_putc(&b, '\n');
	return b.data;
}

static int keep_all(void *context, int columns, const char *const *names, const char *const *v, const bool *numbers)
{
	for (int i = 0; v && i < columns; i++)
		buf_printf(context, "%s|", v[i] ?: "null");
	return 0;
}

/* The same by capture_query(): with our views, and sums of our own where the file has none. */
static char *our_answer(const char *path, const char *sql)
{
	struct err err = { 0 };
	struct buf b = { 0 };

	if (capture_query(path, sql, keep_all, &b, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
	buf_putc(&b, '\n');
	return b.data;
}

static void assert_answer(const char *path, const char *sql, const char *expected)
{
	_cleanup_free_ char *theirs = answer(path, sql), *ours = our_answer(path, sql);

	assert_string_equal(theirs, expected);
	assert_string_equal(ours, expected);
}

/* The sums that a file carries say what its samples say, to any program that reads it and to ours. */
static void sums_say_what_samples_say(void **state)
{
	static const char *const sql[] = { "select * from threads", "select * from modules", "select * from stacks order by event, id",
					   "select * from top_functions", "select * from waits", "select * from notes" };
	_cleanup_free_ char *path = in_folder("sums");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	uint32_t wait = profile_add_event(p, "wait", "ns", "time off the CPU", 0);
	size_t n = p->samples.n;

	for (size_t i = 0; i < 34 * n; i++) {
		struct profile_sample s = p->samples.v[i % n];

		s.event = i % n % 3 ? s.event : wait;
		s.count = i % 4;
		s.value += i % 7;
		profile_add_sample(p, &s);
	}
	save(p, path);
	_cleanup_free_ char *there = answer(path, "select (select count(*) > 0 from weight),"
						  " (select count(*) > 0 from function_sum)");
	assert_string_equal(there, "1|1|\n");
	tamper(path, "create table kept as select * from weight; create table kept_functions as select * from function_sum");
	for (size_t i = 0; i < ARRAY_LEN(sql); i++) {
		_cleanup_free_ char *sums = answer(path, sql[i]);

		assert_true(strlen(sums) > 10 || strstr(sql[i], "notes"));
		assert_answer(path, sql[i], sums);
		tamper(path, "delete from weight");
		assert_answer(path, sql[i], sums);
		tamper(path, "delete from function_sum");
		assert_answer(path, sql[i], sums);
		tamper(path, "insert into weight select * from kept");
		assert_answer(path, sql[i], sums);
		tamper(path, "insert into function_sum select * from kept_functions");
	}
}

/* Trees as we write them, and trees that we never would: these cannot be walked, SQL says what they mean. */
static const struct {
	const char *sql;
	bool walked;
} trees[] = {
	{ "select 1", true },
	{ "update sample set stack = 99999999 where rowid % 9 = 0", true },
	{ "update sample set value = 0 where rowid % 11 = 0", true },
	{ "delete from frame where id = 3; delete from frame_line where frame = 5", true },
	{ "update frame_line set depth = depth + 9 where frame = 7", true },
	{ "update frame_line set function = 1 where frame < 40", true },
	{ "update stack set parent = 0 where id % 7 = 0", true },
	{ "update stack set frame = 123456 where id % 13 = 0", true },
	{ "update stack set parent = id + 1 where id = 20", false },
	{ "update stack set parent = id where id = 30", false },
	{ "update stack set parent = null where id = 31", false },
	{ "update stack set parent = 'x' where id = 31", false },
	{ "delete from stack where id = 33", false },
	{ "update stack set id = -id where id = 34", false },
	{ "update frame set kind = 7 where id = 1", false },
	{ "update frame set kind = null where id = 1", false },
	{ "update frame_line set depth = -1 where frame = 7 and depth = 0", false },
	{ "update sample set value = 4611686018427387904 where rowid = 1", false },
};

/* top_functions by one walk and by SQL. */
static void functions_are_summed_as_sql_sums_them(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
		_cleanup_free_ char *path = in_folder("walked");
		_cleanup_(profile_freep) struct profile *p = make_two_events();
		_cleanup_free_ char *theirs = NULL, *ours = NULL, *empty = NULL, *filled = NULL;

		save(p, path);
		tamper(path, "delete from function_sum");
		tamper(path, trees[i].sql);
		empty = answer(path, "select count(*) from function_sum");
		assert_string_equal(empty, "0|\n");
		filled = our_answer(path, "select count(event) > 0 from function_sum");
		if (strcmp(filled, trees[i].walked ? "1|\n" : "0|\n"))
			fail_msg("%s: %s", trees[i].sql, filled);
		theirs = answer(path, "select * from top_functions");
		ours = our_answer(path, "select * from top_functions");
		if (strcmp(theirs, ours) || strlen(ours) < 10)
			fail_msg("%s:\n%s\n%s", trees[i].sql, theirs, ours);
		unlink(path);
	}
}

/* The views that our functions walk the tree for, and the same by SQL alone. */
static void stacks_are_walked_as_sql_walks_them(void **state)
{
	static const char *const sql[] = { "select * from stacks order by event, id", "select * from sites order by stack",
					   "select * from waits" };

	/* The last one is about values, not about the tree. */
	for (size_t i = 0; i + 1 < ARRAY_LEN(trees); i++) {
		_cleanup_free_ char *path = in_folder("tree");
		_cleanup_(profile_freep) struct profile *p = make_two_events();

		save(p, path);
		tamper(path, trees[i].sql);
		for (size_t k = 0; k < ARRAY_LEN(sql); k++) {
			_cleanup_free_ char *theirs = answer(path, sql[k]), *ours = our_answer(path, sql[k]);

			if (strcmp(theirs, ours))
				fail_msg("%s: %s:\n%s\n%s", trees[i].sql, sql[k], theirs, ours);
		}
		unlink(path);
	}
}

/* Instructions of SQLite's machine for all of a query, with the views of the file: they are the same on a busy machine. */
static uint64_t count_steps(const char *path, const char *sql)
{
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;
	uint64_t steps;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW)
		;
	steps = (uint32_t)sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 0);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return steps;
}

/* No view looks at all rows for each row. */
static void views_of_twice_the_rows_take_twice_the_steps(void **state)
{
	static const struct shape shapes[] = { { 6000, 1500, 5000, 1000, 300, 60, 60 },
					       { 12000, 3000, 10000, 2000, 600, 60, 60 } };
	static const char *const sql[] = { "select * from threads", "select * from modules", "select * from stacks",
					   "select * from top_functions", "select * from sites", "select * from waits",
					   "select * from wakes", "select * from task_wakes", "select * from notes" };
	char *paths[] = { in_folder("once"), in_folder("twice") };
	double nodes[2];

	for (size_t i = 0; i < 2; i++) {
		_cleanup_(profile_freep) struct profile *p = make_profile(&shapes[i]);
		uint32_t wait = profile_add_event(p, "wait", "ns", "time off the CPU", 0);

		for (size_t k = 0; k < p->samples.n; k++)
			p->samples.v[k].event = k % 3 ? wait : 0;
		for (size_t k = 0; k <= i; k++)
			add_rest(p);
		nodes[i] = p->stacks.n;
		save(p, paths[i]);
	}
	assert_true(nodes[1] / nodes[0] > 1.6 && nodes[1] / nodes[0] < 2.2);
	for (size_t i = 0; i < ARRAY_LEN(sql); i++) {
		uint64_t once = count_steps(paths[0], sql[i]), twice = count_steps(paths[1], sql[i]);

		print_message("%s: %llu and %llu steps\n", sql[i], (unsigned long long)once, (unsigned long long)twice);
		assert_true(once > 1000 && twice < 2.6 * once);
	}
	free(paths[0]);
	free(paths[1]);
}

/* --- queries --- */

static void queries_only_read(void **state)
{
	static const char *const refused[] = {
		"delete from sample", "insert into meta values (1, 2)", "drop table sample", "attach 'x' as y",
		"pragma journal_mode = wal", "pragma writable_schema = on", "vacuum", "vacuum into '/tmp/x'",
		"create temp table x(y)", "select load_extension('x')", "begin", "explain delete from sample",
	};
	_cleanup_free_ char *path = in_folder("query");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	struct check c = { 0 };
	struct err err;

	save(p, path);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (capture_query(path, refused[i], keep_first, &c, &err) >= 0)
			fail_msg("this was allowed: %s", refused[i]);
	assert_int_equal(c.rows, 0);
	assert_true(capture_query(path, "select 1; select 2", keep_first, &c, &err) < 0);
	assert_non_null(strstr(err.text, "one statement"));
	assert_true(capture_query(path, " ", keep_first, &c, &err) < 0);
	assert_true(capture_query(path, "select * from functions", keep_first, &c, &err) < 0);
	assert_non_null(strstr(err.text, "no such table: functions"));
	assert_non_null(strstr(err.text,
			       "frames,marks,modules,notes,sites,stacks,task_wakes,tasks,threads,top_functions,waits,wakes"));
	assert_true(capture_query(path, "selec", keep_first, &c, &err) < 0);
	assert_non_null(strstr(err.text, "syntax error"));
	ask(path, "select count(*) from sample;", keep_first, &c);
	assert_string_equal(c.text, "500");
	ask(path, "pragma table_info(sample)", keep_first, &c);
	ask(path, "explain query plan select * from threads", keep_first, &c);
	ask(path, "select null", keep_first, &c);
	assert_true(c.rows > 7);
	free(c.text);
}

/* As record and report count: a row may stand for many waits. */
static void a_summary_counts_what_is_shown(void **state)
{
	_cleanup_free_ char *path = in_folder("summary"), *words = NULL, *rows = NULL;
	_cleanup_(profile_freep) struct profile *p = make_two_events();
	uint64_t counts[2] = { 0 };
	struct capture_summary s;

	for (size_t i = 0; i < p->samples.n; i++)
		counts[p->samples.v[i].event] += MAX(p->samples.v[i].count, 1u);
	save(p, path);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(capture_summary(path, &s, NULL), 0);
		assert_string_equal(s.target, "op-reth");
		assert_string_equal(s.what, "cpu,wait");
		assert_int_equal(s.start_wall_ns, p->start_wall_ns);
		assert_int_equal(s.duration_ns, p->duration_ns);
		assert_int_equal(s.rows, p->samples.n);
		assert_true(s.counted && s.finished);
		assert_true(s.samples == counts[0] && s.waits == counts[1] && !s.others);
		capture_summary_done(&s);
		/* Without the recorder's sums the rows are counted. */
		tamper(path, "delete from event_sum");
	}
	s = (struct capture_summary){ .counted = true, .samples = 11401, .waits = 1, .others = 2 };
	words = capture_summary_counts(&s);
	assert_string_equal(words, "11,401 samples, 1 wait, 2 others");
	s = (struct capture_summary){ .rows = 157308 };
	rows = capture_summary_counts(&s);
	assert_string_equal(rows, "157,308 rows");
	unlink(path);
	assert_int_equal(capture_summary(path, &s, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(top_functions_counts_recursion_once),
		cmocka_unit_test(stacks_are_text),
		cmocka_unit_test(threads_have_shares),
		cmocka_unit_test(modules_have_their_self),
		cmocka_unit_test(waits_are_where_user_code_waited),
		cmocka_unit_test(notes_say_what_leaves_are_about),
		cmocka_unit_test(wakes_say_who_ended_them),
		cmocka_unit_test(types_of_tasks_have_their_figures),
		cmocka_unit_test(wakes_of_tasks_say_who_ended_them),
		cmocka_unit_test(marks_are_in_their_order),
		cmocka_unit_test(views_of_a_long_recording_are_quick),
		cmocka_unit_test(sums_say_what_samples_say),
		cmocka_unit_test(functions_are_summed_as_sql_sums_them),
		cmocka_unit_test(stacks_are_walked_as_sql_walks_them),
		cmocka_unit_test(views_of_twice_the_rows_take_twice_the_steps),
		cmocka_unit_test(queries_only_read),
		cmocka_unit_test(a_summary_counts_what_is_shown),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
