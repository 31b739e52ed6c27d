/* The real folder, files and clock: each test has a file of its own to keep the table of. */
#include "folder.h"
#include "putfile.h"
#include "test.h"

#include <poll.h>
#include <sys/stat.h>

#include "collect/process/tablecache.h"
#include "elf/worker/worker.h"

static uint64_t rules[] = { RULE_NONE, RULE_UNSUPPORTED };
static uint32_t rows[] = { 0, 0x10 | 1 << 16, 0, 0x20 | 1 << 16, 0x30 };
static struct unwind_page pages[] = { { 0, 2 }, { 2, 3 } };
static const struct unwind_table table = { .first_page = 1, .page_count = 2, .row_count = 5, .rule_count = 2,
					   .pages = pages, .rows = rows, .rules = rules, .unsupported = 3 };
static const struct worker_layout layout = { .build_id = { 1, 2 }, .build_id_size = 20, .part_count = 1,
					     .parts = { { 0x1000, 0x2000, 0x401000 } } };

/* A file that was changed just now is not kept: waits until the clock has gone on. */
static int old_file(const char *name)
{
	_cleanup_free_ char *path = in_folder(name);
	struct tablecache_file f;
	int fd;

	put_bytes(path, "code", 4, 0600);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (f = tablecache_file(fd); !f.lasting; f = tablecache_file(fd))
		poll(NULL, 0, 10);
	return fd;
}

static bool finds(int fd)
{
	struct tablecache *c = tablecache_open();
	struct tablecache_file f = tablecache_file(fd);
	struct worker_layout l;
	struct unwind_table t;
	bool found = tablecache_find(c, &f, &l, &t);

	tablecache_close(c);
	if (!found)
		return false;
	assert_memory_equal(&l, &layout, sizeof(l));
	assert_int_equal(t.first_page, table.first_page);
	assert_int_equal(t.unsupported, table.unsupported);
	assert_int_equal(t.row_count, table.row_count);
	assert_memory_equal(t.pages, pages, sizeof(pages));
	assert_memory_equal(t.rows, rows, sizeof(rows));
	assert_memory_equal(t.rules, rules, sizeof(rules));
	unwind_done(&t);
	return true;
}

static void keep(int fd, const struct tablecache_file *before, const struct worker_layout *l, const struct unwind_table *t)
{
	struct tablecache *c = tablecache_open();

	assert_non_null(c);
	tablecache_keep(c, fd, before, l, t);
	tablecache_close(c);
}

static char *entry_of(const struct tablecache_file *f)
{
	return mem_printf("%s/gasflame/%llx-%llx.table", folder, (unsigned long long)f->device, (unsigned long long)f->inode);
}

static void test_found_again(void **state)
{
	_cleanup_fd_ int fd = old_file("again");
	struct tablecache_file f = tablecache_file(fd);

	assert_false(finds(fd));
	keep(fd, &f, &layout, &table);
	assert_true(finds(fd));
}

static void test_changed(void **state)
{
	_cleanup_fd_ int fd = old_file("changed");
	struct tablecache_file f = tablecache_file(fd);
	struct stat st;

	keep(fd, &f, &layout, &table);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, "CODE", 4, 0), 4);
	/* Its owner can set the time of the write back, but not the time of the change. */
	assert_int_equal(futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim }), 0);
	while (!tablecache_file(fd).lasting)
		poll(NULL, 0, 10);
	assert_false(finds(fd));
	/* What was read of the old one is not kept for the new one. */
	keep(fd, &f, &layout, &table);
	assert_false(finds(fd));
}

static void test_without_a_name(void **state)
{
	_cleanup_fd_ int fd = old_file("gone");
	_cleanup_free_ char *path = in_folder("gone"), *entry;
	struct tablecache_file f;

	assert_int_equal(unlink(path), 0);
	f = tablecache_file(fd);
	assert_false(f.lasting);
	keep(fd, &f, &layout, &table);
	entry = entry_of(&f);
	assert_int_equal(access(entry, F_OK), -1);
}

/* Each byte of an entry counts: one that is another, or missing, and there is no table. */
static void test_damaged(void **state)
{
	_cleanup_fd_ int fd = old_file("damaged"), on = -1;
	struct tablecache_file f = tablecache_file(fd);
	_cleanup_free_ char *entry = entry_of(&f), *good = NULL;
	size_t n;

	keep(fd, &f, &layout, &table);
	on = open(entry, O_RDWR | O_CLOEXEC);
	assert_true(on >= 0);
	assert_int_equal(fd_read_file(on, 1 << 20, &good, &n), 0);
	for (size_t i = 0; i < n; i += 1 + i % 7) {
		char bad = good[i] ^ 0x40;

		assert_int_equal(pwrite(on, &bad, 1, i), 1);
		assert_false(finds(fd));
		assert_int_equal(pwrite(on, good + i, 1, i), 1);
	}
	assert_true(finds(fd));
	for (size_t i = 0; i < n; i += 1 + i % 13) {
		assert_int_equal(ftruncate(on, i), 0);
		assert_false(finds(fd));
	}
}

/* Made with care, checksum and all, by someone who may write to the folder. */
static void test_forged(void **state)
{
	uint32_t not_sorted[] = { 0, 0x10 | 1 << 16, 0, 0x30, 0x20 }, no_such_rule[] = { 0, 0x10 | 7 << 16, 0, 0x20, 0x30 };
	struct unwind_page beyond[] = { { 0, 2 }, { 2, 400 } };
	struct unwind_table bad = table;
	struct worker_layout many = layout;
	_cleanup_fd_ int fd = old_file("forged");
	struct tablecache_file f = tablecache_file(fd);

	bad.rows = not_sorted;
	keep(fd, &f, &layout, &bad);
	assert_false(finds(fd));
	bad.rows = no_such_rule;
	keep(fd, &f, &layout, &bad);
	assert_false(finds(fd));
	bad = table;
	bad.pages = beyond;
	keep(fd, &f, &layout, &bad);
	assert_false(finds(fd));
	many.part_count = WORKER_LAYOUT_PARTS + 1;
	keep(fd, &f, &many, &table);
	assert_false(finds(fd));
	keep(fd, &f, &layout, &table);
	assert_true(finds(fd));
}

static void test_links(void **state)
{
	_cleanup_fd_ int fd = old_file("linked");
	struct tablecache_file f = tablecache_file(fd);
	_cleanup_free_ char *entry = entry_of(&f), *aside = in_folder("aside");

	keep(fd, &f, &layout, &table);
	assert_int_equal(rename(entry, aside), 0);
	assert_int_equal(symlink(aside, entry), 0);
	assert_false(finds(fd));
	/* Others may not write to an entry. */
	assert_int_equal(unlink(entry), 0);
	assert_int_equal(rename(aside, entry), 0);
	assert_true(finds(fd));
	assert_int_equal(chmod(entry, 0622), 0);
	assert_false(finds(fd));
}

/* The vDSO has no name and no time: its bytes tell. */
static void test_image(void **state)
{
	_cleanup_fd_ int fd = old_file("image"), other = old_file("other"), large = old_file("large");
	struct tablecache_file f = tablecache_image(fd), g;
	struct tablecache *c = tablecache_open();
	struct worker_layout l;
	struct unwind_table t;

	assert_true(f.lasting);
	tablecache_keep(c, fd, &f, &layout, &table);
	g = tablecache_image(other); /* the same bytes */
	assert_true(tablecache_find(c, &g, &l, &t));
	unwind_done(&t);
	assert_int_equal(pwrite(other, "CODE", 4, 0), 4);
	g = tablecache_image(other);
	assert_false(tablecache_find(c, &g, &l, &t));
	assert_int_equal(ftruncate(large, 1 << 20), 0);
	assert_false(tablecache_image(large).lasting);
	tablecache_close(c);
}

static void test_no_cache(void **state)
{
	_cleanup_fd_ int fd = old_file("none");
	struct tablecache_file f = tablecache_file(fd);
	struct worker_layout l;
	struct unwind_table t;

	tablecache_keep(NULL, fd, &f, &layout, &table);
	assert_false(tablecache_find(NULL, &f, &l, &t));
	tablecache_close(NULL);
}

static int own_folder(void **state)
{
	return make_folder(state) || setenv("XDG_CACHE_HOME", folder, 1) || unsetenv("SUDO_UID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_again),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_without_a_name),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_image),
		cmocka_unit_test(test_no_cache),
	};

	return cmocka_run_group_tests(tests, own_folder, remove_folder);
}
