#include "import/pprof/pprofplaces.h"

#include <stdio.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "elf/worker/worker.h"
#include "import/import.h"
#include "import/pprof/pprofmodel.h"
#include "profile/profile.h"
#include "target/open.h"

/* A mapping of all memory: addresses are of its file already. */
static bool spans_all(const struct pprofmapping *map)
{
	return !map->start && !map->offset && (!map->limit || map->limit == UINT64_MAX);
}

static bool outside(const struct pprofmapping *map, uint64_t address)
{
	return !spans_all(map) && (address < map->start || (map->limit && address >= map->limit));
}

void pprofplaces_prepare(struct pprofmodel *m)
{
	for (size_t i = 0; i < m->locations.n; i++) {
		struct pproflocation *l = &m->locations.v[i];
		struct pprofmapping *map = l->mapping == PROFILE_NONE ? NULL : &m->mappings.v[l->mapping];

		l->frame = PROFILE_NONE;
		if (!map)
			continue;
		map->unnamed |= !l->line_count;
		/* Address 0 is none. */
		m->file_addresses |= l->address && outside(map, l->address);
	}
}

/* Two digits a byte; 0: that is no build-id of ELF. */
static size_t parse_build(const char *hex, uint8_t out[20])
{
	size_t n = strlen(hex) / 2;
	unsigned byte;

	if (n > 20 || strlen(hex) % 2 || hex[strspn(hex, "0123456789abcdefABCDEF")])
		return 0;
	for (size_t i = 0; i < n && sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
		out[i] = byte;
	return n;
}

static int open_file(const struct pprofmodel *m, const char *path)
{
	const char *base = str_base_name(path);
	int fd = -1;

	for (const char *const *s = m->in->options.symbols; s && *s; s++) {
		_cleanup_free_ char *inside = mem_printf("%s/%s", *s, base);

		if ((!strcmp(str_base_name(*s), base) && !target_open_host(*s, &fd, NULL)) || !target_open_host(inside, &fd, NULL))
			return fd;
	}
	if (*path != '/')
		return -1;
	return (m->in->options.root ? target_open_below(m->in->options.root, path, &fd, NULL) : target_open_host(path, &fd, NULL)) ? -1 : fd;
}

/* Address in the process less address in the file. Its headers tell where a part of it lies; without it, at its offset. */
static uint64_t file_bias(struct pprofmodel *m, const struct pprofmapping *map)
{
	_cleanup_fd_ int fd = map->unnamed ? open_file(m, profile_str(m->p, map->file)) : -1;
	uint64_t address;

	if (fd >= 0 && !m->worker)
		m->worker = worker_new();
	if (fd < 0 || worker_offset_to_address(m->worker, fd, map->offset, &address, NULL))
		return map->start - map->offset;
	return map->start - address;
}

/* "[ext4]": a module of the kernel. What else has brackets is memory of the process. */
static bool kernel_module(const char *path)
{
	static const char *const others[] = { "[vdso]", "[vsyscall]", "[vvar]", "[heap]", "[stack", "[uprobes]", "[anon", "[unknown]" };

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (str_starts(path, others[i]))
			return false;
	return *path == '[' && str_ends(path, "]");
}

static void make(struct pprofmodel *m, struct pprofmapping *map)
{
	uint8_t id[20];
	size_t n = parse_build(profile_str(m->p, map->build_id), id);

	map->made = true;
	map->module = frames_module(&m->frames, profile_str(m->p, map->file), n ? id : NULL, n);
	if (map->module != PROFILE_NONE && kernel_module(profile_str(m->p, map->file)))
		m->p->modules.v[map->module].kind = MODULE_KERNEL;
	if (map->module == PROFILE_NONE || spans_all(map) || m->file_addresses)
		return;
	map->bias = m->p->modules.v[map->module].kind == MODULE_FILE ? file_bias(m, map) : map->start;
}

uint32_t pprofplaces_module(struct pprofmodel *m, const struct pproflocation *l, uint64_t *ret_address)
{
	struct pprofmapping *map = l->mapping == PROFILE_NONE ? NULL : &m->mappings.v[l->mapping];

	*ret_address = l->address;
	if (!map)
		return PROFILE_NONE;
	if (!map->made)
		make(m, map);
	if (map->module != PROFILE_NONE && l->address)
		*ret_address = l->address - map->bias;
	return map->module;
}
