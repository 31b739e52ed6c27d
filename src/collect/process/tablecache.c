#include "collect/process/tablecache.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/file/cache.h"
#include "base/file/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "elf/worker/packedtable.h"
#include "elf/worker/worker.h"

enum { FORMAT = 1, IMAGE_BYTES = 64 << 10 };
static const uint64_t limit_bytes = 256 << 20;

/* The kernel's clock of files may tick as seldom as this: a file that was changed twice within a tick looks the same. */
static const uint64_t tick_ns = 100000000;

/* An entry; the packed table follows. */
struct entry {
	char magic[8];
	uint32_t format, crc; /* of all behind it */
	struct tablecache_file maker; /* the gasflame that made it */
	struct tablecache_file file;
	struct worker_layout layout;
};
static const char entry_magic[8] = "gftable";
enum { CRC_FROM = offsetof(struct entry, maker) };

struct tablecache {
	struct cache *folder;
	struct tablecache_file maker;
};

static uint64_t nanoseconds(const struct timespec *t)
{
	return t->tv_sec * 1000000000ULL + t->tv_nsec;
}

static struct tablecache_file identity_of(const struct stat *st)
{
	struct tablecache_file f = { st->st_dev, st->st_ino, st->st_size, nanoseconds(&st->st_mtim), nanoseconds(&st->st_ctim) };

	f.lasting = st->st_nlink && S_ISREG(st->st_mode) && f.changed_ns + tick_ns < clock_wall_ns();
	return f;
}

struct tablecache_file tablecache_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? (struct tablecache_file){ 0 } : identity_of(&st);
}

struct tablecache_file tablecache_image(int fd)
{
	struct tablecache_file f = { 0 };
	char data[IMAGE_BYTES];
	ssize_t n = pread(fd, data, sizeof(data), 0);

	/* No file has this device and inode. The hash is no secret: nobody but the kernel chooses these bytes. */
	if (n > 0 && n < IMAGE_BYTES)
		f = (struct tablecache_file){ .size = n, .modified_ns = map_hash_bytes(data, n),
					      .changed_ns = crc32_z(0, (const Bytef *)data, n), .lasting = 1 };
	return f;
}

static bool is_image(const struct tablecache_file *f)
{
	return !f->device && !f->inode;
}

struct tablecache *tablecache_open(void)
{
	struct tablecache *c;
	struct cache *folder;
	struct stat st;

	if (stat("/proc/self/exe", &st))
		return NULL;
	folder = cache_open();
	if (!folder)
		return NULL;
	c = mem_alloc(sizeof(*c));
	c->folder = folder;
	c->maker = identity_of(&st);
	c->maker.lasting = 0; /* that depends on the time */
	return c;
}

void tablecache_close(struct tablecache *c)
{
	if (!c)
		return;
	cache_close(c->folder);
	free(c);
}

static void name_of(const struct tablecache_file *file, char *name, size_t size)
{
	snprintf(name, size, "%" PRIx64 "-%" PRIx64 ".table", file->device, file->inode);
}

static uint32_t crc_of(const struct entry *e, const struct unwind_table *t, const struct packedtable *head)
{
	uint32_t crc = crc32_z(0, (const Bytef *)e + CRC_FROM, sizeof(*e) - CRC_FROM);

	crc = crc32_z(crc, (const Bytef *)head, sizeof(*head));
	crc = crc32_z(crc, (const Bytef *)t->pages, t->page_count * sizeof(*t->pages));
	crc = crc32_z(crc, (const Bytef *)t->rows, t->row_count * sizeof(*t->rows));
	return crc32_z(crc, (const Bytef *)t->rules, t->rule_count * sizeof(*t->rules));
}

static bool open_entry(const struct tablecache *c, const struct tablecache_file *file, const char *data, size_t n,
		       struct worker_layout *ret_layout, struct unwind_table *ret_table)
{
	struct entry e;

	if (n < sizeof(e))
		return false;
	memcpy(&e, data, sizeof(e));
	if (memcmp(e.magic, entry_magic, sizeof(e.magic)) || e.format != FORMAT ||
	    memcmp(&e.maker, &c->maker, sizeof(e.maker)) || memcmp(&e.file, file, sizeof(e.file)) ||
	    crc32_z(0, (const Bytef *)data + CRC_FROM, n - CRC_FROM) != e.crc || !worker_layout_valid(&e.layout) ||
	    !packedtable_open(data + sizeof(e), n - sizeof(e), ret_table))
		return false;
	*ret_layout = e.layout;
	return true;
}

bool tablecache_find(struct tablecache *c, const struct tablecache_file *file, struct worker_layout *ret_layout,
		     struct unwind_table *ret_table)
{
	_cleanup_free_ char *data = NULL;
	_cleanup_fd_ int entry = -1;
	char name[64];
	size_t n;

	if (!c || !file->lasting)
		return false;
	name_of(file, name, sizeof(name));
	entry = cache_open_file(c->folder, name);
	return entry >= 0 && !fd_read_file(entry, limit_bytes, &data, &n) &&
	       open_entry(c, file, data, n, ret_layout, ret_table);
}

static int write_entry(int fd, const struct entry *e, const struct packedtable *head, const struct unwind_table *t)
{
	const struct {
		const void *data;
		size_t n;
	} parts[] = {
		{ e, sizeof(*e) },
		{ head, sizeof(*head) },
		{ t->pages, t->page_count * sizeof(*t->pages) },
		{ t->rows, t->row_count * sizeof(*t->rows) },
		{ t->rules, t->rule_count * sizeof(*t->rules) },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts) && !r; i++)
		r = fd_write_all(fd, parts[i].data, parts[i].n);
	return r;
}

void tablecache_keep(struct tablecache *c, int fd, const struct tablecache_file *before, const struct worker_layout *layout,
		     const struct unwind_table *table)
{
	struct packedtable head = packedtable_of(table);
	uint64_t bytes = sizeof(struct entry) + packedtable_bytes(&head);
	struct tablecache_file now = is_image(before) ? tablecache_image(fd) : tablecache_file(fd);
	struct cache_new f = { .fd = -1 };
	struct entry e;
	char name[64];

	if (!c || !before->lasting || memcmp(&now, before, sizeof(now)) || bytes > limit_bytes ||
	    bytes > cache_free_bytes(c->folder) / 2 || cache_create_file(c->folder, &f))
		return;
	memset(&e, 0, sizeof(e));
	memcpy(e.magic, entry_magic, sizeof(e.magic));
	e.format = FORMAT;
	e.maker = c->maker;
	e.file = *before;
	e.layout = *layout;
	e.crc = crc_of(&e, table, &head);
	name_of(before, name, sizeof(name));
	if (!write_entry(f.fd, &e, &head, table))
		cache_keep_file(c->folder, &f, name);
	else
		cache_drop_file(c->folder, &f);
	fd_close(&f.fd);
}
