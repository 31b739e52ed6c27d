#include "collect/load/loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

enum {
	WORTH = 256,     /* instructions; smaller ones take no time */
	MAX_THREADS = 4,
};
static const char license[] = "Dual BSD/GPL"; /* as in the programs */

struct job {
	struct bpf_program *program;
	struct bpf_insn *code;
	size_t count;
	struct bpf_prog_load_opts options; /* what it points to belongs to libbpf's program */
	int fd;                            /* or -errno */
};

struct loader {
	pthread_t threads[MAX_THREADS];
	int thread_count, max_threads;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock. Jobs before next are taken. */
	VEC(struct job *) jobs;
	size_t next;
	bool no_more;
};

static struct loader *current; /* between its begin and its end */

/* --- the threads --- */

static void load(struct job *j)
{
	j->fd = bpf_prog_load(bpf_program__type(j->program), bpf_program__name(j->program), license, j->code, j->count,
			      &j->options);
	if (j->fd < 0)
		j->fd = -errno;
}

/* Loads what is there. wait: for more, until there is no more. */
static void load_all(struct loader *l, bool wait)
{
	pthread_mutex_lock(&l->lock);
	for (;;) {
		struct job *j;

		if (l->next == l->jobs.n) {
			if (!wait || l->no_more)
				break;
			pthread_cond_wait(&l->wake, &l->lock);
			continue;
		}
		j = l->jobs.v[l->next++];
		pthread_mutex_unlock(&l->lock);
		load(j);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
}

static void *run(void *context)
{
	load_all(context, true);
	return NULL;
}

/* Whoever waits for the end loads, too: without any thread it takes longer, and that is all. */
static void start_thread(struct loader *l)
{
	sigset_t all, before;

	if (l->thread_count == l->max_threads)
		return;
	/* Signals are for the session. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&l->threads[l->thread_count], NULL, run, l))
		l->thread_count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- what libbpf calls --- */

/* The instructions of the program are final now. */
static int put_off(struct bpf_program *program, struct bpf_prog_load_opts *options, long cookie)
{
	struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct loader *l = current;
	size_t count = bpf_program__insn_cnt(program);
	struct job *j;
	int r;

	/* What it points to may be gone when the thread comes to it. */
	if (!l || count < WORTH || options->fd_array)
		return 0;
	j = mem_alloc(sizeof(*j));
	j->program = program;
	j->count = count;
	j->code = mem_alloc(count * sizeof(*j->code));
	memcpy(j->code, bpf_program__insns(program), count * sizeof(*j->code));
	memcpy(&j->options, options, MIN(options->sz, sizeof(j->options)));
	j->options.sz = MIN(options->sz, sizeof(j->options));
	r = bpf_program__set_insns(program, nothing, 2);
	if (r < 0) {
		free(j->code);
		free(j);
		return r;
	}
	options->func_info = options->line_info = NULL;
	options->func_info_cnt = options->line_info_cnt = 0;
	pthread_mutex_lock(&l->lock);
	vec_push(&l->jobs, j);
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	start_thread(l);
	return 0;
}

static int attach_raw_tracepoint(const struct bpf_program *program, long cookie, struct bpf_link **ret)
{
	const char *slash = strchr(bpf_program__section_name(program), '/');

	*ret = slash ? bpf_program__attach_raw_tracepoint(program, slash + 1) : NULL;
	return *ret ? 0 : -errno;
}

/* --- begin and end --- */

/* Programs point to their handlers as long as they live: these are never taken back. */
static bool have_handlers(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, plain, .prog_prepare_load_fn = put_off);
	LIBBPF_OPTS(libbpf_prog_handler_opts, raw, .prog_prepare_load_fn = put_off, .prog_attach_fn = attach_raw_tracepoint);
	static int known; /* 1 = yes, -1 = libbpf does not take them */

	if (!known)
		known = libbpf_register_prog_handler("raw_tp+", BPF_PROG_TYPE_RAW_TRACEPOINT, 0, &raw) < 0 ||
			libbpf_register_prog_handler("perf_event", BPF_PROG_TYPE_PERF_EVENT, 0, &plain) < 0 ? -1 : 1;
	return known > 0;
}

struct loader *loader_begin(void)
{
	long threads = MIN(sysconf(_SC_NPROCESSORS_ONLN) - 1, MAX_THREADS);
	struct loader *l;

	if (threads < 1 || current || !have_handlers())
		return NULL;
	current = l = mem_alloc(sizeof(*l));
	l->max_threads = threads;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->wake, NULL);
	return l;
}

/* The program's descriptor becomes that of the one that it stands for. */
static bool replace(struct job *j)
{
	int place = bpf_program__fd(j->program);
	bool good = j->fd >= 0 && place >= 0 && dup3(j->fd, place, O_CLOEXEC) >= 0;

	if (!good)
		log_debug("program %s: %s", bpf_program__name(j->program), strerror(j->fd < 0 ? -j->fd : errno));
	fd_close(&j->fd);
	return good;
}

bool loader_end(struct loader *l)
{
	bool good = true;

	if (!l)
		return true;
	current = NULL;
	load_all(l, false);
	pthread_mutex_lock(&l->lock);
	l->no_more = true;
	pthread_cond_broadcast(&l->wake);
	pthread_mutex_unlock(&l->lock);
	for (int i = 0; i < l->thread_count; i++)
		pthread_join(l->threads[i], NULL);
	for (size_t i = 0; i < l->jobs.n; i++) {
		good &= replace(l->jobs.v[i]);
		free(l->jobs.v[i]->code);
		free(l->jobs.v[i]);
	}
	vec_done(&l->jobs);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->wake);
	free(l);
	return good;
}
