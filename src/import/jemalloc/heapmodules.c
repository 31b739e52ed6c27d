#include "import/jemalloc/heapmodules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "elf/worker/worker.h"
#include "import/jemalloc/heapdumps.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/open.h"

static const char deleted[] = " (deleted)";

/* A sentence for people about a path that the dump's writer chose: it must not steer their terminal. */
static void add_problem(struct heapmodules *m, const char *path, const char *what, const char *build_id)
{
	_cleanup_free_ char *text =
		mem_printf("%s is %s%s: pass --symbols FILE with the build that ran", path,
			   what, build_id);

	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = '?';
	profile_count_of(m->p, KEY_SYMBOLS_PROBLEM_OF, text, 1);
}

/* Is the file called like the module, or like its debug file? */
static bool called_like(const char *file, const char *module)
{
	size_t n = strlen(module);

	file = str_base_name(file);
	return !strncmp(file, module, n) && (!file[n] || !strcmp(file + n, ".debug"));
}

/* Opens the file of that name among those that the user named: a dump has no build IDs. */
static int open_symbols(const struct heapmodules *m, const char *name)
{
	for (const char *const *s = m->options->symbols; s && *s; s++) {
		_cleanup_free_ char *inside = mem_printf("%s/%s", *s, name),
				    *debug = mem_printf("%s.debug", inside);
		const char *try[] = { called_like(*s, name) ? *s : NULL, inside, debug };
		int fd = -1;

		for (size_t i = 0; i < ARRAY_LEN(try); i++)
			if (try[i] && !target_open_host(try[i], &fd, NULL))
				return fd;
	}
	return -1;
}

/* The file as it was: newer than the dump, or deleted by then, it is another one. */
static int open_module(struct heapmodules *m, const struct proc_mapping *map, const char *path,
		       uint64_t dumped_ns)
{
	struct stat st;
	int fd = -1;

	if (m->options->pid && !target_open_mapping(m->options->pid, map, &fd, NULL))
		return fd;
	fd = open_symbols(m, str_base_name(path));
	if (fd >= 0 || str_ends(map->path, deleted))
		return fd;
	if (m->options->root ? target_open_below(m->options->root, path, &fd, NULL)
			     : target_open_host(path, &fd, NULL))
		return -1;
	if (dumped_ns && !fstat(fd, &st) && (uint64_t)st.st_mtim.tv_sec * 1000000000ULL > dumped_ns) {
		add_problem(m, path, "newer than the dump", "");
		fd_close(&fd);
	}
	return fd;
}

static enum profile_module_kind kind_of(const struct proc_mapping *map)
{
	return !strcmp(map->path, "[vdso]") ? MODULE_VDSO : map->path[0] == '/' ? MODULE_FILE : MODULE_JIT;
}

/* Returns whether the file has another build ID than the dump names. A node over HTTP may be on another
 * machine, whose paths are not ours. */
static bool other_build(struct heapmodules *m, const char *path, const char *wanted,
			const struct worker_identity *id)
{
	char hex[41];

	for (int i = 0; i < MIN(id->build_id_size, 20); i++)
		snprintf(hex + 2 * i, 3, "%02x", id->build_id[i]);
	if (!*wanted || (id->build_id_size && !strcasecmp(hex, wanted)))
		return false;
	add_problem(m, path, "another build than the one that ran, ", wanted);
	return true;
}

/* Two digits a byte; 0: that is no build-id. */
static uint8_t parse_build(const char *hex, uint8_t out[20])
{
	size_t n = strlen(hex) / 2;
	unsigned byte;

	if (n > 20 || hex[strspn(hex, "0123456789abcdefABCDEF")])
		return 0;
	for (size_t i = 0; i < n && sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
		out[i] = byte;
	return n;
}

/* Identifies the file of a mapping, if it is on this machine. */
static int identify(struct heapmodules *m, const struct heapdump *dump, const struct proc_mapping *map,
		    const char *path, struct profile_module *module)
{
	size_t k = map - dump->data.maps.list.v;
	const char *told = k < dump->data.builds.n ? dump->data.builds.v[k].hex : "";
	int fd = open_module(m, map, path, dump->wall_ns);
	struct worker_identity id = { 0 };

	if (fd >= 0 && worker_identify(m->worker, fd, &id, NULL) < 0)
		id = (struct worker_identity){ 0 };
	if (fd >= 0 && other_build(m, path, told, &id))
		fd_close(&fd);
	if (fd >= 0) {
		memcpy(module->build_id, id.build_id, sizeof(module->build_id));
		module->build_id_size = MIN(id.build_id_size, sizeof(module->build_id));
	} else {
		module->build_id_size = parse_build(told, module->build_id);
	}
	return fd;
}

/* A missing module must not be found again at the same path on this machine: its name says that it is
 * missing. */
uint32_t heapmodules_find(struct heapmodules *m, const struct heapdump *dump, const struct proc_mapping *map,
			  uint32_t process)
{
	bool gone = str_ends(map->path, deleted);
	_cleanup_free_ char *path =
		mem_strndup(map->path, strlen(map->path) - (gone ? sizeof(deleted) - 1 : 0));
	_cleanup_free_ char *shown = NULL;
	uint32_t string = profile_string(m->p, map->path);
	struct profile_module module = { .path = string, .kind = kind_of(map), .process = PROFILE_NONE };
	uint64_t *known;
	int fd = -1;

	if (module.kind == MODULE_JIT)
		module.process = process;
	known = map_put(&m->modules, map_pair(module.process, string), 0);
	if (*known)
		return *known - 1;
	if (module.kind == MODULE_FILE) {
		fd = identify(m, dump, map, path, &module);
		shown = fd >= 0                     ? mem_strdup(path)
			: gone || !m->options->root ? mem_strdup(map->path)
						    : mem_printf("%s (not found)", path);
		module.path = profile_string(m->p, shown);
	}
	*known = profile_add_module(m->p, &module) + 1;
	while (m->fds.n < *known)
		vec_push(&m->fds, -1);
	m->fds.v[*known - 1] = fd;
	return *known - 1;
}

uint64_t heapmodules_bias(struct heapmodules *m, const struct proc_mapping *map, uint32_t module,
			  bool of_file)
{
	uint64_t address;

	if (of_file)
		return map->start;
	if (kind_of(map) == MODULE_JIT)
		return 0;
	if (kind_of(map) == MODULE_VDSO)
		return map->start;
	if (m->fds.v[module] < 0 ||
	    worker_offset_to_address(m->worker, m->fds.v[module], map->offset, &address, NULL))
		return map->start - map->offset;
	return map->start - address;
}

bool heapmodules_found(const struct heapmodules *m, uint32_t module)
{
	return module < m->fds.n && m->fds.v[module] >= 0;
}

void heapmodules_done(struct heapmodules *m, bool hand_over)
{
	for (size_t i = 0; i < m->fds.n; i++) {
		if (m->fds.v[i] >= 0 && m->options->keep && hand_over)
			m->options->keep(m->options->context, i, m->fds.v[i]);
		else
			fd_close(&m->fds.v[i]);
	}
	vec_done(&m->fds);
	map_done(&m->modules);
}
