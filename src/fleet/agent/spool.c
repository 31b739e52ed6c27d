#include "fleet/agent/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "fleet/agent/spoolfolder.h"
#include "fleet/agent/spoollist.h"

/* Each costs an fsync: the sender has other things to do in between. */
enum { TAKE_AT_ONCE = 512 };

static const char to_folder[] = "to", refused_folder[] = "refused", new_folder[] = "new";

struct queue {
	char *sink;
	bool wanted;      /* a sink has this name now */
	struct spoollist waiting, kept; /* kept: refused, for a person */
	uint64_t dropped, refused;
};

struct spool {
	char *folder;
	int root, lock;
	uint64_t max_bytes;
	VEC(struct queue *) queues; /* those of sinks that are no more too */
	VEC(struct queue *) sinks;  /* as the caller numbers them */
	struct spoollist_total total;
	uint64_t new_bytes, new_windows; /* that the last spool_take() left in new/ */
	bool said_foreign, said_gone;
};

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

static void say_foreign(struct spool *s, const char *where, const char *name)
{
	if (!s->said_foreign)
		log_warn("%s/%s/%s is no window of ours: it is left alone (others like it are not mentioned)", s->folder, where, name);
	s->said_foreign = true;
}

/* A regular file of ours that is on the disk of the spool. */
static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid();
}

/* --- names, and the folders before there is a spool --- */

char *spool_name(const char *target, uint64_t start_wall_ns, uint64_t sequence)
{
	time_t seconds = start_wall_ns / 1000000000;
	char begin[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(begin, sizeof(begin), "%Y%m%dT%H%M%S", &tm);
	return mem_printf("%s.%03uZ-%06llu-%08x.gasflame", begin, (unsigned)(start_wall_ns / 1000000 % 1000),
			  (unsigned long long)sequence, (unsigned)map_hash_bytes(target, strlen(target)));
}

static int remove_unfinished(void *context, int folder, const char *name)
{
	if (spoolfolder_is_unfinished(name))
		unlinkat(folder, name, 0); /* what stays is in nobody's way */
	return 0;
}

int spool_make(const char *folder, struct err *err)
{
	static const char *const parts[] = { new_folder, to_folder, refused_folder };
	_cleanup_fd_ int root = spoolfolder_open(folder, true, err), lock = -1;
	int r = root < 0 ? root : 0;

	for (size_t i = 0; !r && i < ARRAY_LEN(parts); i++) {
		_cleanup_fd_ int part = spoolfolder_open_in(root, parts[i], err);

		r = part < 0 ? part : 0;
		if (r)
			return err_prefix(err, "%s", folder);
	}
	if (r)
		return r;
	/* Where the lock is taken an agent runs, perhaps ourselves: its recorders are not dead. */
	lock = spoolfolder_lock(root, err);
	if (lock == -EBUSY)
		return 0;
	if (lock < 0)
		return lock;
	_cleanup_fd_ int fresh = spoolfolder_open_in(root, new_folder, err);
	return fresh < 0 ? fresh : spoolfolder_each(fresh, remove_unfinished, NULL, err);
}

uint64_t spool_pause_ns(unsigned failures, uint64_t random)
{
	const uint64_t longest_s = 300;
	uint64_t s = !failures ? 0 : failures > 9 ? longest_s : MIN(UINT64_C(1) << (failures - 1), longest_s);

	return s * 1e9 * (0.5 + random / 18446744073709551616.0);
}

/* --- queues --- */

static struct queue *find_queue(struct spool *s, const char *sink)
{
	for (size_t i = 0; i < s->queues.n; i++)
		if (!strcmp(s->queues.v[i]->sink, sink))
			return s->queues.v[i];
	return NULL;
}

static struct queue *add_queue(struct spool *s, const char *sink)
{
	struct queue *q = find_queue(s, sink);

	if (q)
		return q;
	q = mem_alloc(sizeof(*q));
	q->sink = mem_strdup(sink);
	vec_push(&s->queues, q);
	return q;
}

static void free_queue(struct spool *s, struct queue *q)
{
	spoollist_done(&q->waiting, &s->total);
	spoollist_done(&q->kept, &s->total);
	free(q->sink);
	free(q);
}

static struct queue *queue_of(const struct spool *s, size_t sink)
{
	return sink < s->sinks.n ? s->sinks.v[sink] : NULL;
}

static int check_options(const struct spool_options *o, struct err *err)
{
	for (size_t i = 0; o->sinks && o->sinks[i]; i++) {
		if (!spoolfolder_is_sink(o->sinks[i]))
			return err_set(err, EINVAL, "a sink's name is letters, digits, \"-\", \"_\" and \".\", and does not begin with \".\"");
		for (size_t k = 0; k < i; k++)
			if (!strcmp(o->sinks[i], o->sinks[k]))
				return err_set(err, EINVAL, "two sinks have the name %s: name them differently", o->sinks[i]);
	}
	return 0;
}

/* Makes the folders of all sinks, and numbers them. Nothing has changed where it fails. */
static int set_sinks(struct spool *s, const struct spool_options *o, struct err *err)
{
	int r = check_options(o, err);

	for (size_t i = 0; !r && o->sinks && o->sinks[i]; i++) {
		_cleanup_fd_ int to = spoolfolder_open_sink(s->root, to_folder, o->sinks[i], err);

		r = to < 0 ? to : 0;
	}
	if (r)
		return r;
	for (size_t i = 0; i < s->queues.n; i++)
		s->queues.v[i]->wanted = false;
	vec_clear(&s->sinks);
	for (size_t i = 0; o->sinks && o->sinks[i]; i++) {
		struct queue *q = add_queue(s, o->sinks[i]);

		q->wanted = true;
		vec_push(&s->sinks, q);
	}
	s->max_bytes = o->max_bytes;
	return 0;
}

/* --- what is there when it is opened --- */

struct scan {
	struct spool *spool;
	struct map files;      /* by inode: struct spoolfile * */
	struct map fresh;      /* inodes in new/ */
	const char *of;        /* "to", "refused" */
	struct queue *queue;
	struct err *err;
};

static int scan_fresh(void *context, int folder, const char *name)
{
	struct scan *scan = context;
	struct stat st;

	if (spoolfolder_is_window(name, NULL) && !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		map_put(&scan->fresh, st.st_ino, 1);
	return 0;
}

static int scan_window(void *context, int folder, const char *name)
{
	struct scan *scan = context;
	struct spool *s = scan->spool;
	struct spoollist *l = scan->of == to_folder ? &scan->queue->waiting : &scan->queue->kept;
	struct spoolfile *f;
	struct stat st;
	uint64_t *at;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0; /* it went meanwhile */
	if (!spoolfolder_is_window(name, NULL) || !is_ours(&st)) {
		_cleanup_free_ char *where = mem_printf("%s/%s", scan->of, scan->queue->sink);

		say_foreign(s, where, name);
		return 0;
	}
	/* A crash came while it was taken: nothing of it was delivered, spool_take() goes on with it. */
	if (map_get(&scan->fresh, st.st_ino))
		return 0;
	at = map_put(&scan->files, st.st_ino, 0);
	f = (void *)(uintptr_t)*at;
	if (!f || strcmp(f->name, name) != 0) {
		f = spoolfile_new(name, st.st_size);
		*at = (uintptr_t)f;
	}
	spoollist_push(l, f, &s->total);
	return 0;
}

static int scan_sink(void *context, int folder, const char *name)
{
	struct scan *scan = context;
	_cleanup_fd_ int in = -1;

	if (!spoolfolder_is_sink(name)) {
		say_foreign(scan->spool, scan->of, name);
		return 0;
	}
	in = spoolfolder_open_in(folder, name, scan->err);
	if (in == -ENOTDIR && !find_queue(scan->spool, name)) {
		say_foreign(scan->spool, scan->of, name);
		return 0;
	}
	if (in < 0)
		return in;
	scan->queue = add_queue(scan->spool, name);
	return spoolfolder_each(in, scan_window, scan, scan->err);
}

static int scan_all(struct spool *s, struct err *err)
{
	struct scan scan = { .spool = s, .err = err };
	_cleanup_fd_ int fresh = spoolfolder_open_in(s->root, new_folder, err), to = -1, refused = -1;
	int r = fresh < 0 ? fresh : spoolfolder_each(fresh, scan_fresh, &scan, err);

	if (!r)
		r = to = spoolfolder_open_in(s->root, to_folder, err);
	scan.of = to_folder;
	if (r >= 0)
		r = spoolfolder_each(to, scan_sink, &scan, err);
	if (r >= 0)
		r = refused = spoolfolder_open_in(s->root, refused_folder, err);
	scan.of = refused_folder;
	if (r >= 0)
		r = spoolfolder_each(refused, scan_sink, &scan, err);
	for (size_t i = 0; i < s->queues.n; i++) {
		spoollist_sort(&s->queues.v[i]->waiting);
		spoollist_sort(&s->queues.v[i]->kept);
		/* Nothing is left of this sink. */
		if (r >= 0 && !s->queues.v[i]->wanted) {
			unlinkat(to, s->queues.v[i]->sink, AT_REMOVEDIR);
			unlinkat(refused, s->queues.v[i]->sink, AT_REMOVEDIR);
		}
	}
	map_done(&scan.files);
	map_done(&scan.fresh);
	return MIN(r, 0);
}

/* --- the bound --- */

static int drop(struct spool *s, struct queue *q, const char *of, struct spoollist *l, size_t at, struct err *err)
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
static struct queue *longest(struct spool *s, bool wanted, bool kept)
{
	struct queue *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < s->queues.n; i++) {
		struct queue *q = s->queues.v[i];
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
		struct queue *q = longest(s, order[i].wanted, order[i].kept);
		int r;

		if (!q)
			continue;
		r = drop(s, q, order[i].kept ? refused_folder : to_folder, order[i].kept ? &q->kept : &q->waiting, 0, err);
		q->dropped += !r;
		return r ? r : 1;
	}
	return 0;
}

/* Whether a crash, or a failure, has left a link of it there. */
static bool has_link(struct spool *s, const struct queue *q, const struct fresh *f, bool removes)
{
	_cleanup_fd_ int folder = spoolfolder_open_sink(s->root, to_folder, q->sink, NULL);
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

/* left: what waits in folder, new/; may be NULL. */
static int keep_bound(struct spool *s, struct fresh_list *left, int folder, struct err *err)
{
	int r = 1;

	while (r > 0 && s->max_bytes && spool_bytes(s) > s->max_bytes)
		r = drop_one(s, err);
	for (size_t i = 0; !r && left && i < left->files.n && spool_bytes(s) > s->max_bytes; i++)
		if (!left->files.v[i].done)
			r = drop_fresh(s, &left->files.v[i], folder, err);
	return MIN(r, 0);
}

/* --- taking --- */

static int list_fresh(void *context, int folder, const char *name)
{
	struct fresh_list *l = context;
	struct stat st;

	if (spoolfolder_is_unfinished(name) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (!spoolfolder_is_window(name, NULL) || !is_ours(&st)) {
		say_foreign(l->spool, new_folder, name);
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
	if (!is_ours(&st) || st.st_ino != f->inode || st.st_nlink != known) {
		say_foreign(s, new_folder, f->name);
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
		struct queue *q = s->queues.v[i];

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
		to[opened] = r = spoolfolder_open_sink(s->root, to_folder, s->sinks.v[opened]->sink, err);
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
	from = spoolfolder_open_in(s->root, new_folder, err);
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

/* --- opening --- */

int spool_open(const struct spool_options *o, struct spool **ret, struct err *err)
{
	struct spool *s = mem_alloc(sizeof(*s));
	int r;

	s->lock = -1;
	s->folder = mem_strdup(o->folder);
	r = s->root = spoolfolder_open(o->folder, true, err);
	if (r >= 0)
		r = s->lock = spoolfolder_lock(s->root, err);
	if (r >= 0)
		r = set_sinks(s, o, err);
	if (r >= 0)
		r = scan_all(s, err);
	if (r >= 0)
		r = keep_bound(s, NULL, -1, err);
	if (r < 0) {
		spool_close(s);
		return err_prefix(err, "%s", o->folder);
	}
	*ret = s;
	return 0;
}

int spool_change(struct spool *s, const struct spool_options *o, struct err *err)
{
	int r;

	if (strcmp(o->folder, s->folder) != 0)
		return err_set(err, EINVAL, "the spool stays in %s as long as the agent runs: start it again to use %s", s->folder,
			       o->folder);
	r = set_sinks(s, o, err);
	return r ? r : keep_bound(s, NULL, -1, err);
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->queues.n; i++)
		free_queue(s, s->queues.v[i]);
	vec_done(&s->queues);
	vec_done(&s->sinks);
	fd_close(&s->lock);
	fd_close(&s->root);
	free(s->folder);
	free(s);
}

/* --- delivering --- */

/* Somebody removed it, or put something else there: it is no more, and -ENOENT. */
static int open_window(struct spool *s, int folder, const char *name, struct err *err)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno != ENOENT && errno != ELOOP)
		return err_errno(err, errno, "cannot open the window %s", name);
	if (fd >= 0 && !fstat(fd, &st) && is_ours(&st))
		return fd;
	fd_close(&fd);
	if (!s->said_gone)
		log_warn("%s: somebody removed the window %s (others like it are not mentioned)", s->folder, name);
	s->said_gone = true;
	return -ENOENT;
}

int spool_first(struct spool *s, size_t sink, char **ret_name, int *ret_fd, struct err *err)
{
	struct queue *q = queue_of(s, sink);
	_cleanup_fd_ int folder = -1;
	int fd;

	while (q && spoollist_count(&q->waiting)) {
		const char *name = spoollist_at(&q->waiting, 0)->name;

		if (folder < 0)
			folder = spoolfolder_open_sink(s->root, to_folder, q->sink, err);
		if (folder < 0)
			return folder;
		fd = open_window(s, folder, name, err);
		if (fd >= 0) {
			*ret_name = mem_strdup(name);
			*ret_fd = fd;
			return 0;
		}
		if (fd != -ENOENT)
			return fd;
		spoollist_remove(&q->waiting, 0, &s->total);
	}
	return -ENOENT;
}

/* Nothing is lost where it cannot be removed: it is delivered again by the next agent, and sinks count a window once. */
void spool_delivered(struct spool *s, size_t sink, const char *name)
{
	struct queue *q = queue_of(s, sink);
	size_t at = q ? spoollist_find(&q->waiting, name) : SIZE_MAX;
	_cleanup_fd_ int folder = -1;

	if (at == SIZE_MAX)
		return;
	folder = spoolfolder_open_sink(s->root, to_folder, q->sink, NULL);
	if (folder >= 0)
		unlinkat(folder, name, 0);
	spoollist_remove(&q->waiting, at, &s->total);
}

void spool_refused(struct spool *s, size_t sink, const char *name)
{
	struct queue *q = queue_of(s, sink);
	size_t at = q ? spoollist_find(&q->waiting, name) : SIZE_MAX;
	_cleanup_fd_ int from = -1, to = -1;

	if (at == SIZE_MAX)
		return;
	q->refused++;
	from = spoolfolder_open_sink(s->root, to_folder, q->sink, NULL);
	to = spoolfolder_open_sink(s->root, refused_folder, q->sink, NULL);
	/* Else it stays in the queue on disk, and the next agent tries it again. */
	if (from >= 0 && to >= 0 && !renameat(from, name, to, name) && spoollist_find(&q->kept, name) == SIZE_MAX)
		spoollist_add(&q->kept, spoollist_at(&q->waiting, at), &s->total);
	spoollist_remove(&q->waiting, at, &s->total);
}

/* --- figures --- */

struct spool_queue spool_state(const struct spool *s, size_t sink)
{
	const struct queue *q = queue_of(s, sink);
	struct spool_queue state = { 0 };

	if (!q)
		return state;
	state = (struct spool_queue){ .waiting = spoollist_count(&q->waiting), .bytes = q->waiting.bytes, .dropped = q->dropped,
				      .refused = q->refused };
	if (state.waiting)
		spoolfolder_is_window(spoollist_at(&q->waiting, 0)->name, &state.oldest_wall_ns);
	return state;
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->total.bytes + s->new_bytes;
}

uint64_t spool_windows(const struct spool *s)
{
	return s->total.windows + s->new_windows;
}

uint64_t spool_dropped(const struct spool *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->queues.n; i++)
		n += s->queues.v[i]->dropped;
	return n;
}
