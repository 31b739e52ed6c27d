#include "capturefiles.h"

/* Whatever comes out is an error with a sentence, or a sound profile. */
static bool read_damaged(const char *path)
{
	struct profile *p = NULL;
	struct err err = { 0 };
	int r = capture_read(path, &p, &err);

	if (r < 0) {
		assert_null(p);
		assert_true(err.text[0]);
		return false;
	}
	assert_sound(p);
	profile_free(p);
	return true;
}

static void damaged_files_do_no_harm(void **state)
{
	_cleanup_free_ char *path = in_folder("damaged"), *data = NULL;
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	unsigned errors = 0, tries = 0;
	size_t n;

	save(p, path);
	assert_int_equal(fd_read_path(path, 1 << 20, &data, &n), 0);
	for (size_t length = n - 1; length > 0; length = length > 700 ? length - 613 : length / 2, tries++) {
		write_file(path, data, length);
		errors += !read_damaged(path);
	}
	assert_true(errors > tries / 2);
	for (int i = 0; i < 500; i++) {
		size_t at = i < 200 ? random_below(200) : random_below(n);
		char old = data[at];

		data[at] ^= 1 << random_below(8);
		if (i % 3 == 0)
			data[at] = 0xff;
		write_file(path, data, n);
		read_damaged(path);
		data[at] = old;
	}
	/* The journal of a recorder that died. */
	free(data);
	kill_recorder(path, 300000, 0);
	_cleanup_free_ char *wal = mem_printf("%s-wal", path);
	assert_int_equal(fd_read_path(wal, 64 << 20, &data, &n), 0);
	n = MIN(n, (size_t)1 << 19);
	for (int i = 0; i < 60; i++) {
		size_t at = random_below(n), length = i % 2 ? n : random_below(n);

		data[at] ^= 0x55;
		write_file(wal, data, length);
		read_damaged(path);
		data[at] ^= 0x55;
	}
	unlink(wal);
}

static void rows_that_make_no_sense_are_dropped(void **state)
{
	static const struct {
		const char *sql;
		unsigned dropped;
	} cases[] = {
		{ "update stack set parent = 50 where id = 49", 1 },
		{ "update stack set parent = 49 where id = 49", 1 },
		{ "update stack set parent = -1 where id = 49", 1 },
		{ "update stack set frame = 4000000000 where id = 49", 1 },
		{ "delete from stack where id = 49", 1 },
		{ "update sample set stack = 999999 where rowid = 5", 1 },
		{ "update sample set thread = -4 where rowid = 5", 1 },
		{ "update sample set time_ns = -4 where rowid = 5", 1 },
		{ "update sample set value = 'much' where rowid = 5", 1 },
		{ "update sample set value = -9223372036854775808 where rowid = 5", 1 },
		{ "update sample set event = null where rowid = 5", 1 },
		{ "update frame set kind = 17 where id = 3", 1 },
		{ "update frame set module = 12345678901234 where id = 3", 1 },
		{ "update frame set id = 9000000000000000000 where id = 119", 1 },
		{ "update frame_line set function = -1 where frame = 1", 1 },
		{ "update function set name = x'00ff' where id = 1", 1 },
		{ "update thread set process = 8 where id = 2", 1 },
		{ "update module set build_id = 'xyz' where id = 1", 1 },
		{ "update module set build_id = '" "00112233445566778899001122334455667788990011" "' where id = 1", 1 },
		{ "update mapping set start = 9, \"end\" = 8 where rowid = 1", 1 },
		{ "update meta set value = 'soon' where key = 'duration_ns'", 1 },
		{ "update counter set value = -1", 1 },
		{ "update sample set count = -1 where rowid = 5", 1 },
		{ "update sample set count = 'many' where rowid = 5", 1 },
		{ "update sample set count = 4294967296 where rowid = 5", 1 },
		{ "update thread set run_ns = -1 where id = 2", 1 },
		{ "update thread set queue_ns = null where id = 2", 1 },
		{ "update thread set blocked_ns = 'x' where id = 2", 1 },
		{ "update wake set thread = 5 where rowid = 3", 1 },
		{ "update wake set time_ns = 1.5 where rowid = 3", 1 },
		{ "update wake set stack = -1 where rowid = 3", 1 },
		{ "update wake set blocked_ns = -1 where rowid = 3", 1 },
		{ "update wake set queue_ns = null where rowid = 3", 1 },
		{ "update wake set waker = 5 where rowid = 3", 1 },
		{ "update wake set waker_name = x'00' where rowid = 3", 1 },
		{ "update wake set waker_stack = 4294967295 where rowid = 3", 1 },
		{ "update mark set thread = 5 where rowid = 3", 1 },
		{ "update mark set start_ns = -1 where rowid = 3", 1 },
		{ "update mark set end_ns = start_ns - 1 where rowid = 3", 1 },
		{ "update mark set end_ns = null where rowid = 3", 1 },
		{ "update mark set name = x'00' where rowid = 3", 1 },
		{ "update mark set kind = x'07' where rowid = 3", 1 },
		{ "update mark set number = -1 where rowid = 3", 1 },
		{ "update mark set gas = 'much' where rowid = 3", 1 },
		{ "update series set name = x'00' where id = 0", 101 },
		{ "update series set id = -7 where id = 0", 100 },
		{ "update point set series = 2 where rowid = 3", 1 },
		{ "update point set time_ns = -1 where rowid = 3", 1 },
		{ "update point set value = 'x' where rowid = 3", 1 },
		{ "update point set value = 1e300 where rowid = 3", 1 },
		{ "update histogram set low = 3 where low = 1", 1 },
		{ "update histogram set low = 0 where low = 1", 1 },
		{ "update histogram set low = -9223372036854775808 where low = 1", 1 },
		{ "update histogram set count = -1 where low = 1", 1 },
		{ "update histogram set unit = x'00' where low = 1", 1 },
	};
	_cleanup_free_ char *path = in_folder("hostile"), *data = NULL;
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	size_t n;

	save(p, path);
	assert_int_equal(fd_read_path(path, 1 << 20, &data, &n), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_(profile_freep) struct profile *q = NULL;

		write_file(path, data, n);
		tamper(path, cases[i].sql);
		q = load(path);
		assert_sound(q);
		if (profile_counter(q, "capture.dropped") < cases[i].dropped)
			fail_msg("nothing was dropped after %s", cases[i].sql);
	}
}

/* A view in place of a table could compute for ever; a missing one is an error, too. */
static void tables_must_be_tables(void **state)
{
	_cleanup_free_ char *path = in_folder("bomb");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	struct err err = { 0 };

	save(p, path);
	tamper(path, "drop table counter; create view counter as with recursive n(name, value) as "
		     "(select 'x', 1 union all select name, value + 1 from n) select * from n");
	assert_false(read_damaged(path));
	tamper(path, "drop view counter");
	assert_false(read_damaged(path));
	assert_true(capture_read(path, &(struct profile *){ NULL }, &err) < 0);
	assert_non_null(strstr(err.text, "no such table"));
}

static void a_histogram_too_many_is_dropped(void **state)
{
	_cleanup_free_ char *path = in_folder("histograms");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;

	save(p, path);
	tamper(path, "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)"
		     "insert into histogram select 'x' || i, 'ns', 1, 1 from n");
	q = load(path);
	assert_int_equal(q->histograms.n, 10000);
	assert_int_equal(profile_counter(q, "capture.dropped"), 10002); /* there were two before */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_files_do_no_harm),
		cmocka_unit_test(rows_that_make_no_sense_are_dropped),
		cmocka_unit_test(tables_must_be_tables),
		cmocka_unit_test(a_histogram_too_many_is_dropped),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
