/* test_perfdata.c - perf.data made by hand, as a file and as a pipe: order, mappings, call graphs, waits, bad input. */
#include "test.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "base/buf.h"
#include "golden.h"
#include "import/perf/perfdata.h"
#include "importing.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* --- a writer --- */

enum { FILE_HEAD = 104, ATTR_BYTES = 128, ID_CLOCK = 11, ID_FAULTS = 12, ROUND = 68 };

static const uint64_t kernel = 0xffffffff81000000;

static const uint64_t plain_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;

static void put(struct buf *b, uint64_t x, size_t n)
{
	buf_add(b, &x, n);
}

/* Begins a record; returns where it is. */
static size_t open_record(struct buf *b, uint32_t type, uint16_t misc)
{
	size_t at = b->n;

	put(b, type, 4);
	put(b, misc, 2);
	put(b, 0, 2);
	return at;
}

static void close_record(struct buf *b, size_t at)
{
	uint16_t size;

	while ((b->n - at) & 7)
		put(b, 0, 1);
	size = b->n - at;
	memcpy(b->data + at + 6, &size, 2);
}

/* The end of a record that is no sample. */
static void put_trailer(struct buf *b, uint32_t pid, uint32_t tid, uint64_t time)
{
	put(b, pid, 4);
	put(b, tid, 4);
	put(b, time, 8);
	put(b, 0, 8);
}

static void put_text(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text) + 1);
	while (b->n & 7)
		put(b, 0, 1);
}

static void put_comm(struct buf *b, uint32_t pid, uint32_t tid, const char *name, bool exec, uint64_t time)
{
	size_t at = open_record(b, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);

	put(b, pid, 4);
	put(b, tid, 4);
	put_text(b, name);
	put_trailer(b, pid, tid, time);
	close_record(b, at);
}

static void put_map(struct buf *b, uint32_t pid, uint64_t start, uint64_t size, uint64_t offset, const char *path, uint64_t time)
{
	size_t at = open_record(b, PERF_RECORD_MMAP2, pid == UINT32_MAX ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);

	put(b, pid, 4);
	put(b, pid, 4);
	put(b, start, 8);
	put(b, size, 8);
	put(b, offset, 8);
	for (int i = 0; i < 3; i++)
		put(b, 0, 8);
	put(b, 5, 4);
	put(b, 2, 4);
	put_text(b, path);
	put_trailer(b, pid, pid, time);
	close_record(b, at);
}

static void put_fork(struct buf *b, uint32_t pid, uint32_t tid, uint32_t parent, uint64_t time)
{
	size_t at = open_record(b, PERF_RECORD_FORK, 0);

	put(b, pid, 4);
	put(b, parent, 4);
	put(b, tid, 4);
	put(b, parent, 4);
	put(b, time, 8);
	put_trailer(b, pid, tid, time);
	close_record(b, at);
}

static void put_round(struct buf *b)
{
	close_record(b, open_record(b, ROUND, 0));
}

/* The fields of plain_type. */
static size_t open_sample(struct buf *b, uint64_t id, uint64_t ip, uint32_t pid, uint32_t tid, uint64_t time, uint64_t period)
{
	size_t at = open_record(b, PERF_RECORD_SAMPLE, ip >> 63 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);

	put(b, id, 8);
	put(b, ip, 8);
	put(b, pid, 4);
	put(b, tid, 4);
	put(b, time, 8);
	put(b, period, 8);
	return at;
}

static void put_sample(struct buf *b, uint64_t id, uint32_t pid, uint32_t tid, uint64_t time, uint64_t period, const uint64_t *chain, size_t n)
{
	uint64_t ip = n > 1 ? chain[1] : 0;
	size_t at = open_sample(b, id, ip, pid, tid, time, period);

	put(b, n, 8);
	for (size_t i = 0; i < n; i++)
		put(b, chain[i], 8);
	close_record(b, at);
}

static struct perf_event_attr attr_of(uint32_t type, uint64_t config, uint64_t sample_type)
{
	return (struct perf_event_attr){ .type = type, .size = ATTR_BYTES, .config = config, .sample_type = sample_type,
					 .sample_period = 1, .sample_id_all = 1 };
}

static void put_attr(struct buf *b, const struct perf_event_attr *a)
{
	char bytes[ATTR_BYTES] = { 0 };

	memcpy(bytes, a, MIN(sizeof(*a), sizeof(bytes)));
	buf_add(b, bytes, sizeof(bytes));
}

/* A file: header, ids, events, records, and the sections of these numbers. */
static struct buf make_file(const struct perf_event_attr *attrs, size_t n, const struct buf *records, const struct buf *trace)
{
	size_t attrs_at = FILE_HEAD + 8 * n, data_at = attrs_at + n * (ATTR_BYTES + 16);
	struct buf b = { 0 };

	buf_puts(&b, "PERFILE2");
	put(&b, FILE_HEAD, 8);
	put(&b, ATTR_BYTES + 16, 8);
	put(&b, attrs_at, 8);
	put(&b, n * (ATTR_BYTES + 16), 8);
	put(&b, data_at, 8);
	put(&b, records->n, 8);
	put(&b, 0, 8);
	put(&b, 0, 8);
	put(&b, trace ? 1 << 1 : 0, 8);
	for (int i = 0; i < 3; i++)
		put(&b, 0, 8);
	for (size_t i = 0; i < n; i++)
		put(&b, ID_CLOCK + i, 8);
	for (size_t i = 0; i < n; i++) {
		put_attr(&b, &attrs[i]);
		put(&b, FILE_HEAD + 8 * i, 8);
		put(&b, 8, 8);
	}
	buf_add(&b, records->data, records->n);
	if (trace) {
		put(&b, b.n + 16, 8);
		put(&b, trace->n, 8);
		buf_add(&b, trace->data, trace->n);
	}
	return b;
}

static struct buf make_pipe(const struct perf_event_attr *attrs, size_t n, const struct buf *records)
{
	struct buf b = { 0 };

	buf_puts(&b, "PERFILE2");
	put(&b, 16, 8);
	for (size_t i = 0; i < n; i++) {
		size_t at = open_record(&b, 64, 0);

		put_attr(&b, &attrs[i]);
		put(&b, ID_CLOCK + i, 8);
		close_record(&b, at);
	}
	buf_add(&b, records->data, records->n);
	return b;
}

/* --- a reader --- */

static struct profile *imported(const struct buf *b)
{
	struct profile *p = NULL;
	struct err err = { 0 };

	if (import_data("perf.data", b->data, b->n, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static void put_frame(const struct profile *p, uint32_t id, struct buf *b)
{
	const struct profile_frame *f = &p->frames.v[id];

	if (f->line_count)
		buf_printf(b, ";%s", profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name));
	else
		buf_printf(b, ";%s+0x%llx", profile_str(p, p->modules.v[f->module].path), (unsigned long long)f->address);
}

static void put_stack(const struct profile *p, uint32_t stack, struct buf *b)
{
	if (p->stacks.v[stack].parent)
		put_stack(p, p->stacks.v[stack].parent, b);
	if (stack)
		put_frame(p, p->stacks.v[stack].frame, b);
}

/* All samples as text: time, event, value, unit, process and thread, stack. */
static char *dump(const struct profile *p)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s, %llu ns\n", profile_str(p, p->target), (unsigned long long)p->duration_ns);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_thread *t = &p->threads.v[s->thread];

		buf_printf(&b, "%llu %s %llu %s, %u/%u %s", (unsigned long long)s->time_ns, profile_str(p, p->events.v[s->event].name),
			   (unsigned long long)s->value, profile_str(p, p->events.v[s->event].unit), p->processes.v[t->process].pid, t->tid,
			   profile_str(p, t->name));
		put_stack(p, s->stack, &b);
		buf_putc(&b, '\n');
	}
	return b.data;
}

/* --- the tests --- */

/* Two CPUs whose records come one after the other, a fork, an exec, code that replaces other code. */
static struct buf some_records(void)
{
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL, kernel + 0x1234, kernel + 0x2001, PERF_CONTEXT_USER, 0x401010, 0x402001 };
	const uint64_t user[] = { PERF_CONTEXT_USER, 0x401020, 0x403001 }, library[] = { PERF_CONTEXT_USER, 0x7f0000000100, 0x402001 };
	const uint64_t nowhere[] = { PERF_CONTEXT_USER, 0x10, 0x402001 };
	struct buf b = { 0 };

	put_map(&b, UINT32_MAX, kernel, 0x1000000, kernel, "[kernel.kallsyms]_text", 0);
	put_map(&b, UINT32_MAX, 0xffffffffc0000000, 0x1000, 0, "/lib/modules/6.1/kernel/fs/ext4/ext4.ko", 0);
	put_comm(&b, 100, 100, "node", false, 0);
	put_map(&b, 100, 0x400000, 0x10000, 0x1000, "/nonexistent/node", 0);
	/* CPU 0 */
	put_sample(&b, ID_CLOCK, 100, 100, 1000, 1000000, chain, ARRAY_LEN(chain));
	put_sample(&b, ID_CLOCK, 100, 101, 4000, 1000000, library, ARRAY_LEN(library));
	put_comm(&b, 200, 200, "other", true, 6000);
	put_sample(&b, ID_CLOCK, 200, 200, 7000, 1000000, user, ARRAY_LEN(user));
	/* CPU 1 */
	put_sample(&b, ID_FAULTS, 100, 100, 2000, 3, user, ARRAY_LEN(user));
	put_fork(&b, 100, 101, 100, 2500);
	put_map(&b, 100, 0x7f0000000000, 0x1000, 0, "/nonexistent/library.so", 3000);
	put_round(&b);
	put_fork(&b, 200, 200, 100, 5000);
	put_sample(&b, ID_CLOCK, 200, 200, 5500, 1000000, library, ARRAY_LEN(library));
	put_map(&b, 100, 0x401000, 0x1000, 0, "//anon", 8000);
	put_sample(&b, ID_CLOCK, 100, 100, 9000, 1000000, user, ARRAY_LEN(user));
	put_sample(&b, ID_CLOCK, 100, 100, 9500, 1000000, nowhere, ARRAY_LEN(nowhere));
	put_round(&b);
	return b;
}

static const size_t some_attrs = 2;

static void make_attrs(struct perf_event_attr attrs[2])
{
	attrs[0] = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, plain_type | PERF_SAMPLE_CALLCHAIN);
	attrs[1] = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, plain_type | PERF_SAMPLE_CALLCHAIN);
}

static void files_and_pipes(void **state)
{
	struct perf_event_attr attrs[2];
	struct buf records = some_records(), file, piped;
	struct profile *p, *q;
	char *text, *other;

	make_attrs(attrs);
	file = make_file(attrs, some_attrs, &records, NULL);
	piped = make_pipe(attrs, some_attrs, &records);
	p = imported(&file);
	q = imported(&piped);
	text = dump(p);
	other = dump(q);
	golden_check("import-perfdata.txt", text, strlen(text));
	assert_string_equal(text, other);
	assert_true(p->finished);
	assert_int_equal(profile_counter(p, KEY_IMPORT_RECORDS_IGNORED), 0);
	profile_free(p);
	profile_free(q);
	free(text);
	free(other);
	buf_done(&records);
	buf_done(&file);
	buf_done(&piped);
}

/* No part of a file, and none of a pipe, does more than fail with a sentence or give a part. */
static void cut_anywhere(void **state)
{
	struct perf_event_attr attrs[2];
	struct buf records = some_records(), inputs[2];

	make_attrs(attrs);
	inputs[0] = make_file(attrs, some_attrs, &records, NULL);
	inputs[1] = make_pipe(attrs, some_attrs, &records);
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		import_cut_bytes("perf.data", inputs[i].data, inputs[i].n);
		buf_done(&inputs[i]);
	}
	buf_done(&records);
}

static void expect_error(const struct buf *b, const char *part)
{
	struct profile *p = NULL;
	struct err err = { 0 };

	assert_true(import_data("perf.data", b->data, b->n, &p, &err) < 0);
	if (!strstr(err.text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, err.text);
}

static void bad_headers(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		const char *error;
	} cases[] = {
		{ 0, 0x50455246494c4532, "big-endian" },
		{ 0, 0x454c494646524550, "first version" },
		{ 8, 17, "byte 0" },
		{ 16, 0, "byte 16" },
		{ 16, 1ULL << 60, "byte 16" },
		{ 24, 1ULL << 62, "byte 24" },
		{ 32, 1ULL << 62, "byte 24" },
		{ 32, 0, "no event" },
		{ 40, 1ULL << 61, "byte 40" },
		{ FILE_HEAD + 16 + ATTR_BYTES, 1ULL << 50, "ids of an event" },
	};
	struct perf_event_attr attrs[2];
	struct buf records = some_records();

	make_attrs(attrs);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf b = make_file(attrs, some_attrs, &records, NULL);

		memcpy(b.data + cases[i].at, &cases[i].value, 8);
		expect_error(&b, cases[i].error);
		buf_done(&b);
	}
	buf_done(&records);
}

/* One event, one sample that was made by the caller. */
static struct profile *one_sample(const struct perf_event_attr *a, struct buf *records)
{
	struct buf b = make_file(a, 1, records, NULL);
	struct profile *p = imported(&b);

	buf_done(&b);
	buf_done(records);
	return p;
}

static void lying_samples(void **state)
{
	struct perf_event_attr a = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, plain_type | PERF_SAMPLE_CALLCHAIN);
	const uint64_t chain[] = { PERF_CONTEXT_USER, 0x401020 };
	struct buf b = { 0 };
	struct profile *p;
	uint64_t many = 1ULL << 60;

	put_sample(&b, ID_CLOCK, 1, 1, 10, 1, chain, ARRAY_LEN(chain));
	memcpy(b.data + 8 + 5 * 8, &many, 8);
	put_sample(&b, ID_CLOCK, 1, 1, 20, 1, chain, ARRAY_LEN(chain));
	p = one_sample(&a, &b);
	assert_int_equal(p->samples.n, 1);
	assert_int_equal(profile_counter(p, KEY_IMPORT_RECORDS_IGNORED), 1);
	profile_free(p);
}

static void sums_that_overflow(void **state)
{
	struct perf_event_attr a = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, plain_type | PERF_SAMPLE_CALLCHAIN);
	struct buf b = { 0 }, file;

	put_sample(&b, ID_CLOCK, 1, 1, 10, 1ULL << 63, NULL, 0);
	put_sample(&b, ID_CLOCK, 1, 1, 20, 1ULL << 63, NULL, 0);
	file = make_file(&a, 1, &b, NULL);
	expect_error(&file, "more than can be counted");
	buf_done(&file);
	buf_done(&b);
}

static void branches(void **state)
{
	struct perf_event_attr a = attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES,
					   plain_type | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK);
	/* main calls middle at 0x401100, that calls leaf at 0x401200; the chain has only the address. */
	const uint64_t words[] = { 2, PERF_CONTEXT_USER, 0x401310, 2, 0x401200, 0x401300, 0, 0x401100, 0x401180, 0 };
	struct buf b = { 0 };
	struct profile *p;
	char *text;
	size_t at;

	a.branch_sample_type = 1 << 11;
	put_map(&b, 1, 0x400000, 0x10000, 0, "/nonexistent/node", 0);
	at = open_sample(&b, ID_CLOCK, 0x401310, 1, 1, 10, 7);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		put(&b, words[i], 8);
	close_record(&b, at);
	p = one_sample(&a, &b);
	text = dump(p);
	assert_non_null(strstr(text, ";/nonexistent/node+0x1100;/nonexistent/node+0x1200;/nonexistent/node+0x1310\n"));
	free(text);
	profile_free(p);
}

/* Without its file a copy of the stack is walked by frame pointers. */
static void copies_of_stacks(void **state)
{
	struct perf_event_attr a = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK,
					   plain_type | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	/* bp, sp, ip: the frame at sp + 16 leads to one at sp + 48, whose caller is nobody. */
	const uint64_t sp = 0x7ffc0000, regs[] = { PERF_SAMPLE_REGS_ABI_64, sp + 16, sp, 0x401310 };
	const uint64_t stack[] = { 0, 0, sp + 48, 0x401205, 0, 0, 0, 0x401105 };
	struct buf b = { 0 };
	struct profile *p;
	char *text;
	size_t at;

	a.sample_regs_user = 7 << 6;
	a.sample_stack_user = 8192;
	put_map(&b, 1, 0x400000, 0x10000, 0, "/nonexistent/node", 0);
	at = open_sample(&b, ID_CLOCK, 0x401310, 1, 1, 10, 7);
	put(&b, 0, 8);
	for (size_t i = 0; i < ARRAY_LEN(regs); i++)
		put(&b, regs[i], 8);
	put(&b, sizeof(stack), 8);
	buf_add(&b, stack, sizeof(stack));
	put(&b, sizeof(stack), 8);
	close_record(&b, at);
	p = one_sample(&a, &b);
	text = dump(p);
	if (!strstr(text, "1/1 ;/nonexistent/node+0x1104;/nonexistent/node+0x1204;/nonexistent/node+0x1310\n"))
		fail_msg("%s", text);
	free(text);
	profile_free(p);
}

/* --- waits --- */

enum { TRACEPOINT_SWITCH = 300, TRACEPOINT_WAKE = 301 };

static void put_format(struct buf *b, const char *text)
{
	put(b, strlen(text), 8);
	buf_puts(b, text);
}

static struct buf trace_data(void)
{
	static const uint8_t magic[] = { 23, 8, 68 };
	struct buf b = { 0 };

	buf_add(&b, magic, sizeof(magic));
	buf_puts(&b, "tracing");
	buf_add(&b, "0.6", 4);
	put(&b, 0, 1);
	put(&b, 8, 1);
	put(&b, 4096, 4);
	buf_add(&b, "header_page", 12);
	put(&b, 0, 8);
	buf_add(&b, "header_event", 13);
	put(&b, 0, 8);
	put(&b, 0, 4);
	put(&b, 1, 4);
	buf_add(&b, "sched", 6);
	put(&b, 2, 4);
	put_format(&b, "name: sched_switch\nID: 300\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
		       "\tfield:pid_t prev_pid;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:long prev_state;\toffset:16;\tsize:8;\tsigned:1;\n"
		       "\tfield:pid_t next_pid;\toffset:24;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n");
	put_format(&b, "name: sched_wakeup\nID: 301\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
		       "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n");
	return b;
}

/* raw: its words, of which the kernel writes the size first. */
static void put_raw_sample(struct buf *b, uint64_t id, uint32_t tid, uint64_t time, uint64_t ip, const uint64_t *raw, size_t n)
{
	size_t at = open_sample(b, id, ip, tid, tid, time, 1);

	put(b, 2, 8);
	put(b, PERF_CONTEXT_KERNEL, 8);
	put(b, ip, 8);
	put(b, n * 8 + 4, 4);
	buf_add(b, raw, n * 8);
	put(b, 0, 4);
	close_record(b, at);
}

static void put_switch(struct buf *b, uint32_t from, uint64_t state, uint32_t to, uint64_t time)
{
	const uint64_t raw[] = { TRACEPOINT_SWITCH, from, state, to };

	put_raw_sample(b, ID_CLOCK, from, time, kernel + 0x100, raw, ARRAY_LEN(raw));
}

static void put_wake(struct buf *b, uint32_t by, uint32_t whom, uint64_t time)
{
	const uint64_t raw[] = { TRACEPOINT_WAKE, whom };

	put_raw_sample(b, ID_CLOCK + 1, by, time, kernel + 0x200, raw, ARRAY_LEN(raw));
}

static void waits(void **state)
{
	const uint64_t type = plain_type | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW, ms = 1000000;
	struct perf_event_attr attrs[] = { attr_of(PERF_TYPE_TRACEPOINT, TRACEPOINT_SWITCH, type),
					   attr_of(PERF_TYPE_TRACEPOINT, TRACEPOINT_WAKE, type) };
	struct buf b = { 0 }, trace = trace_data(), file;
	struct profile *p;
	uint64_t sums[2] = { 0 };

	put_map(&b, UINT32_MAX, kernel, 0x1000000, kernel, "[kernel.kallsyms]_text", 0);
	put_comm(&b, 7, 7, "sleeper", false, 0);
	put_comm(&b, 8, 8, "waker", false, 0);
	put_switch(&b, 7, 1, 8, 10 * ms);      /* sleeps for 5 ms, */
	put_wake(&b, 8, 7, 15 * ms);
	put_switch(&b, 8, 0x100, 7, 17 * ms);  /* waits 2 ms for a CPU; the other one is preempted */
	put_switch(&b, 7, 2, 8, 20 * ms);      /* sleeps until the end; the other one waited 3 ms */
	put_wake(&b, 8, 8, 24 * ms);           /* the end: 4 ms of sleep, and somebody who does not sleep is woken */
	file = make_file(attrs, 2, &b, &trace);
	p = imported(&file);
	assert_string_equal(profile_str(p, p->events.v[0].name), "wait");
	assert_string_equal(profile_str(p, p->events.v[1].name), "queue");
	for (size_t i = 0; i < p->samples.n; i++)
		if (p->samples.v[i].event < 2)
			sums[p->samples.v[i].event] += p->samples.v[i].value;
	assert_int_equal(sums[0], 9 * ms);
	assert_int_equal(sums[1], 5 * ms);
	assert_int_equal(p->wakes.n, 1);
	assert_int_equal(p->wakes.v[0].blocked_ns, 5 * ms);
	assert_int_equal(p->wakes.v[0].queue_ns, 2 * ms);
	assert_string_equal(profile_str(p, p->wakes.v[0].waker_name), "waker");
	profile_free(p);
	/* Of a sample of the switches nothing can be said. */
	attrs[0].freq = 1;
	buf_done(&file);
	file = make_file(attrs, 2, &b, &trace);
	p = imported(&file);
	assert_int_equal(profile_find_event(p, "wait", "ns"), PROFILE_NONE);
	assert_int_equal(profile_counter(p, KEY_IMPORT_SWITCHES_SAMPLED), 1);
	profile_free(p);
	buf_done(&file);
	buf_done(&trace);
	buf_done(&b);
}

/* A pipe names its events by a record of its own; what --off-cpu sums up is time blocked. */
static void off_cpu(void **state)
{
	struct perf_event_attr a = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT, plain_type | PERF_SAMPLE_CALLCHAIN);
	const uint64_t chain[] = { PERF_CONTEXT_USER, 0x401020 };
	struct buf records = { 0 }, b;
	struct profile *p;
	size_t at = open_record(&records, 78, 0);

	put(&records, 2, 8);
	put(&records, ID_CLOCK, 8);
	put_text(&records, "offcpu-time");
	close_record(&records, at);
	put_comm(&records, 5, 5, "sleeper", false, 0);
	/* perf writes them at the end, with a time beyond all others. */
	put_sample(&records, ID_CLOCK, 5, 5, ~0ULL << 32, 12345678, chain, ARRAY_LEN(chain));
	b = make_pipe(&a, 1, &records);
	p = imported(&b);
	assert_int_equal(p->events.n, 1);
	assert_string_equal(profile_str(p, p->events.v[0].name), "wait");
	assert_string_equal(profile_str(p, p->events.v[0].unit), "ns");
	assert_int_equal(p->samples.n, 1);
	assert_int_equal(p->samples.v[0].value, 12345678);
	assert_int_equal(p->samples.v[0].time_ns, 0);
	assert_string_equal(profile_str(p, p->target), "sleeper");
	profile_free(p);
	buf_done(&b);
	/* More than can be counted is left out, and counted. */
	put_sample(&records, ID_CLOCK, 5, 5, 7, UINT64_MAX, chain, ARRAY_LEN(chain));
	b = make_pipe(&a, 1, &records);
	p = imported(&b);
	assert_int_equal(p->samples.n, 1);
	assert_int_equal(profile_counter(p, KEY_IMPORT_WAITS_UNENDED), 1);
	profile_free(p);
	buf_done(&b);
	buf_done(&records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_and_pipes),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(bad_headers),
		cmocka_unit_test(lying_samples),
		cmocka_unit_test(sums_that_overflow),
		cmocka_unit_test(branches),
		cmocka_unit_test(copies_of_stacks),
		cmocka_unit_test(waits),
		cmocka_unit_test(off_cpu),
	};

	setenv("HOME", "/nonexistent", 1); /* perf keeps files there, which are looked for */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
