/* test_pprof.c - profiles of pprof: what they become, and what is refused. */
#include "test.h"

#include <errno.h>

#include "base/codec/gzip.h"
#include "base/codec/protobuf.h"
#include "import/pprof/pprof.h"
#include "import/pprof/pproftypes.h"
#include "importing.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* Strings of the small profile, by their index. */
enum { S_NONE, S_SAMPLES, S_COUNT, S_CPU, S_NS, S_PATH, S_BUILD, S_MAIN, S_RUN, S_INNER, S_FILE, S_THREAD, S_WORKER, S_TID, S_PID, S_OTHER, S_LINKAGE, S_DROP, S_ODD, STRINGS };
static const char *const strings[STRINGS] = {
	"", "samples", "count", "cpu", "nanoseconds", "/nowhere/node", "0123456789abcdef0123456789abcdef01234567", "main", "run(int)",
	"inner", "a.c", "thread", "worker 1", "tid", "pid", "flavour", "_Z3runi", "inn.*", "i{1}nner",
};

static void put_pair(struct buf *b, uint32_t field, uint64_t one, uint64_t two)
{
	size_t begin = protobuf_open(b, field);

	protobuf_put_uint(b, 1, one);
	protobuf_put_uint(b, 2, two);
	protobuf_close(b, begin);
}

static void put_fields(struct buf *b, uint32_t field, const uint64_t *list, size_t n)
{
	size_t begin = protobuf_open(b, field);

	for (size_t i = 0; i < n; i++)
		if (list[i])
			protobuf_put_uint(b, i + 1, list[i]);
	protobuf_close(b, begin);
}
#define PUT(b, field, ...) put_fields(b, field, (const uint64_t[]){ __VA_ARGS__ }, ARRAY_LEN(((const uint64_t[]){ __VA_ARGS__ })))

static void put_location(struct buf *b, uint64_t id, uint64_t mapping, uint64_t address, uint64_t function, uint64_t outer)
{
	size_t begin = protobuf_open(b, 4);

	protobuf_put_uint(b, 1, id);
	protobuf_put_uint(b, 2, mapping);
	protobuf_put_uint(b, 3, address);
	if (function)
		put_pair(b, 4, function, 7);
	if (outer)
		put_pair(b, 4, outer, 8);
	protobuf_close(b, begin);
}

static void put_list(struct buf *b, uint32_t field, const uint64_t *list, size_t n)
{
	size_t begin = protobuf_open(b, field);

	for (size_t i = 0; i < n; i++)
		protobuf_put_varint(b, list[i]);
	protobuf_close(b, begin);
}

/* The parts of the small profile that tests change. */
struct parts {
	uint64_t function_id, location_id, line_function, mapping, used_location, name, second;
	size_t values;
	uint64_t drop, keep;
	bool no_types;
};
static const struct parts good = { 1, 1, 1, 1, 1, S_MAIN, 30000000, 2 };

static void put_sample(struct buf *b, const struct parts *x)
{
	size_t begin = protobuf_open(b, 2);

	put_list(b, 1, (uint64_t[]){ 3, 2, x->used_location }, 3);
	put_list(b, 2, (uint64_t[]){ 3, x->second, 1 }, x->values);
	PUT(b, 3, S_THREAD, S_WORKER);
	PUT(b, 3, S_TID, 0, 77);
	PUT(b, 3, S_PID, 0, 70);
	PUT(b, 3, S_OTHER, S_OTHER);
	protobuf_close(b, begin);
	begin = protobuf_open(b, 2);
	/* Not packed, as an old writer has it. */
	protobuf_put_uint(b, 1, 1);
	protobuf_put_uint(b, 2, 1);
	protobuf_put_uint(b, 2, 10000000);
	protobuf_close(b, begin);
}

static struct buf make(struct parts x)
{
	struct buf b = { 0 };

	if (!x.no_types) {
		put_pair(&b, 1, S_SAMPLES, S_COUNT);
		put_pair(&b, 1, S_CPU, S_NS);
	}
	put_sample(&b, &x);
	PUT(&b, 3, 1, 0x400000, 0x500000, 0x1000, S_PATH, S_BUILD);
	put_location(&b, x.location_id, x.mapping, 0x400100, x.line_function, 0);
	put_location(&b, 2, 1, 0x400200, 3, 2);
	put_location(&b, 3, 1, 0x400300, 0, 0);
	PUT(&b, 5, x.function_id, x.name, x.name, S_FILE);
	PUT(&b, 5, 2, S_RUN, S_LINKAGE, S_FILE);
	PUT(&b, 5, 3, S_INNER, S_INNER, S_FILE);
	for (int i = 0; i < STRINGS; i++)
		protobuf_put_string(&b, 6, strings[i]);
	if (x.drop)
		protobuf_put_uint(&b, 7, x.drop);
	if (x.keep)
		protobuf_put_uint(&b, 8, x.keep);
	protobuf_put_uint(&b, 9, 1763200931000000000);
	protobuf_put_uint(&b, 10, 2000000000);
	put_pair(&b, 11, S_CPU, S_NS);
	protobuf_put_uint(&b, 12, 10000000);
	return b;
}

static void a_profile(void **state)
{
	struct buf b = make(good), packed = { 0 }, folded;
	struct profile *p = NULL;
	struct err err = { 0 };
	const struct profile_frame *f;

	assert_true(pprof_probe(b.data, b.n, true));
	assert_ptr_equal(import_probe(b.data, b.n, true)->read, pprof_import);
	gzip_pack(&packed, b.data, b.n);
	if (import_data("pprof", packed.data, packed.n, &p, &err))
		fail_msg("%s", err.text);
	assert_string_equal(profile_str(p, p->target), "node");
	assert_int_equal(p->start_wall_ns, 1763200931000000000);
	assert_int_equal(p->duration_ns, 2000000000);
	assert_int_equal(p->events.n, 1);
	assert_string_equal(profile_str(p, p->events.v[0].name), "cpu");
	assert_int_equal(p->events.v[0].period, 10000000);
	assert_int_equal(p->samples.n, 2);
	assert_int_equal(p->samples.v[0].value, 30000000);
	assert_int_equal(p->samples.v[0].count, 3);
	assert_int_equal(p->threads.v[p->samples.v[0].thread].tid, 77);
	assert_int_equal(p->processes.v[p->threads.v[p->samples.v[0].thread].process].pid, 70);
	assert_int_equal(p->modules.n, 1);
	assert_int_equal(p->modules.v[0].build_id_size, 20);
	assert_int_equal(p->modules.v[0].build_id[1], 0x23);
	assert_int_equal(profile_counter(p, KEY_IMPORT_LABELS_IGNORED), 1);
	/* Without the file, an address lies where its offset says. */
	f = &p->frames.v[p->stacks.v[p->samples.v[0].stack].frame];
	assert_int_equal(f->address, 0x1300);
	assert_int_equal(f->line_count, 0);
	folded = export_all(p, "folded", (struct export_options){ .group = CALLTREE_BY_NAME });
	assert_string_equal(folded.data, "node;main 1\nworker 1;main;run(int);inner;node+0x1300 3\n");
	f = &p->frames.v[p->stacks.v[p->stacks.v[p->samples.v[0].stack].parent].frame];
	assert_int_equal(f->line_count, 2);
	assert_string_equal(profile_str(p, p->functions.v[p->lines.v[f->first_line + 1].function].linkage), "_Z3runi");
	assert_int_equal(p->lines.v[f->first_line].line, 7);
	buf_done(&b);
	buf_done(&packed);
	buf_done(&folded);
	profile_free(p);
}

/* The outermost function that matches goes, and all that it called. */
static void frames_to_leave_out(void **state)
{
	static const struct {
		uint64_t drop, keep;
		bool dropped, ignored;
	} cases[] = {
		{ S_DROP, 0, true, false },
		{ S_DROP, S_RUN, true, false },
		{ S_DROP, S_INNER, false, false },
		{ S_RUN, 0, false, false }, /* the name without its arguments does not match the arguments */
		{ S_ODD, 0, false, true },
		{ S_DROP, S_ODD, false, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct parts x = good;
		struct profile *p = NULL;
		struct buf b, folded;

		x.drop = cases[i].drop;
		x.keep = cases[i].keep;
		b = make(x);
		assert_int_equal(import_data("pprof", b.data, b.n, &p, NULL), 0);
		folded = export_all(p, "folded", (struct export_options){ .group = CALLTREE_BY_NAME });
		assert_string_equal(folded.data, cases[i].dropped ? "node;main 1\nworker 1;main;run(int) 3\n" :
								    "node;main 1\nworker 1;main;run(int);inner;node+0x1300 3\n");
		assert_int_equal(profile_counter(p, KEY_IMPORT_RULES_IGNORED), cases[i].ignored);
		buf_done(&b);
		buf_done(&folded);
		profile_free(p);
	}
}

static void refused(void **state)
{
	static const struct {
		struct parts x;
		const char *says;
	} cases[] = {
		{ { 0, 1, 1, 1, 1, S_MAIN, 3, 2 }, "a function has the id 0" },
		{ { 2, 1, 1, 1, 1, S_MAIN, 3, 2 }, "two functions have the id 2" },
		{ { 1, 0, 1, 1, 1, S_MAIN, 3, 2 }, "a location has the id 0" },
		{ { 1, 3, 1, 1, 1, S_MAIN, 3, 2 }, "two locations have the id 3" },
		{ { 1, 1, 9, 1, 1, S_MAIN, 3, 2 }, "a line is of function 9" },
		{ { 1, 1, 1, 5, 1, S_MAIN, 3, 2 }, "a location is in mapping 5" },
		{ { 1, 1, 1, 1, 1ULL << 60, S_MAIN, 3, 2 }, "a sample has location 1152921504606846976" },
		{ { 1, 1, 1, 1, 1, 1ULL << 62, 3, 2 }, "string 4611686018427387904 is named, and there are 19" },
		{ { 1, 1, 1, 1, 1, S_MAIN, 3, 1 }, "a sample has 1 values, and there are 2 types" },
		{ { 1, 1, 1, 1, 1, S_MAIN, 3, 3 }, "a sample has 3 values, and there are 2 types" },
		{ { 1, 1, 1, 1, 1, S_MAIN, -5, 2 }, "a value is below zero" },
		{ { 1, 1, 1, 1, 1, S_MAIN, 3, 2, .no_types = true }, "no type of samples" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf b = make(cases[i].x);
		struct profile *p = NULL;
		struct err err = { 0 };

		assert_int_equal(import_data("pprof", b.data, b.n, &p, &err), -EINVAL);
		if (!strstr(err.text, cases[i].says))
			fail_msg("'%s' is not '%s'", err.text, cases[i].says);
		assert_true(!strncmp(err.text, "byte ", 5) || cases[i].x.no_types);
		buf_done(&b);
	}
}

static void too_much(void **state)
{
	struct buf b = { 0 };
	struct profile *p = NULL;
	struct err err = { 0 };
	size_t begin;

	/* 10 GB are claimed. */
	put_pair(&b, 1, 0, 0);
	protobuf_put_varint(&b, 6 << 3 | 2);
	protobuf_put_varint(&b, 10ULL << 30);
	assert_int_equal(import_data("pprof", b.data, b.n, &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cut off"));
	buf_done(&b);
	/* A sum that does not fit. */
	PUT(&b, 1, 1, 0);
	for (int i = 0; i < 4; i++) {
		begin = protobuf_open(&b, 2);
		protobuf_put_uint(&b, 2, INT64_MAX);
		protobuf_close(&b, begin);
	}
	protobuf_put_string(&b, 6, "");
	protobuf_put_string(&b, 6, "x");
	assert_int_equal(import_data("pprof", b.data, b.n, &p, &err), -ERANGE);
	assert_non_null(strstr(err.text, "more than can be counted"));
	buf_done(&b);
	/* Strings that take next to no room in the file. */
	for (int i = 0; i < (1 << 24) + 1; i++)
		buf_add(&b, "\x32", 2);
	assert_int_equal(import_data("pprof", b.data, b.n, &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more strings than can be read"));
	buf_done(&b);
}

static void cut_anywhere(void **state)
{
	struct buf b = make(good);

	assert_true(import_cut_bytes("pprof", b.data, b.n) > b.n * 9 / 10);
	buf_done(&b);
}

static void other_files_are_none(void **state)
{
	static const char *const texts[] = { "\n\n\n\n", "main;run 12\n", "\nmain;run 12\n", "# comment\n", "{\"a\": [1]}", "heap_v2/524288\n",
					     "SQLite format 3", "\177ELF", "PERFILE2", "" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (pprof_probe(texts[i], strlen(texts[i]), true) || pprof_probe(texts[i], strlen(texts[i]), false))
			fail_msg("'%s' is no profile of pprof", texts[i]);
		if (otlp_probe(texts[i], strlen(texts[i]), true) || otlp_probe(texts[i], strlen(texts[i]), false))
			fail_msg("'%s' is no profile of OTLP", texts[i]);
	}
}

/* "name/unit, name/unit" as events: "event/unit scale". */
static void types(void **state)
{
	static const struct {
		struct pproftype list[4];
		size_t n, first;
		const char *events;
	} cases[] = {
		{ { { "samples", "count" }, { "cpu", "nanoseconds" } }, 2, 1, "cpu/ns " },
		{ { { "sample", "count" }, { "wall", "microseconds" } }, 2, 1, "wall/ns " },
		{ { { "alloc_objects", "count" }, { "alloc_space", "bytes" }, { "inuse_objects", "count" }, { "inuse_space", "bytes" } }, 4, 3,
		  "heap/bytes alloc/bytes " },
		{ { { "alloc_objects", "count" }, { "alloc_space", "kilobytes" }, { "inuse_objects", "count" }, { "inuse_space", "bytes" } }, 4, 0,
		  "alloc/bytes heap/bytes " },
		{ { { "contentions", "count" }, { "delay", "nanoseconds" } }, 2, 1, "delay/ns " },
		{ { { "goroutine", "count" } }, 1, 0, "goroutines/count " },
		{ { { "cycles", "count" }, { "joules", "microjoules" } }, 2, 0, "cycles/count joules/count " },
		{ { { "wait", "nanoseconds" }, { "wait_count", "count" } }, 2, 1, "wait/ns " },
		{ { { "x", "count" }, { "x", "count" }, { "", "" } }, 3, 0, "x/count x.2/count samples/count " },
		{ { { "cpu", "count" }, { "samples", "count" } }, 2, 0, "cpu/count " },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pproftypes t = { 0 };
		struct profile *p = profile_new();
		struct buf b = { 0 };

		for (size_t k = 0; k < cases[i].n; k++)
			vec_push(&t.list, cases[i].list[k]);
		pproftypes_make(&t, p, cases[i].first);
		for (size_t k = 0; k < p->events.n; k++)
			buf_printf(&b, "%s/%s ", profile_str(p, p->events.v[k].name), profile_str(p, p->events.v[k].unit));
		assert_string_equal(b.data, cases[i].events);
		buf_done(&b);
		vec_done(&t.list);
		profile_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profile),   cmocka_unit_test(frames_to_leave_out),  cmocka_unit_test(refused), cmocka_unit_test(too_much),
		cmocka_unit_test(cut_anywhere), cmocka_unit_test(other_files_are_none), cmocka_unit_test(types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
