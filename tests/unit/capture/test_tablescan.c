#include "capturefiles.h"

#include <errno.h>

#include "capture/capturefile.h"
#include "capture/scan/tablescan.h"

/* Sums that depend on each value and on the order of the rows. */
struct seen {
	uint64_t rows, hash, odd, restarts;
	int64_t last;
};

static bool see_row(void *context, const struct tablescan_row *row)
{
	struct seen *s = context;

	assert_true(!s->rows || row->rowid > s->last);
	s->last = row->rowid;
	s->rows++;
	s->odd += row->odd;
	for (int i = 0; i < 6 && !row->odd; i++)
		s->hash = (s->hash ^ row->values[i] ^ (row->nulls >> i & 1)) * 0x9e3779b97f4a7c15;
	return true;
}

/* Of a damaged tree, whose rows are in no order. */
static bool count_row(void *context, const struct tablescan_row *row)
{
	((struct seen *)context)->rows++;
	return true;
}

static void see_restart(void *context)
{
	*(struct seen *)context = (struct seen){ .restarts = ((struct seen *)context)->restarts + 1 };
}

static const struct tablescan samples = { .table = "sample", .columns = 6, .row = see_row, .restart = see_restart,
					  .sql = "select rowid, * from sample order by rowid" };

/* Reads by both ways: what SQL says is right. *ret_pages: what the pages alone say. */
static struct seen scan(const char *path, int *ret_pages)
{
	_cleanup_(capturefile_closep) sqlite3 *db = NULL;
	struct tablescan by_sql = samples;
	struct seen pages = { 0 }, both = { 0 }, sql = { 0 };
	struct err err;

	assert_int_equal(capturefile_open(path, &db, &err), 0);
	*ret_pages = tablescan_pages(db, &samples, &pages);
	by_sql.table = "";
	assert_int_equal(tablescan_read(db, &by_sql, &sql), SQLITE_DONE);
	assert_int_equal(sql.restarts, 1);
	assert_int_equal(tablescan_read(db, &samples, &both), SQLITE_DONE);
	assert_int_equal(both.restarts, *ret_pages ? 1 : 0);
	assert_true(both.rows == sql.rows && both.hash == sql.hash && both.odd == sql.odd);
	return both;
}

/* Numbers of all widths, on a tree of three levels. */
static void fill(const char *path)
{
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);

	save(p, path);
	tamper(path, "pragma page_size = 512; pragma journal_mode = delete; vacuum; delete from sample;"
		     "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)"
		     "insert into sample select i % 2, i % 2, i * i * i, i % 3,"
		     "  case i % 5 when 0 then null when 1 then (1 << (i % 63)) when 2 then -(1 << (i % 63)) else i % 2 end,"
		     "  case when i % 7 then i % 7 end from n");
}

static void pages_say_what_sql_says(void **state)
{
	_cleanup_free_ char *path = in_folder("scan");
	struct seen s;
	int r;

	fill(path);
	s = scan(path, &r);
	assert_int_equal(r, 0);
	assert_int_equal(s.rows, 20000);
	tamper(path, "delete from sample where rowid % 3 = 0; update sample set value = 1 << 40 where rowid % 5 = 0");
	s = scan(path, &r);
	assert_int_equal(r, 0);
	assert_int_equal(s.rows, 13334);
	tamper(path, "delete from sample");
	s = scan(path, &r);
	assert_int_equal(r, 0);
	assert_int_equal(s.rows, 0);
}

static void sql_reads_what_pages_cannot_say(void **state)
{
	_cleanup_free_ char *path = in_folder("odd");
	struct seen s;
	int r;

	fill(path);
	tamper(path, "update sample set value = 'word' where rowid = 7000");
	s = scan(path, &r);
	assert_int_equal(r, -ENOTSUP);
	assert_true(s.rows == 20000 && s.odd == 1);
	tamper(path, "update sample set value = 1.5 where rowid = 7000");
	s = scan(path, &r);
	assert_int_equal(r, -ENOTSUP);
	tamper(path, "update sample set value = zeroblob(5000) where rowid = 7000"); /* continues on other pages */
	s = scan(path, &r);
	assert_int_equal(r, -ENOTSUP);
	assert_true(s.rows == 20000 && s.odd == 1);
}

/* A log has the newest pages. */
static void a_file_with_a_log_is_read_by_sql(void **state)
{
	_cleanup_free_ char *path = in_folder("log");
	struct seen s;
	int r;

	kill_recorder(path, 300000, 0);
	s = scan(path, &r);
	assert_int_equal(r, -ENOTSUP);
	assert_true(s.rows > 0);
}

/* Each inner page refers to itself: the scan ends all the same. */
static void a_cycle_ends(void **state)
{
	_cleanup_free_ char *path = in_folder("cycle"), *data = NULL;
	_cleanup_(capturefile_closep) sqlite3 *db = NULL;
	struct seen s = { 0 };
	struct err err;
	size_t n;

	fill(path);
	assert_int_equal(fd_read_path(path, 64 << 20, &data, &n), 0);
	for (size_t page = 1; page < n / 512; page++) {
		unsigned char *head = (unsigned char *)data + page * 512;

		if (head[0] == 5) {
			head[8] = (page + 1) >> 24;
			head[9] = (page + 1) >> 16;
			head[10] = (page + 1) >> 8;
			head[11] = page + 1;
		}
	}
	put_bytes(path, data, n, 0600);
	assert_int_equal(capturefile_open(path, &db, &err), 0);
	assert_int_equal(tablescan_pages(db, &(struct tablescan){ .table = "sample", .columns = 6, .row = count_row }, &s),
			 -ENOTSUP);
	assert_true(s.rows <= n / 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_say_what_sql_says),
		cmocka_unit_test(sql_reads_what_pages_cannot_say),
		cmocka_unit_test(a_file_with_a_log_is_read_by_sql),
		cmocka_unit_test(a_cycle_ends),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
