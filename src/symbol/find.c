#include "symbol/find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/cache.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "symbol/debuginfod.h"
#include "symbol/stripped/otherbuild.h"
#include "target/open.h"

enum { MAX_SIBLINGS = 256 };

char *find_hex(char out[41], const uint8_t *build_id, uint8_t size)
{
	for (unsigned i = 0; i < size && i < 20; i++)
		snprintf(out + 2 * i, 3, "%02x", build_id[i]);
	out[2 * MIN(size, 20)] = 0;
	return out;
}

static bool same_id(const uint8_t *a, uint8_t a_size, const uint8_t *b, uint8_t b_size)
{
	return a_size && a_size == b_size && !memcmp(a, b, a_size);
}

static bool is_module(const struct find *f, const struct symbols_info *info)
{
	return same_id(info->build_id, info->build_id_size, f->build_id, f->build_id_size);
}

enum find_level find_level_of(const struct symbols_info *info, bool no_dwarf)
{
	if (info->debug_info && !no_dwarf)
		return FIND_LINES;
	/* A debug file of a Go program tells more only of C code in it. */
	if (info->go && !no_dwarf && !*info->debuglink)
		return FIND_LINES;
	if (info->symtab || info->minidebug || info->go)
		return FIND_SYMBOLS;
	return info->dynsym ? FIND_EXPORTS : FIND_NOTHING;
}

static enum find_level level_wanted(const struct find *f)
{
	return f->no_dwarf ? FIND_SYMBOLS : FIND_LINES;
}

/* Takes the module's own file at its path; a sentence in why when another file is there now. */
static bool take_main(struct find *f, int fd)
{
	struct err err = { 0 };
	struct stat st;
	int r = worker_inspect(f->worker, fd, &f->main_info, &err);

	if (r < 0) {
		snprintf(f->why, sizeof(f->why), "no symbols for %s: %.300s", f->path, err.text);
		return false;
	}
	if (f->build_id_size ? !is_module(f, &f->main_info)
			     : f->recorded_wall_ns && !fstat(fd, &st) &&
				       st.st_mtim.tv_sec * 1000000000ULL > f->recorded_wall_ns) {
		char hex[41];

		snprintf(f->why, sizeof(f->why), "%s was replaced since it started (%s%s): pass --symbols "
			 "FILE with the build that ran", f->path,
			 f->build_id_size ? "it ran with build-id " : "it is newer than the recording",
			 find_hex(hex, f->build_id, f->build_id_size));
		return false;
	}
	f->main = fd;
	f->level = find_level_of(&f->main_info, f->no_dwarf);
	f->why[0] = 0;
	return true;
}

/* The host's file at the module's path; with a root, only what is below it. */
static int open_here(const struct find *f, int *ret_fd)
{
	return f->root ? target_open_below(f->root, f->path, ret_fd, NULL) : target_open_host(f->path, ret_fd, NULL);
}

static void find_main(struct find *f)
{
	int kept = f->main, fd, r;

	f->main = -1;
	if (kept >= 0) {
		struct err err = { 0 };

		/* This is the very file that was mapped, wherever its path leads now: when it cannot be
		 * read (or crashes the child), another try would do no better. */
		r = worker_inspect(f->worker, kept, &f->main_info, &err);
		if (!r && (!f->build_id_size || is_module(f, &f->main_info))) {
			f->main = kept;
			f->level = find_level_of(&f->main_info, f->no_dwarf);
			return;
		}
		close(kept);
		if (r < 0) {
			snprintf(f->why, sizeof(f->why), "no symbols for %s: %.300s", f->path, err.text);
			return;
		}
	}
	if (f->path[0] != '/')
		return;
	if (f->pid && !target_open_path(f->pid, f->path, &fd, NULL)) {
		if (take_main(f, fd))
			return;
		close(fd);
	}
	if (!open_here(f, &fd)) {
		if (take_main(f, fd))
			return;
		close(fd);
	}
	if (!f->why[0])
		snprintf(f->why, sizeof(f->why), "no symbols for %s: the file is gone or cannot be read",
			 f->path);
}

int find_open_main(const struct find *f)
{
	int fd = -1;

	if (f->main >= 0)
		return fcntl(f->main, F_DUPFD_CLOEXEC, 3);
	if (f->path[0] != '/' || (f->pid && !target_open_path(f->pid, f->path, &fd, NULL)))
		return fd;
	return open_here(f, &fd) ? -1 : fd;
}

/* --- debug files --- */

static bool crc_matches(struct worker *w, int fd, uint32_t want)
{
	uint32_t crc;

	return !worker_crc(w, fd, &crc, NULL) && crc == want;
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return a >= 0 && !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_what_was_asked(const struct find *f, int fd)
{
	struct worker_identity id;

	return !worker_identify(f->worker, fd, &id, NULL) &&
	       same_id(id.build_id, id.build_id_size, f->build_id, f->build_id_size);
}

/* Takes fd when it is the module's debug file and has more than the current one. */
static bool take_debug(struct find *f, int fd, bool by_link)
{
	struct symbols_info info;
	enum find_level level;

	if (same_file(f->main, fd) || (f->by_identity && !is_what_was_asked(f, fd)) || worker_inspect(f->worker, fd, &info, NULL))
		return false;
	if (!is_module(f, &info) &&
	    !(by_link && !(info.build_id_size && f->build_id_size) &&
	      crc_matches(f->worker, fd, f->main_info.debuglink_crc)))
		return false;
	level = find_level_of(&info, f->no_dwarf);
	if (level <= f->level)
		return false;
	fd_close(&f->debug);
	f->debug = fd;
	f->debug_info = info;
	f->level = level;
	return true;
}

static bool enough(const struct find *f)
{
	return f->level >= level_wanted(f);
}

static void looked(const struct find *f, const char *path, const char *what)
{
	if (f->looked)
		f->looked(f->looked_context, path, what);
}

/* Takes the file that was opened with result r, if it fits. */
static void try_opened(struct find *f, int r, int fd, enum source_where where, bool by_link, const char *path)
{
	if (r) {
		looked(f, path, r == -ENOENT || r == -ENOTDIR ? "no such file" : strerror(-r));
	} else if (take_debug(f, fd, by_link)) {
		f->debug_from = source_of(where, fd, path);
		looked(f, path, "used");
	} else {
		if (!same_file(f->main, fd))
			looked(f, path, "another build, or it has no more symbols");
		close(fd);
	}
}

static void try_debug(struct find *f, bool in_target, bool by_link, const char *path)
{
	int fd = -1, r;

	if (enough(f) || (in_target && !f->pid))
		return;
	r = in_target ? target_open_path(f->pid, path, &fd, NULL) : target_open_host(path, &fd, NULL);
	/* The root of a container may hold debug files, too. */
	if (r && !in_target && f->root)
		r = target_open_below(f->root, path, &fd, NULL);
	try_opened(f, r, fd, in_target ? SOURCE_TARGET : SOURCE_HOST, by_link, path);
}

static void try_below(struct find *f, const struct find_folder *folder, const char *path)
{
	_cleanup_free_ char *whole = mem_printf("%s/%s", folder->path, path);
	int fd = -1, r;

	if (enough(f))
		return;
	r = find_folder_open(folder, path, &fd);
	try_opened(f, r, fd, SOURCE_HOST, false, whole);
}

static void try_everywhere(struct find *f, bool by_link, const char *folder, const char *a, const char *b)
{
	_cleanup_free_ char *path = mem_printf("%s%s%s", folder, a, b);

	try_debug(f, true, by_link, path);
	try_debug(f, false, by_link, path);
}

/* Where a distribution, or the root of an image, has the debug file of a build-id, or the module itself. */
static void search_folder(struct find *f, const struct find_folder *folder)
{
	static const char *const below[] = { ".build-id/", "usr/lib/debug/.build-id/", "lib/debug/.build-id/" };
	_cleanup_free_ char *own = mem_printf("%s", f->path[0] == '/' ? f->path + 1 : f->path);
	char hex[41], part[128];

	if (f->build_id_size < 2)
		return;
	find_hex(hex, f->build_id, f->build_id_size);
	for (size_t i = 0; i < ARRAY_LEN(below) && !enough(f); i++) {
		snprintf(part, sizeof(part), "%s%.2s/%s.debug", below[i], hex, hex + 2);
		try_below(f, folder, part);
	}
	try_below(f, folder, own);
}

static void search_index(struct find *f)
{
	for (size_t i = 0; i < f->index->folders.n && !enough(f); i++)
		search_folder(f, &f->index->folders.v[i]);
	if (!enough(f))
		find_index_walk(f->index);
	for (size_t i = 0; i < f->index->files.n && !enough(f); i++) {
		struct find_entry *e = &f->index->files.v[i];

		if (same_id(e->id.build_id, e->id.build_id_size, f->build_id, f->build_id_size))
			try_debug(f, false, false, e->path);
	}
}

/* A module without a build-id: only a file that the user named, of the same name, without one too. */
static void search_named(struct find *f)
{
	const char *base = str_base_name(f->path);

	for (size_t i = 0; i < f->index->files.n && !f->build_id_size && !enough(f); i++) {
		struct find_entry *e = &f->index->files.v[i];
		const char *name = str_base_name(e->path);
		struct symbols_info info;
		int fd;

		if (!e->named || e->id.build_id_size || strncmp(name, base, strlen(base)) ||
		    target_open_host(e->path, &fd, NULL))
			continue;
		e->used = true;
		if (worker_inspect(f->worker, fd, &info, NULL) || find_level_of(&info, f->no_dwarf) <= f->level) {
			close(fd);
			continue;
		}
		fd_close(&f->debug);
		f->debug = fd;
		f->debug_from = source_of(SOURCE_HOST, fd, e->path);
		f->debug_info = info;
		f->level = find_level_of(&info, f->no_dwarf);
	}
}

static void search_build_id(struct find *f)
{
	char hex[41], part[64];

	if (f->build_id_size < 2)
		return;
	find_hex(hex, f->build_id, f->build_id_size);
	snprintf(part, sizeof(part), "%.2s/%s", hex, hex + 2);
	try_everywhere(f, false, "/usr/lib/debug/.build-id/", part, ".debug");
}

static void search_link(struct find *f)
{
	const char *link = f->main_info.debuglink, *slash = strrchr(f->path, '/');
	_cleanup_free_ char *folder = slash ? mem_strndup(f->path, slash - f->path + 1) : NULL;
	_cleanup_free_ char *below = folder ? mem_printf("/usr/lib/debug%s", folder) : NULL;

	if (!folder || f->main < 0)
		return;
	if (link[0]) {
		try_everywhere(f, true, folder, "", link);
		try_everywhere(f, true, folder, ".debug/", link);
		try_everywhere(f, true, below, "", link);
	}
	try_everywhere(f, false, f->path, "", ".debug");
	try_everywhere(f, false, f->path, "", ".dbg");
}

/*
 * Builds leave the unstripped program beside the stripped one, or in deps/
 * (cargo). Only where the host's file at this path is the module itself: then
 * the folder is the host's, and no container can redirect the search.
 */
static void search_siblings(struct find *f)
{
	static const char *const below[] = { "", "deps/" };
	const char *slash = strrchr(f->path, '/');
	find_looked_fn *tell = f->looked;
	_cleanup_fd_ int host = -1;
	unsigned seen = 0;

	if (f->no_siblings || enough(f) || !slash || f->main < 0 || !f->build_id_size ||
	    target_open_host(f->path, &host, NULL) || !same_file(f->main, host))
		return;
	f->siblings_in_vain = true;
	for (size_t i = 0; i < ARRAY_LEN(below); i++) {
		_cleanup_free_ char *folder = mem_printf("%.*s%s", (int)(slash - f->path + 1), f->path,
							 below[i]);
		DIR *dir = opendir(folder);
		struct dirent *e;

		f->looked = NULL; /* most of them are other programs */
		while (dir && seen < MAX_SIBLINGS && (e = readdir(dir))) {
			_cleanup_free_ char *path = NULL;

			/* cargo writes my-node as deps/my_node-HASH. */
			if (e->d_type != DT_REG ||
			    strncasecmp(e->d_name, slash + 1, MIN(strlen(slash + 1), 2)))
				continue;
			path = mem_printf("%s%s", folder, e->d_name);
			seen++;
			f->by_identity = true; /* inspecting a library reads all of its names, and most of them are others */
			try_debug(f, false, false, path);
			f->by_identity = false;
		}
		f->looked = tell;
		f->siblings_in_vain &= f->debug_from.where == SOURCE_NONE;
		if (dir)
			looked(f, folder, f->debug_from.where ? f->debug_from.path : "no unstripped build beside it");
		if (dir)
			closedir(dir);
	}
}

static void search_servers(struct find *f)
{
	char hex[41], name[64], why[256] = "";
	bool cached;
	int fd;

	if (enough(f) || !f->debuginfod || f->build_id_size < 2)
		return;
	find_hex(hex, f->build_id, f->build_id_size);
	snprintf(name, sizeof(name), "%s.debuginfo", hex);
	fd = f->cache ? cache_open_file(f->cache, name) : -ENOENT;
	cached = fd >= 0;
	if (!cached)
		fd = debuginfod_fetch(f->cache, hex, name, why, sizeof(why));
	/* A server that does not answer is not waited for again. */
	f->debuginfod = fd >= 0 || fd == -ENOENT;
	looked(f, "debuginfod", fd >= 0 ? (cached ? "it had the file; it is in the cache" : "it has the file") :
				why[0] ? why + (str_starts(why, "debuginfod: ") ? strlen("debuginfod: ") : 0) :
				fd == -ENOENT ? "no server has it" : strerror(-fd));
	if (fd >= 0 && !is_what_was_asked(f, fd)) {
		snprintf(why, sizeof(why), "debuginfod: the server's file for %s has another build-id: not used", hex);
		if (f->cache)
			cache_remove_file(f->cache, name);
		close(fd);
	} else if (fd >= 0 && !take_debug(f, fd, false)) {
		close(fd);
	} else if (fd >= 0) {
		f->debug_from = source_of(SOURCE_SERVER, fd, "");
	}
	if (why[0])
		snprintf(f->why, sizeof(f->why), "%s", why);
}

/* --- what dwz moved to a file that several share --- */

static bool try_alt(struct find *f, bool in_target, const char *path, const struct symbols_info *of)
{
	struct worker_identity id;
	int fd, r;

	if (f->alt >= 0 || (in_target && !f->pid))
		return f->alt >= 0;
	r = in_target ? target_open_path(f->pid, path, &fd, NULL) : target_open_host(path, &fd, NULL);
	if (r < 0)
		return false;
	if (worker_identify(f->worker, fd, &id, NULL) ||
	    !same_id(id.build_id, id.build_id_size, of->alt_build_id, of->alt_build_id_size)) {
		close(fd);
		return false;
	}
	f->alt = fd;
	f->alt_from = source_of(in_target ? SOURCE_TARGET : SOURCE_HOST, fd, path);
	return true;
}

static void find_alt(struct find *f)
{
	const struct symbols_info *of = f->debug >= 0 ? &f->debug_info : &f->main_info;
	const char *base = strrchr(of->altlink, '/');
	char hex[41];

	if (f->no_dwarf || !of->altlink[0] || of->alt_build_id_size < 2)
		return;
	find_hex(hex, of->alt_build_id, of->alt_build_id_size);
	for (int in_target = 1; in_target >= 0; in_target--) {
		_cleanup_free_ char *by_id = mem_printf("/usr/lib/debug/.build-id/%.2s/%s.debug", hex,
							hex + 2);
		_cleanup_free_ char *dwz = mem_printf("/usr/lib/debug/.dwz/%s",
						      base ? base + 1 : of->altlink);
		_cleanup_free_ char *dwz_arch = mem_printf("/usr/lib/debug/.dwz/x86_64-linux-gnu/%s",
							   base ? base + 1 : of->altlink);

		if (of->altlink[0] == '/' && try_alt(f, in_target, of->altlink, of))
			return;
		if (try_alt(f, in_target, by_id, of) || try_alt(f, in_target, dwz, of) ||
		    try_alt(f, in_target, dwz_arch, of))
			return;
	}
}

void find_files(struct find *f)
{
	f->debug = f->alt = -1;
	f->debug_from = f->alt_from = (struct source){ .where = SOURCE_NONE };
	f->level = FIND_NOTHING;
	find_main(f);
	search_index(f);
	search_named(f);
	search_build_id(f);
	search_link(f);
	search_siblings(f);
	search_servers(f);
	otherbuild_search(f);
	find_alt(f);
	/* A debug file alone names the code as well. */
	if (f->main < 0 && f->debug >= 0) {
		f->main = f->debug;
		f->main_info = f->debug_info;
		f->debug = -1;
	}
}

const struct functions *find_functions(struct find *f)
{
	static const struct functions none;

	if (f->functions)
		return f->functions;
	if (f->main >= 0 && !f->other && !worker_functions(f->worker, f->main, &f->read, NULL) && f->read.n)
		f->functions = &f->read;
	else
		f->functions = f->known ? f->known : &none;
	return f->functions;
}

void find_done(struct find *f)
{
	functions_done(&f->read);
	f->functions = NULL;
	fd_close(&f->main);
	fd_close(&f->debug);
	fd_close(&f->alt);
}
