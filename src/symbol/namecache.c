#include "symbol/namecache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/file/cache.h"
#include "base/file/fd.h"
#include "base/version.h"

enum { NAMECACHE_FORMAT = 3 };
static const uint64_t limit_names_bytes = 256 << 20;

struct names_file {
	char magic[8];
	char version[48]; /* another gasflame may have resolved otherwise */
	uint32_t format, level, crc, zero;
	struct source sources[CACHE_SOURCES];
};
static const char names_magic[8] = "gfnames";

/* Of the sources and all behind them. */
static uint32_t names_crc(const struct names_file *h, const char *body, size_t n)
{
	return crc32_z(crc32_z(0, (const Bytef *)h->sources, sizeof(h->sources)), (const Bytef *)body, n);
}

static bool names_file_good(const struct names_file *h, const char *body, size_t n, struct namecache *ret)
{
	char version[48] = { 0 };

	snprintf(version, sizeof(version), "%s", gasflame_version);
	return !memcmp(h->magic, names_magic, sizeof(h->magic)) && h->format == NAMECACHE_FORMAT &&
	       !memcmp(h->version, version, sizeof(version)) &&
	       names_crc(h, body, n) == h->crc && packedsymbols_open(body, n, &ret->names) &&
	       packedsymbols_sorted(&ret->names);
}

int namecache_read(struct cache *c, const char *name, struct namecache *ret)
{
	_cleanup_fd_ int fd = cache_open_file(c, name);
	struct names_file h;
	size_t n;
	int r;

	*ret = (struct namecache){ 0 };
	if (fd < 0)
		return fd;
	r = fd_read_file(fd, limit_names_bytes, &ret->data, &n);
	if (r < 0)
		return r;
	if (n >= sizeof(h)) {
		memcpy(&h, ret->data, sizeof(h));
		if (names_file_good(&h, ret->data + sizeof(h), n - sizeof(h), ret)) {
			ret->level = h.level;
			memcpy(ret->sources, h.sources, sizeof(ret->sources));
			return 0;
		}
	}
	namecache_done(ret);
	cache_remove_file(c, name);
	return -EBADMSG;
}

void namecache_done(struct namecache *n)
{
	free(n->data);
	*n = (struct namecache){ 0 };
}

int namecache_write(struct cache *c, const char *name, uint32_t level, const struct source *sources,
		      const struct packedsymbols_builder *b)
{
	struct names_file h = { .format = NAMECACHE_FORMAT, .level = level };
	struct cache_new f = { .fd = -1 };
	_cleanup_(buf_done) struct buf body = { 0 };
	int r = -EFBIG;

	if (packedsymbols_builder_pack(b, &body) && body.n + sizeof(h) <= limit_names_bytes)
		r = cache_create_file(c, &f);
	if (!r) {
		memcpy(h.magic, names_magic, sizeof(h.magic));
		snprintf(h.version, sizeof(h.version), "%s", gasflame_version);
		memcpy(h.sources, sources, sizeof(h.sources));
		h.crc = names_crc(&h, body.data, body.n);
		r = fd_write_all(f.fd, &h, sizeof(h));
		if (!r)
			r = fd_write_all(f.fd, body.data, body.n);
		if (!r)
			r = cache_keep_file(c, &f, name);
		else
			cache_drop_file(c, &f);
	}
	fd_close(&f.fd);
	return r;
}
