#include "cmd/reading/input.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/vec.h"
#include "base/text/str.h"
#include "fleet/fetch/fetch.h"
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
static pthread_mutex_t hidden_lock = PTHREAD_MUTEX_INITIALIZER; /* serve hides in one thread, and reads in another */

static const char *find_hidden(const char *path)
{
	for (size_t i = 0; i < hidden.n; i++)
		if (!strcmp(hidden.v[i].shown, path))
			return hidden.v[i].address;
	return NULL;
}

void input_hide(char *path)
{
	char *address = mem_strdup(path);

	storeurl_hide(path);
	pthread_mutex_lock(&hidden_lock);
	if (strcmp(address, path) && !find_hidden(path))
		vec_push(&hidden, (struct hidden){ mem_strdup(path), address });
	else
		free(address);
	pthread_mutex_unlock(&hidden_lock);
}

const char *input_address(const char *path)
{
	const char *address;

	pthread_mutex_lock(&hidden_lock);
	address = find_hidden(path);
	pthread_mutex_unlock(&hidden_lock);
	return address ? address : path;
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

/* Reports what an importer left out: the file may be of another format than it seems, cut, or recorded in another way than is
 * needed. Labels of other tools that there is no place for are usual, and counted only. */
static void tell_ignored(const struct profile *p, const char *path)
{
	static const struct {
		const char *key, *one, *many; /* of a count, and of several; many NULL: a flag */
	} kinds[] = {
		{ KEY_IMPORT_LINES_IGNORED, "ignored a line that is no stack with a count", "ignored %s lines that are no stack with a count" },
		{ KEY_IMPORT_LEFT_OUT, "left out a part that makes no sense, or has no place in a capture",
		  "left out %s parts that make no sense, or have no place in a capture" },
		{ KEY_IMPORT_RECORDS_IGNORED, "left out a record that makes no sense or is of no known event",
		  "left out %s records that make no sense, are of no known event, or hold a processor's trace" },
		{ KEY_IMPORT_RECORDS_LATE, "a record came after younger ones had been used",
		  "%s records came after younger ones had been used: times of some waits may be off" },
		{ KEY_IMPORT_WAITS_UNENDED, "left out a wait of which the file does not say when it ended",
		  "left out %s waits of which the file does not say when they ended" },
		{ KEY_IMPORT_SWITCHES_SAMPLED, "it has only a sample of the context switches, so that no waits were made of them: record them with "
		  "perf record -e cpu-clock/freq=999/ -e sched:sched_switch -e sched:sched_wakeup", NULL },
		{ KEY_IMPORT_CUT, "it ends in the middle of a record: what is whole was read", NULL },
		{ KEY_IMPORT_COST_MISSING, "its lines add up to less than its own total: it is cut off", NULL },
		{ KEY_IMPORT_COUNTS_CUT, "a sample stands for more than 4,294,967,295, which is what it counts for",
		  "%s samples stand for more than 4,294,967,295 each, which is what they count for" },
		{ KEY_IMPORT_RULES_IGNORED, "its rule of frames to drop or keep was not applied",
		  "its rules of frames to drop or keep were not applied" },
		{ KEY_HEAP_FREES_UNKNOWN, "a free is of an object that it does not have", "%s frees are of objects that it does not have" },
		{ KEY_HEAP_DUMPS_CUT_OFF, "it ends in the middle of a tree, which is left out", NULL },
	};
	char count[32];

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		uint64_t n = profile_counter(p, kinds[i].key);
		const char *words = n == 1 || !kinds[i].many ? kinds[i].one : kinds[i].many;
		const char *at = strstr(words, "%s");

		if (n)
			log_warn("%s: %.*s%s%s", path, at ? (int)(at - words) : (int)strlen(words), words, at ? str_count(count, n) : "",
				 at ? at + 2 : "");
	}
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

int input_read_as(const char *path, const struct import_format *format, const struct import_options *options, struct profile **ret,
		  struct err *err)
{
	int r = import_read(path, format, options, ret, err);

	if (!r)
		tell_ignored(*ret, strcmp(path, "-") ? path : "the standard input");
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

	if (input_is_store(path))
		return read_store(path, ret, err);
	/* A missing file, a folder or a device gets the messages for captures. */
	if (strcmp(path, "-") &&
	    (stat(path, &st) || !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)) || input_is_capture(path)))
		return blocks ? capture_read_blocks(path, most, ret, err) : capture_read_span(path, most, span, ret, err);
	return input_read_as(path, NULL, NULL, ret, err);
}
