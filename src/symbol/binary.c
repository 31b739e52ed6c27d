/*
 * binary.c - merges a binary's cached names with new ones.
 *
 * A cache entry records its sources (enum find_level, struct source). An entry
 * made from debug information answers at once, without reading the files, while
 * the files are unchanged; an entry made from less is used only as long as
 * nothing better is found. An address that is not in the cache costs a lookup in
 * the files: milliseconds where debug sections are uncompressed, and where they
 * are compressed too, because an uncompressed copy is cached.
 */
#include "symbol/binary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/cache.h"
#include "base/file/fd.h"
#include "symbol/namecache.h"
#include "symbol/stripped/otherbuild.h"
#include "target/proc.h"

/* Below this unpacking is cheaper than the disk space. Above, the copy is not kept. */
static const uint64_t plain_min_bytes = 16 << 20, plain_often_bytes = 1 << 20, plain_max_bytes = 4ULL << 30;
enum { MAX_CACHED = 1 << 20 };

/* The state of one module: which addresses are open, and all that will be cached. */
struct work {
	struct binary *b;
	const uint64_t *addresses;
	size_t n, named;
	symbols_got_fn *got;
	void *context;
	char name[160];            /* in the cache, "" = not cached */
	struct source sources[CACHE_SOURCES]; /* the sources of the names found this time */
	struct namecache cached;
	VEC(uint64_t) open;        /* addresses to look up, ascending */
	VEC(size_t) open_index;
	bool *has_name;            /* by the caller's index */
	bool all_cached;           /* no file was looked for */
	struct packedsymbols_builder fresh;
};

static void tell(struct work *w, size_t index, const struct symbols_call *calls, size_t count)
{
	w->named += count > 0;
	w->has_name[index] = count > 0;
	w->got(w->context, index, calls, count);
}

static void got_fresh(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct work *w = context;

	/* Another build names only what is the same in both. */
	if (w->b->by_other && !otherbuild_names(&w->b->find, w->open.v[index]))
		count = 0;
	packedsymbols_builder_add(&w->fresh, w->open.v[index], calls, count);
	tell(w, w->open_index.v[index], calls, count);
}

/* Answers the cached addresses; the rest stays open. */
static void use_cached(struct work *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct symbols_call calls[PACKEDSYMBOLS_MAX_DEPTH];
		uint32_t at;

		if (w->cached.data && packedsymbols_find(&w->cached.names, w->addresses[i], &at)) {
			tell(w, i, calls, packedsymbols_calls(&w->cached.names, at, calls, PACKEDSYMBOLS_MAX_DEPTH));
		} else {
			vec_push(&w->open, w->addresses[i]);
			vec_push(&w->open_index, i);
		}
	}
}

static bool all_cached(const struct work *w)
{
	uint32_t at;

	for (size_t i = 0; i < w->n; i++)
		if (!packedsymbols_find(&w->cached.names, w->addresses[i], &at))
			return false;
	return true;
}

/* Merges the cached names with the new ones; both are sorted. */
static void save(struct work *w, enum find_level level)
{
	struct packedsymbols old = w->cached.names;
	struct packedsymbols_builder all;
	struct packedsymbols fresh;
	struct buf packed = { 0 };

	/* Names from a poorer file must not mix with names from debug information. */
	if (level < w->cached.level)
		return;
	if (!w->name[0] || !w->fresh.addresses.n || w->fresh.addresses.n + old.count > MAX_CACHED)
		return;
	if (!packedsymbols_builder_pack(&w->fresh, &packed) || !packedsymbols_open(packed.data, packed.n, &fresh)) {
		buf_done(&packed);
		return;
	}
	packedsymbols_builder_init(&all);
	for (uint32_t i = 0, k = 0; i < old.count || k < fresh.count;) {
		struct symbols_call calls[PACKEDSYMBOLS_MAX_DEPTH];
		bool from_old = k == fresh.count ||
				(i < old.count && old.addresses[i] < fresh.addresses[k]);
		const struct packedsymbols *from = from_old ? &old : &fresh;
		uint32_t at = from_old ? i++ : k++;

		packedsymbols_builder_add(&all, from->addresses[at], calls,
					  packedsymbols_calls(from, at, calls, PACKEDSYMBOLS_MAX_DEPTH));
	}
	namecache_write(w->b->find.cache, w->name, level, w->sources, &all);
	packedsymbols_builder_done(&all);
	buf_done(&packed);
}

/* "HEX-DEVICE.INODE-USER": whose file, and of whose process; "" if that cannot be said. */
static void name_entry(const struct find *f, const struct source *s, char *out, size_t size)
{
	struct proc_status status;
	uint32_t user = s->uid; /* of the process, where it still runs */
	char hex[41];

	out[0] = 0;
	if (s->where == SOURCE_LOST || s->where == SOURCE_NONE)
		return;
	if (f->pid && !proc_status(f->pid, &status))
		user = status.uid;
	snprintf(out, size, "%s-%llx.%llx-%u", find_hex(hex, f->build_id, f->build_id_size), (unsigned long long)s->device,
		 (unsigned long long)s->inode, user);
}

/* Puts the plain copy of *fd, which is the file that s tells of, in its place, made now if it is not there yet. False if
 * there is none. */
static bool use_plain(struct find *f, const struct source *s, bool often, int *fd)
{
	struct worker_identity id, copy_id;
	struct cache_new copy = { .fd = -1 };
	char entry[128], name[256];
	int r;

	name_entry(f, s, entry, sizeof(entry));
	if (!entry[0] || !f->cache || f->no_dwarf || f->level < FIND_LINES || f->build_id_size < 2 || *fd < 0 ||
	    worker_identify(f->worker, *fd, &id, NULL) || !id.compressed ||
	    id.unpacked_bytes < (often ? plain_often_bytes : plain_min_bytes) || id.unpacked_bytes > plain_max_bytes)
		return false;
	/* No sources are stored beside it: its name contains all that must not change. */
	snprintf(name, sizeof(name), "%s-%llx.%llx.%llx.plain", entry, (unsigned long long)s->size,
		 (unsigned long long)s->modified_ns, (unsigned long long)s->changed_ns);
	copy.fd = cache_open_file(f->cache, name);
	if (copy.fd >= 0 && (worker_identify(f->worker, copy.fd, &copy_id, NULL) || copy_id.compressed ||
			     copy_id.build_id_size != f->build_id_size ||
			     memcmp(copy_id.build_id, f->build_id, f->build_id_size))) {
		fd_close(&copy.fd);
		cache_remove_file(f->cache, name);
	}
	if (copy.fd < 0) {
		if (id.unpacked_bytes > cache_free_bytes(f->cache) / 2 || cache_create_file(f->cache, &copy))
			return false;
		r = worker_plain_copy(f->worker, *fd, copy.fd, NULL);
		if (!r)
			r = cache_keep_file(f->cache, &copy, name);
		else
			cache_drop_file(f->cache, &copy);
		if (r < 0) {
			fd_close(&copy.fd);
			return false;
		}
	}
	close(*fd);
	*fd = copy.fd;
	return true;
}

/* Names the rest by the module's own file, after another build has named what it could. */
static void resolve_rest(struct work *w, struct worker_files files)
{
	size_t n = 0;

	for (size_t i = 0; i < w->open.n; i++)
		if (!w->has_name[w->open_index.v[i]]) {
			w->open.v[n] = w->open.v[i];
			w->open_index.v[n++] = w->open_index.v[i];
		}
	w->open.n = w->open_index.n = n;
	w->b->by_other = false;
	files.debug = files.alt = -1;
	if (n)
		worker_symbolize(w->b->find.worker, &files, w->open.v, n, got_fresh, w, NULL);
}

/* Resolves the open addresses from the files. */
static void resolve_open(struct work *w)
{
	struct binary *b = w->b;
	struct find *f = &b->find;
	struct worker_files files = { .main = f->main, .keep_hash = b->keep_hash, .no_dwarf = f->no_dwarf };
	struct err err = { 0 };
	int r = -ENOENT;

	b->by_other = f->other;
	if (f->main >= 0 && w->open.n) {
		/* Only the file with the debug information may be compressed. */
		if (f->debug >= 0) {
			use_plain(f, &f->debug_from, b->often, &f->debug);
		} else if (f->main_info.debug_info) {
			f->debug = fcntl(f->main, F_DUPFD_CLOEXEC, 3);
			if (!use_plain(f, &w->sources[0], b->often, &f->debug))
				fd_close(&f->debug);
		}
		files.debug = f->debug;
		files.alt = f->alt;
		r = worker_symbolize(f->worker, &files, w->open.v, w->open.n, got_fresh, w, &err);
		/* Lines may cost too much where names do not. */
		if (r == -ETIMEDOUT && !files.no_dwarf) {
			files.no_dwarf = true;
			w->name[0] = 0;
			r = worker_symbolize(f->worker, &files, w->open.v, w->open.n, got_fresh, w, &err);
		}
		if (r < 0)
			snprintf(b->problem, sizeof(b->problem), "no symbols for %s: %s", f->path, err.text);
		else if (f->other && f->debug >= 0)
			resolve_rest(w, files);
	}
	if (r < 0)
		for (size_t i = 0; i < w->open.n; i++)
			tell(w, w->open_index.v[i], NULL, 0);
}

static void explain(struct work *w)
{
	struct binary *b = w->b;
	struct find *f = &b->find;
	char hex[41];

	if (f->other)
		otherbuild_tell(f, b->other, sizeof(b->other));
	if (w->named * 2 >= w->n) {
		b->problem[0] = 0;
	} else if (!b->problem[0] && f->why[0]) {
		snprintf(b->problem, sizeof(b->problem), "%s", f->why);
	} else if (!b->problem[0] && f->level < FIND_SYMBOLS) {
		snprintf(b->problem, sizeof(b->problem), "%s symbols for %.200s: it is stripped, and functions are shown by "
			 "their start; pass --symbols FILE (an unstripped build%s%s); gasflame symbols %.200s says what else "
			 "there is", w->named ? "few" : "no", f->path, f->build_id_size ? ", best with build-id " : "",
			 find_hex(hex, f->build_id, f->build_id_size), f->path);
	} else if (!b->problem[0]) {
		snprintf(b->problem, sizeof(b->problem), "%s symbols for %s: its symbol table does not cover "
			 "the code that ran", w->named ? "few" : "no", f->path);
	}
}

/* The module's file as it is now, before anything was read of it. */
static struct source main_source(const struct find *f)
{
	_cleanup_fd_ int fd = find_open_main(f);

	return source_of(fd < 0 ? SOURCE_NONE : SOURCE_MAIN, fd, f->path);
}

/* Reads the cached names, if every source file is unchanged. */
static void read_cached(struct work *w)
{
	const struct find *f = &w->b->find;
	char entry[128];

	w->sources[0] = main_source(f);
	name_entry(f, &w->sources[0], entry, sizeof(entry));
	if (!f->cache || f->build_id_size < 8 || !entry[0])
		return;
	snprintf(w->name, sizeof(w->name), "%s%s%s.names", entry, f->no_dwarf ? ".table" : "", w->b->keep_hash ? ".hash" : "");
	if (namecache_read(f->cache, w->name, &w->cached) < 0)
		w->cached = (struct namecache){ 0 };
	else if (!source_same(&w->cached.sources[0], &w->sources[0]) || !source_holds(&w->cached.sources[1], f->pid) ||
		 !source_holds(&w->cached.sources[2], f->pid))
		namecache_done(&w->cached);
}

/* Finds the files; cached names from other files are dropped. */
static void look_for_files(struct work *w)
{
	struct find *f = &w->b->find;
	struct source found = { .where = SOURCE_NONE };

	find_files(f);
	if (f->main >= 0)
		found = source_of(SOURCE_MAIN, f->main, f->path);
	if (!source_same(&found, &w->sources[0]))
		w->name[0] = 0; /* the file was replaced meanwhile, or another file was used */
	if (f->other)
		w->name[0] = 0; /* a capture or a file decides anew how far it agrees */
	w->sources[1] = f->debug_from;
	w->sources[2] = f->alt_from;
	if (f->debug_from.where == SOURCE_LOST || f->alt_from.where == SOURCE_LOST)
		w->name[0] = 0;
	if (w->cached.data && (w->cached.level < f->level || memcmp(w->cached.sources, w->sources, sizeof(w->sources))))
		namecache_done(&w->cached);
}

/* Where the functions of a stripped file start, and of all that has no name. */
static void tell_ranges(struct work *w)
{
	struct find *f = &w->b->find;
	const struct functions *functions = NULL;

	for (size_t i = 0; w->b->range && i < w->n; i++) {
		const struct functions_range *range;

		if (w->has_name[i] && f->level >= FIND_SYMBOLS && !f->other)
			continue;
		if (!functions) {
			if (f->main < 0 && w->all_cached)
				f->main = find_open_main(f); /* read_cached() saw that it is the same */
			functions = find_functions(f);
		}
		range = functions_find(functions, w->addresses[i]);
		if (range)
			w->b->range(w->context, i, range->start, range->end);
	}
}

void binary_resolve(struct binary *b, const uint64_t *addresses, size_t n, symbols_got_fn *got,
		    void *context)
{
	struct find *f = &b->find;
	struct work w = { .b = b, .addresses = addresses, .n = n, .got = got, .context = context };
	enum find_level best = f->no_dwarf ? FIND_SYMBOLS : FIND_LINES;

	b->problem[0] = b->other[0] = 0;
	w.has_name = mem_alloc(n + 1);
	read_cached(&w);
	packedsymbols_builder_init(&w.fresh);
	f->debug = f->alt = -1;
	if (w.cached.data && w.cached.level >= best && all_cached(&w)) {
		f->level = w.cached.level;
		w.all_cached = true;
	} else {
		look_for_files(&w);
	}
	use_cached(&w);
	if (w.open.n)
		resolve_open(&w);
	save(&w, f->level);
	explain(&w);
	tell_ranges(&w);
	free(w.has_name);
	find_done(f);
	packedsymbols_builder_done(&w.fresh);
	namecache_done(&w.cached);
	vec_done(&w.open);
	vec_done(&w.open_index);
}
