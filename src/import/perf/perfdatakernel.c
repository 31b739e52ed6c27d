#include "import/perf/perfdatakernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/mem.h"
#include "elf/demangle.h"
#include "import/perf/perfdatafacts.h"
#include "profile/profile.h"
#include "target/kallsyms.h"
#include "target/open.h"

enum { LIST_BYTES = 256 << 20 };

void perfdatakernel_done(struct perfdatakernel *k)
{
	kallsyms_free(k->list);
}

static uint64_t find_start(const struct kallsyms *list)
{
	for (size_t i = 0, n = kallsyms_count(list); i < n; i++) {
		uint64_t address;
		const char *name = kallsyms_name(list, i, &address);

		if (!strcmp(name, "_text") || !strcmp(name, "_stext"))
			return address;
	}
	return 0;
}

static void read_list(struct perfdatakernel *k, const struct perfdatafacts_build *b)
{
	const char *home = getenv("HOME");
	_cleanup_free_ char *path = NULL;
	_cleanup_fd_ int fd = -1;
	char hex[41] = "", *text;
	size_t n;

	for (int i = 0; i < b->size; i++)
		snprintf(hex + 2 * i, 3, "%02x", b->id[i]);
	path = mem_printf("%s/.debug/[kernel.kallsyms]/%s/kallsyms", home ? home : "", hex);
	if (!home || target_open_host(path, &fd, NULL) || fd_read_file(fd, LIST_BYTES, &text, &n) < 0)
		return;
	k->list = kallsyms_parse(text);
	k->start = k->list && !kallsyms_hidden(k->list) ? find_start(k->list) : 0;
}

bool perfdatakernel_name(struct perfdatakernel *k, const struct perfdatafacts *facts, struct profile *p, uint32_t frame)
{
	const struct perfdatafacts_build *b = perfdatafacts_build_of(facts, "", true);
	struct profile_frame f = p->frames.v[frame];
	struct profile_function function = { .module = f.module };
	_cleanup_free_ char *shown = NULL;
	const char *name, *module;

	if (!k->tried && b && b->size)
		read_list(k, b);
	k->tried = true;
	if (!k->start || strcmp(profile_str(p, p->modules.v[f.module].path), "[kernel]"))
		return false;
	name = kallsyms_find(k->list, k->start + f.address, &module);
	if (!name || *module)
		return false;
	shown = demangle(name, 0);
	function.name = profile_string(p, shown);
	function.linkage = profile_string(p, name);
	if (function.linkage == function.name)
		function.linkage = 0;
	profile_set_lines(p, frame, &(struct profile_line){ .function = profile_function(p, &function) }, 1);
	return true;
}
