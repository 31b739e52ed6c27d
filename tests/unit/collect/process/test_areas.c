#include "collect/process/areas.h"
#include "test.h"

/* Every address's file and offset, kept the simple way. */
enum { SPACE = 64 };
struct cell {
	uint32_t file;
	uint64_t offset;
	bool there;
};

static void put(struct areas *a, struct cell *cells, struct area new)
{
	bool same = true;

	for (uint64_t i = new.start; i < new.end; i++) {
		struct cell c = { new.file, new.file ? new.offset + i - new.start : 0, true };

		same = same && cells[i].there && cells[i].file == c.file && cells[i].offset == c.offset;
		cells[i] = c;
	}
	assert_int_equal(areas_put(a, new), !same);
}

static void assert_same(const struct areas *a, const struct cell *cells)
{
	size_t k = 0;

	for (size_t i = 1; i < a->list.n; i++)
		assert_true(a->list.v[i - 1].end <= a->list.v[i].start);
	for (uint64_t i = 0; i < SPACE; i++) {
		const struct area *e;

		while (k < a->list.n && a->list.v[k].end <= i)
			k++;
		e = k < a->list.n && a->list.v[k].start <= i ? &a->list.v[k] : NULL;
		assert_int_equal(e != NULL, cells[i].there);
		if (e) {
			assert_int_equal(e->file, cells[i].file);
			if (e->file)
				assert_int_equal(e->offset + i - e->start, cells[i].offset);
		}
	}
}

static void cuts(void **state)
{
	struct areas a = { 0 };

	assert_true(areas_put(&a, (struct area){ 10, 20, 100, 1, 0 }));
	assert_false(areas_put(&a, (struct area){ 10, 20, 100, 1, 0 }));
	assert_false(areas_put(&a, (struct area){ 12, 15, 102, 1, 0 }));
	assert_false(areas_put(&a, (struct area){ 30, 30, 0, 1, 0 }));
	assert_true(areas_put(&a, (struct area){ 12, 15, 0, 2, 0 }));
	assert_int_equal(a.list.n, 3);
	assert_int_equal(a.list.v[0].end, 12);
	assert_int_equal(a.list.v[2].start, 15);
	assert_int_equal(a.list.v[2].offset, 105);
	assert_true(areas_put(&a, (struct area){ 0, 64, 0, 3, 0 }));
	assert_int_equal(a.list.n, 1);
	vec_done(&a.list);
}

static void at_random(void **state)
{
	uint32_t seed = 1;

	for (int round = 0; round < 200; round++) {
		struct cell cells[SPACE] = { 0 };
		struct areas a = { 0 };

		for (int i = 0; i < 100; i++) {
			uint32_t start, size, file;

			seed = seed * 1664525 + 1013904223;
			start = seed >> 26;
			size = (seed >> 20 & 15) + 1;
			file = seed >> 18 & 3;
			put(&a, cells, (struct area){ start, MIN(start + size, SPACE), file ? (seed >> 16 & 1) * 8 + start : 0, file, 0 });
			assert_same(&a, cells);
		}
		vec_done(&a.list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts),
		cmocka_unit_test(at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
