#include "target/kernelplaces.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/mem.h"

/* The kernel's code begins within its first symbols, which are in order. */
enum { KALLSYMS_BEGINNING = 64 << 10, LARGEST = 64 << 20 };

/* "ffffffff81000000 T _stext" in a list of symbols; 0 = it is not there, or hidden. */
static uint64_t symbol(const char *kallsyms, const char *name)
{
	_cleanup_free_ char *line = mem_printf(" T %s\n", name);
	const char *at = kallsyms ? strstr(kallsyms, line) : NULL;

	while (at && at > kallsyms && at[-1] != '\n')
		at--;
	return at ? strtoull(at, NULL, 16) : 0;
}

/* "  01000000-02206fc7 : Kernel code": its size is the same wherever it lies. */
static uint64_t code_bytes(const char *iomem)
{
	const char *at = iomem ? strstr(iomem, " : Kernel code") : NULL;
	uint64_t start = 0, end = 0;

	while (at && at > iomem && at[-1] != '\n')
		at--;
	return at && sscanf(at, " %" SCNx64 "-%" SCNx64, &start, &end) == 2 && end > start ? end + 1 - start : 0;
}

/* "ext4 995328 1 - Live 0xffffffffc0400000" */
static void add_module(struct kernelplaces *k, const char *line)
{
	struct kernelplace m = { 0 };
	unsigned long long bytes;
	char name[60];

	if (sscanf(line, "%59s %llu %*s %*s %*s 0x%" SCNx64, name, &bytes, &m.start) != 3 || !m.start || !bytes ||
	    bytes > UINT64_MAX - m.start)
		return;
	m.end = m.start + bytes;
	snprintf(m.name, sizeof(m.name), "[%s]", name);
	vec_push(&k->list, m);
}

static int by_start(const void *a, const void *b)
{
	const struct kernelplace *x = a, *y = b;

	return ORDER(x->start, y->start);
}

void kernelplaces_parse(struct kernelplaces *k, const char *kallsyms, const char *iomem, const char *modules)
{
	struct kernelplace kernel = { .name = "[kernel]", .start = symbol(kallsyms, "_stext") };

	vec_clear(&k->list);
	kernel.end = symbol(kallsyms, "_etext");
	if (!kernel.end)
		kernel.end = kernel.start + code_bytes(iomem);
	if (kernel.start && kernel.end > kernel.start)
		vec_push(&k->list, kernel);
	for (const char *line = modules; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		add_module(k, line);
	vec_sort(&k->list, by_start);
}

/* The kernel generates the text as it is read, so only the needed part is read. */
static char *read_beginning(const char *path, size_t n)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = mem_alloc(n + 1);
	ssize_t got = fd < 0 ? 0 : fd_read_all(fd, text, n);

	text[MAX(got, 0)] = 0;
	return text;
}

void kernelplaces_read(struct kernelplaces *k)
{
	_cleanup_free_ char *kallsyms = read_beginning("/proc/kallsyms", KALLSYMS_BEGINNING), *iomem = NULL, *modules = NULL;

	fd_read_path("/proc/iomem", LARGEST, &iomem, NULL);
	fd_read_path("/proc/modules", LARGEST, &modules, NULL);
	/* A container may hide iomem. */
	if (!code_bytes(iomem) && symbol(kallsyms, "_stext")) {
		free(kallsyms);
		kallsyms = read_beginning("/proc/kallsyms", LARGEST);
	}
	kernelplaces_parse(k, kallsyms, iomem, modules);
}

void kernelplaces_read_modules(struct kernelplaces *k)
{
	_cleanup_free_ char *modules = NULL;

	fd_read_path("/proc/modules", LARGEST, &modules, NULL);
	kernelplaces_parse(k, NULL, NULL, modules);
}

void kernelplaces_look_again(struct kernelplaces *k)
{
	const struct kernelplace *kernel = kernelplaces_named(k, "[kernel]");
	struct kernelplaces now = { 0 };

	kernelplaces_read_modules(&now);
	if (!now.list.n) {
		kernelplaces_done(&now);
		return;
	}
	if (kernel)
		vec_push(&now.list, *kernel);
	vec_sort(&now.list, by_start);
	kernelplaces_done(k);
	*k = now;
}

void kernelplaces_done(struct kernelplaces *k)
{
	vec_done(&k->list);
}

const struct kernelplace *kernelplaces_find(const struct kernelplaces *k, uint64_t address)
{
	size_t low = vec_search(i, 0, k->list.n, k->list.v[i].start <= address);

	return low && address < k->list.v[low - 1].end ? &k->list.v[low - 1] : NULL;
}

const struct kernelplace *kernelplaces_named(const struct kernelplaces *k, const char *name)
{
	for (size_t i = 0; i < k->list.n; i++)
		if (!strcmp(k->list.v[i].name, name))
			return &k->list.v[i];
	return NULL;
}
