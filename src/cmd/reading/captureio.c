#include "cmd/reading/captureio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/wait/pattern.h"
#include "analyze/quality.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/file/newfile.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/reading/broker.h"
#include "cmd/reading/input.h"
#include "cmd/recording/output.h"
#include "import/jemalloc/heapdumps.h"
#include "import/import.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum {
	MAX_PATTERNS_BYTES = 1 << 20,
	/* A page needs some 130 bytes for each at its peak. */
	MOST_SAMPLES = 2000000,
};

/* --- reading --- */

/* How much of a long capture is kept one by one. */
struct keep {
	size_t most; /* samples; 0 = all */
	bool blocks;
	const struct capture_span *span;
	/* Of foreign files. */
	const struct import_format *format;
	const struct import_options *options;
};

static int read_one(const char *path, const struct keep *keep, struct profile **ret, struct err *err)
{
	if (keep->format || (keep->options && !input_is_capture(path)))
		return input_read_as(path, keep->format, keep->options, ret, err);
	return input_read_most(path, keep->most, keep->blocks, keep->span, ret, err);
}

static int read_all(char **paths, int n, const struct keep *keep, struct profile **ret, struct err *err)
{
	_cleanup_(profile_freep) struct profile *all = NULL;

	for (int i = 0; i < n; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		int r = read_one(paths[i], keep, &p, err);

		if (r == -ENOENT && err->code == ENOENT)
			return err_set(err, ENOENT, "there is no file %s: `gasflame ls` lists the captures",
				       paths[i]);
		if (r)
			return r;
		if (!all) {
			all = p;
			p = NULL;
			continue;
		}
		if (heapdumps_made(all) && heapdumps_made(p))
			return err_set(err, EINVAL, "dumps of a heap are not added up, they show it at different times: "
				       "`gasflame heap %s %s ...` shows the last, and what grew", paths[0], paths[i]);
		r = profile_merge(all, p, err);
		if (r)
			return err_prefix(err, "cannot add %s to %s", paths[i], paths[0]);
	}
	*ret = all;
	all = NULL;
	return 0;
}

int captureio_read(char **paths, int n, struct profile **ret, struct err *err)
{
	return read_all(paths, n, &(struct keep){ 0 }, ret, err);
}

int captureio_read_sums(char **paths, int n, struct profile **ret, struct err *err)
{
	return read_all(paths, n, &(struct keep){ MOST_SAMPLES }, ret, err);
}

int captureio_read_blocks(char **paths, int n, struct profile **ret, struct err *err)
{
	return read_all(paths, n, &(struct keep){ MOST_SAMPLES, .blocks = true }, ret, err);
}

int captureio_read_span(char **paths, int n, const struct capture_span *span, struct profile **ret, struct err *err)
{
	return read_all(paths, n, &(struct keep){ MOST_SAMPLES, .span = span }, ret, err);
}

int captureio_read_as(char **paths, int n, const struct import_format *format, const struct import_options *options,
		      struct profile **ret, struct err *err)
{
	return read_all(paths, n, &(struct keep){ .format = format, .options = options }, ret, err);
}

int captureio_find_names(const struct symbolize_options *options, struct profile *p, struct err *err)
{
	bool again = (options->paths && *options->paths) || options->debuginfod;
	size_t missing = 0, counters = p->counters.n;
	struct symbolizer *s;
	int r;

	for (size_t i = 0; i < p->frames.n; i++)
		missing += !p->frames.v[i].line_count;
	if (!missing && !again)
		return 0;
	s = symbolizer_new(options, NULL);
	r = symbolize_profile(s, p, command_show_names, NULL, err);
	symbolizer_free(s);
	if (!r && heapdumps_made(p))
		heapdumps_strip(p);
	command_tell_names(p, counters);
	return r;
}

int captureio_read_patterns(const struct option_list *paths, struct patterns *t, struct err *err)
{
	patterns_init(t);
	for (size_t i = 0; i < paths->list.n; i++) {
		const char *path = paths->list.v[i];
		_cleanup_free_ char *text = NULL;
		size_t n;
		int r = fd_read_path(path, MAX_PATTERNS_BYTES, &text, &n);

		if (r < 0)
			return err_errno(err, -r, "cannot read the patterns in %s", path);
		if (strlen(text) < n)
			return err_set(err, EINVAL, "%s is no text: patterns are lines of key = value", path);
		r = patterns_add(t, path, text, err);
		if (r)
			return r;
	}
	patterns_add_builtin(t);
	return 0;
}

/* --- writing --- */

char *captureio_beside(const char *capture, const char *extension)
{
	size_t n = strlen(capture);

	if (str_ends(capture, ".gasflame"))
		n -= strlen(".gasflame");
	else if (str_ends(capture, ".folded"))
		n -= strlen(".folded");
	return mem_printf("%.*s%s", (int)n, capture, extension);
}

bool captureio_has_beside(const char *capture)
{
	return strcmp(capture, "-") && !input_is_store(capture);
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Results from a capture are readable by those who may read the capture. */
static mode_t mode_of(const char *capture)
{
	struct stat st;

	return stat(capture, &st) ? 0600 : st.st_mode & 0666;
}

/* Root gives results from a capture to the capture's owner: beside it, and elsewhere only in the owner's
 * folders. A link could point to another user's capture, and counts for no owner. */
static struct owner owner_of(const char *capture, const struct newfile *f, bool beside)
{
	struct owner user = output_owner();
	struct stat st, folder;

	if (geteuid() || (!beside && user.given))
		return user;
	if (lstat(capture, &st) || !S_ISREG(st.st_mode) ||
	    (!beside && (f->folder < 0 || fstat(f->folder, &folder) || folder.st_uid != st.st_uid)))
		return (struct owner){ 0 };
	return (struct owner){ .given = true, .uid = st.st_uid, .gid = st.st_gid };
}

static int write_here(const char *path, bool beside, const struct buf *data, char **captures, int n, struct err *err)
{
	unsigned how = (beside ? 0 : NEWFILE_TYPED) | (n ? 0 : NEWFILE_FOLDERS);
	struct owner user = output_owner();
	_cleanup_(newfile_done) struct newfile f;
	int r;

	r = newfile_open(&f, path, how, beside ? mode_of(captures[0]) : 0666, n ? NULL : &user, err);
	if (r == -EACCES || r == -EPERM || r == -EROFS || r == -ENOENT || r == -ENOTDIR)
		return err_errno(err, -r, "cannot write %s (-o names another file, \"-\" is the standard output)", path);
	if (r)
		return r;
	if (n)
		f.owner = owner_of(captures[0], &f, beside);
	r = fd_write_all(f.fd, data->data, data->n);
	return r ? err_errno(err, -r, "cannot write %s", path) : newfile_keep(&f, err);
}

static int write_file(const char *path, bool beside, const struct buf *data, char **captures, int n, struct err *err)
{
	for (int i = 0; i < n; i++)
		if (same_file(path, captures[i]))
			return err_set(err, EINVAL, "%s is the capture itself: name another file with -o", path);
	/* A reader may write nothing itself. */
	return broker_runs() ? broker_write(path, data, err) : write_here(path, beside, data, captures, n, err);
}

int captureio_write(const char *path, const struct buf *data, char **captures, int n, struct err *err)
{
	int r;

	if (path && strcmp(path, "-"))
		return write_file(path, false, data, captures, n, err);
	r = plain_put(data->data, data->n);
	if (!r && fflush(stdout))
		r = -errno;
	return r ? err_errno(err, -r, "cannot write to the standard output") : 0;
}

int captureio_write_beside(const char *path, const struct buf *data, char **captures, int n, struct err *err)
{
	return write_file(path, true, data, captures, n, err);
}

void captureio_tell_quality(const struct quality *q, const struct selection *s, const char *name)
{
	_cleanup_(buf_done) struct buf line = { 0 };

	fflush(stdout);
	quality_line(q, s, &line);
	log_info("%s%s%s", name ? name : "", name ? ": " : "", line.data);
	for (size_t i = 0; i < q->warnings.n; i++)
		log_warn("%s%s%s", name ? name : "", name ? ": " : "", q->warnings.v[i]);
}
