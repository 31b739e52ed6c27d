#include "symbol/debuginfod.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/cache.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "net/http.h"

static const uint64_t limit_bytes = 4ULL << 30;

static int store(void *context, const void *data, size_t n)
{
	const int *fd = context;

	return fd_write_all(*fd, data, n);
}

/* 0, -ENOENT, or an error with a sentence. */
static int get(const char *url, int fd, char *why, size_t why_size)
{
	struct err err = { 0 };
	int r = http_get(url, &(struct http_limits){ .bytes = limit_bytes }, store, &fd, &err);

	if (r && r != -ENOENT)
		snprintf(why, why_size, "debuginfod: %s", err.text);
	return r;
}

static int empty_file(struct cache *c, struct cache_new *f)
{
	if (c)
		return cache_create_file(c, f);
	f->fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return f->fd < 0 ? -errno : 0;
}

int debuginfod_fetch(struct cache *c, const char *build_id, const char *name, char *why, size_t why_size)
{
	const char *env = getenv("DEBUGINFOD_URLS");
	_cleanup_free_ char *urls = mem_strdup(env ? env : "");
	struct cache_new f = { .fd = -1 };
	char *rest = urls, *server;
	int r = empty_file(c, &f);

	if (!urls[strspn(urls, " ")])
		snprintf(why, why_size, "debuginfod was asked for, but DEBUGINFOD_URLS names no server");
	if (!r)
		r = -ENOENT;
	while (f.fd >= 0 && r && (server = strsep(&rest, " "))) {
		_cleanup_free_ char *url = NULL;
		size_t n = strlen(server);

		if (!n)
			continue;
		url = mem_printf("%s%sbuildid/%s/debuginfo", server, server[n - 1] == '/' ? "" : "/",
				 build_id);
		if (ftruncate(f.fd, 0) || lseek(f.fd, 0, SEEK_SET))
			break;
		r = get(url, f.fd, why, why_size);
	}
	if (!r && c)
		r = cache_keep_file(c, &f, name);
	else if (c && f.fd >= 0)
		cache_drop_file(c, &f);
	if (r < 0)
		fd_close(&f.fd);
	return r < 0 ? r : f.fd;
}
