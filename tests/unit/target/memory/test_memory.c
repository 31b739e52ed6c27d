#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "putfile.h"
#include "target/cgroup/cgroupmemory.h"
#include "target/memory/memory.h"
#include "target/memory/metrics.h"
#include "target/proc.h"
#include "target/memory/smaps.h"

/* --- smaps --- */

#define ENTRY(header, rss, anon, flags)                                                                      \
	header "\nSize: 8 kB\nRss: " rss " kB\nPss: 1 kB\nAnonymous: " anon                                  \
	       " kB\nSwap: 4 kB\nVmFlags: " flags " \n"

static const char text[] = ENTRY("1000-2000 r-xp 00000000 fe:00 7      /opt/node", "4", "0", "rd ex mr")
	ENTRY("2000-4000 rw-p 00001000 fe:00 7      /opt/node", "8", "4", "rd wr mr") ENTRY(
		"4000-900000 rw-p 00000000 00:00 0 ", "100", "100", "rd wr mr ac") /* .bss of the program */
	ENTRY("a00000-b00000 rw-p 00000000 00:00 0      [heap]", "20", "20", "rd wr")
		ENTRY("c00000-d00000 rw-s 00000000 00:01 9      /memfd:x (deleted)", "12", "0", "rd wr sh")
			ENTRY("d00000-e00000 rw-s 00000000 00:19 9      /run/a file", "16", "0",
			      "rd wr sh")                                       /* on tmpfs */
	ENTRY("4000000-4021000 rw-p 00000000 00:00 0 ", "64", "64", "rd wr nr") /* an arena of glibc */
	ENTRY("4021000-8000000 ---p 00000000 00:00 0 ", "0", "0", "mr nr")
		ENTRY("9000000-9001000 ---p 00000000 00:00 0 ", "0", "0", "mr nh")
			ENTRY("9001000-9201000 rw-p 00000000 00:00 0 ", "24", "24",
			      "rd wr nh") /* a stack by its flag */
	ENTRY("9201000-9202000 ---p 00000000 00:00 0 ", "0", "0", "mr")
		ENTRY("9202000-9402000 rw-p 00000000 00:00 0 ", "28", "28", "rd wr") /* by its guard */
	ENTRY("a000000-a010000 rw-p 00000000 00:00 0 ", "32", "32", "rd wr")         /* by its pointer */
	ENTRY("c000000-c001000 rw-p 00000000 00:00 0      [anon: glibc: malloc arena]", "40", "40", "rd wr")
		ENTRY("c002000-c003000 rw-p 00000000 00:00 0      [anon:pthread stack 12]", "44", "44",
		      "rd wr") ENTRY("c003000-c004000 rw-p 00000000 00:00 0      [anon:cache]", "48", "48",
				     "rd wr")
			ENTRY("d000000-d001000 r--s 00000000 fe:00 8      /data/mdbx.dat", "52", "0", "rd")
				ENTRY("10000000-12000000 rw-p 00000000 00:00 0 ", "36", "36",
				      "rd wr") /* a heap with coroutines */
	ENTRY("7ffd0000-7ffe0000 rw-p 00000000 00:00 0      [stack]", "8", "8", "rd wr gd")
		ENTRY("7fff0000-7fff1000 r-xp 00000000 00:00 0      [vdso]", "4", "0", "rd ex");

static void parts_of_a_text(void **state)
{
	struct memory_hints h = { .threads = 4, .exe = "/opt/node" };
	struct memory m = { 0 };
	struct smaps s;
	uint32_t stacks;
	uint8_t *parts;
	uint64_t sum = 0;

	assert_int_equal(smaps_parse(text, sizeof(text) - 1, &s), 0);
	assert_int_equal(s.list.n, 20);
	vec_push(&h.pointers, 0xa000800);
	vec_push(&h.pointers, 0x11000800); /* a coroutine on the heap: no stack of 32 MB */
	memory_parse_mounts(
		"36 35 0:25 / /run rw - tmpfs tmpfs rw\n37 35 0:26 / /x rw - ext4 tmpfs rw\ngarbage\n", &h);
	assert_int_equal(h.tmpfs.n, 1);
	parts = memory_classify(&s, &h, &stacks);
	memory_sum(&s, parts, &m);
	assert_int_equal(m.part_bytes[MEMORY_HEAP], (20 + 64 + 40) << 10);
	assert_int_equal(m.part_bytes[MEMORY_FILES], (4 + 4 + 52) << 10);
	assert_int_equal(m.part_bytes[MEMORY_SHARED], (12 + 16) << 10);
	assert_int_equal(m.part_bytes[MEMORY_DATA], (4 + 100) << 10);
	assert_int_equal(m.part_bytes[MEMORY_OTHER], 4 << 10);
	assert_int_equal(stacks, 4); /* as many as threads: what only has a guard is none then */
	assert_int_equal(m.part_bytes[MEMORY_STACKS], (24 + 32 + 44 + 8) << 10);
	assert_int_equal(m.part_bytes[MEMORY_ANONYMOUS], (28 + 36 + 48) << 10);
	for (int i = 0; i < MEMORY_PARTS; i++)
		sum += m.part_bytes[i];
	assert_int_equal(sum, m.rss_bytes);
	assert_int_equal(m.swap_bytes, 20 * 4 << 10);
	assert_int_equal(m.files.n, 2);
	assert_string_equal(m.files.v[0].path, "/data/mdbx.dat");
	assert_int_equal(m.files.v[1].rss_bytes, 8 << 10);
	memory_done(&m);
	free(parts);
	vec_done(&h.pointers);
	vec_done(&h.tmpfs);
	smaps_done(&s);
}

/* Without a single pointer: the flag, the names, and guards as long as threads are missing. */
static void stacks_without_pointers(void **state)
{
	struct smaps s;
	uint32_t stacks;
	uint8_t *parts;

	smaps_parse(text, sizeof(text) - 1, &s);
	parts = memory_classify(&s, &(struct memory_hints){ .threads = 4 }, &stacks);
	assert_int_equal(stacks, 4);
	assert_int_equal(parts[11], MEMORY_STACKS);
	assert_int_equal(parts[12], MEMORY_ANONYMOUS);
	free(parts);
	parts = memory_classify(&s, &(struct memory_hints){ .threads = 1 }, &stacks);
	assert_int_equal(parts[11], MEMORY_ANONYMOUS);
	assert_int_equal(parts[9], MEMORY_STACKS);
	/* What follows a file that is not the program's is only then .bss if it is small. */
	assert_int_equal(parts[2], MEMORY_ANONYMOUS);
	free(parts);
	smaps_done(&s);
}

static void hostile_text(void **state)
{
	static const char *const bad[] = {
		"Rss: 4 kB\n", "zzz\n", "1000-2000 r", "2000-1000 rw-p 00000000 00:00 0 \nRss: 1 kB\n",
		"1000-2000 rw-p 00000000 00:00 0 \nRss: 99999999999999999999999 kB\n",
		"1000-2000 rw-p 00000000 00:00 0 \nRss: x kB\n", "1000-2000 rw-p 00000000 00:00 0 \nRss\n",
	};
	struct smaps s;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_true(smaps_parse(bad[i], strlen(bad[i]), &s) > 0);
		smaps_done(&s);
	}
	/* Cut anywhere: never more than what is there. */
	for (size_t n = 0; n < sizeof(text); n++) {
		char *copy = mem_strndup(text, n);

		smaps_parse(copy, n, &s);
		assert_true(s.list.n <= 20);
		smaps_done(&s);
		free(copy);
	}
}

static void stack_pointers(void **state)
{
	assert_int_equal(memory_parse_syscall("running\n"), 0);
	assert_int_equal(memory_parse_syscall("-1 0x7ffd0e3d4a30 0x7f89831162ec\n"), 0x7ffd0e3d4a30);
	assert_int_equal(memory_parse_syscall("230 0x1 0x1 0x0 0x0 0x0 0x0 0x7f8982b37c00 0x7f89830ed545\n"),
			 0x7f8982b37c00);
	assert_int_equal(memory_parse_syscall(""), 0);
	assert_int_equal(memory_parse_syscall("1 2"), 0);
}

/* --- this process --- */

static void own_memory(void **state)
{
	size_t n = 16 << 20;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct memory before, after;
	uint64_t sum = 0;

	assert_int_equal(memory_read(getpid(), true, &before), 0);
	memset(p, 1, n);
	assert_int_equal(memory_read(getpid(), true, &after), 0);
	assert_true(after.walked);
	assert_true(after.part_bytes[MEMORY_ANONYMOUS] >= before.part_bytes[MEMORY_ANONYMOUS] + n);
	assert_true(after.part_bytes[MEMORY_ANONYMOUS] <=
		    before.part_bytes[MEMORY_ANONYMOUS] + n + (1 << 20));
	assert_true(after.minor_faults > before.minor_faults);
	for (int i = 0; i < MEMORY_PARTS; i++)
		sum += after.part_bytes[i];
	assert_int_equal(sum, after.rss_bytes);
	memory_add(&before, &after);
	assert_int_equal(before.processes, 2);
	memory_done(&before);
	memory_done(&after);
	munmap(p, n);
	assert_int_equal(memory_read(0x3fffffff, true, &after), -ESRCH);
	memory_done(&after);
}

static void residency_of_objects(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE), n = 64 * page;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct memory_resident r;
	struct memory_object objects[3];

	madvise(p, n, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < 16; i++)
		p[i * page] = 1;
	/* A quarter of the whole, the half of one that crosses the end of what is touched, none of the last.
	 */
	objects[0] = (struct memory_object){ (uintptr_t)p + 40 * page, 100, 1000 };
	objects[1] = (struct memory_object){ (uintptr_t)p, n, 4 * n };
	objects[2] = (struct memory_object){ (uintptr_t)p + 16 * page - 50, 100, 1000 };
	assert_int_equal(memory_resident(getpid(), objects, 3, &r), 0);
	assert_int_equal(r.bytes, n + 500);
	assert_true(r.arena_bytes >= 16 * page);
	assert_int_equal(memory_resident(getpid(), objects, 0, &r), 0);
	assert_int_equal(r.bytes + r.arena_bytes, 0);
	objects[0] = (struct memory_object){ UINT64_MAX - 10, 100, 1000 };
	assert_int_equal(memory_resident(getpid(), objects, 1, &r), 0);
	assert_int_equal(r.bytes, 0);
	munmap(p, n);
}

/* --- cgroups --- */

static void groups_of_both_versions(void **state)
{
	char root[] = "/tmp/gasflame-group-XXXXXX", inner[64], command[128];
	struct cgroupmemory g;

	assert_non_null(mkdtemp(root));
	snprintf(inner, sizeof(inner), "%s/a", root);
	mkdir(inner, 0700);
	snprintf(inner, sizeof(inner), "%s/a/b", root);
	mkdir(inner, 0700);
	assert_int_equal(cgroupmemory_read_folder(root, "/a/b", 2, &g), -ENOENT);
	put(inner, "memory.current", "1000\n");
	put(inner, "memory.max", "max\n");
	put(inner, "memory.stat",
	    "anon 10\nfile 20\nkernel 30\npgscan 5\npgsteal 4\nworkingset_refault_anon 1\n"
	    "workingset_refault_file 2\nanon_thp 99\n");
	put(inner, "memory.events", "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 0\n");
	snprintf(command, sizeof(command), "%s/a", root);
	put(command, "memory.max", "5000\n"); /* its parent's limit is its own, too */
	assert_int_equal(cgroupmemory_read_folder(root, "/a/b", 2, &g), 0);
	assert_int_equal(g.usage_bytes, 1000);
	assert_int_equal(g.limit_bytes, 5000);
	assert_true(g.high_bytes == CGROUPMEMORY_NO_LIMIT);
	assert_int_equal(g.anon_bytes + g.file_bytes + g.kernel_bytes, 60);
	assert_int_equal(g.refaults, 3);
	assert_int_equal(g.limit_hits, 2);
	assert_int_equal(g.oom_kills, 4);
	cgroupmemory_done(&g);
	put(inner, "memory.usage_in_bytes", "77\n");
	put(inner, "memory.limit_in_bytes", "9223372036854771712\n");
	put(inner, "memory.stat", "rss 1\ntotal_rss 2\ntotal_cache 3\n");
	put(inner, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n");
	put(inner, "memory.failcnt", "8\n");
	assert_int_equal(cgroupmemory_read_folder(root, "/a/b", 1, &g), 0);
	assert_int_equal(g.usage_bytes, 77);
	assert_true(g.limit_bytes == CGROUPMEMORY_NO_LIMIT);
	assert_int_equal(g.anon_bytes, 2);
	assert_int_equal(g.limit_hits, 8);
	assert_int_equal(g.oom_kills, 6);
	cgroupmemory_done(&g);
	for (const char *const *name =
		     (const char *const[]){ "memory.current", "memory.max", "memory.stat", "memory.events",
					    "memory.usage_in_bytes", "memory.limit_in_bytes",
					    "memory.oom_control", "memory.failcnt", NULL };
	     *name; name++) {
		snprintf(command, sizeof(command), "%s/%s", inner, *name);
		unlink(command);
	}
	rmdir(inner);
	snprintf(command, sizeof(command), "%s/a/memory.max", root);
	unlink(command);
	snprintf(command, sizeof(command), "%s/a", root);
	rmdir(command);
	rmdir(root);
}

/* --- metrics --- */

static void spellings_of_jemalloc(void **state)
{
	struct metrics m;

	assert_true(metrics_parse(
		"# HELP x jemalloc_active 5\nreth_jemalloc_active 1.5e9\nreth_jemalloc_allocated 1e9\n", &m));
	assert_true(m.known[METRICS_ACTIVE] && m.bytes[METRICS_ACTIVE] == 1500000000);
	assert_true(m.known[METRICS_ALLOCATED] && !m.known[METRICS_RESIDENT]);
	assert_true(metrics_parse("jemalloc_resident_bytes{a=\"b c\",d=\"\\\" 9\"} 7 1700000000\n", &m));
	assert_int_equal(m.bytes[METRICS_RESIDENT], 7);
	assert_true(metrics_parse("jemalloc{stat=\"mapped\"} 8", &m));
	assert_int_equal(m.bytes[METRICS_MAPPED], 8);
	assert_true(metrics_parse("op_reth_JEMALLOC_retained 9\n", &m));
	assert_int_equal(m.bytes[METRICS_RETAINED], 9);
	assert_false(metrics_parse("", &m));
	assert_false(metrics_parse(
		"jemalloc_active\njemalloc_mapped NaN\njemalloc_retained -1\njemalloc_resident 1e300\n", &m));
	assert_false(metrics_parse("jemalloc_interactive 5\njemalloc_arena_active 5\nother_active 5\n", &m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_a_text),
		cmocka_unit_test(stacks_without_pointers),
		cmocka_unit_test(hostile_text),
		cmocka_unit_test(stack_pointers),
		cmocka_unit_test(own_memory),
		cmocka_unit_test(residency_of_objects),
		cmocka_unit_test(groups_of_both_versions),
		cmocka_unit_test(spellings_of_jemalloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
