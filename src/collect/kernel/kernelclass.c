#include "collect/kernel/kernelclass.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/mem.h"
#include "profile/kernelname.h"

enum { LARGEST = 256 << 20, LONGEST_NAME = 128 };

static int by_address(const void *a, const void *b)
{
	const struct kernelclass_from *x = a, *y = b;

	return ORDER(x->address, y->address);
}

/* "ffffffff81000000 T name\t[module]": code only. */
static void parse_line(struct kernelclass *k, const char *line)
{
	char *end, name[LONGEST_NAME];
	uint64_t address = strtoull(line, &end, 16);
	size_t n;

	if (end == line || !address || end[0] != ' ' || !end[1] || end[2] != ' ' || !strchr("tTwW", end[1]))
		return;
	end += 3;
	n = MIN(strcspn(end, " \t\n"), sizeof(name) - 1);
	memcpy(name, end, n);
	name[n] = 0;
	vec_push(&k->list, (struct kernelclass_from){ address, kernelname_of(name) });
}

/* Functions with several names have what any of them says; of functions in a row that say the same the first is kept. */
static void condense(struct kernelclass *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->list.n;) {
		struct kernelclass_from from = k->list.v[i];

		for (i++; i < k->list.n && k->list.v[i].address == from.address; i++)
			from.names |= k->list.v[i].names;
		if (!n || k->list.v[n - 1].names != from.names)
			k->list.v[n++] = from;
	}
	k->list.n = n;
}

void kernelclass_parse(struct kernelclass *k, const char *kallsyms)
{
	vec_clear(&k->list);
	for (const char *line = kallsyms; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		parse_line(k, line);
	vec_sort(&k->list, by_address);
	condense(k);
	k->read = 1;
}

void kernelclass_done(struct kernelclass *k)
{
	vec_done(&k->list);
}

uint8_t kernelclass_of(struct kernelclass *k, uint64_t address)
{
	size_t low;

	if (!k->read) {
		_cleanup_free_ char *text = NULL;

		fd_read_path("/proc/kallsyms", LARGEST, &text, NULL);
		kernelclass_parse(k, text);
	}
	low = vec_search(i, 0, k->list.n, k->list.v[i].address <= address);
	return low ? k->list.v[low - 1].names : 0;
}
