#include "symbol/jit/jitnames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "elf/budget.h"
#include "elf/worker/worker.h"
#include "profile/profile.h"
#include "symbol/jit/jitfiles.h"
#include "symbol/jit/jithint.h"
#include "symbol/stillrunning.h"

static const uint64_t page_bytes = 4096;

/* The wanted addresses, and those that are still open. */
struct question {
	struct worker *worker;
	symbols_got_fn *got;
	void *context;
	VEC(uint64_t) addresses; /* that have no name yet */
	VEC(size_t) index;       /* of each, as the caller counts */
	bool *named;             /* by the same */
	char *why;
	size_t why_size;
};

static void got_name(void *context, size_t i, const struct symbols_call *calls, size_t count)
{
	struct question *q = context;

	if (!count)
		return;
	q->named[q->index.v[i]] = true;
	q->got(q->context, q->index.v[i], calls, count);
}

/* Drops the addresses that have a name now. */
static void drop_named(struct question *q)
{
	size_t n = 0;

	for (size_t i = 0; i < q->addresses.n; i++)
		if (!q->named[q->index.v[i]]) {
			q->addresses.v[n] = q->addresses.v[i];
			q->index.v[n++] = q->index.v[i];
		}
	q->addresses.n = q->index.n = n;
}

static void say_skipped(struct question *q, const char *path, int fd, bool dump)
{
	uint64_t limit = dump ? BUDGET_JIT_DUMP_BYTES : BUDGET_JIT_BYTES;
	char all[32], used[32];
	struct stat st;

	if (!fstat(fd, &st) && (uint64_t)st.st_size > limit)
		snprintf(q->why, q->why_size, "[jit]: only the %s %s of %s are read, which has %s", dump ? "first" : "last",
			 str_bytes(used, limit), path, str_bytes(all, st.st_size));
}

static void ask_one(struct question *q, const char *path, int fd, bool dump)
{
	struct err err = { 0 };

	if (!q->addresses.n)
		return;
	if (worker_jit(q->worker, fd, dump, q->addresses.v, q->addresses.n, got_name, q, &err) < 0)
		snprintf(q->why, q->why_size, "[jit]: %s is not used: %s", path, err.text);
	else
		say_skipped(q, path, fd, dump);
	drop_named(q);
}

/* Dumps have times, and take precedence; maps are asked for the rest. */
static void ask_files(struct question *q, const struct jitfiles_process *x)
{
	for (size_t i = 0; i < x->dumps.n; i++)
		ask_one(q, x->dumps.v[i].path, x->dumps.v[i].fd, true);
	for (unsigned i = 0; i < x->folder_count; i++) {
		const struct jitfiles_folder *f = &x->folders[i];

		if (f->map >= 0)
			ask_one(q, f->path, f->map, false);
		else if (f->refused)
			snprintf(q->why, q->why_size, "[jit]: %s is not used: it does not belong to the user of the process",
				 f->path);
	}
}

/* Dumps have times, by the clock that the recording has. */
static void ask_past(const struct jitfiles_process *x, const struct profile *p, struct worker *w, const uint64_t *addresses,
		     size_t n, symbols_got_fn *past, void *context)
{
	uint64_t since_ns = clock_wall_ns() - p->start_wall_ns, now_ns = clock_mono_ns();

	for (size_t i = 0; i < x->dumps.n && p->start_wall_ns && since_ns < now_ns; i++)
		worker_jit_history(w, x->dumps.v[i].fd, now_ns - since_ns, addresses, n, past, context, NULL);
}

void jitnames_resolve(const struct profile *p, uint32_t process, struct jitfiles *files, struct worker *w,
		      const uint64_t *addresses, size_t n, symbols_got_fn *got, symbols_got_fn *past, void *context, char *why,
		      size_t why_size)
{
	_cleanup_free_ bool *named = mem_alloc(n + 1);
	struct question q = { .worker = w, .got = got, .context = context, .named = named, .why = why, .why_size = why_size };
	const struct jitfiles_process *x;

	why[0] = 0;
	if (process >= p->processes.n || !stillrunning_kernel(p)) {
		snprintf(why, why_size, "[jit]: no names for code that was made at run time: it was recorded "
			 "elsewhere, or before the last boot");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		vec_push(&q.addresses, addresses[i]);
		vec_push(&q.index, i);
	}
	x = jitfiles_of(files, p, process);
	if (x)
		ask_files(&q, x);
	if (x && past)
		ask_past(x, p, w, addresses, n, past, context);
	if (q.addresses.n && !why[0])
		jithint_put(p, process, x, why, why_size);
	vec_done(&q.addresses);
	vec_done(&q.index);
}

uint64_t jitnames_page(const struct profile *p, uint32_t module, uint64_t address)
{
	uint64_t page = address & ~(page_bytes - 1);

	for (size_t i = 0; i < p->mappings.n; i++)
		if (p->mappings.v[i].module == module) {
			if (p->mappings.v[i].start <= page)
				page -= p->mappings.v[i].start & ~(page_bytes - 1);
			break;
		}
	return page;
}
