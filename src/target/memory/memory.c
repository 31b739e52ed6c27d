#include "target/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/map.h"
#include "base/text/str.h"
#include "target/proc.h"
#include "target/memory/smaps.h"

enum {
	GUARD_MOST = 1 << 20, /* below a stack */
	STACK_LEAST = 16 << 10,
	STACK_MOST = 64 << 20,           /* of a stack that is known by its guard only */
	STACK_UNGUARDED_MOST = 16 << 20, /* a pointer into more than this is a coroutine on the heap */
	BSS_MOST = 1 << 20, /* of a library; an adjacent mapping may have been merged with it */
	ARENA = 64 << 20,   /* glibc's arenas are parts of regions of this size, and aligned to it */
	SMALL_FILE = 4 << 20,
};

/* --- classifying a mapping --- */

static bool names_any(const char *path, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(path, *words))
			return true;
	return false;
}

/* "[heap]", "[anon: glibc: malloc arena]" (PR_SET_VMA_ANON_NAME), "[vdso]" */
static enum memory_part classify_named(const char *path)
{
	static const char *const heaps[] = { "malloc", "heap", "arena", "scudo", NULL };

	if (!strcmp(path, "[heap]"))
		return MEMORY_HEAP;
	if (str_starts(path, "[stack"))
		return MEMORY_STACKS;
	if (str_starts(path, "[anon_shmem"))
		return MEMORY_SHARED;
	if (!str_starts(path, "[anon"))
		return MEMORY_OTHER;
	if (strcasestr(path, "stack"))
		return MEMORY_STACKS;
	if (strstr(path, ".bss"))
		return MEMORY_DATA;
	return names_any(path, heaps) ? MEMORY_HEAP : MEMORY_ANONYMOUS;
}

static bool on_tmpfs(const struct memory_hints *h, const struct smaps_mapping *m)
{
	for (size_t i = 0; i < h->tmpfs.n; i++)
		if (h->tmpfs.v[i] == map_pair(m->device_major, m->device_minor))
			return true;
	return false;
}

static enum memory_part classify_file(const struct memory_hints *h, const struct smaps_mapping *m)
{
	static const char *const shared[] = { "/memfd:",   "/SYSV",          "/dev/zero",
					      "/dev/shm/", "/anon_hugepage", NULL };

	for (size_t i = 0; shared[i]; i++)
		if (str_starts(m->path, shared[i]))
			return m->shared || strcmp(shared[i], "/dev/zero") ? MEMORY_SHARED : MEMORY_ANONYMOUS;
	if (on_tmpfs(h, m))
		return MEMORY_SHARED;
	return m->path[0] == '/' ? MEMORY_FILES : MEMORY_OTHER;
}

static bool is_guard(const struct smaps_mapping *m)
{
	return !m->path && !m->readable && !m->writable && m->end - m->start <= GUARD_MOST;
}

static bool has_guard(const struct smaps *s, size_t i)
{
	return i && is_guard(&s->list.v[i - 1]) && s->list.v[i - 1].end == s->list.v[i].start;
}

/* Returns whether the mapping is a part of an aligned region whose unused rest is not readable. */
static bool is_arena(const struct smaps *s, size_t i)
{
	const struct smaps_mapping *m = &s->list.v[i], *next = i + 1 < s->list.n ? m + 1 : NULL;

	if (!m->no_reserve || m->start % ARENA || m->end - m->start > ARENA)
		return false;
	return m->end - m->start == ARENA ||
	       (next && next->start == m->end && !next->readable && !next->path && next->end % ARENA == 0);
}

/* .bss follows the variables that are in the file. */
static bool is_bss(const struct smaps *s, size_t i, const struct memory_hints *h)
{
	const struct smaps_mapping *m = &s->list.v[i], *before = i ? m - 1 : NULL;

	return before && before->end == m->start && before->path && before->path[0] == '/' &&
	       before->writable && !before->shared && m->writable &&
	       (m->end - m->start <= BSS_MOST || (h->exe && !strcmp(before->path, h->exe)));
}

static enum memory_part classify(const struct smaps *s, size_t i, const struct memory_hints *h)
{
	const struct smaps_mapping *m = &s->list.v[i];

	if (m->path)
		return m->path[0] == '[' ? classify_named(m->path) : classify_file(h, m);
	if (m->no_huge && m->writable && has_guard(s, i))
		return MEMORY_STACKS; /* of a thread, or kept for the next one */
	if (is_arena(s, i))
		return MEMORY_HEAP;
	return is_bss(s, i, h) ? MEMORY_DATA : MEMORY_ANONYMOUS;
}

/* Each stack pointer is in a mapping: that is a stack, unless the program has put it on its heap. */
static void mark_stacks(const struct smaps *s, const struct memory_hints *h, uint8_t *parts)
{
	for (size_t i = 0; i < h->pointers.n; i++) {
		const struct smaps_mapping *m = smaps_find(s, h->pointers.v[i]);

		if (m && parts[m - s->list.v] == MEMORY_ANONYMOUS &&
		    (has_guard(s, m - s->list.v) || m->end - m->start <= STACK_UNGUARDED_MOST))
			parts[m - s->list.v] = MEMORY_STACKS;
	}
}

uint8_t *memory_classify(const struct smaps *s, const struct memory_hints *h, uint32_t *ret_stacks)
{
	uint8_t *parts = mem_alloc(s->list.n + 1);
	uint32_t stacks = 0;

	for (size_t i = 0; i < s->list.n; i++)
		parts[i] = classify(s, i, h);
	mark_stacks(s, h, parts);
	for (size_t i = 0; i < s->list.n; i++)
		stacks += parts[i] == MEMORY_STACKS;
	/* Threads that could not be asked, because they ran or we may not: mappings that look like a
	 * stack. */
	for (size_t i = 0; i < s->list.n && stacks < h->threads; i++) {
		const struct smaps_mapping *m = &s->list.v[i];
		uint64_t size = m->end - m->start;

		if (parts[i] != MEMORY_ANONYMOUS || m->path || !m->writable || size < STACK_LEAST ||
		    size > STACK_MOST || !has_guard(s, i))
			continue;
		parts[i] = MEMORY_STACKS;
		stacks++;
	}
	*ret_stacks = stacks;
	return parts;
}

/* --- adding up --- */

static void add_file(struct memory *m, struct map *index, const char *path, uint64_t rss, uint64_t size)
{
	uint64_t *at = map_put(index, map_hash_bytes(path, strlen(path)), m->files.n);

	if (*at == m->files.n)
		vec_push(&m->files, (struct memory_file){ .path = mem_strdup(path) });
	m->files.v[*at].rss_bytes += rss;
	m->files.v[*at].size_bytes += size;
}

static int compare_files(const void *a, const void *b)
{
	const struct memory_file *x = a, *y = b;

	return ORDER(y->rss_bytes, x->rss_bytes) ?: strcmp(x->path, y->path);
}

void memory_sum(const struct smaps *s, const uint8_t *parts, struct memory *m)
{
	struct map index = { 0 };

	m->walked = true;
	m->rss_bytes = m->anon_bytes = m->swap_bytes = 0;
	for (size_t i = 0; i < s->list.n; i++) {
		const struct smaps_mapping *v = &s->list.v[i];
		bool file = parts[i] == MEMORY_FILES || parts[i] == MEMORY_SHARED;
		uint64_t own = file ? MIN(v->anon_bytes, v->rss_bytes) : 0;

		m->rss_bytes += v->rss_bytes;
		m->part_bytes[parts[i]] += v->rss_bytes - own;
		m->part_bytes[MEMORY_DATA] += own;
		m->anon_bytes += v->anon_bytes;
		m->pss_bytes += v->pss_bytes;
		m->shared_bytes += v->shared_bytes;
		m->swap_bytes += v->swap_bytes;
		m->locked_bytes += v->locked_bytes;
		m->huge_bytes += v->huge_bytes;
		m->lazyfree_bytes += v->lazyfree_bytes;
		if (parts[i] == MEMORY_FILES)
			add_file(m, &index, v->path, v->rss_bytes - own, v->end - v->start);
	}
	map_done(&index);
	vec_sort(&m->files, compare_files);
}

void memory_add(struct memory *sum, const struct memory *m)
{
	struct map index = { 0 };

	sum->walked = sum->processes ? sum->walked && m->walked : m->walked;
	sum->processes += m->processes;
	sum->threads += m->threads;
	sum->stacks += m->stacks;
	sum->rss_bytes += m->rss_bytes;
	sum->anon_bytes += m->anon_bytes;
	sum->file_bytes += m->file_bytes;
	sum->shmem_bytes += m->shmem_bytes;
	sum->swap_bytes += m->swap_bytes;
	sum->page_table_bytes += m->page_table_bytes;
	sum->peak_bytes += m->peak_bytes;
	sum->virtual_bytes += m->virtual_bytes;
	sum->hugetlb_bytes += m->hugetlb_bytes;
	sum->minor_faults += m->minor_faults;
	sum->major_faults += m->major_faults;
	for (int i = 0; i < MEMORY_PARTS; i++)
		sum->part_bytes[i] += m->part_bytes[i];
	sum->pss_bytes += m->pss_bytes;
	sum->shared_bytes += m->shared_bytes;
	sum->locked_bytes += m->locked_bytes;
	sum->huge_bytes += m->huge_bytes;
	sum->lazyfree_bytes += m->lazyfree_bytes;
	for (size_t i = 0; i < sum->files.n; i++)
		map_put(&index, map_hash_bytes(sum->files.v[i].path, strlen(sum->files.v[i].path)), i);
	for (size_t i = 0; i < m->files.n; i++)
		add_file(sum, &index, m->files.v[i].path, m->files.v[i].rss_bytes, m->files.v[i].size_bytes);
	map_done(&index);
	vec_sort(&sum->files, compare_files);
}

void memory_done(struct memory *m)
{
	vec_done_each(&m->files, e, free(e->path));
}

/* --- hints --- */

/* "36 35 0:25 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw" */
void memory_parse_mounts(const char *text, struct memory_hints *h)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *dash = memmem(text, n, " - ", 3);
		unsigned major, minor;

		if (dash && (str_starts(dash + 3, "tmpfs ") || str_starts(dash + 3, "devtmpfs ")) &&
		    sscanf(text, "%*d %*d %u:%u", &major, &minor) == 2)
			vec_push(&h->tmpfs, map_pair(major, minor));
		text += n + (text[n] == '\n');
	}
}

/* "running", "-1 0x7ffd0e3d4a30 0x7f89831162ec", "230 0x1 ... 0x7f8982b37c00 0x7f89830ed545" */
uint64_t memory_parse_syscall(const char *text)
{
	size_t n = strcspn(text, "\n");
	const char *last = memrchr(text, ' ', n), *before = last ? memrchr(text, ' ', last - text) : NULL;

	return before && str_starts(before, " 0x") ? strtoull(before + 1, NULL, 16) : 0;
}

static void read_hints(pid_t pid, struct memory_hints *h)
{
	_cleanup_free_ char *mounts = NULL;
	struct proc_ids threads;
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	if (!fd_read_path(path, SMALL_FILE, &mounts, NULL))
		memory_parse_mounts(mounts, h);
	h->exe = proc_exe(pid);
	if (proc_threads(pid, &threads))
		return;
	h->threads = threads.list.n;
	for (size_t i = 0; i < threads.list.n; i++) {
		_cleanup_free_ char *text = NULL;
		uint64_t pointer;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, threads.list.v[i]);
		if (fd_read_path(path, SMALL_FILE, &text, NULL))
			continue;
		pointer = memory_parse_syscall(text);
		if (pointer)
			vec_push(&h->pointers, pointer);
	}
	vec_done(&threads.list);
}

static void hints_done(struct memory_hints *h)
{
	vec_done(&h->pointers);
	vec_done(&h->tmpfs);
	free(h->exe);
}

/* --- a process --- */

static int walk_mappings(pid_t pid, struct memory *m)
{
	struct memory_hints hints = { 0 };
	struct smaps maps;
	int r = smaps_read(pid, &maps);

	if (r)
		return r;
	read_hints(pid, &hints);
	if (maps.list.n) { /* a process that is ending has none */
		_cleanup_free_ uint8_t *parts = memory_classify(&maps, &hints, &m->stacks);

		memory_sum(&maps, parts, m);
	}
	hints_done(&hints);
	smaps_done(&maps);
	return 0;
}

int memory_read(pid_t pid, bool walk, struct memory *ret)
{
	struct proc_memory memory;
	struct proc_stat stat;
	int r;

	*ret = (struct memory){ .processes = 1 };
	r = proc_memory(pid, &memory);
	r = r ? r : proc_stat(pid, &stat);
	if (r)
		return r;
	if (stat.state == 'Z' || stat.state == 'X')
		return -ESRCH;
	ret->threads = memory.threads;
	ret->rss_bytes = memory.rss_bytes;
	ret->anon_bytes = memory.anon_bytes;
	ret->file_bytes = memory.file_bytes;
	ret->shmem_bytes = memory.shared_bytes;
	ret->swap_bytes = memory.swap_bytes;
	ret->page_table_bytes = memory.page_table_bytes;
	ret->peak_bytes = memory.peak_bytes;
	ret->virtual_bytes = memory.virtual_bytes;
	ret->hugetlb_bytes = memory.huge_bytes;
	ret->minor_faults = stat.minor_faults;
	ret->major_faults = stat.major_faults;
	r = walk ? walk_mappings(pid, ret) : 0;
	return r == -EACCES || r == -EPERM ? 0 : r;
}
