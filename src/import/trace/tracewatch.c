#include "import/trace/tracewatch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "import/trace/traceclock.h"
#include "target/open.h"

enum { LOOK_NS = 4000000, MISSING_LOOKS = 50 /* of a file that is not there: five times a second */, TAIL = 16 << 10 };

struct tracewatch {
	char *path;
	int fd;
	pthread_t thread;
	atomic_bool stop;
	off_t size;
	uint64_t growths;
	uint64_t zero_mono_ns; /* the latest that trace time 0 can be */
	bool backwards;        /* its times are of no clock that begins with it */
	char tail[TAIL];
};

/* It has grown: its last event was not later than now. */
static void look(struct tracewatch *w)
{
	uint64_t now, last;
	struct stat st;
	ssize_t n;

	if (fstat(w->fd, &st) || st.st_size == w->size)
		return;
	now = clock_mono_ns();
	if (st.st_size < w->size) /* emptied, and begun again */
		w->growths = 0;
	w->size = st.st_size;
	n = pread(w->fd, w->tail, TAIL, st.st_size > TAIL ? st.st_size - TAIL : 0);
	if (n <= 0 || !traceclock_last(w->tail, n, &last))
		return;
	if (last > now) {
		w->backwards = true;
		return;
	}
	w->zero_mono_ns = w->growths++ ? MIN(w->zero_mono_ns, now - last) : now - last;
}

static void *run(void *context)
{
	struct tracewatch *w = context;

	for (unsigned i = 0; !w->stop; i++) {
		struct timespec nap = { .tv_nsec = LOOK_NS };

		if (w->fd < 0 && i % MISSING_LOOKS == 0 && target_open_host(w->path, &w->fd, NULL))
			w->fd = -1;
		if (w->fd >= 0)
			look(w);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

int tracewatch_start(const char *path, struct tracewatch **ret, struct err *err)
{
	struct tracewatch *w = mem_alloc(sizeof(*w));
	sigset_t all, before;
	struct stat st;
	int r;

	w->path = mem_strdup(path);
	w->fd = -1;
	r = target_open_host(path, &w->fd, err);
	if (r < 0)
		w->fd = -1;
	if (r < 0 && r != -ENOENT) {
		free(w->path);
		free(w);
		return r;
	}
	/* What is in it by now was written at some time before. */
	if (w->fd >= 0 && !fstat(w->fd, &st))
		w->size = st.st_size;
	sigfillset(&all); /* signals are the session's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r) {
		fd_close(&w->fd);
		free(w->path);
		free(w);
		return err_errno(err, r, "cannot start a thread");
	}
	*ret = w;
	return 0;
}

/* Is the file that was watched the one that has the name now? */
static bool is_same(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int tracewatch_stop(struct tracewatch *w, uint64_t start_mono_ns, struct traceclock_facts *f, struct err *err)
{
	int fd = -1, r;

	w->stop = true;
	pthread_join(w->thread, NULL);
	r = target_open_host(w->path, &fd, err);
	if (!r && w->fd >= 0 && is_same(w->fd, fd) && !w->backwards) {
		f->growths = w->growths;
		f->grown_ns = (int64_t)(w->zero_mono_ns - start_mono_ns);
	}
	fd_close(&w->fd);
	free(w->path);
	free(w);
	return r < 0 ? r : fd;
}
