#include "symbol/debuginfod.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "symbol/cache.h"

static const uint64_t limit_bytes = 4ULL << 30;
enum { CONNECT_SECONDS = 5, TOTAL_SECONDS = 120, SLOW_SECONDS = 20, SLOW_BYTES_PER_SECOND = 1000 };

struct download {
	int fd;
	uint64_t bytes;
	bool too_large;
};

static size_t store(char *data, size_t size, size_t count, void *context)
{
	struct download *d = context;

	d->bytes += size * count;
	d->too_large = d->bytes > limit_bytes;
	if (d->too_large || fd_write_all(d->fd, data, size * count))
		return 0;
	return size * count;
}

/* 0, -ENOENT for 404, or -EIO with a sentence. */
static int get(CURL *curl, const char *url, struct download *d, char *why, size_t why_size)
{
	char text[CURL_ERROR_SIZE] = "";
	long status = 0;
	CURLcode r;

	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
	curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TOTAL_SECONDS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_PER_SECOND);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "gasflame/" GASFLAME_VERSION);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, store);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, d);
	r = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (r == CURLE_OK)
		return d->bytes ? 0 : -ENOENT;
	if (status == 404)
		return -ENOENT;
	snprintf(why, why_size, "debuginfod: %.100s: %.100s", url,
		 d->too_large ? "the file is larger than 4 GB" : text[0] ? text : curl_easy_strerror(r));
	return -EIO;
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
	CURL *curl = curl_easy_init();
	char *rest = urls, *server;
	int r = curl ? empty_file(c, &f) : -ENOMEM;

	if (!urls[strspn(urls, " ")])
		snprintf(why, why_size, "debuginfod was asked for, but DEBUGINFOD_URLS names no server");
	if (!r)
		r = -ENOENT;
	while (f.fd >= 0 && r && (server = strsep(&rest, " "))) {
		struct download d = { .fd = f.fd };
		_cleanup_free_ char *url = NULL;
		size_t n = strlen(server);

		if (!n)
			continue;
		url = mem_printf("%s%sbuildid/%s/debuginfo", server, server[n - 1] == '/' ? "" : "/",
				 build_id);
		if (ftruncate(f.fd, 0) || lseek(f.fd, 0, SEEK_SET))
			break;
		r = get(curl, url, &d, why, why_size);
	}
	if (curl)
		curl_easy_cleanup(curl);
	if (!r && c)
		r = cache_keep_file(c, &f, name);
	else if (c && f.fd >= 0)
		cache_drop_file(c, &f);
	if (r < 0)
		fd_close(&f.fd);
	return r < 0 ? r : f.fd;
}
