/* Side-band records of rings that are filled here, as the kernel fills those of two CPUs. */
#include "collect/perf/sideband.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/perf/ring.h"
#include "collect/process/processes.h"
#include "profile/profile.h"
#include "test.h"

enum { CPUS = 2, THREAD = 7000001, OTHER };

struct task {
	struct perf_event_header h;
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time, id, id_time;
};

struct comm {
	struct perf_event_header h;
	uint32_t pid, tid;
	char name[16];
	uint64_t id, id_time;
};

struct fixture {
	struct ring rings[CPUS];
	struct profile *profile;
	struct processes *processes;
	uint64_t begin_ns, lost;
	size_t page;
};

static void announce(void *context, uint32_t module)
{
}

static void table(void *context, uint32_t module, const struct unwind_table *t)
{
}

static void mappings(void *context, pid_t pid, uint64_t born, const struct shared_mapping *list, uint32_t count)
{
}

static void gone(void *context, pid_t pid, uint64_t born)
{
}

static const struct processes_sink sink = { .announce = announce, .table = table, .mappings = mappings, .gone = gone };

static int setup(void **state)
{
	struct fixture *f = mem_alloc(sizeof(*f));

	f->page = sysconf(_SC_PAGESIZE);
	f->profile = profile_new();
	f->processes = processes_new(f->profile, false);
	processes_set_sink(f->processes, &sink, NULL);
	f->begin_ns = clock_mono_ns() - 1000000000;
	processes_set_start(f->processes, f->begin_ns);
	assert_int_equal(processes_add(f->processes, getpid(), false, NULL), 0);
	for (int i = 0; i < CPUS; i++) {
		f->rings[i] = (struct ring){ .fd = -1, .bytes = f->page, .straddle = mem_alloc(UINT16_MAX + 1) };
		f->rings[i].base = mem_alloc(2 * f->page);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < CPUS; i++) {
		free(f->rings[i].base);
		free(f->rings[i].straddle);
	}
	processes_free(f->processes);
	profile_free(f->profile);
	free(f);
	return 0;
}

static void put(struct fixture *f, int cpu, const void *record, size_t size)
{
	struct perf_event_mmap_page *page = f->rings[cpu].base;
	char *data = (char *)page + f->page;

	for (size_t i = 0; i < size; i++)
		data[page->data_head++ % f->page] = ((const char *)record)[i];
	assert_true(page->data_head - page->data_tail <= f->page);
}

/* Times are in ms from the beginning. */
static void put_task(struct fixture *f, int cpu, uint32_t type, uint32_t tid, uint64_t ms)
{
	uint32_t pid = getpid();
	uint64_t time = f->begin_ns + ms * 1000000;
	struct task r = { .h = { .type = type, .size = sizeof(r) }, .pid = pid, .parent_pid = pid, .tid = tid, .parent_tid = pid,
			  .time = time, .id_time = time };

	put(f, cpu, &r, sizeof(r));
}

static void put_name(struct fixture *f, int cpu, uint32_t tid, const char *name, uint64_t ms)
{
	struct comm r = { .h = { .type = PERF_RECORD_COMM, .size = sizeof(r) }, .pid = getpid(), .tid = tid,
			  .id_time = f->begin_ns + ms * 1000000 };

	snprintf(r.name, sizeof(r.name), "%s", name);
	put(f, cpu, &r, sizeof(r));
}

static void got(void *context, const struct perf_event_header *h)
{
	struct fixture *f = context;

	sideband_record(f->processes, h, &f->lost);
}

static size_t drain(struct fixture *f)
{
	return ring_drain(f->rings, CPUS, got, f);
}

/* The names of the threads that had a number, from the first to the last: "a,b". */
static const char *names_of(const struct fixture *f, uint32_t tid)
{
	static char said[256];

	*said = 0;
	for (size_t i = 0; i < f->profile->threads.n; i++) {
		const struct profile_thread *t = &f->profile->threads.v[i];

		if (t->tid == tid)
			snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%s", *said ? "," : "",
				 profile_str(f->profile, t->name));
	}
	return said;
}

static void name_in_an_earlier_ring_than_the_fork(void **state)
{
	struct fixture *f = *state;

	put_name(f, 0, THREAD, "passing", 20);
	put_task(f, 1, PERF_RECORD_FORK, THREAD, 10);
	assert_int_equal(drain(f), 2);
	assert_string_equal(names_of(f, THREAD), "passing");
}

/* The sample made it known, with a name of its own. */
static void sample_before_the_fork(void **state)
{
	struct fixture *f = *state;

	processes_thread(f->processes, getpid(), THREAD, "passing", f->begin_ns + 30000000);
	put_task(f, 1, PERF_RECORD_FORK, THREAD, 10);
	drain(f);
	assert_string_equal(names_of(f, THREAD), "passing");
}

static void number_that_is_given_out_again(void **state)
{
	struct fixture *f = *state;

	put_task(f, 0, PERF_RECORD_FORK, OTHER, 1);
	put_name(f, 0, OTHER, "heir", 2);
	put_task(f, 0, PERF_RECORD_FORK, THREAD, 40);
	put_name(f, 0, THREAD, "second", 50);
	put_task(f, 1, PERF_RECORD_FORK, THREAD, 10);
	put_name(f, 1, THREAD, "first", 20);
	put_task(f, 1, PERF_RECORD_EXIT, THREAD, 30);
	assert_int_equal(drain(f), 7);
	assert_string_equal(names_of(f, THREAD), "first,second");
	assert_string_equal(names_of(f, OTHER), "heir");
}

/* What is written while the rings are read is left for the next time: the cause may be in a ring that was read before. */
static void records_of_the_future_wait(void **state)
{
	struct fixture *f = *state;
	uint64_t soon = 1000 + 200; /* it was begun a second ago */

	put_task(f, 1, PERF_RECORD_FORK, THREAD, 10);
	put_name(f, 0, THREAD, "passing", soon);
	assert_int_equal(drain(f), 1);
	while (clock_mono_ns() <= f->begin_ns + soon * 1000000)
		usleep(1000);
	assert_int_equal(drain(f), 1);
	assert_string_equal(names_of(f, THREAD), "passing");
}

/* The rings wrap around, within records as well. */
static void many_rounds(void **state)
{
	struct fixture *f = *state;
	char name[16];

	put_task(f, 0, PERF_RECORD_FORK, THREAD, 1);
	for (uint64_t i = 1; i < 400; i++) {
		snprintf(name, sizeof(name), "name %d", (int)i);
		put_name(f, i & 1, THREAD, name, 2 * i + 1);
		put_name(f, !(i & 1), THREAD, "older", 2 * i);
		assert_int_equal(drain(f), i == 1 ? 3 : 2);
		assert_string_equal(names_of(f, THREAD), name);
	}
}

/* Sizes that a kernel does not write end the reading of that ring. */
static void broken_sizes(void **state)
{
	struct fixture *f = *state;
	struct perf_event_header h = { .type = PERF_RECORD_COMM, .size = 4 };

	put(f, 0, &h, sizeof(h));
	put_task(f, 1, PERF_RECORD_FORK, THREAD, 10);
	assert_int_equal(drain(f), 1);
	h.size = sizeof(h); /* too small for a time */
	h.type = PERF_RECORD_SAMPLE;
	put(f, 1, &h, sizeof(h));
	assert_int_equal(drain(f), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(name_in_an_earlier_ring_than_the_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(sample_before_the_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(number_that_is_given_out_again, setup, teardown),
		cmocka_unit_test_setup_teardown(records_of_the_future_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(many_rounds, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_sizes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
