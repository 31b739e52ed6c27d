#include "symbol/background.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/vec.h"
#include "elf/worker/worker.h"
#include "elf/worker/workerproto.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"
#include "target/proc.h"

enum {
	FREE_BATCHES = 12,    /* at the start names are wanted at once, and each batch finds the tables of the one before */
	SPACING = 25,         /* later, so many times as long as a batch took is rested */
};
static const uint64_t rest_first_ns = 50000000, rest_min_ns = 900000000, rest_max_ns = 15000000000;

enum stage { STAGE_IDLE, STAGE_WORK, STAGE_DONE, STAGE_QUIT };

struct background {
	struct symbolize_options options;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	enum stage stage; /* under lock; the rest belongs to the owner, or during STAGE_WORK to the thread */
	bool abandoned;
	struct profile *batch;
	VEC(uint32_t) frames; /* frame of the profile for each frame of the batch */
	size_t modules;       /* that the batch began with */
	struct worker *worker;
	struct symbolizer *symbolizer;
	unsigned batches;
	size_t looked;        /* frames of the profile that were handed over */
	VEC(uint32_t) jit;    /* those of them whose code was made at run time: other code may take its place */
	bool jit_changed;     /* a map or dump has grown since they were handed over last */
	uint64_t began_ns, next_ns, look_ns;
};

static void free_all(struct background *b)
{
	profile_free(b->batch);
	symbolizer_free(b->symbolizer);
	worker_free(b->worker);
	vec_done(&b->frames);
	vec_done(&b->jit);
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->wake);
	free(b);
}

static void name_batch(struct background *b)
{
	/* The worker starts its child here: it dies with the thread that started it. */
	b->batches++;
	symbolize_profile(b->symbolizer, b->batch, NULL, NULL, NULL);
}

static void *run(void *context)
{
	struct background *b = context;
	bool abandoned = false;

	/* The recorder may have a higher priority; this thread and its child need none. */
	setpriority(PRIO_PROCESS, 0, 0);
	pthread_mutex_lock(&b->lock);
	while (b->stage != STAGE_QUIT) {
		if (b->stage != STAGE_WORK) {
			pthread_cond_wait(&b->wake, &b->lock);
			continue;
		}
		pthread_mutex_unlock(&b->lock);
		name_batch(b);
		pthread_mutex_lock(&b->lock);
		if (b->stage == STAGE_WORK)
			b->stage = STAGE_DONE;
	}
	abandoned = b->abandoned;
	pthread_mutex_unlock(&b->lock);
	if (abandoned)
		free_all(b);
	return NULL;
}

struct background *background_new(const struct symbolize_options *options)
{
	struct background *b = mem_alloc(sizeof(*b));
	sigset_t all, before;

	b->options = *options;
	b->worker = worker_new();
	b->symbolizer = symbolizer_new(&b->options, b->worker);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->wake, NULL);
	/* The child that reads files is a fork of the thread, and may not do what malloc does for threads:
	 * where it gives memory of a thread's own arena back, it reads a file below /proc. */
	mallopt(M_ARENA_MAX, 1);
	/* Signals are for the owner. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&b->thread, NULL, run, b))
		mem_no_thread();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return b;
}

void background_free(struct background *b)
{
	bool busy;

	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	busy = b->stage == STAGE_WORK;
	b->stage = STAGE_QUIT;
	b->abandoned = busy;
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->lock);
	if (busy) {
		pthread_detach(b->thread); /* the thread frees the rest, if the program lives that long */
		return;
	}
	pthread_join(b->thread, NULL);
	free_all(b);
}

uint64_t background_child_cpu_ns(const struct background *b)
{
	pid_t pid = worker_child_pid(b->worker);
	struct proc_stat st;

	return pid > 0 && !proc_stat(pid, &st) ? st.cpu_ns : 0;
}

bool background_busy(const struct background *b)
{
	return b->batch != NULL;
}

/* --- there --- */

static uint32_t copy_string(struct profile *to, const struct profile *from, uint32_t id)
{
	return profile_string(to, profile_str(from, id));
}

/* Copies all that finding a file needs: which process maps which module. */
static void copy_context(struct profile *to, const struct profile *p)
{
	to->host = copy_string(to, p, p->host);
	to->kernel = copy_string(to, p, p->kernel);
	to->start_wall_ns = p->start_wall_ns;
	for (size_t i = 0; i < p->processes.n; i++) {
		struct profile_process process = p->processes.v[i];

		process.name = copy_string(to, p, process.name);
		process.exe = copy_string(to, p, process.exe);
		process.command = process.owner = 0;
		profile_add_process(to, &process);
	}
	for (size_t i = 0; i < p->modules.n; i++) {
		struct profile_module module = p->modules.v[i];

		module.path = copy_string(to, p, module.path);
		profile_add_module(to, &module);
	}
	for (size_t i = 0; i < p->mappings.n; i++)
		profile_add_mapping(to, &p->mappings.v[i]);
	for (size_t i = 0; i < p->kernel_bases.n; i++)
		profile_set_kernel_base(to, p->kernel_bases.v[i].module, p->kernel_bases.v[i].base);
}

static bool is_jit(const struct profile *p, uint32_t frame)
{
	uint32_t module = p->frames.v[frame].module;

	return module < p->modules.n && p->modules.v[module].kind == MODULE_JIT;
}

/* Frames that are new, and again those whose names may be known, or others, by now. */
static void list_frames(struct background *b, const struct profile *p)
{
	vec_clear(&b->frames);
	for (size_t i = 0; b->jit_changed && i < b->jit.n; i++)
		vec_push(&b->frames, b->jit.v[i]);
	b->jit_changed = false;
	for (size_t i = b->looked; i < p->frames.n; i++) {
		if (p->frames.v[i].line_count || p->frames.v[i].kind == FRAME_TRUNCATED)
			continue;
		vec_push(&b->frames, i);
		if (is_jit(p, i))
			vec_push(&b->jit, i);
	}
	b->looked = p->frames.n;
}

static bool make_batch(struct background *b, const struct profile *p)
{
	list_frames(b, p);
	if (!b->frames.n)
		return false;
	b->batch = profile_new();
	copy_context(b->batch, p);
	b->modules = p->modules.n;
	for (size_t i = 0; i < b->frames.n; i++) {
		const struct profile_frame *f = &p->frames.v[b->frames.v[i]];

		profile_frame(b->batch, f->module, f->kind, f->address);
	}
	return true;
}

/* --- and back --- */

/* The kernel's modules become known by their names. */
static uint32_t module_in(const struct background *b, struct profile *p, uint32_t module)
{
	const struct profile_module *m;
	uint32_t path;

	if (module < b->modules || module >= b->batch->modules.n)
		return module;
	m = &b->batch->modules.v[module];
	path = profile_string(p, profile_str(b->batch, m->path));
	for (uint32_t i = 0; i < p->modules.n; i++)
		if (p->modules.v[i].kind == m->kind && p->modules.v[i].path == path)
			return i;
	return profile_add_module(p, &(struct profile_module){ .path = path, .kind = m->kind,
							       .process = PROFILE_NONE });
}

static void take_frame(struct background *b, struct profile *p, uint32_t to, const struct profile_frame *from)
{
	const struct profile *q = b->batch;
	VEC(struct profile_line) lines = { 0 };

	for (uint32_t i = 0; i < from->line_count; i++) {
		struct profile_line line = q->lines.v[from->first_line + i];
		struct profile_function f = q->functions.v[line.function];

		f.name = copy_string(p, q, f.name);
		f.linkage = copy_string(p, q, f.linkage);
		f.file = copy_string(p, q, f.file);
		f.module = module_in(b, p, f.module); /* and f.named stays */
		line.function = profile_function(p, &f);
		vec_push(&lines, line);
	}
	if (lines.n)
		profile_set_lines(p, to, lines.v, lines.n);
	vec_done(&lines);
}

static const char *name_of(const struct profile *p, const struct profile_frame *f)
{
	return f->line_count ? profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name) : "";
}

/* Is it another name than before? A page's is none, and does not replace one. */
static bool is_news(const struct background *b, const struct profile *p, size_t i)
{
	const char *was = name_of(p, &p->frames.v[b->frames.v[i]]), *is = name_of(b->batch, &b->batch->frames.v[i]);

	return *is && strcmp(was, is) && !profile_frame_unnamed(b->batch, i);
}

static void take_names(struct background *b, struct profile *p)
{
	for (size_t i = 0; i < b->batch->ranges.n; i++) {
		const struct profile_range *r = &b->batch->ranges.v[i];

		if (r->module < b->modules)
			profile_add_range(p, r->module, r->start, r->end);
	}
	for (size_t i = 0; i < b->frames.n && i < b->batch->frames.n; i++)
		if (!p->frames.v[b->frames.v[i]].line_count || (is_jit(p, b->frames.v[i]) && is_news(b, p, i)))
			take_frame(b, p, b->frames.v[i], &b->batch->frames.v[i]);
}

static uint64_t rest_after(const struct background *b, uint64_t took_ns)
{
	if (b->batches <= FREE_BATCHES)
		return rest_first_ns;
	return MAX(MIN(took_ns * SPACING, rest_max_ns), rest_min_ns);
}

bool background_poll(struct background *b, struct profile *p)
{
	uint64_t now = clock_mono_ns();
	enum stage stage;
	bool got = false;

	pthread_mutex_lock(&b->lock);
	stage = b->stage;
	pthread_mutex_unlock(&b->lock);
	if (stage == STAGE_DONE) {
		take_names(b, p);
		profile_free(b->batch);
		b->batch = NULL;
		got = true;
		b->next_ns = now + rest_after(b, now - b->began_ns);
		pthread_mutex_lock(&b->lock);
		stage = b->stage = STAGE_IDLE;
		pthread_mutex_unlock(&b->lock);
	}
	/* The thread has the symbolizer while it works. */
	if (stage == STAGE_IDLE && now >= b->look_ns) {
		b->jit_changed |= symbolizer_look(b->symbolizer, p);
		b->look_ns = now + rest_min_ns;
	}
	if (stage == STAGE_IDLE && now >= b->next_ns && make_batch(b, p)) {
		b->began_ns = now;
		pthread_mutex_lock(&b->lock);
		b->stage = STAGE_WORK;
		pthread_cond_signal(&b->wake);
		pthread_mutex_unlock(&b->lock);
	}
	return got;
}
