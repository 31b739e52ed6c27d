/* test_trace.c - Chrome traces: both forms, cut anywhere, unbalanced, of every clock, and what they become in the model. */
#include "test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/vec.h"
#include "import/trace/traceclock.h"
#include "import/trace/traceevents.h"
#include "import/trace/tracemarks.h"
#include "import/trace/tracespans.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* --- events --- */

struct events {
	VEC(struct trace_event) list;
};

static void got_event(void *context, const struct trace_event *e)
{
	struct events *l = context;

	vec_push(&l->list, *e);
}

/* Reads text in pieces of so many bytes. */
static int read_pieces(const char *text, size_t piece, struct events *l, bool *ret_whole, struct err *err)
{
	struct traceevents *t = traceevents_new(got_event, l);
	size_t n = strlen(text);
	int r = 0;

	for (size_t i = 0; i < n && !r; i += piece)
		r = traceevents_feed(t, text + i, n - i < piece ? n - i : piece, err);
	*ret_whole = traceevents_whole(t);
	traceevents_free(t);
	return r;
}

static const char both[] =
	"{\"displayTimeUnit\":\"ns\",\"other\":{\"deep\":[1,{\"ph\":\"X\"}]},\"traceEvents\":[\n"
	"{\"ph\":\"M\",\"pid\":1,\"name\":\"thread_name\",\"tid\":3,\"args\":{\"name\":\"engine\"}},\n"
	"{\"args\":{\"block_num\":\"24443168\",\"gas_used\":21000,\"deep\":{\"number\":7}},\"cat\":\"a\",\"name\":\"on\\u005fnew\\\"\",\"ph\":\"B\","
	"\"pid\":1,\"tid\":3,\"ts\":1234.567},\n"
	"{\"ph\":\"X\",\"name\":\"x\",\"ts\":5,\"dur\":0.5,\"pid\":\"p\",\"tid\":4,\"id\":\"0x1f\"}],\"last\":true}";

static void forms(void **state)
{
	for (size_t piece = 1; piece < 64; piece += piece < 8 ? 1 : 9) {
		struct events l = { 0 };
		bool whole;

		assert_int_equal(read_pieces(both, piece, &l, &whole, NULL), 0);
		assert_true(whole);
		assert_int_equal(l.list.n, 3);
		assert_string_equal(l.list.v[0].called, "engine");
		assert_int_equal(l.list.v[0].phase, 'M');
		assert_string_equal(l.list.v[1].name, "on_new\"");
		assert_int_equal(l.list.v[1].time_ns, 1234567);
		assert_int_equal(l.list.v[1].tid, 3);
		assert_int_equal(l.list.v[1].block.number, 24443168);
		assert_int_equal(l.list.v[1].block.gas, 21000);
		assert_int_equal(l.list.v[1].block.known, BLOCK_NUMBER | BLOCK_GAS);
		assert_int_equal(l.list.v[2].duration_ns, 500);
		assert_int_equal(l.list.v[2].id, 0x1f);
		assert_true(l.list.v[2].pid > INT64_MAX);
		vec_done(&l.list);
	}
}

/* A trace that is still written ends anywhere. */
static void unfinished(void **state)
{
	static const char array[] = "[\n{\"ph\":\"B\",\"ts\":1,\"name\":\"a\",\"tid\":0},\n{\"ph\":\"E\",\"ts\":2,\"name\":\"a\",\"tid\":0}";
	size_t n = strlen(array);

	for (size_t cut = 1; cut <= n; cut++) {
		struct events l = { 0 };
		char text[256];
		bool whole;

		snprintf(text, sizeof(text), "%.*s", (int)cut, array);
		assert_int_equal(read_pieces(text, 7, &l, &whole, NULL), 0);
		assert_false(whole);
		assert_int_equal(l.list.n, cut == n ? 2 : strchr(text, '}') ? 1 : 0);
		vec_done(&l.list);
	}
}

static void no_traces(void **state)
{
	static const struct {
		const char *text;
		size_t events;
		uint64_t offset;
	} cases[] = {
		{ "heap_v2/1", 0, 0 },
		{ "\x7f" "ELF", 0, 0 },
		{ "[{\"ph\":\"i\"}}]", 1, 11 },
		{ "[{\"ph\":\"i\"},\x01]", 1, 12 },
		{ "[{\"a\\q\":1}]", 0, 5 },
		{ "[{\"a\\u00g0\":1}]", 0, 8 },
		{ "[{{\"ph\":\"i\"}}]", 0, 2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct events l = { 0 };
		struct err err = { 0 };
		bool whole;

		assert_int_equal(read_pieces(cases[i].text, 5, &l, &whole, &err), -EINVAL);
		assert_int_equal(l.list.n, cases[i].events);
		assert_int_equal(err.offset, cases[i].offset);
		vec_done(&l.list);
	}
}

static void numbers(void **state)
{
	static const struct {
		const char *ts;
		bool timed;
		uint64_t ns;
	} cases[] = {
		{ "0", true, 0 }, { "0.001", true, 1 }, { "1.9999", true, 1999 }, { "1790000000123456.789", true, 1790000000123456789 },
		{ "1.5e3", true, 1500000 }, { "-1", false, 0 }, { "1e400", false, 0 }, { "99999999999999999999", false, 0 },
		{ "null", false, 0 }, { "\"12.5\"", true, 12500 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct events l = { 0 };
		char text[128];
		bool whole;

		snprintf(text, sizeof(text), "[{\"ph\":\"B\",\"ts\":%s}]", cases[i].ts);
		assert_int_equal(read_pieces(text, 100, &l, &whole, NULL), 0);
		assert_int_equal(l.list.n, 1);
		assert_int_equal(l.list.v[0].timed, cases[i].timed);
		if (cases[i].timed)
			assert_int_equal(l.list.v[0].time_ns, cases[i].ns);
		vec_done(&l.list);
	}
}

/* --- spans --- */

struct spans {
	VEC(struct trace_span) list;
};

static void got_span(void *context, const struct trace_span *s)
{
	struct spans *l = context;

	vec_push(&l->list, *s);
}

static struct trace_event event(char phase, uint64_t time, uint64_t tid, const char *name)
{
	struct trace_event e = { .phase = phase, .timed = true, .time_ns = time, .pid = 1, .tid = tid };

	snprintf(e.name, sizeof(e.name), "%s", name);
	return e;
}

static void take(struct tracespans *t, char phase, uint64_t time, uint64_t tid, const char *name)
{
	struct trace_event e = event(phase, time, tid, name);

	tracespans_take(t, &e);
}

static void unbalanced(void **state)
{
	struct spans l = { 0 };
	struct tracespans *t = tracespans_new(got_span, &l);
	const struct tracespans_counts *c = tracespans_counted(t);

	take(t, 'E', 5, 1, "early");      /* no beginning */
	take(t, 'B', 10, 1, "outer");
	take(t, 'B', 11, 1, "lost");      /* the end of the outer one passes over it */
	take(t, 'B', 10, 2, "other");
	take(t, 'E', 20, 1, "outer");
	take(t, 'E', 21, 1, "lost");
	take(t, 'E', 30, 2, "");          /* without a name it is the innermost's */
	take(t, 'B', 40, 2, "never");
	take(t, 'B', 50, 3, "back");
	take(t, 'E', 49, 3, "back");      /* before it began */
	assert_int_equal(l.list.n, 2);
	assert_string_equal(tracespans_name(t, l.list.v[0].name), "outer");
	assert_int_equal(l.list.v[0].start_ns, 10);
	assert_int_equal(l.list.v[0].end_ns, 20);
	assert_string_equal(tracespans_name(t, l.list.v[1].name), "other");
	assert_int_equal(tracespans_thread(t, l.list.v[1].thread)->tid, 2);
	assert_int_equal(c->ends, 2);
	assert_int_equal(c->begins, 1);
	assert_int_equal(c->open, 1);
	assert_int_equal(c->odd, 1);
	assert_int_equal(c->last_ns, 50);
	tracespans_free(t);
	vec_done(&l.list);
}

static void async(void **state)
{
	struct spans l = { 0 };
	struct tracespans *t = tracespans_new(got_span, &l);
	struct trace_event e = event('b', 10, 1, "job");

	e.id = 7;
	tracespans_take(t, &e);
	e.time_ns = 12; /* the same again, within it */
	tracespans_take(t, &e);
	e.id = 8;
	e.time_ns = 13;
	tracespans_take(t, &e);
	e = event('e', 20, 2, "job");
	e.id = 7;
	tracespans_take(t, &e);
	e.time_ns = 30;
	tracespans_take(t, &e);
	e.time_ns = 31;
	tracespans_take(t, &e); /* one too many */
	assert_int_equal(l.list.n, 2);
	assert_int_equal(l.list.v[0].start_ns, 12);
	assert_int_equal(l.list.v[0].end_ns, 20);
	assert_int_equal(l.list.v[1].start_ns, 10);
	assert_int_equal(l.list.v[1].end_ns, 30);
	assert_int_equal(tracespans_counted(t)->ends, 1);
	assert_int_equal(tracespans_counted(t)->open, 1);
	tracespans_free(t);
	vec_done(&l.list);
}

/* However many begin, memory is bounded, and what ends afterwards is joined right. */
static void too_many(void **state)
{
	struct spans l = { 0 };
	struct tracespans *t = tracespans_new(got_span, &l);

	for (int i = 0; i < 1000000; i++)
		take(t, 'B', i, 1, "deep");
	assert_int_equal(tracespans_counted(t)->open, 262144);
	for (int i = 0; i < 1000000; i++)
		take(t, 'E', 2000000 + i, 1, "deep");
	assert_int_equal(tracespans_counted(t)->open, 0);
	assert_int_equal(tracespans_counted(t)->spans, 262144);
	assert_int_equal(tracespans_counted(t)->beyond, 1000000 - 262144);
	assert_int_equal(l.list.v[l.list.n - 1].start_ns, 0);
	assert_int_equal(l.list.v[l.list.n - 1].end_ns, 2999999);
	for (int i = 0; i < 100000; i++)
		take(t, 'X', i, i, "t");
	assert_true(tracespans_threads(t) <= 65536);
	tracespans_free(t);
	vec_done(&l.list);
}

/* --- the clock --- */

#define S 1000000000LL
#define WALL (1790000000LL * S)

static void clocks(void **state)
{
	static const struct {
		struct traceclock_facts f;
		uint64_t first;
		enum traceclock_how how;
		int64_t zero;
		bool sure;
	} cases[] = {
		/* The user's word goes before all others. */
		{ { .given = true, .given_ns = -5, .start_wall_ns = WALL }, WALL, TRACECLOCK_GIVEN, -5, true },
		{ { .start_wall_ns = WALL, .start_mono_ns = 900 * S, .duration_ns = 10 * S }, WALL + 1, TRACECLOCK_WALL, -WALL, true },
		{ { .start_wall_ns = WALL, .start_mono_ns = 900 * S, .duration_ns = 10 * S }, 850 * S, TRACECLOCK_MONO, -900 * S, true },
		/* A file that was made 20 s before, and last written to right after its last event. */
		{ { .start_wall_ns = WALL, .start_mono_ns = 900 * S, .duration_ns = 10 * S, .born_wall_ns = WALL - 20 * S,
		    .written_wall_ns = WALL + 11 * S, .last_ns = 31 * S - 1000 }, 5000000, TRACECLOCK_BORN, -20 * S, true },
		/* It was there before, and emptied: its birth says nothing. */
		{ { .start_wall_ns = WALL, .duration_ns = 10 * S, .born_wall_ns = WALL - 5000 * S,
		    .written_wall_ns = WALL + 11 * S, .last_ns = 31 * S }, 5000000, TRACECLOCK_WRITTEN, -20 * S, false },
		/* A copy, which kept the time of the last write. */
		{ { .start_wall_ns = WALL, .duration_ns = 10 * S, .born_wall_ns = WALL + 500 * S,
		    .written_wall_ns = WALL + 11 * S, .last_ns = 31 * S }, 5000000, TRACECLOCK_WRITTEN, -20 * S, false },
		/* Seen to grow, often. */
		{ { .start_wall_ns = WALL, .duration_ns = 10 * S, .born_wall_ns = WALL - 20 * S, .written_wall_ns = WALL + 15 * S,
		    .last_ns = 31 * S, .growths = 100, .grown_ns = -20 * S + 200000 }, 5000000, TRACECLOCK_GROWN, -20 * S + 200000, true },
		{ { .start_wall_ns = WALL, .duration_ns = 10 * S, .born_wall_ns = WALL - 5000 * S, .written_wall_ns = WALL + 15 * S,
		    .last_ns = 31 * S, .growths = 3, .grown_ns = -20 * S + 200000 }, 5000000, TRACECLOCK_GROWN, -20 * S + 200000, false },
		{ { .start_wall_ns = WALL, .duration_ns = 10 * S, .born_wall_ns = WALL - 20 * S, .written_wall_ns = WALL + 15 * S,
		    .last_ns = 31 * S, .growths = 3, .grown_ns = -17 * S }, 5000000, TRACECLOCK_BORN, -20 * S, true },
	};
	struct traceclock c;
	uint64_t at;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(traceclock_decide(&cases[i].f, cases[i].first, &c, NULL), 0);
		assert_int_equal(c.how, cases[i].how);
		assert_true(c.zero_ns == cases[i].zero);
		assert_int_equal(c.blur_ns != UINT64_MAX, cases[i].sure);
	}
	assert_int_equal(traceclock_decide(&(struct traceclock_facts){ .start_wall_ns = WALL }, 1, &c, NULL), -ENODATA);
	c = (struct traceclock){ .zero_ns = -20 };
	assert_false(traceclock_convert(&c, 19, &at));
	assert_true(traceclock_convert(&c, 25, &at));
	assert_int_equal(at, 5);
	assert_false(traceclock_convert(&c, UINT64_MAX, &at));
}

static void last_event(void **state)
{
	uint64_t ns;
	static const char text[] = "ts\":3},{\"ts\":17.25,\"a\":1},\n{\"ts\": 16},{\"ts\":9999";

	assert_true(traceclock_last(text, strlen(text), &ns));
	assert_int_equal(ns, 17250);
	assert_false(traceclock_last(text, 8, &ns));
	assert_false(traceclock_last("", 0, &ns));
}

static void offsets(void **state)
{
	int64_t ns;

	assert_int_equal(traceclock_parse_offset("-250ms", &ns, NULL), 0);
	assert_true(ns == -250000000);
	assert_int_equal(traceclock_parse_offset("2.5s", &ns, NULL), 0);
	assert_true(ns == 2500000000);
	assert_int_equal(traceclock_parse_offset("soon", &ns, NULL), -EINVAL);
	assert_int_equal(traceclock_parse_offset("", &ns, NULL), -EINVAL);
}

/* --- marks --- */

static int trace_fd(const char *text)
{
	int fd = memfd_create("trace", 0);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* A recording of 10 s with the threads engine, worker and worker. */
static struct profile *recording(void)
{
	static const char *const names[] = { "engine", "worker", "worker" };
	struct profile *p = profile_new();
	uint32_t process = profile_add_process(p, &(struct profile_process){ .pid = 42 });

	for (uint32_t i = 0; i < 3; i++)
		profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = 100 + i, .name = profile_string(p, names[i]) });
	p->start_wall_ns = WALL;
	p->duration_ns = 10 * S;
	return p;
}

static const struct traceclock_facts at_the_start = { .given = true, .start_wall_ns = WALL, .duration_ns = 10 * S };

static int add(struct profile *p, const char *text, size_t first, struct tracemarks_result *r)
{
	static struct err broken;
	int fd = trace_fd(text), e;

	broken = (struct err){ 0 };
	e = tracemarks_add(p, fd, &at_the_start, first, &broken, r, NULL);
	close(fd);
	return e;
}

#define BLOCK(phase, ts, name, number) \
	"{\"ph\":\"" phase "\",\"pid\":1,\"tid\":0,\"ts\":" ts ",\"name\":\"" name "\",\"args\":{\"block_num\":" number "}},"

static const char node[] =
	"[{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"engine\"}},"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"worker\"}},"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"worker\"}},"
	BLOCK("B", "1000", "on_new_payload", "\"7\"")
	"{\"ph\":\"B\",\"pid\":1,\"tid\":0,\"ts\":2000,\"name\":\"execute_block\"},{\"ph\":\"E\",\"pid\":1,\"tid\":0,\"ts\":3000,\"name\":\"execute_block\"},"
	"{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":2000,\"dur\":500,\"name\":\"prewarm\"},"
	BLOCK("E", "5000", "on_new_payload", "\"7\"")
	BLOCK("B", "6000", "on_new_payload", "7") BLOCK("E", "6010", "on_new_payload", "7") /* sent again */
	BLOCK("B", "9000000", "build_payload", "8") BLOCK("E", "9500000", "build_payload", "8")
	BLOCK("B", "9500100", "on_new_payload", "8") BLOCK("E", "9700100", "on_new_payload", "8") /* the insertion of what was built */
	"{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":9999999,\"dur\":500,\"name\":\"late\"}";

static const struct profile_mark *mark_named(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->marks.n; i++)
		if (!strcmp(profile_str(p, p->marks.v[i].name), name))
			return &p->marks.v[i];
	fail_msg("there is no mark %s", name);
	return NULL;
}

static void marks(void **state)
{
	struct profile *p = recording();
	struct tracemarks_result r;
	const struct profile_mark *m;

	assert_int_equal(add(p, node, 0, &r), 0);
	assert_int_equal(r.marks, 6);
	assert_int_equal(r.blocks, 2);
	assert_int_equal(r.outside, 1);
	assert_int_equal(p->marks.n, 6);
	m = mark_named(p, "block 7");
	assert_string_equal(profile_str(p, m->kind), "block");
	assert_int_equal(m->start_ns, 1000000);
	assert_int_equal(m->end_ns, 5000000);
	assert_int_equal(m->thread, 0);
	assert_int_equal(m->block.number, 7);
	assert_string_equal(profile_str(p, mark_named(p, "on_new_payload 7")->kind), "on_new_payload");
	/* What built the block is its time, not the insertion. */
	assert_int_equal(mark_named(p, "block 8")->start_ns, 9 * S);
	assert_int_equal(mark_named(p, "block 8")->end_ns, 9500000000);
	assert_int_equal(mark_named(p, "execute_block")->thread, 0);
	/* Two threads are called so, in the trace and in the recording. */
	assert_int_equal(mark_named(p, "prewarm")->thread, PROFILE_NONE);
	assert_int_equal(profile_counter(p, KEY_MARKS_TRACE_SPANS), 6);
	assert_int_equal(profile_counter(p, KEY_MARKS_TRACE_OUTSIDE), 1);
	profile_free(p);
}

/* A block that a log told of takes the times of the trace, and keeps its gas. */
static void known_blocks(void **state)
{
	struct profile *p = recording();
	struct tracemarks_result r;

	for (uint64_t i = 6; i < 9; i++)
		profile_add_mark(p, &(struct profile_mark){ .name = profile_string(p, "block n"), .kind = profile_string(p, "block"),
							    .start_ns = i, .end_ns = i, .thread = PROFILE_NONE,
							    .block = { .number = i, .gas = 21000 * i, .known = BLOCK_NUMBER | BLOCK_GAS } });
	/* The first two are on disk. */
	assert_int_equal(add(p, node, 2, &r), 0);
	assert_int_equal(p->marks.v[1].start_ns, 7);
	assert_int_equal(p->marks.v[2].start_ns, 9 * S);
	assert_int_equal(p->marks.v[2].block.gas, 168000);
	assert_int_equal(p->marks.v[2].thread, 0);
	assert_int_equal(r.blocks, 2);
	assert_int_equal(r.marks, 5);
	profile_free(p);
}

/* A node that nobody knows: of the spans with a number those with most time are the blocks. */
static void unknown_node(void **state)
{
	struct profile *p = recording();
	struct tracemarks_result r;

	assert_int_equal(add(p,
			     "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":1000,\"name\":\"seal\",\"args\":{\"number\":5}},"
			     "{\"ph\":\"X\",\"ts\":1,\"dur\":10,\"name\":\"eth_getBlockByNumber\",\"args\":{\"number\":1}},"
			     "{\"ph\":\"X\",\"ts\":1,\"dur\":100000,\"name\":\"idle\"}]}", 0, &r), 0);
	assert_int_equal(r.blocks, 1);
	assert_string_equal(r.block_name, "seal");
	assert_int_equal(mark_named(p, "block 5")->end_ns, 1001000);
	assert_string_equal(profile_str(p, mark_named(p, "eth_getBlockByNumber 1")->kind), "eth_getBlockByNumber");
	profile_free(p);
}

static void threads_by_number(void **state)
{
	struct profile *p = recording();
	struct tracemarks_result r;

	assert_int_equal(add(p, "[{\"ph\":\"X\",\"pid\":42,\"tid\":102,\"ts\":1,\"dur\":1,\"name\":\"a\"},"
			     "{\"ph\":\"X\",\"pid\":43,\"tid\":102,\"ts\":1,\"dur\":1,\"name\":\"b\"}]", 0, &r), 0);
	assert_int_equal(mark_named(p, "a")->thread, 2);
	assert_int_equal(mark_named(p, "b")->thread, PROFILE_NONE);
	profile_free(p);
}

/* Of too many spans the longest are kept, and blocks. */
static void too_many_marks(void **state)
{
	struct profile *p = recording();
	struct tracemarks_result r;
	struct buf text = { 0 };

	buf_puts(&text, "[" BLOCK("B", "1", "on_new_payload", "9") BLOCK("E", "2", "on_new_payload", "9"));
	for (int i = 0; i < 2 * TRACEMARKS_MOST + 1000; i++)
		buf_printf(&text, "{\"ph\":\"X\",\"ts\":%d,\"dur\":%d,\"name\":\"x\"},\n", i, i + 1);
	assert_int_equal(add(p, text.data, 0, &r), 0);
	assert_int_equal(p->marks.n, TRACEMARKS_MOST);
	assert_int_equal(r.short_ones, TRACEMARKS_MOST + 1001);
	assert_int_equal(mark_named(p, "block 9")->end_ns, 2000);
	for (size_t i = 1; i < p->marks.n; i++)
		assert_true(p->marks.v[i].end_ns - p->marks.v[i].start_ns > (TRACEMARKS_MOST + 1000) * 1000ULL);
	buf_done(&text);
	profile_free(p);
}

static void bad_files(void **state)
{
	struct profile *p = recording();
	struct tracemarks_result r;
	struct buf words = { 0 };

	assert_int_equal(add(p, "no trace", 0, &r), -EINVAL);
	assert_int_equal(add(p, "", 0, &r), -ENODATA);
	assert_int_equal(add(p, "{\"traceEvents\":{}}", 0, &r), -ENODATA);
	assert_int_equal(p->marks.n, 0);
	/* Good up to a point: what is before it stays. */
	assert_int_equal(add(p, "[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"a\"},7,{\"ph\":\"E\",\"ts\":1},\x02", 0, &r), 0);
	assert_int_equal(p->marks.n, 1);
	assert_true(tracemarks_troubled(&r));
	tracemarks_say(&r, "t.json", &words);
	assert_non_null(strstr(words.data, "at byte"));
	assert_non_null(strstr(words.data, "1 ends have no beginning"));
	assert_int_equal(profile_counter(p, KEY_MARKS_TRACE_UNBALANCED), 1);
	assert_int_equal(profile_counter(p, KEY_MARKS_TRACE_MALFORMED), 2);
	buf_done(&words);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),        cmocka_unit_test(unfinished),   cmocka_unit_test(no_traces),
		cmocka_unit_test(numbers),      cmocka_unit_test(unbalanced),   cmocka_unit_test(async),
		cmocka_unit_test(too_many),     cmocka_unit_test(clocks),       cmocka_unit_test(last_event),
		cmocka_unit_test(offsets),      cmocka_unit_test(marks),        cmocka_unit_test(known_blocks),
		cmocka_unit_test(unknown_node), cmocka_unit_test(threads_by_number), cmocka_unit_test(too_many_marks),
		cmocka_unit_test(bad_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
