#include "symbol/stripped/otherbuild.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "elf/unwind/functions.h"
#include "symbol/find.h"
#include "target/open.h"

/* A file that the user named may be called anything; one that lies in a folder must have the module's name. */
static bool is_candidate(const struct find *f, const struct find_entry *e)
{
	const char *base = str_base_name(f->path), *name = str_base_name(e->path);
	size_t n = strlen(base);

	if (e->named)
		return true;
	return n && !strncmp(name, base, n) && (!name[n] || !strcmp(name + n, ".debug") || !strcmp(name + n, ".dbg"));
}

static const struct functions *functions_of(struct find *f, struct find_entry *e)
{
	_cleanup_fd_ int fd = -1;

	if (!e->functions_read && !target_open_host(e->path, &fd, NULL))
		worker_functions(f->worker, fd, &e->functions, NULL);
	e->functions_read = true;
	return &e->functions;
}

/* Keeps for the entry the module that it agrees with best, for the sentence about files that were not used. */
static void keep_best(const struct find *f, struct find_entry *e, size_t agree, size_t of)
{
	if (e->like && agree * (double)e->of <= e->agree * (double)of)
		return;
	free(e->like);
	e->like = mem_strdup(f->path);
	e->agree = agree;
	e->of = of;
}

static bool qualifies(size_t agree, size_t of)
{
	return agree >= OTHERBUILD_LEAST && agree * 100 >= of * OTHERBUILD_PERCENT;
}

static bool take(struct find *f, struct find_entry *e)
{
	struct symbols_info info;
	int fd;

	if (target_open_host(e->path, &fd, NULL))
		return false;
	if (worker_inspect(f->worker, fd, &info, NULL) || find_level_of(&info, f->no_dwarf) < FIND_SYMBOLS) {
		close(fd);
		return false;
	}
	fd_close(&f->debug);
	f->debug = fd;
	f->debug_info = info;
	f->debug_from = source_of(SOURCE_HOST, fd, e->path);
	f->level = find_level_of(&info, f->no_dwarf);
	f->other = e;
	e->used = true;
	return true;
}

void otherbuild_search(struct find *f)
{
	const struct functions *mine = NULL;
	struct find_entry *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < f->index->files.n && f->level < FIND_SYMBOLS; i++) {
		struct find_entry *e = &f->index->files.v[i];
		size_t agree;

		if (!is_candidate(f, e))
			continue;
		mine = mine ? mine : find_functions(f);
		if (!mine->n)
			return;
		agree = functions_agree(mine, functions_of(f, e));
		keep_best(f, e, agree, mine->n);
		if (agree > most && qualifies(agree, mine->n)) {
			most = agree;
			best = e;
		}
	}
	if (best && take(f, best)) {
		f->agree = most;
		f->of = mine->n;
	}
}

bool otherbuild_names(const struct find *f, uint64_t address)
{
	return functions_same_at(f->functions, &f->other->functions, address);
}

void otherbuild_tell(const struct find *f, char *out, size_t size)
{
	char hex[41], agree[32], of[32];

	find_hex(hex, f->other->id.build_id, f->other->id.build_id_size);
	snprintf(out, size, "names of %.200s (%s%s) are used for %.100s: %s of %s %sfunctions agree in start and size",
		 f->other->path, hex[0] ? "build-id " : "no build-id", hex, str_base_name(f->path),
		 str_count(agree, f->agree), str_count(of, f->of), f->functions == f->known ? "sampled " : "");
}
