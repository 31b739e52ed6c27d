#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/heap/liveheap.h"
#include "collect/mem/memwatch.h"
#include "collect/heap/residency.h"
#include "profile/profile.h"

/* As jemalloc's manual lists them. */
static void classes_of_jemalloc(void **state)
{
	static const uint64_t sizes[][2] = {
		{ 1, 8 }, { 8, 8 }, { 9, 16 }, { 17, 32 }, { 48, 48 }, { 65, 80 }, { 128, 128 }, { 129, 160 },
		{ 257, 320 }, { 512, 512 }, { 513, 640 }, { 1025, 1280 }, { 14337, 16384 }, { 16385, 20480 },
		{ 1 << 20, 1 << 20 }, { (1 << 20) + 1, 1280 << 10 },
	};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		assert_int_equal(residency_size_class("jemalloc, the C library's malloc", sizes[i][0]), sizes[i][1]);
	assert_int_equal(residency_size_class("the C library's malloc", 1), 32);
	assert_int_equal(residency_size_class("the C library's malloc", 24), 32);
	assert_int_equal(residency_size_class("the C library's malloc", 25), 48);
	assert_int_equal(residency_size_class("mimalloc", 25), 0);
	assert_int_equal(residency_size_class("jemalloc", UINT64_MAX), 0);
}

static void live_objects(void **state)
{
	size_t n = 1 << 20;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct profile *profile = profile_new();
	struct liveheap_object old;
	struct residency r = { 0 };
	struct liveheap h;

	madvise(p, n, MADV_NOHUGEPAGE);
	memset(p, 1, n / 4);
	liveheap_init(&h, 1);
	liveheap_alloc(&h, getpid(), (uintptr_t)p, &(struct liveheap_object){ .size = n }, &old);
	residency_note(&r, profile, &h, 5, true);
	assert_int_equal(profile_counter(profile, "heap.resident bytes"), n / 4);
	assert_int_equal(profile->points.n, 2);
	assert_true(profile->points.v[1].value >= (int64_t)n / 4);
	/* Not again before a hundred times of what it took. */
	r.next_ns = clock_mono_ns() + 1000000000;
	residency_note(&r, profile, &h, 6, false);
	assert_int_equal(profile->points.n, 2);
	residency_classes(profile, &h, "jemalloc");
	assert_int_equal(profile_counter(profile, "heap.class.1048576.live"), n);
	liveheap_done(&h);
	profile_free(profile);
	munmap(p, n);
}

/* Looks at this process. */
static void looks(void **state)
{
	struct profile *p = profile_new();
	pid_t self = getpid();
	uint64_t start = clock_mono_ns();
	struct memwatch *w = memwatch_new(p, &self, 1, start, true);
	int64_t rss = 0, parts = 0;

	assert_int_equal(memwatch_look(w, start, MEMWATCH_CHEAP), 1);
	for (size_t i = 0; i < p->series.n; i++)
		assert_null(strstr(profile_str(p, p->series.v[i].name), "mem.part."));
	assert_int_equal(memwatch_look(w, start + 1000, MEMWATCH_WALK), 1);
	for (size_t i = 0; i < p->points.n; i++) {
		const char *name = profile_str(p, p->series.v[p->points.v[i].series].name);

		if (p->points.v[i].time_ns != 1000)
			continue;
		rss += strcmp(name, "mem.rss") ? 0 : p->points.v[i].value;
		parts += strncmp(name, "mem.part.", 9) ? 0 : p->points.v[i].value;
	}
	assert_true(rss > 0);
	assert_int_equal(rss, parts);
	memwatch_free(w);
	self = 0x3fffffff;
	w = memwatch_new(p, &self, 1, start, false);
	assert_int_equal(memwatch_look(w, start, MEMWATCH_WALK), 0);
	memwatch_free(w);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_of_jemalloc),
		cmocka_unit_test(live_objects),
		cmocka_unit_test(looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
