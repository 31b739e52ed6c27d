#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/vec.h"
#include "fleet/agent/spool.h"
#include "fleet/agent/spoolfolder.h"
#include "fleet/agent/spoollist.h"
#include "fleet/agent/spoolstate.h"

/* Each costs an fsync: the sender has other things to do in between. */
enum { TAKE_AT_ONCE = 512 };

/* A window in new/. */
struct fresh {
	char *name;
	uint64_t inode, bytes, links;
	bool linked; /* all sinks have it */
	bool done;   /* it is in the queues, or gone, or none of ours */
};

struct fresh_list {
	struct spool *spool;
	VEC(struct fresh) files;
};

/* --- the bound --- */

static int drop(struct spool *s, struct spoolqueue *q, const char *of, struct spoollist *l, size_t at, struct err *err)
{
	_cleanup_fd_ int folder = spoolfolder_open_sink(s->root, of, q->sink, err);

	if (folder < 0)
		return folder;
	if (unlinkat(folder, spoollist_at(l, at)->name, 0) && errno != ENOENT)
		return err_errno(err, errno, "cannot remove %s from the spool", spoollist_at(l, at)->name);
	spoollist_remove(l, at, &s->total);
	return 0;
}

/* Of the sinks that are no more, or of the others: the longest list of a kind. */
static struct spoolqueue *longest(struct spool *s, bool wanted, bool kept)
{
	struct spoolqueue *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < s->queues.n; i++) {
		struct spoolqueue *q = s->queues.v[i];
		size_t n = spoollist_count(kept ? &q->kept : &q->waiting);

		if (q->wanted == wanted && n > most) {
			best = q;
			most = n;
		}
	}
	return best;
}

/* 1: one went. 0: there is none. */
static int drop_one(struct spool *s, struct err *err)
{
	static const struct { bool wanted, kept; } order[] = { { false, true }, { false, false }, { true, true }, { true, false } };

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		struct spoolqueue *q = longest(s, order[i].wanted, order[i].kept);
		int r;

		if (!q)
			continue;
		r = drop(s, q, order[i].kept ? SPOOL_REFUSED : SPOOL_TO, order[i].kept ? &q->kept : &q->waiting, 0, err);
		q->dropped += !r;
		return r ? r : 1;
	}
	return 0;
}

/* Whether a crash, or a failure, has left a link of it there. */
static bool has_link(struct spool *s, const struct spoolqueue *q, const struct fresh *f, bool removes)
{
	_cleanup_fd_ int folder = spoolfolder_open_sink(s->root, SPOOL_TO, q->sink, NULL);
	struct stat st;
	bool has = folder >= 0 && !fstatat(folder, f->name, &st, AT_SYMLINK_NOFOLLOW) && st.st_ino == f->inode;

	return has && removes ? !unlinkat(folder, f->name, 0) : has;
}

/* What could not be taken goes last: it is what every sink misses. */
static int drop_fresh(struct spool *s, struct fresh *f, int folder, struct err *err)
{
	for (size_t i = 0; f->links > 1 && i < s->queues.n; i++)
		has_link(s, s->queues.v[i], f, true);
	if (unlinkat(folder, f->name, 0) && errno != ENOENT)
		return err_errno(err, errno, "cannot remove %s from the spool", f->name);
	f->done = true;
	s->new_bytes -= f->bytes;
	s->new_windows--;
	for (size_t i = 0; i < s->sinks.n; i++)
		s->sinks.v[i]->dropped++;
	return 0;
}

static bool is_full(const struct spool *s)
{
	return s->max_bytes && spool_bytes(s) > s->max_bytes;
}

int spoolstate_keep_bound(struct spool *s, struct err *err)
{
	int r = 1;

	while (r > 0 && is_full(s))
		r = drop_one(s, err);
	return MIN(r, 0);
}

/* The same, and then of those that wait in new/. */
static int keep_bound(struct spool *s, struct fresh_list *left, int folder, struct err *err)
{
	int r = spoolstate_keep_bound(s, err);

	for (size_t i = 0; !r && i < left->files.n && is_full(s); i++)
		if (!left->files.v[i].done)
			r = drop_fresh(s, &left->files.v[i], folder, err);
	return r;
}

/* --- taking --- */

static int list_fresh(void *context, int folder, const char *name)
{
	struct fresh_list *l = context;
	struct stat st;

	if (spoolfolder_is_unfinished(name) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (!spoolfolder_is_window(name, NULL) || !spoolstate_is_ours(&st)) {
		spoolstate_say_foreign(l->spool, SPOOL_NEW, name);
		return 0;
	}
	vec_push(&l->files, (struct fresh){ .name = mem_strdup(name), .inode = st.st_ino, .bytes = st.st_size, .links = st.st_nlink });
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct fresh *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/*
 * Makes its content last. 1: it is to be left alone: a recorder that its target took over could put a second name of another file there, which would
 * be sent away as a window. The only other names that are known are of a crash.
 */
static int settle_content(struct spool *s, int folder, struct fresh *f, struct err *err)
{
	_cleanup_fd_ int fd = openat(folder, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	uint64_t known = 1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return err_errno(err, errno, "cannot open the window %s", f->name);
	for (size_t i = 0; st.st_nlink > 1 && i < s->queues.n; i++)
		known += has_link(s, s->queues.v[i], f, false);
	if (!spoolstate_is_ours(&st) || st.st_ino != f->inode || st.st_nlink != known) {
		spoolstate_say_foreign(s, SPOOL_NEW, f->name);
		f->done = true;
		return 1;
	}
	return fsync(fd) ? err_errno(err, errno, "cannot make the window %s last", f->name) : 0;
}

/* 1: another window of that name waits there; this one's turn comes when it is delivered. */
static int link_window(int from, int to, const struct fresh *f, const char *sink, struct err *err)
{
	struct stat st;

	if (!linkat(from, f->name, to, f->name, 0))
		return 0;
	if (errno == EEXIST && !fstatat(to, f->name, &st, AT_SYMLINK_NOFOLLOW))
		return st.st_ino != f->inode;
	if (errno == EPERM || errno == EOPNOTSUPP || errno == EXDEV)
		return err_errno(err, errno, "cannot link a window into the queue of %s: the spool's folder has to be on a file system "
				 "with hard links, all of it on one", sink);
	return err_errno(err, errno, "cannot link a window into the queue of %s", sink);
}

static int link_all(struct spool *s, struct fresh_list *l, int from, const int *to, struct err *err)
{
	for (size_t i = 0, n = 0; i < l->files.n && n < TAKE_AT_ONCE; i++) {
		struct fresh *f = &l->files.v[i];
		int r = settle_content(s, from, f, err);

		for (size_t k = 0; !r && k < s->sinks.n; k++)
			r = link_window(from, to[k], f, s->sinks.v[k]->sink, err);
		if (r < 0)
			return r;
		f->linked = !r;
		n += f->linked;
	}
	return 0;
}

/* It is in all queues on disk, and no more in new/: now it may be delivered. */
static void enqueue(struct spool *s, const struct fresh *f)
{
	struct spoolfile *file = spoolfile_new(f->name, f->bytes);

	for (size_t i = 0; i < s->queues.n; i++) {
		struct spoolqueue *q = s->queues.v[i];

		if (spoollist_find(&q->waiting, f->name) == SIZE_MAX &&
		    (q->wanted || (f->links > 1 && has_link(s, q, f, false))))
			spoollist_add(&q->waiting, file, &s->total);
	}
	if (!file->lists)
		free(file);
}

/* The links have to last before new/ forgets the window, and that has to last before it is delivered: or a crash of the machine loses or repeats it. */
static int settle(struct spool *s, struct fresh_list *l, int from, const int *to, struct err *err)
{
	int n = 0, r = 0;

	for (size_t i = 0; i < l->files.n; i++)
		n += l->files.v[i].linked;
	if (!n)
		return 0;
	for (size_t k = 0; k < s->sinks.n; k++)
		if (fsync(to[k]))
			return err_errno(err, errno, "cannot make the queue of %s last", s->sinks.v[k]->sink);
	n = 0;
	for (size_t i = 0; i < l->files.n; i++) {
		struct fresh *f = &l->files.v[i];

		if (!f->linked)
			continue;
		f->done = !unlinkat(from, f->name, 0);
		if (!f->done)
			r = err_errno(err, errno, "cannot remove %s from the new windows", f->name);
		n += f->done;
	}
	if (fsync(from))
		r = err_errno(err, errno, "cannot make the queues last");
	for (size_t i = 0; i < l->files.n; i++)
		if (l->files.v[i].linked && l->files.v[i].done)
			enqueue(s, &l->files.v[i]);
	return r ? r : n;
}

static int take(struct spool *s, struct fresh_list *l, int from, struct err *err)
{
	_cleanup_free_ int *to = mem_alloc((s->sinks.n + 1) * sizeof(*to));
	struct err other = { 0 };
	size_t opened = 0;
	int r = spoolfolder_each(from, list_fresh, l, err), n = 0;

	vec_sort(&l->files, by_name);
	for (; r >= 0 && opened < s->sinks.n && l->files.n; opened++)
		to[opened] = r = spoolfolder_open_sink(s->root, SPOOL_TO, s->sinks.v[opened]->sink, err);
	if (r >= 0) {
		r = link_all(s, l, from, to, err);
		/* Also after a failure: those before it are taken. */
		n = settle(s, l, from, to, &other);
		if (n < 0 && !r)
			r = err_set(err, other.code, "%s", other.text);
	}
	for (size_t i = 0; i < opened; i++)
		fd_close(&to[i]);
	return r < 0 ? r : n;
}

int spool_take(struct spool *s, struct err *err)
{
	struct fresh_list l = { .spool = s };
	_cleanup_fd_ int from = -1;
	struct stat st;
	int r, n;

	if (!fstat(s->root, &st) && !st.st_nlink)
		return err_set(err, ENOENT, "the spool's folder %s was removed: start the agent again", s->folder);
	from = spoolfolder_open_in(s->root, SPOOL_NEW, err);
	if (from < 0)
		return from;
	n = take(s, &l, from, err);
	s->new_bytes = s->new_windows = 0;
	for (size_t i = 0; i < l.files.n; i++) {
		s->new_bytes += l.files.v[i].done ? 0 : l.files.v[i].bytes;
		s->new_windows += !l.files.v[i].done;
	}
	r = keep_bound(s, &l, from, n < 0 ? NULL : err);
	vec_done_each(&l.files, f, free(f->name));
	return n < 0 ? n : r ? r : n;
}
