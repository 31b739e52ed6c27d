#include "test.h"

#include <sqlite3.h>
#include <unistd.h>

#include "analyze/select.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "export/section/ownertext.h"
#include "capture/capture.h"
#include "profile/profile.h"
#include "jsonmembers.h"
#include "folder.h"

static uint32_t add_container(struct profile *p, const char *name, const char *id)
{
	return profile_owner(p, &(struct profile_owner){ .kind = profile_string(p, "container"), .name = profile_string(p, name),
							 .container = profile_string(p, id), .engine = profile_string(p, "docker"),
							 .image = profile_string(p, "tiny:1"),
							 .cgroup = profile_string(p, "/docker/x") });
}

static void add_process(struct profile *p, uint32_t pid, uint32_t inner, uint32_t owner)
{
	uint32_t process = profile_add_process(p, &(struct profile_process){ .pid = pid, .name = profile_string(p, "node"),
									     .owner = owner, .inner_pid = inner });
	uint32_t thread = profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = pid,
									  .name = profile_string(p, "node") });

	profile_add_sample(p, &(struct profile_sample){ .thread = thread, .value = 1 });
}

/* Two containers of one image, a unit, and a process of nobody. */
static struct profile *make(void)
{
	struct profile *p = profile_new();

	profile_add_event(p, "cpu", "ns", "", 1);
	add_process(p, 100, 7, add_container(p, "reth-a", "aaaa"));
	add_process(p, 101, 1, add_container(p, "reth-a", "aaaa"));
	add_process(p, 200, 1, add_container(p, "reth-b", "bbbb"));
	add_process(p, 300, 0, profile_owner(p, &(struct profile_owner){ .kind = profile_string(p, "unit"),
									 .name = profile_string(p, "geth.service"),
									 .cgroup = profile_string(p, "/system.slice/geth.service") }));
	add_process(p, 400, 0, 0);
	p->duration_ns = 1000000000;
	p->finished = true;
	return p;
}

static void expect_text(const struct profile *p)
{
	struct buf b = { 0 };

	ownertext_put(p, &b);
	assert_string_equal(b.data, "container reth-a (docker, image tiny:1), 2 processes, pid 7 inside, 100 here (node)\n"
				    "container reth-b (docker, image tiny:1), pid 1 inside, 200 here\n"
				    "unit geth.service, pid 300\n");
	buf_done(&b);
}

static void said_in_a_line(void **state)
{
	_cleanup_(profile_freep) struct profile *p = make();
	struct buf b = { 0 };

	assert_int_equal(p->owners.n, 3);
	expect_text(p);
	put_members(&b, ownertext_json(p, &j));
	assert_non_null(strstr(b.data, "{\"kind\":\"container\",\"name\":\"reth-b\",\"container\":\"bbbb\",\"engine\":\"docker\",\"image\":\"tiny:1\","
				       "\"pod\":\"\",\"cgroup\":\"/docker/x\",\"processes\":[{\"pid\":200,\"inner_pid\":1,\"name\":\"node\"}]}"));
	buf_done(&b);
}

static void kept_in_a_capture(void **state)
{
	_cleanup_free_ char *path = mem_printf("%s/a", folder);
	_cleanup_(profile_freep) struct profile *p = make(), *q = NULL, *old = NULL;
	struct err err = { 0 };
	sqlite3 *db;

	assert_int_equal(capture_save(path, p, &err), 0);
	assert_int_equal(capture_read(path, &q, &err), 0);
	expect_text(q);
	assert_int_equal(profile_counter(q, "capture.dropped"), 0);
	assert_int_equal(q->processes.v[4].owner, 0);
	/* Rows that point nowhere are dropped, and a file that has no such tables is read all the same. */
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "insert or replace into process_owner values (4, 99, 5), (77, 0, 5)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	profile_free(q);
	assert_int_equal(capture_read(path, &q, &err), 0);
	assert_int_equal(q->processes.v[4].owner, 0);
	assert_int_equal(profile_counter(q, "capture.dropped"), 2);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "drop table owner; drop table process_owner", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(capture_read(path, &old, &err), 0);
	assert_int_equal(old->owners.n, 0);
	assert_int_equal(old->processes.n, 5);
}

static void merged(void **state)
{
	_cleanup_(profile_freep) struct profile *p = make(), *q = profile_new();
	struct err err = { 0 };

	/* Other strings before, so that ids differ. */
	profile_string(q, "x");
	add_container(q, "other", "cccc");
	assert_int_equal(profile_merge(q, p, &err), 0);
	assert_int_equal(profile_merge(q, p, &err), 0);
	assert_int_equal(q->owners.n, 4);
	assert_string_equal(profile_str(q, q->owners.v[q->processes.v[2].owner - 1].name), "reth-b");
	assert_int_equal(q->processes.v[2].inner_pid, 1);
}

static size_t picked(struct profile *p, const char *name)
{
	const char *const names[] = { name, NULL };
	struct select_options o = { .processes = names };
	struct err err = { 0 };
	uint8_t *threads = NULL;
	size_t n = 0;

	if (select_threads(p, &o, &threads, &err) < 0)
		return 0;
	for (size_t i = 0; i < p->threads.n; i++)
		n += threads[i];
	free(threads);
	return n;
}

static void told_apart(void **state)
{
	_cleanup_(profile_freep) struct profile *p = make();

	assert_int_equal(picked(p, "node"), 5);
	assert_int_equal(picked(p, "reth-a"), 2);
	assert_int_equal(picked(p, "reth-?"), 3);
	assert_int_equal(picked(p, "geth.service"), 1);
	assert_int_equal(picked(p, "200"), 1);
	assert_int_equal(picked(p, "reth-c"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(said_in_a_line),
		cmocka_unit_test(kept_in_a_capture),
		cmocka_unit_test(merged),
		cmocka_unit_test(told_apart),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
