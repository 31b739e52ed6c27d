#include "collect/load/loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "collect/kernel/smallbtf.h"

enum {
	WORTH = 256,     /* instructions; smaller ones take no time */
	MAX_THREADS = 4,
};
static const char license[] = "Dual BSD/GPL"; /* as in the programs */

/* What is registered with libbpf, which takes sections of the first name for programs of that type. */
enum kind { KIND_RAW, KIND_CLOCK, KIND_TRACED, KIND_LISTED, KIND_COUNT };

struct job {
	struct bpf_program *program;
	enum bpf_prog_type type;
	struct bpf_insn *code;
	size_t count;
	struct bpf_prog_load_opts options; /* what it points to belongs to libbpf's program */
	int fd;                            /* or -errno */
};

struct loader {
	pthread_t threads[MAX_THREADS];
	int thread_count, max_threads;
	const struct smallbtf_target *targets;
	size_t target_count;
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
	j->fd = bpf_prog_load(j->type, bpf_program__name(j->program), license, j->code, j->count, &j->options);
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

/* "tp_btf/sched_switch" attaches to btf_trace_sched_switch, "iter/task" to bpf_iter_task. False: to no type. */
static bool target_of(const struct bpf_program *program, struct smallbtf_target *ret)
{
	const char *section = bpf_program__section_name(program), *slash = strchr(section, '/');
	bool traced = str_starts(section, "tp_btf/"), listed = str_starts(section, "iter/");

	if (!traced && !listed)
		return false;
	*ret = (struct smallbtf_target){ .kind = traced ? BTF_KIND_TYPEDEF : BTF_KIND_FUNC };
	snprintf(ret->name, sizeof(ret->name), "%s%s", traced ? "btf_trace_" : "bpf_iter_", slash + 1);
	return true;
}

/* 0: the kernel has no such type, or it was not looked for. */
static uint32_t number_of(const struct loader *l, const struct bpf_program *program)
{
	struct smallbtf_target wanted;

	for (size_t i = 0; target_of(program, &wanted) && i < l->target_count; i++)
		if (l->targets[i].kind == wanted.kind && !strcmp(l->targets[i].name, wanted.name))
			return l->targets[i].number;
	return 0;
}

static void put_job(struct loader *l, struct job *j)
{
	pthread_mutex_lock(&l->lock);
	vec_push(&l->jobs, j);
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	start_thread(l);
}

/* The instructions of the program are final now. */
static int put_off(struct bpf_program *program, struct bpf_prog_load_opts *options, long kind)
{
	struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	bool typed = kind == KIND_TRACED || kind == KIND_LISTED;
	size_t count = bpf_program__insn_cnt(program);
	struct loader *l = current;
	struct job *j;
	int r;

	/* What fd_array points to may be gone when the thread comes to it. */
	if (typed && (!l || options->fd_array || !number_of(l, program)))
		return -ESRCH;
	if (!l || options->fd_array || (!typed && count < WORTH))
		return 0;
	j = mem_alloc(sizeof(*j));
	j->program = program;
	j->type = typed ? BPF_PROG_TYPE_TRACING : bpf_program__type(program);
	j->count = count;
	j->code = mem_alloc(count * sizeof(*j->code));
	memcpy(j->code, bpf_program__insns(program), count * sizeof(*j->code));
	memcpy(&j->options, options, MIN(options->sz, sizeof(j->options)));
	j->options.sz = MIN(options->sz, sizeof(j->options));
	j->options.attach_btf_id = typed ? number_of(l, program) : 0;
	r = bpf_program__set_insns(program, nothing, 2);
	if (r < 0) {
		free(j->code);
		free(j);
		return r;
	}
	options->func_info = options->line_info = NULL;
	options->func_info_cnt = options->line_info_cnt = 0;
	options->expected_attach_type = 0;
	put_job(l, j);
	return 0;
}

static int attach_raw_tracepoint(const struct bpf_program *program, long kind, struct bpf_link **ret)
{
	const char *slash = strchr(bpf_program__section_name(program), '/');

	*ret = slash ? bpf_program__attach_raw_tracepoint(program, slash + 1) : NULL;
	return *ret ? 0 : -errno;
}

static int attach_traced(const struct bpf_program *program, long kind, struct bpf_link **ret)
{
	*ret = bpf_program__attach_trace(program);
	return *ret ? 0 : -errno;
}

/* --- begin and end --- */

static int handlers[KIND_COUNT]; /* libbpf's numbers of them; <= 0: not registered */

void loader_off(void)
{
	for (int i = 0; i < KIND_COUNT; i++) {
		if (handlers[i] > 0)
			libbpf_unregister_prog_handler(handlers[i]);
		handlers[i] = 0;
	}
}

/* Programs point to their handlers as long as they live. */
static bool have_handlers(void)
{
	static const struct {
		const char *section;
		enum bpf_prog_type type;
		enum bpf_attach_type attach;
		libbpf_prog_attach_fn_t attach_fn;
	} table[KIND_COUNT] = {
		[KIND_RAW] = { "raw_tp+", BPF_PROG_TYPE_RAW_TRACEPOINT, 0, attach_raw_tracepoint },
		[KIND_CLOCK] = { "perf_event", BPF_PROG_TYPE_PERF_EVENT, 0, NULL },
		[KIND_TRACED] = { "tp_btf+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_RAW_TP, attach_traced },
		[KIND_LISTED] = { "iter+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_ITER, NULL },
	};

	for (int i = 0; i < KIND_COUNT; i++) {
		LIBBPF_OPTS(libbpf_prog_handler_opts, options, .cookie = i, .prog_prepare_load_fn = put_off,
			    .prog_attach_fn = table[i].attach_fn);

		if (handlers[i] > 0)
			continue;
		handlers[i] = libbpf_register_prog_handler(table[i].section, table[i].type, table[i].attach, &options);
		if (handlers[i] <= 0) {
			loader_off();
			return false;
		}
	}
	return true;
}

struct loader *loader_begin(void)
{
	long threads = MIN(sysconf(_SC_NPROCESSORS_ONLN), MAX_THREADS);
	struct loader *l;

	if (current || !have_handlers())
		return NULL;
	current = l = mem_alloc(sizeof(*l));
	l->max_threads = MAX(threads, 1);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->wake, NULL);
	return l;
}

struct smallbtf_target *loader_targets(const struct bpf_object *o, size_t *ret_count)
{
	VEC(struct smallbtf_target) targets = { 0 };
	struct smallbtf_target target;
	struct bpf_program *program;

	bpf_object__for_each_program(program, o)
		if (target_of(program, &target))
			vec_push(&targets, target);
	*ret_count = targets.n;
	return targets.v;
}

void loader_set_targets(struct loader *l, const struct smallbtf_target *targets, size_t count)
{
	if (!l)
		return;
	l->targets = targets;
	l->target_count = count;
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
