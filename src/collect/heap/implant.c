#include "collect/heap/implant.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "collect/heap/blob/blob.h"
#include "collect/heap/gotslots.h"
#include "collect/inject/blobkind.h"
#include "collect/inject/hookset.h"
#include "elf/probe/allocator.h"
#include "target/proc.h"

#include "blob.image.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { ERRORS = 4096, MAX_CONTROLS = 4 };
#define PAGES(n) (((n) + BLOB_PAGE - 1) & ~(uint64_t)(BLOB_PAGE - 1))

_Static_assert((int)BLOB_SHAPES == (int)ALLOCATOR_SHAPES && (int)BLOB_FREE == (int)ALLOCATOR_FREE, "the same shapes");

const uint64_t implant_alloc_offsets[] = { BLOB_ALLOC_SEEN_AT, BLOB_OUT_SEEN_AT, 0 };
const uint64_t implant_free_offsets[] = { BLOB_FREE_SEEN_AT, 0 };
const uint64_t implant_exact_offsets[] = { BLOB_EXACT_SEEN_AT, 0 };

struct implant {
	struct hookset h;
	struct blob_fixed *fixed;   /* of h */
	struct blob_shared *shared;
	char allocators[128];
	uint64_t controls[MAX_CONTROLS];
	struct gotslots found; /* before there were hooks */
	bool has_found;
};

static bool is_hook(uint64_t offset)
{
	for (int shape = 0; shape < BLOB_SHAPES; shape++)
		for (int k = 0; k < BLOB_EACH; k++)
			if (offset == blob_hooks[shape][k])
				return true;
	return false;
}

static const struct blobkind kind = {
	.name = BLOB_NAME,
	.records = "the heap",
	.magic = BLOB_MAGIC,
	.version = BLOB_VERSION,
	.image = blob_image,
	.image_bytes = sizeof(blob_image),
	.fixed_at = BLOB_FIXED_AT,
	.local_at = BLOB_LOCAL_AT,
	.shared_at = BLOB_SHARED_AT,
	.setup_at = BLOB_SETUP_AT,
	.fixed_bytes = sizeof(struct blob_fixed),
	.shared_bytes = PAGES(sizeof(struct blob_shared)),
	.slots_at = offsetof(struct blob_fixed, slots),
	.slots_max = BLOB_SLOTS,
	.is_hook = is_hook,
};

/* --- opening --- */

static struct implant *new_implant(pid_t pid)
{
	struct implant *i = mem_alloc(sizeof(*i));

	hookset_init(&i->h, &kind, pid);
	return i;
}

/* Its files cannot be read any more then. */
static bool has_ended(const struct implant *i)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { 0 };

	return proc_maps_read(i->h.pid, true, &maps) < 0 || !maps.list.n;
}

/* Whether there is anything to hook, before anything is changed. */
static int find_slots(struct implant *i, struct worker *w, struct err *err)
{
	int r = gotslots_find(i->h.pid, w, &i->found, err);

	i->has_found = !r;
	if (!r && i->found.direct)
		r = err_set(err, ENOTSUP,
			    "process %d has its allocator linked in and calls it directly, not through slots that could be "
			    "redirected: `gasflame mem %d` and -e fault say where its memory grows", i->h.pid, i->h.pid);
	if (!r && !i->found.slots.n && has_ended(i))
		r = err_set(err, ESRCH, "process %d has ended meanwhile", i->h.pid);
	if (!r && !i->found.slots.n)
		r = err_set(err, ENOTSUP,
			    "process %d calls no allocator through a slot that we know: its allocator is linked in without symbols, "
			    "or called directly; `gasflame mem %d` and -e fault say where its memory grows", i->h.pid, i->h.pid);
	return r;
}

static int opened(struct implant *i, int r, struct implant **ret)
{
	if (r < 0) {
		implant_close(i);
		return r;
	}
	i->fixed = (struct blob_fixed *)i->h.map.fixed;
	i->shared = i->h.map.shared;
	*ret = i;
	return 0;
}

int implant_open(pid_t pid, struct worker *w, struct implant **ret, struct err *err)
{
	struct implant *i = new_implant(pid);
	int r = hookset_open(&i->h, err);

	r = r ?: hookset_find(&i->h, !w, err);
	if (r == -ENOENT && !w)
		r = err_set(err, ENOENT, "process %d has no hooks of gasflame", pid);
	if (r == -ENOENT && w) {
		r = find_slots(i, w, err);
		r = r ?: hookset_make(&i->h, err);
	}
	return opened(i, r, ret);
}

int implant_expect(pid_t pid, struct err *err)
{
	return ptracecall_expect(pid, err);
}

static int begin(pid_t pid, struct worker *w, int (*hold)(struct ptracecall *, pid_t, struct err *), struct implant **ret,
		 struct err *err)
{
	struct implant *i = new_implant(pid);
	int r = hookset_hold(&i->h, hold, err);

	r = r ?: hookset_open(&i->h, err);
	r = r ?: find_slots(i, w, err);
	r = r ?: hookset_make(&i->h, err);
	return opened(i, r, ret);
}

int implant_begin(pid_t pid, struct worker *w, struct implant **ret, struct err *err)
{
	return begin(pid, w, ptracecall_at_entry, ret, err);
}

int implant_begin_again(pid_t pid, struct worker *w, struct implant **ret, struct err *err)
{
	return begin(pid, w, ptracecall_at_entry_stopped, ret, err);
}

void implant_let_go(struct implant *i)
{
	hookset_let_go(&i->h);
}

bool implant_held(const struct implant *i)
{
	return i->h.held;
}

void implant_close(struct implant *i)
{
	if (!i)
		return;
	hookset_done(&i->h);
	gotslots_done(&i->found);
	free(i);
}

/* --- slots --- */

/* The hook that stands for a function, a new one if it has none yet. -ENOSPC: there are no more. */
static int hook_for(struct implant *i, uint64_t function, enum allocator_shape shape, uint64_t *ret)
{
	uint64_t *real = i->fixed->real[shape];

	for (int k = 0; k < BLOB_EACH; k++) {
		int r = 0;

		if (real[k] && real[k] != function)
			continue;
		if (!real[k])
			r = hookset_put(&i->h, hookset_fixed_at(&i->h, &real[k]), &function, sizeof(function));
		if (r < 0)
			return r;
		real[k] = function;
		*ret = i->h.map.image + blob_hooks[shape][k];
		return 0;
	}
	return -ENOSPC;
}

struct hooking {
	struct implant *i;
	int changed; /* slots that the process has changed since they were found */
};

/* All that were found. */
static int hook_found(void *context)
{
	struct hooking *h = context;
	struct implant *i = h->i;
	const struct gotslots *found = &i->found;

	h->changed = 0;
	for (size_t k = 0; k < found->slots.n; k++) {
		const struct gotslots_function *f = &found->functions.v[found->slots.v[k].function];
		uint64_t hook;
		int r = hook_for(i, f->address, allocator_names[f->name].shape, &hook);

		r = r ?: hookset_hook(&i->h, found->slots.v[k].address, found->slots.v[k].value, hook);
		if (r == -EACCES)
			return r;
		h->changed += r > 0;
	}
	return 0;
}

static void note_controls(struct implant *i, const struct gotslots *found)
{
	unsigned n = 0;

	for (size_t k = 0; k < found->functions.n && n < MAX_CONTROLS; k++)
		if (allocator_names[found->functions.v[k].name].shape == ALLOCATOR_CONTROL)
			i->controls[n++] = found->functions.v[k].address;
}

static void end_found(struct implant *i)
{
	struct gotslots *found = &i->found;

	note_controls(i, found);
	if (found->slots.n)
		snprintf(i->allocators, sizeof(i->allocators), "%s", found->allocators);
	gotslots_done(found);
	*found = (struct gotslots){ 0 };
}

int implant_hook(struct implant *i, struct worker *w, struct err *err)
{
	struct hooking h = { .i = i, .changed = 1 };
	size_t found = 0;

	/* A slot that was found unfilled may have been filled since: then it is found again, unlike those that we changed. */
	for (int tries = 0; tries < 3 && h.changed; tries++) {
		int r = i->has_found ? 0 : gotslots_find(i->h.pid, w, &i->found, err);

		i->has_found = false;
		if (r < 0)
			return i->fixed->head.slot_count ? (int)i->fixed->head.slot_count : r;
		found = i->found.slots.n;
		h.changed = 0;
		r = found ? hookset_write(&i->h, hook_found, &h, err) : 0;
		end_found(i);
		if (r < 0)
			return r;
	}
	if (found && !i->fixed->head.slot_count)
		return err_set(err, EAGAIN, "none of the %zu slots through which process %d calls its allocator could be changed: it changes "
			       "them itself, or ends; try again", found, i->h.pid);
	return i->fixed->head.slot_count;
}

int implant_hooked(const struct implant *i)
{
	return hookset_hooked(&i->h);
}

int implant_unhook(struct implant *i, struct err *err)
{
	return hookset_unhook(&i->h, err);
}

/* --- sampling --- */

static uint64_t thread_at(const struct implant *i, uint32_t index)
{
	return i->h.map.image + BLOB_LOCAL_AT + offsetof(struct blob_local, exact.threads) + index * sizeof(struct exact_thread);
}

static int forget_threads(struct implant *i)
{
	static const struct exact_thread none[EXACT_THREADS];

	return pwrite(i->h.mem.file, none, sizeof(none), thread_at(i, 0)) == sizeof(none) ? 0 : -EIO;
}

bool implant_thread(const struct implant *i, uint32_t index, struct exact_thread *ret)
{
	return index < EXACT_THREADS && pread(i->h.mem.file, ret, sizeof(*ret), thread_at(i, index)) == sizeof(*ret);
}

void implant_set_stack(struct implant *i, uint32_t index, uint64_t low, uint64_t top)
{
	const uint64_t none = 0, at = thread_at(i, index);
	const uint64_t low_at = at + offsetof(struct exact_thread, low), top_at = at + offsetof(struct exact_thread, top);

	/* Never one's begin with another's end. */
	if (index < EXACT_THREADS && pwrite(i->h.mem.file, &none, sizeof(none), top_at) == sizeof(none) &&
	    pwrite(i->h.mem.file, &low, sizeof(low), low_at) == sizeof(low) &&
	    pwrite(i->h.mem.file, &top, sizeof(top), top_at) != sizeof(top) &&
	    pwrite(i->h.mem.file, &none, sizeof(none), top_at) < 0)
		return; /* the process is gone */
}

static int write_settings(void *context)
{
	struct implant *i = context;
	const struct blob_fixed *f = i->fixed;

	return hookset_put_fixed(&i->h, &f->interval_bytes, offsetof(struct blob_fixed, pad) - offsetof(struct blob_fixed, interval_bytes));
}

int implant_activate(struct implant *i, uint64_t interval_bytes, struct err *err)
{
	const uint64_t from = offsetof(struct blob_shared, threads);
	struct blob_shared *s = i->shared;
	struct blob_fixed *f = i->fixed;
	/* A thread that is still on its way out of a hook may write its event once more: it must not look like a new one. */
	uint64_t ticket = __atomic_load_n(&s->exact.head, __ATOMIC_RELAXED) + 2 * EXACT_EVENTS;
	int r = hookset_set_active(&i->h, BLOB_PASS_ON);

	f->interval_bytes = interval_bytes;
	if (getrandom(&f->seed, sizeof(f->seed), 0) != sizeof(f->seed))
		f->seed = i->h.map.image ^ getpid();
	f->recordings++;
	if (interval_bytes <= 1)
		r = r ?: forget_threads(i);
	if (r < 0)
		return err_errno(err, -r, "cannot write to process %d", i->h.pid);
	r = hookset_write(&i->h, write_settings, i, err);
	if (r < 0)
		return r;
	/* All that follows becomes zeros, and takes no memory until it is used. */
	if (fallocate(i->h.map.shared_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGES(from), PAGES(sizeof(*s)) - PAGES(from)) < 0)
		return err_errno(err, errno, "cannot clear our memory in process %d", i->h.pid);
	memset(s->threads, 0, PAGES(from) - from);
	s->exact.head = s->exact.tail = ticket;
	/* Stacks that threads remember belong to another recording then. */
	s->exact.generation = f->recordings << 20;
	s->full = s->silence = 0;
	r = hookset_set_active(&i->h, interval_bytes <= 1 ? BLOB_EXACT : BLOB_SAMPLE);
	return r < 0 ? err_errno(err, -r, "cannot write to process %d", i->h.pid) : 0;
}

int implant_set_interval(struct implant *i, uint64_t interval_bytes, struct err *err)
{
	i->fixed->interval_bytes = interval_bytes;
	return hookset_write(&i->h, write_settings, i, err);
}

void implant_populate(struct implant *i)
{
	/* Before 5.14 the process makes it. What a thread remembers is made when it does. */
	madvise(i->shared, i->fixed->interval_bytes <= 1 ? PAGES(sizeof(*i->shared)) : offsetof(struct blob_shared, exact),
		MADV_POPULATE_WRITE);
}

void implant_alive(struct implant *i)
{
	__atomic_store_n(&i->shared->silence, 0, __ATOMIC_RELAXED);
}

void implant_deactivate(struct implant *i)
{
	hookset_set_active(&i->h, BLOB_PASS_ON);
}

bool implant_gone(const struct implant *i)
{
	return hookset_gone(&i->h);
}

bool implant_replaced(const struct implant *i)
{
	return hookset_replaced(&i->h);
}

struct blob_shared *implant_shared(struct implant *i)
{
	return i->shared;
}

void implant_totals(const struct implant *i, uint64_t *ret_count, uint64_t *ret_bytes)
{
	*ret_count = i->shared->exact.stray_count;
	*ret_bytes = i->shared->exact.stray_bytes;
	for (int k = 0; k < EXACT_THREADS; k++) {
		*ret_count += i->shared->exact.counts[k].count;
		*ret_bytes += i->shared->exact.counts[k].bytes;
	}
	for (int k = 0; k < BLOB_THREADS; k++) {
		const struct blob_thread *t = &i->shared->threads[k];

		*ret_count += t->count;
		*ret_bytes += t->bytes + t->drawn - t->countdown;
	}
}

const char *implant_allocators(const struct implant *i)
{
	return i->allocators;
}

uint64_t implant_stopped_ns(const struct implant *i)
{
	return i->h.stopped_ns;
}

const char *implant_path(const struct implant *i)
{
	return i->h.path;
}

/* --- orders to jemalloc --- */

uint64_t implant_control_at(const struct implant *i, unsigned k)
{
	return k < MAX_CONTROLS ? i->controls[k] : 0;
}

/* A dump of a large heap takes its time, once somebody has begun it. */
static const uint64_t answer_ns = 300000000000, no_sample = 1ULL << 40;

static volatile sig_atomic_t interrupted;

void implant_interrupt(void)
{
	interrupted = 1;
}

static int await_answer(struct implant *i, uint64_t wait_ns, struct err *err)
{
	uint32_t *state = &i->shared->answer.state, asked = BLOB_ASKED;
	uint64_t began = clock_mono_ns();

	for (;;) {
		uint32_t now = __atomic_load_n(state, __ATOMIC_ACQUIRE);
		uint64_t waited = clock_mono_ns() - began;

		if (now == BLOB_ANSWERED)
			return 0;
		if (syscall(SYS_pidfd_send_signal, i->h.process, 0, NULL, 0) < 0 && errno == ESRCH)
			return err_set(err, ESRCH, "process %d has ended", i->h.pid);
		if (now == BLOB_ASKED && waited > wait_ns &&
		    __atomic_compare_exchange_n(state, &asked, BLOB_IDLE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return err_set(err, ETIMEDOUT, "process %d allocated nothing for %.0f s, and only then can jemalloc be asked: "
				       "give it something to do", i->h.pid, wait_ns / 1e9);
		if (waited > wait_ns + answer_ns)
			return err_set(err, ETIMEDOUT, "jemalloc of process %d does not answer", i->h.pid);
		if (interrupted && now == BLOB_ASKED &&
		    __atomic_compare_exchange_n(state, &asked, BLOB_IDLE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			interrupted = 0;
			return err_set(err, EINTR, "interrupted before jemalloc of process %d could be asked", i->h.pid);
		}
		usleep(waited < 10000000 ? 100 : 1000);
		asked = BLOB_ASKED; /* the exchange may have changed it */
	}
}

bool implant_gave_up(int r)
{
	return r == -ETIMEDOUT || r == -ESRCH || r == -EBUSY || r == -EINTR;
}

/* An order that nobody works on any more; NULL: somebody does. */
static struct blob_order *new_order(struct implant *i, uint64_t function, struct err *err)
{
	struct blob_answer *a = &i->shared->answer;
	struct blob_order *o = &i->fixed->order;

	if (__atomic_load_n(&a->state, __ATOMIC_ACQUIRE) == BLOB_TAKEN) {
		err_set(err, EBUSY, "process %d still does what it was asked for before", i->h.pid);
		return NULL;
	}
	__atomic_store_n(&a->state, BLOB_IDLE, __ATOMIC_RELEASE);
	memset(a, 0, sizeof(*a));
	memset(o, 0, sizeof(*o));
	o->function = function;
	return o;
}

static int write_order(void *context)
{
	struct implant *i = context;

	return hookset_put_fixed(&i->h, &i->fixed->order, sizeof(i->fixed->order));
}

static int withdraw_order(void *context)
{
	struct implant *i = context;

	return hookset_put_fixed(&i->h, &i->fixed->order.function, sizeof(i->fixed->order.function));
}

/* Until it is answered. mallctl()'s own error as a negative number. */
static int send_order(struct implant *i, uint64_t wait_ns, struct err *err)
{
	struct blob_answer *a = &i->shared->answer;
	struct blob_order *o = &i->fixed->order;
	int32_t result;
	int r = hookset_write(&i->h, write_order, i, err);

	if (r < 0)
		return r;
	__atomic_store_n(&a->state, BLOB_ASKED, __ATOMIC_RELEASE);
	/* Forgets the threads: the next allocation of each comes to the slow path, whoever it is. */
	r = implant_activate(i, no_sample, err);
	if (!r)
		r = await_answer(i, wait_ns, err);
	implant_deactivate(i);
	if (r)
		return r;
	/* A later write there has no effect: the request is withdrawn. */
	o->function = 0;
	hookset_write(&i->h, withdraw_order, i, NULL);
	__atomic_store_n(&a->state, BLOB_IDLE, __ATOMIC_RELEASE);
	result = __atomic_load_n(&a->result, __ATOMIC_RELAXED);
	return result < 0 || result >= ERRORS ? -EIO : -result;
}

int implant_control(struct implant *i, uint64_t function, const struct implant_control *c, uint64_t wait_ns, struct err *err)
{
	struct blob_order *o = new_order(i, function, err);
	const struct blob_answer *a = &i->shared->answer;
	int r;

	if (!o)
		return -EBUSY;
	if (c->old_size > BLOB_VALUE || c->new_size > BLOB_VALUE || strlen(c->name) >= sizeof(o->name) ||
	    (c->text && strlen(c->text) >= sizeof(o->text)))
		return err_set(err, E2BIG, "%s is too long to ask jemalloc for", c->name);
	o->old_size = c->old ? c->old_size : 0;
	o->new_size = c->new ? c->new_size : 0;
	o->new_is_text = !!c->text;
	snprintf(o->name, sizeof(o->name), "%s", c->name);
	snprintf(o->text, sizeof(o->text), "%s", c->text ? c->text : "");
	if (c->new)
		memcpy(o->new_value, c->new, c->new_size);
	r = send_order(i, wait_ns, err);
	if (!r && c->old && a->old_size == c->old_size)
		memcpy(c->old, a->old_value, c->old_size);
	return r;
}

int implant_control_many(struct implant *i, uint64_t function, const struct implant_many *m, uint64_t *values,
			 uint64_t wait_ns, struct err *err)
{
	struct blob_order *o = new_order(i, function, err);
	int r;

	if (!o)
		return -EBUSY;
	if (m->count > BLOB_MANY || strlen(m->name) >= sizeof(o->name) || strlen(m->rest) >= sizeof(o->rest))
		return err_set(err, E2BIG, "%s is too much to ask jemalloc for", m->name);
	snprintf(o->name, sizeof(o->name), "%s", m->name);
	snprintf(o->rest, sizeof(o->rest), "%s", m->rest);
	o->many = m->count;
	o->first = m->first;
	o->old_size = m->width;
	r = send_order(i, wait_ns, err);
	if (!r)
		memcpy(values, i->shared->answer.values, m->count * sizeof(*values));
	return r;
}
