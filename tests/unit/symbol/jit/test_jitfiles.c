#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "profile/profile.h"
#include "symbol/jit/jitfiles.h"
#include "symbol/jit/jithint.h"
#include "symbol/jit/jitnames.h"

/* A process whose code was made at run time. */
static struct profile *profile_of(pid_t pid)
{
	struct profile *p = profile_new();

	p->start_wall_ns = clock_wall_ns();
	profile_add_process(p, &(struct profile_process){ .pid = pid });
	profile_add_module(p, &(struct profile_module){ .path = profile_string(p, "[jit]"), .kind = MODULE_JIT, .process = 0 });
	return p;
}

static void write_map(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static const struct jitfiles_folder *first_folder(struct jitfiles *f, struct profile *p)
{
	const struct jitfiles_process *x = jitfiles_of(f, p, 0);

	assert_non_null(x);
	assert_true(x->folder_count >= 1);
	return &x->folders[0];
}

/* Only a regular file of the process's user, or of root, is a map. */
static void whose_map(void **state)
{
	_cleanup_free_ char *path = mem_printf("/tmp/perf-%d.map", getpid());
	struct profile *p = profile_of(getpid());
	struct jitfiles *f = jitfiles_new();

	unlink(path);
	assert_int_equal(first_folder(f, p)->map, -1);
	assert_string_equal(first_folder(f, p)->path, path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(first_folder(f, p)->map, -1);
	unlink(path);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(first_folder(f, p)->map, -1); /* and does not wait for a writer */
	unlink(path);
	if (!geteuid()) {
		write_map(path, "1000 10 other\n");
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(first_folder(f, p)->map, -1);
		assert_true(first_folder(f, p)->refused);
		unlink(path);
	}
	write_map(path, "1000 10 own\n");
	assert_true(first_folder(f, p)->map >= 0);
	assert_false(first_folder(f, p)->refused);
	unlink(path);
	assert_true(first_folder(f, p)->map >= 0); /* what was seen is kept */
	jitfiles_free(f);
	profile_free(p);
}

/* A child in a folder of its own writes there, removes it and ends: its map is held. */
static void held_after_the_end(void **state)
{
	char folder[] = "/tmp/jitfiles-XXXXXX", text[64] = "";
	_cleanup_free_ char *path = NULL;
	const struct jitfiles_process *x;
	struct jitfiles *f = jitfiles_new();
	struct profile *p;
	int ready[2], held[2];
	pid_t pid;
	char c;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(held), 0);
	pid = fork();
	if (!pid) {
		setenv("TMPDIR", folder, 1);
		dup2(ready[1], 1);
		dup2(held[0], 0);
		/* It executes nothing else: within exec a process has no environment for a moment. */
		execlp("sh", "sh", "-c", "echo; read x", NULL);
		_exit(1);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	/* Another process of that number may have left one. */
	path = mem_printf("/tmp/perf-%d.map", pid);
	unlink(path);
	free(path);
	path = mem_printf("%s/perf-%d.map", folder, pid);
	p = profile_of(pid);
	assert_false(jitfiles_look(f, p));
	write_map(path, "1000 10 moved\n");
	assert_true(jitfiles_look(f, p));
	assert_false(jitfiles_look(f, p));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(path);
	rmdir(folder);
	jitfiles_look(f, p);
	x = jitfiles_of(f, p, 0);
	assert_non_null(x);
	assert_int_equal(x->pid, 0);
	assert_int_equal(x->folder_count, 2);
	assert_string_equal(x->folders[1].path, path);
	assert_true(pread(x->folders[1].map, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "1000 10 moved\n");
	close(ready[0]);
	close(ready[1]);
	jitfiles_free(f);
	profile_free(p);
}

static void dump_names(void **state)
{
	assert_int_equal(jitfiles_dump_number("/root/.debug/jit/x/jit-123.dump"), 123);
	assert_int_equal(jitfiles_dump_number("/tmp/jit-.dump"), 0);
	assert_int_equal(jitfiles_dump_number("/tmp/jit-99999999999999999999.dump"), 0);
	assert_int_equal(jitfiles_dump_number("/tmp/jit-1.dump.so"), 0);
	assert_int_equal(jitfiles_dump_number("jit-1.dump"), 0);
}

/* Addresses of a page have one name, from the first mapping on. */
static void pages(void **state)
{
	struct profile *p = profile_of(getpid());
	const struct {
		uint64_t address;
		uint64_t page;
	} cases[] = {
		{ 0x7f0000003010, 0x2000 }, { 0x7f0000003ff0, 0x2000 }, { 0x7f0000004000, 0x3000 },
		{ 0x7e0000000123, 0x7e0000000000 }, /* below the first */
	};

	profile_add_mapping(p, &(struct profile_mapping){ .start = 0x7f0000001000, .end = 0x7f0000002000 });
	profile_add_mapping(p, &(struct profile_mapping){ .start = 0x7e0000000000, .end = 0x7e0000002000 });
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(jitnames_page(p, 0, cases[i].address), cases[i].page);
	profile_free(p);
}

static void run_times(void **state)
{
	static const struct {
		const char *path, *runtime;
	} cases[] = {
		{ "/usr/lib/jvm/java-17/lib/server/libjvm.so", "Java" }, { "/usr/bin/node", "node" },
		{ "/usr/lib/libnode.so.108", "node" }, { "/opt/dotnet/shared/libcoreclr.so", ".NET" },
		{ "/usr/lib/libluajit-5.1.so.2.1.0", "LuaJIT" }, { "/usr/bin/luajit-2.1.0-beta3", "LuaJIT" },
		{ "/usr/lib/libpypy3.9-c.so", "PyPy" }, { "/usr/bin/node_exporter", NULL }, { "/usr/bin/bundle", NULL }, { "", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct jithint *h = jithint_of_file(cases[i].path);

		if (!cases[i].runtime)
			assert_null(h);
		else
			assert_string_equal(h ? h->runtime : "", cases[i].runtime);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whose_map), cmocka_unit_test(held_after_the_end), cmocka_unit_test(dump_names),
		cmocka_unit_test(pages),     cmocka_unit_test(run_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
