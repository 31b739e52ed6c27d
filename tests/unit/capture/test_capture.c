#include "capturefiles.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file/fd.h"

static bool beside(const char *path, const char *suffix)
{
	_cleanup_free_ char *name = mem_printf("%s%s", path, suffix);

	return access(name, F_OK) == 0;
}

static void assert_one_file(const char *path)
{
	assert_true(beside(path, ""));
	assert_false(beside(path, "-wal"));
	assert_false(beside(path, "-shm"));
	assert_false(beside(path, "-journal"));
}

/* --- writing and reading --- */

static void what_is_written_is_read(void **state)
{
	_cleanup_free_ char *path = in_folder("round");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;

	save(p, path);
	assert_one_file(path);
	q = load(path);
	assert_same(p, q);
	assert_int_equal(profile_counter(q, "capture.dropped"), 0);
	/* Interning goes on where it stopped. */
	assert_int_equal(profile_truncation_frame(q, "no table"), profile_truncation_frame(p, "no table"));
	assert_int_equal(profile_named_frame(q, PROFILE_NONE, FRAME_NOTE, "/data/mdbx.dat"),
			 profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, "/data/mdbx.dat"));
	assert_int_equal(profile_frame(q, 0, FRAME_USER, p->frames.v[1].address),
			 profile_frame(p, 0, FRAME_USER, p->frames.v[1].address));
}

/* Where names are from, and the functions of stripped files; and a file in which they make no sense. */
static void functions_and_their_sources_are_read(void **state)
{
	_cleanup_free_ char *path = in_folder("sources");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL, *odd = NULL, *old = NULL;
	uint32_t n = p->functions.n;

	assert_true(n >= NAMED_KINDS);
	for (uint32_t i = 0; i < n; i++)
		p->functions.v[i].named = i % NAMED_KINDS;
	profile_add_range(p, 0, 0x1000, 0x1080);
	profile_add_range(p, 0, 0x2000, UINT64_MAX);
	profile_add_range(p, 0, 0x1000, 0x9999); /* is there */
	assert_int_equal(p->ranges.n, 2);
	save(p, path);
	q = load(path);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(q->functions.v[i].named, p->functions.v[i].named);
	assert_int_equal(q->ranges.n, 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(q->ranges.v[i].module == p->ranges.v[i].module && q->ranges.v[i].start == p->ranges.v[i].start &&
			    q->ranges.v[i].end == p->ranges.v[i].end);
	assert_int_equal(profile_counter(q, "capture.dropped"), 0);
	tamper(path, "update function_named set named = 'guessed' where function = 1;"
		     "insert into function_named values (999999, 'start');"
		     "insert into function_range values (77, 1, 2), (0, 5, 5), (0, 6, 5)");
	odd = load(path);
	assert_int_equal(profile_counter(odd, "capture.dropped"), 5);
	assert_int_equal(odd->functions.v[1].named, NAMED_SYMBOL);
	assert_int_equal(odd->ranges.n, 2);
	tamper(path, "drop table function_named; drop table function_range");
	old = load(path);
	assert_int_equal(old->ranges.n, 0);
	assert_int_equal(profile_counter(old, "capture.dropped"), 0);
}

/* Slots of summed rows: which sample is a slot's sum, and a file in which slots make no sense. */
static void summed_slots_are_read(void **state)
{
	_cleanup_free_ char *path = in_folder("summed");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL, *odd = NULL, *old = NULL;
	struct profile_sample sum = { .time_ns = 2000, .count = 2 }, one = { .time_ns = 2000 }, late = { .time_ns = 2001, .count = 2 };

	profile_add_summed(p, &(struct profile_summed){ 5000, 6000 });
	profile_add_summed(p, &(struct profile_summed){ 2000, 2500 });
	profile_add_summed(p, &(struct profile_summed){ 2000, 3000 });
	profile_add_summed(p, &(struct profile_summed){ 2000, 2100 });
	save(p, path);
	q = load(path);
	assert_int_equal(q->summed.n, 2);
	assert_int_equal(q->summed.v[0].end_ns, 3000);
	assert_int_equal(q->summed.v[1].start_ns, 5000);
	assert_null(profile_summed_at(q, 1999));
	assert_ptr_equal(profile_summed_at(q, 2000), &q->summed.v[0]);
	assert_ptr_equal(profile_summed_at(q, 2999), &q->summed.v[0]);
	assert_null(profile_summed_at(q, 3000));
	assert_ptr_equal(profile_summed_of(q, &sum), &q->summed.v[0]);
	assert_null(profile_summed_of(q, &one));
	assert_null(profile_summed_of(q, &late));
	tamper(path, "insert into summed values (1, 1), (9, 8), (-4, 3), (10000, 'x'), (7000, 8000)");
	odd = load(path);
	assert_int_equal(profile_counter(odd, "capture.dropped"), 4);
	assert_int_equal(odd->summed.n, 3);
	tamper(path, "drop table summed");
	old = load(path);
	assert_int_equal(old->summed.n, 0);
	assert_int_equal(profile_counter(old, "capture.dropped"), 0);
}

static void names_of_any_bytes_survive(void **state)
{
	_cleanup_free_ char *path = in_folder("odd ?#%41 'name");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;

	p->target = profile_string(p, "\xff\xfe\x01'\";drop table sample;--\n");
	p->threads.v[0].name = profile_string(p, "\xc3(\xa0\xa1");
	p->modules.v[0].path = profile_string(p, "/tmp/\xe2\x28\xa1 (deleted)");
	p->frames.v[3].address = UINT64_MAX;
	save(p, path);
	q = load(path);
	assert_same(p, q);
}

/* What a thread ended goes by its last name. */
static void rename_thread(struct profile *p, uint32_t thread, const char *name)
{
	uint32_t old = p->threads.v[thread].name, new = profile_string(p, name);

	p->threads.v[thread].name = new;
	for (size_t i = 0; i < p->wakes.n; i++)
		if (p->wakes.v[i].waker == thread && p->wakes.v[i].waker_name == old)
			p->wakes.v[i].waker_name = new;
}

/* As a recorder does it: something new every second, some of it changed, symbols at the end. */
static void many_flushes_are_one_recording(void **state)
{
	_cleanup_free_ char *path = in_folder("flushes");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL, *live = NULL;
	size_t samples = p->samples.n, stacks = p->stacks.n, lines = p->lines.n, wakes = p->wakes.n;
	size_t points = p->points.n, marks = p->marks.n;
	struct profile_frame last = p->frames.v[p->frames.n - 1];
	struct capture *c;
	struct stat before, after;
	_cleanup_free_ char *wal = mem_printf("%s-wal", path);

	p->finished = false;
	p->lines.n = last.first_line;
	p->frames.v[p->frames.n - 1].line_count = 0;
	assert_int_equal(capture_create(path, &c, NULL), 0);
	for (size_t i = 1; i <= 10; i++) {
		p->samples.n = samples * i / 10;
		p->stacks.n = stacks;
		p->wakes.n = wakes * i / 10;
		p->marks.n = marks * i / 10;
		p->points.n = points * i / 10;
		p->duration_ns = i * 1000000000;
		p->threads.v[1].cpu_ns += 10;
		p->threads.v[2].blocked_ns += 10;
		p->histograms.v[0].counts[5] += i;
		p->processes.v[0].end_ns = i;
		profile_count(p, "ticks", 1);
		assert_int_equal(capture_flush(c, p, NULL), 0);
	}
	/* Nothing new: not a byte. */
	assert_int_equal(stat(wal, &before), 0);
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(stat(wal, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	/* A file that is still being written can be read. */
	live = load(path);
	assert_same_samples(p, live);
	assert_same_wakes(p, live);
	assert_same_marks(p, live);
	assert_same_points(p, live);
	assert_same_histograms(p, live);
	assert_false(live->finished);
	p->lines.n = lines;
	p->frames.v[p->frames.n - 1] = last;
	p->finished = true;
	rename_thread(p, 2, "renamed");
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(capture_close(c, NULL), 0);
	assert_one_file(path);
	q = load(path);
	assert_same(p, q);
}

static void samples_on_disk_can_be_dropped(void **state)
{
	_cleanup_free_ char *path = in_folder("dropped");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *whole = profile_new(), *q = NULL;
	struct capture *c;

	assert_int_equal(profile_merge(whole, p, NULL), 0);
	assert_int_equal(capture_create(path, &c, NULL), 0);
	p->samples.n = 100;
	p->wakes.n = 50;
	p->points.n = 60;
	assert_int_equal(capture_flush(c, p, NULL), 0);
	/* Some more that are not on disk yet must stay. */
	vec_push(&p->samples, whole->samples.v[100]);
	vec_push(&p->samples, whole->samples.v[101]);
	vec_push(&p->wakes, whole->wakes.v[50]);
	vec_push(&p->points, whole->points.v[60]);
	capture_drop_samples(c, p);
	assert_int_equal(p->samples.n, 2);
	assert_int_equal(p->wakes.n, 1);
	assert_int_equal(p->points.n, 1);
	assert_int_equal(p->samples.v[0].time_ns, whole->samples.v[100].time_ns);
	assert_int_equal(p->wakes.v[0].time_ns, whole->wakes.v[50].time_ns);
	assert_int_equal(p->points.v[0].value, whole->points.v[60].value);
	for (size_t i = 102; i < whole->samples.n; i++)
		vec_push(&p->samples, whole->samples.v[i]);
	for (size_t i = 51; i < whole->wakes.n; i++)
		vec_push(&p->wakes, whole->wakes.v[i]);
	for (size_t i = 61; i < whole->points.n; i++)
		vec_push(&p->points, whole->points.v[i]);
	assert_int_equal(capture_flush(c, p, NULL), 0);
	capture_drop_samples(c, p);
	assert_int_equal(p->samples.n + p->wakes.n + p->points.n, 0);
	capture_drop_samples(c, p); /* nothing to drop */
	assert_int_equal(capture_close(c, NULL), 0);
	q = load(path);
	assert_same(whole, q);
}

/* Written in 60 flushes, since that is how pages fill up. */
/* At the end it turns out that samples had other stacks: also those that are only on disk by then. */
static void stacks_on_disk_are_replaced(void **state)
{
	_cleanup_free_ char *path = in_folder("replaced");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	uint32_t stack = profile_stack(p, 0, 0), other = profile_stack(p, stack, 0);
	size_t samples = p->samples.n, wakes = p->wakes.n;
	struct capture *c;

	for (uint64_t i = 0; i < 10; i++)
		profile_add_sample(p, &(struct profile_sample){ .time_ns = i, .stack = stack, .event = 0, .value = 1 });
	profile_add_wake(p, &(struct profile_wake){ .time_ns = 6, .stack = stack, .waker = PROFILE_NONE, .waker_stack = stack });
	profile_add_taskwake(p, &(struct profile_taskwake){ .time_ns = 6, .type = profile_string(p, "x"), .waker_stack = stack });
	assert_int_equal(capture_create(path, &c, NULL), 0);
	assert_int_equal(capture_flush(c, p, NULL), 0);
	capture_drop_samples(c, p);
	profile_add_sample(p, &(struct profile_sample){ .time_ns = 5, .stack = stack, .event = 0, .value = 1 });
	profile_replace_stacks(p, &(struct profile_replaced){ stack, other, 4, 7 }, 1);
	assert_int_equal(p->samples.v[0].stack, other);
	p->finished = true;
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(capture_close(c, NULL), 0);
	q = load(path);
	assert_int_equal(q->samples.n, samples + 11);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(q->samples.v[samples + i].stack, i >= 4 && i < 7 ? other : stack);
	assert_int_equal(q->samples.v[samples + 10].stack, other);
	assert_int_equal(q->wakes.v[wakes].stack, other);
	assert_int_equal(q->wakes.v[wakes].waker_stack, other);
	assert_int_equal(q->taskwakes.v[q->taskwakes.n - 1].waker_stack, other);
}

static void sixty_seconds_take_64_bytes_a_sample(void **state)
{
	_cleanup_free_ char *path = in_folder("large");
	_cleanup_(profile_freep) struct profile *p = make_profile(&large), *q = NULL;
	size_t samples = p->samples.n, stacks = p->stacks.n;
	uint64_t start = clock_mono_ns(), written;
	struct capture *c;
	struct stat st;

	assert_int_equal(capture_create(path, &c, NULL), 0);
	for (size_t i = 1; i <= 60; i++) {
		p->samples.n = samples * i / 60;
		p->stacks.n = stacks * i / 60;
		p->duration_ns = i * 1000000000;
		assert_int_equal(capture_flush(c, p, NULL), 0);
	}
	assert_int_equal(capture_close(c, NULL), 0);
	written = clock_mono_ns();
	assert_int_equal(stat(path, &st), 0);
	q = load(path);
	print_message("%zu samples, %zu stack nodes, %zu frames, %zu lines, %zu functions: %.1f bytes a sample, "
		      "written in %.2f s, read in %.2f s\n", p->samples.n, p->stacks.n, p->frames.n, p->lines.n,
		      p->functions.n, (double)st.st_size / p->samples.n, (written - start) / 1e9,
		      (clock_mono_ns() - written) / 1e9);
	assert_same(p, q);
	assert_true(st.st_size <= 64 * (off_t)p->samples.n);
}

/* Waits as they come at 100,000 switches a second: short ones are added up by thread, stack, event and
 * 10 ms, so that a row differs from the one before in everything. */
static void add_waits(struct profile *p, uint32_t event, uint32_t slots, uint32_t rows)
{
	for (uint32_t i = 0; i < slots * rows; i++) {
		struct profile_sample s = { .time_ns = 4803141592 + i / rows * 10000000ULL,
					    .event = event + i % 2 };

		s.thread = random_below(p->threads.n);
		s.stack = random_below(p->stacks.n);
		s.count = 1 + random_below(i % 4 ? 30 : 400);
		s.value = random_below(i % 4 ? 200000 : 10000000);
		profile_add_sample(p, &s);
	}
}

/* Long waits have a wake besides. */
static void add_wakes(struct profile *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct profile_wake w = { .time_ns = 4803141592 + i * 123456ULL,
					  .waker = i % 2 ? PROFILE_NONE : 3 };

		w.thread = random_below(p->threads.n);
		w.blocked_ns = 1000000 + random_below(20000000);
		w.queue_ns = random_below(100000);
		w.stack = random_below(p->stacks.n);
		w.waker_name = i % 2 ? profile_string(p, "swapper/0") : p->threads.v[3].name;
		w.waker_stack = random_below(p->stacks.n);
		profile_add_wake(p, &w);
	}
}

static double saved_size(struct profile *p, const char *path)
{
	struct stat st;

	save(p, path);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* 500 rows in each of the 3,000 slots of 30 s may take 30 bytes each, then there are 5 MB for the rest. */
static void waits_of_30_seconds_fit_in_50_megabytes(void **state)
{
	_cleanup_free_ char *path = in_folder("waits");
	_cleanup_(profile_freep) struct profile *p = make_profile(&large);
	double base, waits, wakes;
	uint32_t event = profile_add_event(p, "wait", "ns", "", 0);

	profile_add_event(p, "queue", "ns", "", 0);
	vec_clear(&p->samples);
	vec_clear(&p->wakes);
	base = saved_size(p, path);
	add_waits(p, event, 200, 500);
	waits = (saved_size(p, path) - base) / p->samples.n;
	vec_clear(&p->samples);
	add_wakes(p, 50000);
	wakes = (saved_size(p, path) - base) / p->wakes.n;
	print_message("%.1f bytes a row of waits, %.1f a wake\n", waits, wakes);
	assert_true(waits <= 30);
	assert_true(wakes <= 44);
}

/* --- captures of earlier versions --- */

/* The tables of schema 1, as they were. */
static const char tables_1[] =
	"create table meta (key text primary key, value) without rowid;"
	"create table event (id integer primary key, name text, unit text, description text, period integer);"
	"create table process (id integer primary key, pid integer, parent_pid integer, name text, exe text,"
	"  command text, start_ns integer, end_ns integer);"
	"create table thread (id integer primary key, process integer, tid integer, name text,"
	"  start_ns integer, end_ns integer, cpu_ns integer);"
	"create table module (id integer primary key, path text, kind text, process integer, build_id text);"
	"create table mapping (process integer, module integer, start integer, \"end\" integer, bias integer,"
	"  time_ns integer);"
	"create table function (id integer primary key, name text, linkage text, file text, module integer);"
	"create table frame (id integer primary key, module integer, kind integer, address integer);"
	"create table frame_line (frame integer, depth integer, function integer, line integer,"
	"  inlined integer, primary key (frame, depth)) without rowid;"
	"create table stack (id integer primary key, parent integer, frame integer);"
	"create table sample (event integer, thread integer, time_ns integer, stack integer, value integer);"
	"create table counter (name text primary key, value integer) without rowid;";

/* The same recording, in a file as the first gasflame made it. */
static void save_schema_1(struct profile *p, const char *path)
{
	static const char *const same[] = { "meta", "event", "process", "module", "mapping",
					    "function", "frame", "frame_line", "stack", "counter" };
	_cleanup_free_ char *newer = mem_printf("%s.newer", path), *attach = NULL, *rest = NULL;

	save(p, newer);
	tamper(path, "pragma application_id = 0x47617346; pragma user_version = 1");
	tamper(path, tables_1);
	attach = mem_printf("attach '%s' as newer", newer);
	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		_cleanup_free_ char *sql = mem_printf("%s; insert into main.%s select * from newer.%s",
						      attach, same[i], same[i]);

		tamper(path, sql);
	}
	rest = mem_printf("%s; insert into main.thread select id, process, tid, name, start_ns, end_ns,"
			  "  cpu_ns from newer.thread;"
			  "insert into main.sample select event, thread, time_ns, stack, value"
			  "  from newer.sample order by rowid", attach);
	tamper(path, rest);
}

static void captures_of_schema_1_are_read(void **state)
{
	_cleanup_free_ char *path = in_folder("schema1");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	struct capture_summary summary;
	struct err err = { 0 };

	save_schema_1(p, path);
	for (size_t i = 0; i < p->threads.n; i++)
		p->threads.v[i].run_ns = p->threads.v[i].queue_ns = p->threads.v[i].blocked_ns = 0;
	for (size_t i = 0; i < p->samples.n; i++)
		p->samples.v[i].count = 0;
	p->wakes.n = p->taskwakes.n = p->marks.n = p->series.n = p->points.n = p->histograms.n = 0;
	q = load(path);
	assert_same(p, q);
	assert_int_equal(profile_counter(q, "capture.dropped"), 0);
	assert_int_equal(capture_summary(path, &summary, &err), 0);
	assert_int_equal(summary.rows, p->samples.n);
	capture_summary_done(&summary);
	/* A new recording may take its place. */
	save(p, path);
	profile_free(q);
	q = load(path);
	assert_same(p, q);
}

/* Schema 2 had no marks, and no tasks. */
static void captures_of_schema_2_are_read(void **state)
{
	_cleanup_free_ char *path = in_folder("schema2");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;

	save(p, path);
	assert_true(p->marks.n > 0);
	tamper(path, "drop view marks; drop table mark; drop view task_wakes; drop table task_wake; pragma user_version = 2");
	p->marks.n = p->taskwakes.n = 0;
	q = load(path);
	assert_same(p, q);
	assert_int_equal(profile_counter(q, "capture.dropped"), 0);
}

/* Schema 3 had marks that knew nothing of blocks. */
static void captures_of_schema_3_are_read(void **state)
{
	_cleanup_free_ char *path = in_folder("schema3");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;

	save(p, path);
	tamper(path, "drop view marks; create table older as select start_ns, end_ns, name, kind, thread from mark "
		     "order by rowid; drop table mark; create table mark (start_ns integer, end_ns integer, name text, kind text, "
		     "thread integer); insert into mark select * from older; drop table older; pragma user_version = 3");
	p->taskwakes.n = 0; /* the table is there, but none of that version */
	for (size_t i = 0; i < p->marks.n; i++) {
		struct profile_mark *x = &p->marks.v[i];

		x->block.known = x->block.number = x->block.gas = x->block.transactions = 0;
	}
	q = load(path);
	assert_true(q->marks.n > 0);
	assert_same(p, q);
	assert_int_equal(profile_counter(q, "capture.dropped"), 0);
}

static int see_no_row(void *context, int columns, const char *const *names, const char *const *values, const bool *numbers)
{
	assert_null(values);
	return 0;
}

/* Files of this version that were written before there were tasks lack their table; queries find it empty. */
static void captures_without_tasks_are_read(void **state)
{
	_cleanup_free_ char *path = in_folder("notasks");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	struct err err = { 0 };

	save(p, path);
	assert_true(p->taskwakes.n > 0);
	tamper(path, "drop view task_wakes; drop table task_wake");
	p->taskwakes.n = 0;
	q = load(path);
	assert_same(p, q);
	assert_int_equal(profile_counter(q, "capture.dropped"), 0);
	if (capture_query(path, "select * from task_wakes", see_no_row, NULL, &err))
		fail_msg("%s", err.text);
}

/* This process's own locks would not count. */
static void one_recorder_at_a_time(void **state)
{
	_cleanup_free_ char *path = in_folder("taken");
	struct capture *c;
	struct err err;
	int status = -1;

	assert_int_equal(capture_create(path, &c, NULL), 0);
	if (fork() == 0)
		_exit(capture_create(path, &(struct capture *){ NULL }, &err) == -EBUSY ? 0 : 1);
	wait(&status);
	assert_int_equal(status, 0);
	assert_int_equal(capture_close(c, NULL), 0);
}

/* --- what is already there --- */

static void only_captures_are_written_over(void **state)
{
	_cleanup_free_ char *path = in_folder("precious"), *data = NULL;
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	struct capture *c = NULL;
	struct err err;
	size_t n;

	put_bytes(path, "my thesis", 9, 0600);
	assert_int_equal(capture_create(path, &c, &err), -EEXIST);
	assert_non_null(strstr(err.text, "not a gasflame capture"));
	assert_int_equal(fd_read_path(path, 100, &data, &n), 0);
	assert_string_equal(data, "my thesis");
	unlink(path);
	tamper(path, "create table x(y); insert into x values (1)");
	assert_int_equal(capture_create(path, &c, &err), -EEXIST);
	unlink(path);
	mkfifo(path, 0600);
	assert_int_equal(capture_create(path, &c, &err), -EEXIST);
	assert_int_equal(capture_read(path, &q, &err), -EBADMSG);
	unlink(path);
	assert_int_equal(capture_create(folder, &c, &err), -EISDIR);
	/* An empty file holds nothing to lose. */
	put_bytes(path, "", 0, 0600);
	save(p, path);
	save(p, path);
	q = load(path);
	assert_same(p, q);
	_cleanup_free_ char *nowhere = in_folder("no/such/folder");
	assert_int_equal(capture_create(nowhere, &c, &err), -ENOENT);
}

static void what_is_no_capture_says_so(void **state)
{
	_cleanup_free_ char *path = in_folder("strange");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	struct profile *q = NULL;
	struct err err;

	assert_int_equal(capture_read(path, &q, &err), -ENOENT);
	put_bytes(path, "", 0, 0600);
	assert_int_equal(capture_read(path, &q, &err), -ENODATA);
	assert_non_null(strstr(err.text, "empty"));
	put_bytes(path, "\177ELF", 4, 0600);
	assert_int_equal(capture_read(path, &q, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "not a gasflame capture"));
	assert_int_equal(capture_read(folder, &q, &err), -EISDIR);
	unlink(path);
	save(p, path);
	tamper(path, "pragma user_version = 77");
	assert_int_equal(capture_read(path, &q, &err), -EPROTO);
	assert_non_null(strstr(err.text, "newer gasflame (schema 77"));
	assert_null(q);
}

/* --- death and full disks --- */

static void a_killed_recorder_leaves_a_capture(void **state)
{
	for (unsigned i = 0; i < 10; i++) {
		_cleanup_free_ char *path = in_folder("killed");
		_cleanup_(profile_freep) struct profile *p = NULL;
		uint64_t flushes;

		kill_recorder(path, 0, i * 7000 + random_below(5000));
		p = load(path);
		assert_sound(p);
		assert_false(p->finished);
		assert_int_equal(profile_counter(p, "capture.dropped"), 0);
		/* Flushes are whole: as many samples as the counter of the same transaction says. */
		flushes = profile_counter(p, "flushes");
		assert_int_equal(p->samples.n, flushes ? small.samples + 100 * flushes : 0);
	}
}

/* An ordinary user, a folder that cannot be written, and files that must stay as they are. */
static void a_read_only_folder_is_enough(void **state)
{
	_cleanup_free_ char *inner = in_folder("readonly"), *path = in_folder("readonly/x");
	_cleanup_free_ char *wal = mem_printf("%s-wal", path), *tmp = in_folder("tmp");
	struct stat before[2], after[2];
	int status = -1;

	assert_int_equal(mkdir(inner, 0755), 0);
	kill_recorder(path, 300000, 0);
	assert_true(stat(path, &before[0]) == 0 && stat(wal, &before[1]) == 0);
	assert_true(chmod(inner, 0555) == 0 && chmod(folder, 0755) == 0);
	assert_true(chmod(path, 0644) == 0 && chmod(wal, 0644) == 0); /* it is for its owner only, at first */
	assert_true(mkdir(tmp, 0700) == 0 && chmod(tmp, 01777) == 0);
	if (fork() == 0) {
		struct profile *p = NULL;

		setenv("TMPDIR", tmp, 1);
		if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		if (capture_read(path, &p, NULL) < 0)
			_exit(3);
		_exit(!p->samples.n);
	}
	wait(&status);
	assert_int_equal(status, 0);
	assert_true(stat(path, &after[0]) == 0 && stat(wal, &after[1]) == 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(before[i].st_size, after[i].st_size);
		assert_int_equal(before[i].st_mtim.tv_sec, after[i].st_mtim.tv_sec);
		assert_int_equal(before[i].st_mtim.tv_nsec, after[i].st_mtim.tv_nsec);
	}
	assert_false(beside(path, "-shm"));
	assert_int_equal(rmdir(tmp), 0); /* the private copy is gone */
	chmod(inner, 0755);
}

/* While one process writes and moves its log into the file, another reads again and again. */
static void a_live_recording_can_be_read(void **state)
{
	_cleanup_free_ char *path = in_folder("live");
	uint64_t seen = 0, until;
	int reads = 0;
	pid_t child = fork();

	if (!child)
		record_for_ever(path);
	while (!beside(path, "-wal"))
		usleep(1000);
	until = clock_mono_ns() + 1000000000;
	while (clock_mono_ns() < until) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct err err = { 0 };
		int r = capture_read(path, &p, &err);

		if (r < 0)
			fail_msg("%s", err.text);
		assert_sound(p);
		assert_int_equal(profile_counter(p, "capture.dropped"), 0);
		assert_true(profile_counter(p, "flushes") >= seen);
		seen = profile_counter(p, "flushes");
		reads++;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(reads > 1 && seen > 1);
}

static void a_full_disk_keeps_what_was_written(void **state)
{
	_cleanup_free_ char *inner = in_folder("tiny"), *path = in_folder("tiny/x");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	size_t kept = p->samples.n;
	struct capture *c;
	struct err err = { 0 };
	int r = 0;

	assert_int_equal(mkdir(inner, 0755), 0);
	if (mount("none", inner, "tmpfs", 0, "size=1m") < 0) {
		print_message("skipped: cannot mount a tmpfs (needs root): %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(capture_create(path, &c, &err), 0);
	assert_int_equal(capture_flush(c, p, &err), 0);
	for (int i = 0; i < 100 && !r; i++) {
		kept = p->samples.n;
		for (int k = 0; k < 5000; k++)
			profile_add_sample(p, &(struct profile_sample){ .time_ns = k, .value = 5 });
		r = capture_flush(c, p, &err);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(capture_flush(c, p, &err), -ENOSPC);
	q = load(path);
	assert_int_equal(q->samples.n, kept);
	r = capture_close(c, &err);
	assert_true(r == 0 || r == -ENOSPC);
	profile_free(q);
	q = load(path);
	assert_int_equal(q->samples.n, kept);
	assert_int_equal(umount(inner), 0);
}

/* More room, and the same flush succeeds. */
static void a_disk_that_has_room_again_goes_on(void **state)
{
	_cleanup_free_ char *inner = in_folder("grow"), *path = in_folder("grow/x");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	struct capture *c;
	int r = 0;

	assert_int_equal(mkdir(inner, 0755), 0);
	if (mount("none", inner, "tmpfs", 0, "size=1m") < 0) {
		print_message("skipped: cannot mount a tmpfs (needs root): %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(capture_create(path, &c, NULL), 0);
	while (!r) {
		for (int k = 0; k < 5000; k++)
			profile_add_sample(p, &(struct profile_sample){ .time_ns = k, .value = 5 });
		r = capture_flush(c, p, NULL);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(mount("none", inner, "tmpfs", MS_REMOUNT, "size=16m"), 0);
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(capture_close(c, NULL), 0);
	assert_one_file(path);
	q = load(path);
	assert_same(p, q);
	assert_int_equal(umount(inner), 0);
}

/* A limit on the size of files is as good as a full disk, and says what it is. */
static void a_size_limit_keeps_what_was_written(void **state)
{
	_cleanup_free_ char *path = in_folder("limit");
	_cleanup_(profile_freep) struct profile *q = NULL;
	int status = -1;

	if (fork() == 0) {
		struct profile *p = make_profile(&small);
		struct rlimit limit = { 400000, 400000 };
		struct capture *c;
		int r;

		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) < 0 || capture_create(path, &c, NULL) < 0 ||
		    capture_flush(c, p, NULL) < 0)
			_exit(2);
		for (int k = 0; k < 50000; k++)
			profile_add_sample(p, &(struct profile_sample){ .time_ns = k, .value = 5 });
		r = capture_flush(c, p, NULL);
		capture_close(c, NULL);
		_exit(r == -EFBIG ? 0 : -r);
	}
	wait(&status);
	assert_int_equal(status, 0);
	q = load(path);
	assert_int_equal(q->samples.n, small.samples);
	assert_sound(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(functions_and_their_sources_are_read),
		cmocka_unit_test(summed_slots_are_read),
		cmocka_unit_test(names_of_any_bytes_survive),
		cmocka_unit_test(many_flushes_are_one_recording),
		cmocka_unit_test(samples_on_disk_can_be_dropped),
		cmocka_unit_test(stacks_on_disk_are_replaced),
		cmocka_unit_test(sixty_seconds_take_64_bytes_a_sample),
		cmocka_unit_test(waits_of_30_seconds_fit_in_50_megabytes),
		cmocka_unit_test(captures_of_schema_1_are_read),
		cmocka_unit_test(captures_of_schema_2_are_read),
		cmocka_unit_test(captures_of_schema_3_are_read),
		cmocka_unit_test(captures_without_tasks_are_read),
		cmocka_unit_test(one_recorder_at_a_time),
		cmocka_unit_test(only_captures_are_written_over),
		cmocka_unit_test(what_is_no_capture_says_so),
		cmocka_unit_test(a_killed_recorder_leaves_a_capture),
		cmocka_unit_test(a_read_only_folder_is_enough),
		cmocka_unit_test(a_live_recording_can_be_read),
		cmocka_unit_test(a_full_disk_keeps_what_was_written),
		cmocka_unit_test(a_disk_that_has_room_again_goes_on),
		cmocka_unit_test(a_size_limit_keeps_what_was_written),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
