#include "cmd/reading/input.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/vec.h"
#include "base/text/str.h"
#include "fleet/fetch.h"
#include "fleet/storeurl.h"
#include "import/import.h"
#include "capture/capture.h"
#include "profile/keys.h"
#include "profile/profile.h"

bool input_is_store(const char *path)
{
	return storeurl_is(path);
}

/* Addresses of stores, as they were given and as they are shown. */
struct hidden {
	char *shown, *address;
};
static VEC(struct hidden) hidden; /* for as long as the program runs */

void input_hide(char *path)
{
	char *address = mem_strdup(path);

	storeurl_hide(path);
	if (strcmp(address, path))
		vec_push(&hidden, (struct hidden){ mem_strdup(path), address });
	else
		free(address);
}

const char *input_address(const char *path)
{
	for (size_t i = 0; i < hidden.n; i++)
		if (!strcmp(hidden.v[i].shown, path))
			return hidden.v[i].address;
	return path;
}

bool input_is_capture(const char *path)
{
	static const char magic[16] = "SQLite format 3";
	_cleanup_fd_ int fd = -1;
	char start[sizeof(magic)];
	struct stat st;

	if (input_is_store(path))
		return true;
	/* A pipe is opened once only: who opens it a second time finds its writer gone. */
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	/* A recorder that died at once leaves an empty file, and all that it had in the journal beside it. */
	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       (!st.st_size || (fd_read_all(fd, start, sizeof(start)) == (ssize_t)sizeof(start) &&
	                        !memcmp(start, magic, sizeof(magic))));
}

/* Reports lines that an importer skipped: the file may be of another format than it seems. */
static void tell_ignored(const struct profile *p, const char *path)
{
	uint64_t n = profile_counter(p, KEY_IMPORT_LINES_IGNORED);
	char count[32];

	if (n)
		log_warn("%s: ignored %s line%s that %s no stack with a count", path, str_count(count, n),
			 n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

static int read_store(const char *path, struct profile **ret, struct err *err)
{
	unsigned away = 0;
	int r = fetch_url(input_address(path), &away, ret, err);

	if (!r && away)
		log_warn("%u shard%s of the store %s away: what is there only is missing", away, away == 1 ? "" : "s", away == 1 ? "is" : "are");
	return r;
}

int input_check(const char *path, const char **ret_kind, struct err *err)
{
	const struct import_format *format;
	struct capture_summary summary = { 0 };
	struct stat st;
	int r;

	*ret_kind = NULL;
	/* Whether it is there is found out when it is asked for. */
	if (input_is_store(path)) {
		*ret_kind = "store";
		return 0;
	}
	if (stat(path, &st) || !S_ISREG(st.st_mode) || input_is_capture(path)) {
		r = capture_summary(path, &summary, err);
		capture_summary_done(&summary);
		return r;
	}
	r = import_check(path, &format, err);
	if (!r)
		*ret_kind = format->name;
	return r;
}

int input_read(const char *path, struct profile **ret, struct err *err)
{
	return input_read_most(path, 0, false, NULL, ret, err);
}

int input_read_most(const char *path, size_t most, bool blocks, const struct capture_span *span, struct profile **ret,
		    struct err *err)
{
	struct stat st;
	int r;

	if (input_is_store(path))
		return read_store(path, ret, err);
	/* A missing file, a folder or a device gets the messages for captures. */
	if (strcmp(path, "-") &&
	    (stat(path, &st) || !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)) || input_is_capture(path)))
		return blocks ? capture_read_blocks(path, most, ret, err) : capture_read_span(path, most, span, ret, err);
	r = import_read(path, NULL, NULL, ret, err);
	if (!r)
		tell_ignored(*ret, strcmp(path, "-") ? path : "the standard input");
	return r;
}
