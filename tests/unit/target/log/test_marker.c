/* test_marker.c - samply's marker files: their names, their lines, and how they are read as they grow. */
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "target/log/markerfile.h"
#include "target/log/markerfind.h"

static void names(void **state)
{
	static const struct {
		const char *path;
		bool good;
		pid_t pid, tid;
	} cases[] = {
		{ "/tmp/tracing-samply/4711/marker-4711-4712.txt", true, 4711, 4712 },
		{ "marker-7.txt", true, 7, 0 },
		{ "/tmp/marker-0-1.txt", false, 0, 0 },
		{ "/tmp/marker-1-0.txt", false, 0, 0 },
		{ "/tmp/marker-1-.txt", false, 0, 0 },
		{ "/tmp/marker-.txt", false, 0, 0 },
		{ "/tmp/marker-1-2-3.txt", false, 0, 0 },
		{ "/tmp/marker-99999999999.txt", false, 0, 0 },
		{ "/tmp/marker-1-2.txt (deleted)", false, 0, 0 },
		{ "/marker-1-2.txt/x", false, 0, 0 },
		{ "", false, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		pid_t pid, tid;

		assert_int_equal(markerfile_is_name(cases[i].path, &pid, &tid), cases[i].good);
		if (!cases[i].good)
			continue;
		assert_int_equal(pid, cases[i].pid);
		assert_int_equal(tid, cases[i].tid);
	}
}

static void lines(void **state)
{
	static const struct {
		const char *line;
		bool good;
		uint64_t start, end;
		const char *name;
	} cases[] = {
		{ "100 200 on_new_payload", true, 100, 200, "on_new_payload" },
		{ "100 100 a b  c", true, 100, 100, "a b  c" },
		{ "100 200 x\r", true, 100, 200, "x" },
		{ "200 100 x", false }, { "100 200 ", false }, { "100 200", false }, { "100", false }, { "", false },
		{ "-1 200 x", false }, { "1e3 2000 x", false }, { "100\t200 x", false },
		{ "100 99999999999999999999 x", false }, { " 100 200 x", false },
	};
	struct marker_span s;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(markerfile_parse(cases[i].line, strlen(cases[i].line), &s), cases[i].good);
		if (!cases[i].good)
			continue;
		assert_int_equal(s.start_ns, cases[i].start);
		assert_int_equal(s.end_ns, cases[i].end);
		assert_string_equal(s.name, cases[i].name);
	}
}

struct spans {
	VEC(struct marker_span) list;
};

static void got(void *context, const struct marker_span *s)
{
	struct spans *l = context;

	vec_push(&l->list, *s);
}

static void put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void growing(void **state)
{
	int fd = memfd_create("marker", 0);
	struct spans l = { 0 };
	struct markerfile f;
	char line[1200];

	/* What is there is of the past, but for the line that is not done. */
	for (int i = 0; i < 100; i++)
		put(fd, "1 2 old\n");
	put(fd, "3 4 cu");
	markerfile_init(&f, dup(fd), true);
	markerfile_read(&f, 1 << 20, got, &l);
	assert_true(l.list.n < 100);
	vec_clear(&l.list);
	put(fd, "t\n5 6 next\n7 ");
	markerfile_read(&f, 1 << 20, got, &l);
	assert_int_equal(l.list.n, 2);
	assert_string_equal(l.list.v[0].name, "cut");
	put(fd, "8 last\nno line\n");
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = 0;
	put(fd, line);
	put(fd, "\n9 10 after\n");
	/* A few bytes at a time. */
	while (markerfile_read(&f, 7, got, &l))
		;
	assert_int_equal(l.list.n, 4);
	assert_string_equal(l.list.v[2].name, "last");
	assert_string_equal(l.list.v[3].name, "after");
	assert_int_equal(f.bad, 2);
	/* Emptied, and begun again. */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	put(fd, "11 12 again\n");
	markerfile_read(&f, 1 << 20, got, &l);
	assert_int_equal(l.list.n, 5);
	assert_string_equal(l.list.v[4].name, "again");
	markerfile_done(&f);
	close(fd);
	vec_done(&l.list);
}

struct opened {
	pid_t tid;
	int files;
};

static void opened(void *context, pid_t pid, pid_t tid, int fd)
{
	struct opened *o = context;

	assert_int_equal(pid, getpid());
	o->tid = tid;
	o->files++;
	close(fd);
}

/* Only the process's own files are opened, and none that has another name. */
static void found(void **state)
{
	char folder[] = "/tmp/test-marker-XXXXXX", path[128], other[128], again[128];
	struct opened o = { 0 };
	FILE *mine, *foreign;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/marker-%d-%d.txt", folder, getpid(), getpid());
	snprintf(other, sizeof(other), "%s/marker-1-1.txt", folder);
	snprintf(again, sizeof(again), "%s/again", folder);
	mine = fopen(path, "w");
	foreign = fopen(other, "w");
	assert_non_null(mine);
	assert_non_null(foreign);
	markerfind_open(getpid(), opened, &o);
	assert_int_equal(o.files, 1);
	assert_int_equal(o.tid, getpid());
	markerfind_mapped(getpid(), path, opened, &o);
	assert_int_equal(o.files, 2);
	markerfind_mapped(getpid(), other, opened, &o);
	assert_int_equal(o.files, 2);
	/* A second name: somebody else's file may be behind it. */
	assert_int_equal(link(path, again), 0);
	markerfind_open(getpid(), opened, &o);
	markerfind_mapped(getpid(), path, opened, &o);
	assert_int_equal(o.files, 2);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(again, path), 0);
	markerfind_mapped(getpid(), path, opened, &o);
	assert_int_equal(o.files, 2);
	assert_true(markerfind_clock(getpid()) == 0);
	fclose(mine);
	fclose(foreign);
	unlink(path);
	unlink(other);
	unlink(again);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names), cmocka_unit_test(lines), cmocka_unit_test(growing), cmocka_unit_test(found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
