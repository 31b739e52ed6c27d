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
#include "fleet/agent/spoolstate.h"

void spoolstate_say_foreign(struct spool *s, const char *where, const char *name)
{
	if (!s->said_foreign)
		log_warn("%s/%s/%s is no window of ours: it is left alone (others like it are not mentioned)", s->folder, where, name);
	s->said_foreign = true;
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
	static const char *const parts[] = { SPOOL_NEW, SPOOL_TO, SPOOL_REFUSED };
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
	_cleanup_fd_ int fresh = spoolfolder_open_in(root, SPOOL_NEW, err);
	return fresh < 0 ? fresh : spoolfolder_each(fresh, remove_unfinished, NULL, err);
}

uint64_t spool_pause_ns(unsigned failures, uint64_t random)
{
	const uint64_t longest_s = 300;
	uint64_t s = !failures ? 0 : failures > 9 ? longest_s : MIN(UINT64_C(1) << (failures - 1), longest_s);

	return s * 1e9 * (0.5 + random / 18446744073709551616.0);
}

/* --- queues --- */

static struct spoolqueue *find_queue(struct spool *s, const char *sink)
{
	for (size_t i = 0; i < s->queues.n; i++)
		if (!strcmp(s->queues.v[i]->sink, sink))
			return s->queues.v[i];
	return NULL;
}

static struct spoolqueue *add_queue(struct spool *s, const char *sink)
{
	struct spoolqueue *q = find_queue(s, sink);

	if (q)
		return q;
	q = mem_alloc(sizeof(*q));
	q->sink = mem_strdup(sink);
	vec_push(&s->queues, q);
	return q;
}

static void free_queue(struct spool *s, struct spoolqueue *q)
{
	spoollist_done(&q->waiting, &s->total);
	spoollist_done(&q->kept, &s->total);
	free(q->sink);
	free(q);
}

static struct spoolqueue *queue_of(const struct spool *s, size_t sink)
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
		_cleanup_fd_ int to = spoolfolder_open_sink(s->root, SPOOL_TO, o->sinks[i], err);

		r = to < 0 ? to : 0;
	}
	if (r)
		return r;
	for (size_t i = 0; i < s->queues.n; i++)
		s->queues.v[i]->wanted = false;
	vec_clear(&s->sinks);
	for (size_t i = 0; o->sinks && o->sinks[i]; i++) {
		struct spoolqueue *q = add_queue(s, o->sinks[i]);

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
	struct spoolqueue *queue;
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
	struct spoollist *l = !strcmp(scan->of, SPOOL_TO) ? &scan->queue->waiting : &scan->queue->kept;
	struct spoolfile *f;
	struct stat st;
	uint64_t *at;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0; /* it went meanwhile */
	if (!spoolfolder_is_window(name, NULL) || !spoolstate_is_ours(&st)) {
		_cleanup_free_ char *where = mem_printf("%s/%s", scan->of, scan->queue->sink);

		spoolstate_say_foreign(s, where, name);
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
		spoolstate_say_foreign(scan->spool, scan->of, name);
		return 0;
	}
	in = spoolfolder_open_in(folder, name, scan->err);
	if (in == -ENOTDIR && !find_queue(scan->spool, name)) {
		spoolstate_say_foreign(scan->spool, scan->of, name);
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
	_cleanup_fd_ int fresh = spoolfolder_open_in(s->root, SPOOL_NEW, err), to = -1, refused = -1;
	int r = fresh < 0 ? fresh : spoolfolder_each(fresh, scan_fresh, &scan, err);

	if (!r)
		r = to = spoolfolder_open_in(s->root, SPOOL_TO, err);
	scan.of = SPOOL_TO;
	if (r >= 0)
		r = spoolfolder_each(to, scan_sink, &scan, err);
	if (r >= 0)
		r = refused = spoolfolder_open_in(s->root, SPOOL_REFUSED, err);
	scan.of = SPOOL_REFUSED;
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
		r = spoolstate_keep_bound(s, err);
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
	return r ? r : spoolstate_keep_bound(s, err);
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
	if (fd >= 0 && !fstat(fd, &st) && spoolstate_is_ours(&st))
		return fd;
	fd_close(&fd);
	if (!s->said_gone)
		log_warn("%s: somebody removed the window %s (others like it are not mentioned)", s->folder, name);
	s->said_gone = true;
	return -ENOENT;
}

int spool_at(struct spool *s, size_t sink, size_t at, char **ret_name, int *ret_fd, struct err *err)
{
	struct spoolqueue *q = queue_of(s, sink);
	_cleanup_fd_ int folder = -1;
	int fd;

	while (q && spoollist_count(&q->waiting) > at) {
		const char *name = spoollist_at(&q->waiting, at)->name;

		if (folder < 0)
			folder = spoolfolder_open_sink(s->root, SPOOL_TO, q->sink, err);
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
		spoollist_remove(&q->waiting, at, &s->total);
	}
	return -ENOENT;
}

int spool_first(struct spool *s, size_t sink, char **ret_name, int *ret_fd, struct err *err)
{
	return spool_at(s, sink, 0, ret_name, ret_fd, err);
}

/* Nothing is lost where it cannot be removed: it is delivered again by the next agent, and sinks count a window once. */
void spool_delivered(struct spool *s, size_t sink, const char *name)
{
	struct spoolqueue *q = queue_of(s, sink);
	size_t at = q ? spoollist_find(&q->waiting, name) : SIZE_MAX;
	_cleanup_fd_ int folder = -1;

	if (at == SIZE_MAX)
		return;
	folder = spoolfolder_open_sink(s->root, SPOOL_TO, q->sink, NULL);
	if (folder >= 0)
		unlinkat(folder, name, 0);
	spoollist_remove(&q->waiting, at, &s->total);
}

void spool_refused(struct spool *s, size_t sink, const char *name)
{
	struct spoolqueue *q = queue_of(s, sink);
	size_t at = q ? spoollist_find(&q->waiting, name) : SIZE_MAX;
	_cleanup_fd_ int from = -1, to = -1;

	if (at == SIZE_MAX)
		return;
	q->refused++;
	from = spoolfolder_open_sink(s->root, SPOOL_TO, q->sink, NULL);
	to = spoolfolder_open_sink(s->root, SPOOL_REFUSED, q->sink, NULL);
	/* Else it stays in the queue on disk, and the next agent tries it again. */
	if (from >= 0 && to >= 0 && !renameat(from, name, to, name) && spoollist_find(&q->kept, name) == SIZE_MAX)
		spoollist_add(&q->kept, spoollist_at(&q->waiting, at), &s->total);
	spoollist_remove(&q->waiting, at, &s->total);
}

/* --- figures --- */

struct spool_queue spool_state(const struct spool *s, size_t sink)
{
	const struct spoolqueue *q = queue_of(s, sink);
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
