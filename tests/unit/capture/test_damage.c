#include "capturefiles.h"

#include <endian.h>
#include <errno.h>

#include "base/sanitized.h"
#include "base/buf.h"

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
		put_bytes(path, data, length, 0600);
		errors += !read_damaged(path);
	}
	assert_true(errors > tries / 2);
	for (int i = 0; i < (SANITIZED ? 150 : 500); i++) { /* fuzz_capture goes on with it */
		size_t at = i < 60 || (i >= 150 && i < 290) ? random_below(200) : random_below(n);
		char old = data[at];

		data[at] ^= 1 << random_below(8);
		if (i % 3 == 0)
			data[at] = 0xff;
		put_bytes(path, data, n, 0600);
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
		put_bytes(wal, data, length, 0600);
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
		{ "update task_wake set time_ns = -1 where rowid = 3", 1 },
		{ "update task_wake set await_ns = 1.5 where rowid = 3", 1 },
		{ "update task_wake set queue_ns = null where rowid = 3", 1 },
		{ "update task_wake set type = x'00' where rowid = 3", 1 },
		{ "update task_wake set task = -1 where rowid = 3", 1 },
		{ "update task_wake set thread = 5 where rowid = 3", 1 },
		{ "update task_wake set waker = 5 where rowid = 3", 1 },
		{ "update task_wake set waker_type = x'07' where rowid = 3", 1 },
		{ "update task_wake set waker_task = 4294967296 where rowid = 3", 1 },
		{ "update task_wake set waker_stack = 4294967295 where rowid = 3", 1 },
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

		put_bytes(path, data, n, 0600);
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

/* What computes, or could be used instead of a table, has no place in a capture. */
static void the_schema_is_the_known_text(void **state)
{
	static const char *const refused[] = {
		"create index i on sample (time_ns)",
		"create trigger t after insert on function begin select 1; end",
		"alter table sample add column more integer",
		"alter table sample add column more integer generated always as (value + 1) virtual",
		"drop table counter; create table counter (name text primary key, value integer)",
		"drop table counter; create table counter (name text primary key, value integer check (value > 0)) without rowid",
		"drop table stack; create table stack (id integer primary key, parent integer default (random()), frame integer)",
		"analyze",
	};
	static const char *const taken[] = {
		"create table of_a_newer_gasflame (x, y)",
		"create view also_newer as select 1",
		("drop view threads; create view threads as with recursive n(i) as (select 1 union all select i + 1 from n) "
		 "select i from n"),
		"drop table counter; create table COUNTER  (name\n text primary key, value integer) without rowid",
	};
	_cleanup_free_ char *path = in_folder("schema"), *data = NULL;
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	struct capture_summary summary;
	struct err err = { 0 };
	size_t n;

	save(p, path);
	assert_int_equal(fd_read_path(path, 1 << 20, &data, &n), 0);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		put_bytes(path, data, n, 0600);
		tamper(path, refused[i]);
		if (read_damaged(path))
			fail_msg("read in spite of: %s", refused[i]);
		assert_int_equal(capture_summary(path, &summary, &err), -EBADMSG);
	}
	for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
		put_bytes(path, data, n, 0600);
		tamper(path, taken[i]);
		if (!read_damaged(path))
			fail_msg("not read because of: %s", taken[i]);
	}
}

/* A hot journal of one page, which names a file as its super-journal: SQLite deletes that once it has played it back. */
static void write_journal(const char *path, const char *victim, const uint8_t *page, uint32_t pages)
{
	static const uint8_t magic[8] = { 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7 };
	uint32_t size = 4096, head[5] = { htobe32(1), htobe32(1), htobe32(pages), htobe32(512), htobe32(size) }, sum = 1;
	uint32_t number[3] = { htobe32(1), 0, htobe32(0x40000000 / size + 1) }, name[2] = { htobe32(strlen(victim)), 0 };
	uint8_t block[512] = { 0 };
	struct buf b = { 0 };

	for (int i = size - 200; i > 0; i -= 200)
		sum += page[i];
	number[1] = htobe32(sum);
	sum = 0;
	for (const char *c = victim; *c; c++)
		sum += *c;
	name[1] = htobe32(sum);
	memcpy(block, magic, sizeof(magic));
	memcpy(block + 8, head, sizeof(head));
	buf_add(&b, block, sizeof(block));
	buf_add(&b, &number[0], 4);
	buf_add(&b, page, size);
	buf_add(&b, &number[1], 8);
	buf_puts(&b, victim);
	buf_add(&b, name, 8);
	buf_add(&b, magic, sizeof(magic));
	put_bytes(path, b.data, b.n, 0600);
	buf_done(&b);
}

/* By reading, by looking at it, and by recording into its place. */
static void a_journal_cannot_delete_files(void **state)
{
	_cleanup_free_ char *path = in_folder("hot"), *victim = in_folder("victim"), *data = NULL;
	_cleanup_free_ char *journal = mem_printf("%s-journal", path);
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	struct capture_summary summary;
	struct profile *q = NULL;
	struct err err = { 0 };
	size_t n;

	save(p, path);
	assert_int_equal(fd_read_path(path, 1 << 20, &data, &n), 0);
	put_bytes(victim, "precious", 8, 0600);
	write_journal(journal, victim, (uint8_t *)data, n / 4096);
	assert_int_equal(capture_read(path, &q, &err), -EPERM);
	assert_non_null(strstr(err.text, "-journal lies beside"));
	assert_int_equal(capture_summary(path, &summary, &err), -EPERM);
	assert_int_equal(access(victim, F_OK), 0);
	assert_int_equal(access(journal, F_OK), 0);
	/* A new recording in its place is not harmed by it either. */
	save(p, path);
	assert_int_equal(access(victim, F_OK), 0);
	q = load(path);
	assert_same(p, q);
	profile_free(q);
}

/* What lies there is never taken for the log that a recorder makes. */
static void a_recorder_follows_no_link(void **state)
{
	_cleanup_free_ char *path = in_folder("linked"), *wal = in_folder("linked-wal"), *victim = in_folder("target");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	struct stat st;

	save(p, path);
	put_bytes(victim, "", 0, 0600);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(i ? link(victim, wal) : symlink(victim, wal), 0);
		save(p, path);
		assert_int_equal(stat(victim, &st), 0);
		assert_int_equal(st.st_size, 0);
		assert_int_equal(access(wal, F_OK), -1);
	}
	q = load(path);
	assert_same(p, q);
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
		cmocka_unit_test(the_schema_is_the_known_text),
		cmocka_unit_test(a_journal_cannot_delete_files),
		cmocka_unit_test(a_recorder_follows_no_link),
		cmocka_unit_test(a_histogram_too_many_is_dropped),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
