#include "collect/implant.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/blob/blob.h"
#include "collect/remote.h"
#include "collect/slots.h"
#include "elf/allocator.h"
#include "target/proc.h"

#include "blob.image.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

enum { PAGE = 4096, MAX_CONTROLS = 4 };
#define PAGES(n) (((n) + PAGE - 1) & ~(uint64_t)(PAGE - 1))

_Static_assert((int)BLOB_SHAPES == (int)ALLOCATOR_SHAPES && (int)BLOB_FREE == (int)ALLOCATOR_FREE, "the same shapes");

const uint64_t implant_alloc_offsets[] = { BLOB_ALLOC_SEEN_AT, BLOB_OUT_SEEN_AT, 0 };
const uint64_t implant_free_offsets[] = { BLOB_FREE_SEEN_AT, 0 };
const uint64_t implant_exact_offsets[] = { BLOB_EXACT_SEEN_AT, 0 };

struct implant {
	pid_t pid;
	int memory;      /* /proc/PID/mem */
	int file;        /* the memfd */
	uint64_t image;  /* its address in the process */
	struct blob_shared *shared;
	char path[64], allocators[128];
	uint64_t stopped_ns;
	struct remote remote; /* of a program that stands at its beginning */
	bool held;
	uint64_t controls[MAX_CONTROLS];
};

/* --- the operation --- */

struct surgery {
	int64_t result;     /* address of the image, or -errno */
	uint64_t stopped_ns;
	struct err err;
};

/* Where in the file the shared part begins: after the whole image. */
static uint64_t shared_offset(void)
{
	return PAGES(sizeof(blob_image));
}

/* Fills the memfd that the process has just made; we may open what it has open. */
static int fill_file(pid_t pid, int64_t fd, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/fd/%lld", pid, (long long)fd);
	_cleanup_fd_ int file = open(path, O_RDWR | O_CLOEXEC);
	struct blob_shared *head;
	int r;

	if (file < 0)
		return err_errno(err, errno, "cannot open the memory that process %d made for us", pid);
	if (ftruncate(file, shared_offset() + PAGES(sizeof(*head))) < 0)
		return err_errno(err, errno, "cannot make room for the samples of process %d", pid);
	r = fd_write_all(file, blob_image, sizeof(blob_image));
	if (r < 0)
		return err_errno(err, -r, "cannot write our code for process %d", pid);
	/* A process that made it smaller would kill whoever reads what is gone: us. */
	if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_errno(err, errno, "cannot seal our memory in process %d", pid);
	return 0;
}

/* The system calls of the operation, in the stopped thread. Address of the image, or -errno. */
static int64_t map_blob(struct remote *r, int memory, struct err *err)
{
	static const char name[] = BLOB_NAME;
	uint64_t total = BLOB_SHARED_AT + PAGES(sizeof(struct blob_shared)), at = remote_scratch(r, sizeof(name));
	int64_t fd, base, e = 0;

	/* Also the proof that the memory is still that of the program which is stopped: an exec may have come between. */
	if (pwrite(memory, name, sizeof(name), at) != sizeof(name))
		return err_set(err, EAGAIN, "cannot write to the stack of process %d: it has executed another program "
			       "meanwhile, or ends; try again", r->pid);
	fd = remote_call(r, SYS_memfd_create, at, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC, 0, 0, 0, 0);
	if (fd == -EINVAL) /* before 6.3 */
		fd = remote_call(r, SYS_memfd_create, at, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0);
	if (fd < 0)
		return err_errno(err, -fd, "process %d cannot make a memfd", r->pid);
	e = fill_file(r->pid, fd, err);
	if (e < 0) {
		remote_call(r, SYS_close, fd, 0, 0, 0, 0, 0);
		return e;
	}
	/* All of it from the file at first; our own code maps over what is not the image. */
	base = remote_call(r, SYS_mmap, 0, total, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (base < 0 && base > -PAGE) {
		remote_call(r, SYS_close, fd, 0, 0, 0, 0, 0);
		return err_errno(err, -base, "process %d cannot map our code", r->pid);
	}
	e = remote_run(r, base + BLOB_SETUP_AT, base, fd, shared_offset(), PAGES(sizeof(struct blob_shared)));
	if (e < 0) {
		remote_call(r, SYS_munmap, base, total, 0, 0, 0, 0);
		return err_errno(err, -e, "process %d cannot map our memory", r->pid);
	}
	return base;
}

/*
 * The part during which the process must not be left alone: a child of its own session does it, so
 * that whatever becomes of gasflame, a thread that was stopped goes on as it was.
 */
static void operate(pid_t pid, int memory, int out)
{
	struct surgery s = { 0 };
	struct remote r;

	s.result = remote_stop(&r, pid, &s.err);
	if (!s.result) {
		s.result = map_blob(&r, memory, &s.err);
		s.stopped_ns = remote_go(&r);
	}
	fd_write_all(out, &s, sizeof(s));
}

static int map_into(struct implant *i, struct err *err)
{
	struct surgery s = { 0 };
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, errno, "cannot make a pipe");
	child = fork();
	if (!child) {
		/* The thread waits for us: nothing is more urgent. */
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
		setsid();
		operate(i->pid, i->memory, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	/* It takes its time only as long as it has changed nothing; from then on it must not be disturbed. */
	if (child < 0 || fd_read_all(ends[0], &s, sizeof(s)) != sizeof(s))
		s.result = err_set(&s.err, EIO, "the child that puts our code into process %d failed", i->pid);
	close(ends[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	if (s.result < 0 && s.result > -PAGE) {
		if (err)
			*err = s.err;
		return s.result;
	}
	i->image = s.result;
	i->stopped_ns = s.stopped_ns;
	return 0;
}

/* --- finding it --- */

/* The mapping of the shared part; false: there is none. */
static bool find_mapping(pid_t pid, struct proc_mapping *ret_shared, uint64_t *ret_image)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { 0 };
	bool image = false, shared = false;

	if (proc_maps_read(pid, false, &maps) < 0)
		return false;
	for (size_t k = 0; k < maps.list.n; k++) {
		const struct proc_mapping *m = &maps.list.v[k];

		if (!str_starts(m->path, "/memfd:" BLOB_NAME))
			continue;
		if (m->executable && !m->offset) {
			*ret_image = m->start;
			image = true;
		} else if (m->writable && m->offset) {
			*ret_shared = *m;
			ret_shared->path = NULL;
			shared = true;
		}
	}
	return image && shared;
}

static int check_layout(const struct implant *i, struct err *err)
{
	const struct blob_shared *s = i->shared;

	if (s->magic != BLOB_MAGIC || s->version != BLOB_VERSION || s->size != sizeof(*s) || s->image != i->image)
		return err_set(err, EPROTO,
			       "process %d has the hooks of another version of gasflame: detach them with that version, "
			       "or restart the process", i->pid);
	return 0;
}

/* A gasflame that was killed right after it had mapped the blob wrote nothing into it. Is it the same blob? */
static bool is_untouched(const struct implant *i)
{
	_cleanup_free_ char *image = mem_alloc(sizeof(blob_image));

	return !i->shared->magic && !i->shared->slot_count &&
	       pread(i->file, image, sizeof(blob_image), 0) == sizeof(blob_image) && !memcmp(image, blob_image, sizeof(blob_image));
}

/* Opens the file of the mapping and maps the shared part here. */
static int share(struct implant *i, const struct proc_mapping *m, bool is_new, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/map_files/%llx-%llx", i->pid, (unsigned long long)m->start,
					       (unsigned long long)m->end);
	void *shared;

	i->file = open(path, O_RDWR | O_CLOEXEC);
	if (i->file < 0)
		return err_errno(err, errno, "cannot open our memory in process %d", i->pid);
	if (flock(i->file, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, EBUSY, "another gasflame records the heap of process %d now", i->pid);
	shared = mmap(NULL, PAGES(sizeof(struct blob_shared)), PROT_READ | PROT_WRITE, MAP_SHARED, i->file, m->offset);
	if (shared == MAP_FAILED)
		return err_errno(err, errno, "cannot map our memory in process %d", i->pid);
	i->shared = shared;
	snprintf(i->path, sizeof(i->path), "/proc/%d/fd/%d", getpid(), i->file);
	if (!is_new && !is_untouched(i))
		return check_layout(i, err);
	i->shared->version = BLOB_VERSION;
	i->shared->size = sizeof(*i->shared);
	i->shared->image = i->image;
	__atomic_store_n(&i->shared->magic, BLOB_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

int implant_open(pid_t pid, bool only_existing, struct implant **ret, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/mem", pid);
	struct implant *i = mem_alloc(sizeof(*i));
	struct proc_mapping m;
	bool is_new;
	int r = 0;

	i->pid = pid;
	i->file = -1;
	i->memory = open(path, O_RDWR | O_CLOEXEC);
	if (i->memory < 0 && (errno == ESRCH || errno == ENOENT))
		r = err_set(err, ESRCH, "process %d has no memory: it has ended, or is a thread of the kernel", pid);
	else if (i->memory < 0)
		r = err_errno(err, errno, "cannot open the memory of process %d", pid);
	is_new = !r && !find_mapping(pid, &m, &i->image);
	if (!r && is_new && only_existing)
		r = err_set(err, ENOENT, "process %d has no hooks of gasflame", pid);
	if (!r && is_new)
		r = map_into(i, err);
	if (!r && is_new && !find_mapping(pid, &m, &i->image))
		r = err_set(err, EIO, "our code is not where it was put in process %d", pid);
	if (!r)
		r = share(i, &m, is_new, err);
	if (r < 0) {
		implant_close(i);
		return r;
	}
	*ret = i;
	return 0;
}

int implant_expect(pid_t pid, struct err *err)
{
	return remote_expect(pid, err);
}

static int begin(pid_t pid, int (*hold)(struct remote *, pid_t, struct err *), struct implant **ret, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/mem", pid);
	struct implant *i = mem_alloc(sizeof(*i));
	struct proc_mapping m;
	int64_t base;
	int r;

	i->pid = pid;
	i->file = i->memory = -1;
	r = hold(&i->remote, pid, err);
	i->held = !r;
	if (!r) {
		i->memory = open(path, O_RDWR | O_CLOEXEC);
		base = i->memory < 0 ? err_errno(err, errno, "cannot open the memory of process %d", pid) :
				       map_blob(&i->remote, i->memory, err);
		r = base < 0 && base > -PAGE ? base : 0;
	}
	if (!r && !find_mapping(pid, &m, &i->image))
		r = err_set(err, EIO, "our code is not where it was put in process %d", pid);
	if (!r)
		r = share(i, &m, true, err);
	if (r < 0) {
		implant_close(i);
		return r;
	}
	*ret = i;
	return 0;
}

int implant_begin(pid_t pid, struct implant **ret, struct err *err)
{
	return begin(pid, remote_at_entry, ret, err);
}

int implant_begin_again(pid_t pid, struct implant **ret, struct err *err)
{
	return begin(pid, remote_at_entry_stopped, ret, err);
}

void implant_let_go(struct implant *i)
{
	if (i->held)
		i->stopped_ns = remote_go(&i->remote);
	i->held = false;
}

void implant_close(struct implant *i)
{
	if (!i)
		return;
	implant_let_go(i);
	if (i->shared)
		munmap(i->shared, PAGES(sizeof(*i->shared)));
	fd_close(&i->file);
	fd_close(&i->memory);
	free(i);
}

/* --- slots --- */

static int set_active(struct implant *i, uint32_t active)
{
	return pwrite(i->memory, &active, sizeof(active), i->image + BLOB_LOCAL_AT) == sizeof(active) ? 0 : -errno;
}

/* The hook that stands for a function, a new one if it has none yet. 0: there are no more. */
static uint64_t hook_for(struct implant *i, uint64_t function, enum allocator_shape shape)
{
	uint64_t *real = i->shared->real[shape];

	for (int k = 0; k < BLOB_EACH; k++) {
		if (real[k] && real[k] != function)
			continue;
		__atomic_store_n(&real[k], function, __ATOMIC_RELEASE);
		return i->image + blob_hooks[shape][k];
	}
	return 0;
}

/* Remembers the slot before it is changed: whoever comes after us must find it. */
static bool hook_slot(struct implant *i, const struct slots_slot *slot, uint64_t hook)
{
	struct blob_shared *s = i->shared;
	/* Read once: the process can write there, too. */
	uint64_t now, n = __atomic_load_n(&s->slot_count, __ATOMIC_RELAXED);

	if (n >= BLOB_SLOTS)
		return false;
	if (pread(i->memory, &now, sizeof(now), slot->address) != sizeof(now) || now != slot->value)
		return false; /* the process changed it meanwhile */
	s->slots[n] = (struct blob_slot){ slot->address, slot->value, hook };
	__atomic_store_n(&s->slot_count, n + 1, __ATOMIC_RELEASE);
	return pwrite(i->memory, &hook, sizeof(hook), slot->address) == sizeof(hook);
}

static void note_controls(struct implant *i, const struct slots *found)
{
	unsigned n = 0;

	for (size_t k = 0; k < found->functions.n && n < MAX_CONTROLS; k++)
		if (allocator_names[found->functions.v[k].name].shape == ALLOCATOR_CONTROL)
			i->controls[n++] = found->functions.v[k].address;
}

int implant_hook(struct implant *i, struct worker *w, struct err *err)
{
	struct slots found;
	int r = slots_find(i->pid, w, &found, err);

	if (r < 0)
		return r;
	/* Slots that we changed ourselves are not found again. */
	if (found.direct && !i->shared->slot_count) {
		slots_done(&found);
		return err_set(err, ENOTSUP,
			       "process %d has its allocator linked in and calls it directly, not through slots that could be "
			       "redirected: `gasflame mem %d` and -e fault say where its memory grows", i->pid, i->pid);
	}
	for (size_t k = 0; k < found.slots.n; k++) {
		const struct slots_function *f = &found.functions.v[found.slots.v[k].function];
		uint64_t hook = hook_for(i, f->address, allocator_names[f->name].shape);

		if (hook)
			hook_slot(i, &found.slots.v[k], hook);
	}
	note_controls(i, &found);
	if (found.slots.n)
		snprintf(i->allocators, sizeof(i->allocators), "%s", found.allocators);
	slots_done(&found);
	return i->shared->slot_count;
}

int implant_hooked(const struct implant *i)
{
	uint64_t count = MIN(i->shared->slot_count, (uint64_t)BLOB_SLOTS), now;
	int n = 0;

	for (uint64_t k = 0; k < count; k++)
		n += pread(i->memory, &now, sizeof(now), i->shared->slots[k].address) == sizeof(now) &&
		     now == i->shared->slots[k].hook;
	return n;
}

int implant_unhook(struct implant *i)
{
	struct blob_shared *s = i->shared;
	uint64_t count = __atomic_load_n(&s->slot_count, __ATOMIC_ACQUIRE), now;
	int left = 0;

	count = MIN(count, (uint64_t)BLOB_SLOTS);

	implant_deactivate(i);
	for (uint64_t k = count; k-- > 0;) {
		struct blob_slot slot = s->slots[k];

		if (pread(i->memory, &now, sizeof(now), slot.address) != sizeof(now))
			continue; /* its library was unloaded, or the process is gone */
		/* Somebody else's by now: not ours to change. */
		if (now == slot.hook &&
		    pwrite(i->memory, &slot.original, sizeof(slot.original), slot.address) != sizeof(slot.original))
			left++;
	}
	if (!left)
		s->slot_count = 0;
	return left;
}

/* --- sampling --- */

int implant_activate(struct implant *i, uint64_t interval_bytes, struct err *err)
{
	const uint64_t from = offsetof(struct blob_shared, threads);
	struct blob_shared *s = i->shared;
	/* A thread that is still on its way out of a hook may write its event once more: it must not look like a new one. */
	uint64_t ticket = __atomic_load_n(&s->exact.head, __ATOMIC_RELAXED) + 2 * EXACT_EVENTS;
	int r = set_active(i, BLOB_PASS_ON);

	if (r < 0)
		return err_errno(err, -r, "cannot write to process %d", i->pid);
	/* All that follows the slots becomes zeros, and takes no memory until it is used. */
	if (fallocate(i->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, shared_offset() + PAGES(from),
		      PAGES(sizeof(*s)) - PAGES(from)) < 0)
		return err_errno(err, errno, "cannot clear our memory in process %d", i->pid);
	memset(s->threads, 0, PAGES(from) - from);
	s->interval_bytes = interval_bytes;
	s->exact.head = s->exact.tail = ticket;
	s->full = s->silence = 0;
	if (getrandom(&s->seed, sizeof(s->seed), 0) != sizeof(s->seed))
		s->seed = i->image ^ getpid();
	r = set_active(i, interval_bytes <= 1 ? BLOB_EXACT : BLOB_SAMPLE);
	return r < 0 ? err_errno(err, -r, "cannot write to process %d", i->pid) : 0;
}

void implant_populate(struct implant *i)
{
	/* Before 5.14 the process makes it. What a thread remembers is made when it does. */
	madvise(i->shared, i->shared->interval_bytes <= 1 ? PAGES(offsetof(struct blob_shared, exact.memos)) :
							    offsetof(struct blob_shared, exact),
		MADV_POPULATE_WRITE);
}

void implant_alive(struct implant *i)
{
	__atomic_store_n(&i->shared->silence, 0, __ATOMIC_RELAXED);
}

void implant_deactivate(struct implant *i)
{
	set_active(i, BLOB_PASS_ON);
}

bool implant_gone(const struct implant *i)
{
	char byte;

	/* Our descriptor is of the memory that it had then, which ends with it. */
	return pread(i->memory, &byte, 1, i->image) != 1;
}

bool implant_replaced(const struct implant *i)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { 0 };

	/* A dying process has no memory at all. */
	return implant_gone(i) && proc_maps_read(i->pid, false, &maps) >= 0 && maps.list.n;
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
		*ret_count += i->shared->exact.threads[k].count;
		*ret_bytes += i->shared->exact.threads[k].bytes;
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
	return i->stopped_ns;
}

const char *implant_path(const struct implant *i)
{
	return i->path;
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
	uint32_t *state = &i->shared->request.state, asked = BLOB_ASKED;
	uint64_t began = clock_mono_ns();

	for (;;) {
		uint32_t now = __atomic_load_n(state, __ATOMIC_ACQUIRE);
		uint64_t waited = clock_mono_ns() - began;

		if (now == BLOB_ANSWERED)
			return 0;
		if (kill(i->pid, 0) < 0 && errno == ESRCH)
			return err_set(err, ESRCH, "process %d has ended", i->pid);
		if (now == BLOB_ASKED && waited > wait_ns &&
		    __atomic_compare_exchange_n(state, &asked, BLOB_IDLE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return err_set(err, ETIMEDOUT, "process %d allocated nothing for %.0f s, and only then can jemalloc be asked: "
				       "give it something to do", i->pid, wait_ns / 1e9);
		if (waited > wait_ns + answer_ns)
			return err_set(err, ETIMEDOUT, "jemalloc of process %d does not answer", i->pid);
		if (interrupted && now == BLOB_ASKED &&
		    __atomic_compare_exchange_n(state, &asked, BLOB_IDLE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			interrupted = 0;
			return err_set(err, EINTR, "interrupted before jemalloc of process %d could be asked", i->pid);
		}
		usleep(waited < 10000000 ? 100 : 1000);
		asked = BLOB_ASKED; /* the exchange may have changed it */
	}
}

bool implant_gave_up(int r)
{
	return r == -ETIMEDOUT || r == -ESRCH || r == -EBUSY || r == -EINTR;
}

/* A request that nobody works on any more; NULL: somebody does. */
static struct blob_request *new_request(struct implant *i, uint64_t function, struct err *err)
{
	struct blob_request *q = &i->shared->request;

	if (__atomic_load_n(&q->state, __ATOMIC_ACQUIRE) == BLOB_TAKEN) {
		err_set(err, EBUSY, "process %d still does what it was asked for before", i->pid);
		return NULL;
	}
	__atomic_store_n(&q->state, BLOB_IDLE, __ATOMIC_RELEASE);
	memset(q, 0, sizeof(*q));
	q->function = function;
	return q;
}

/* Until it is answered. mallctl()'s own error as a negative number. */
static int send_request(struct implant *i, struct blob_request *q, uint64_t wait_ns, struct err *err)
{
	int r;

	__atomic_store_n(&q->state, BLOB_ASKED, __ATOMIC_RELEASE);
	/* Forgets the threads: the next allocation of each comes to the slow path, whoever it is. */
	r = implant_activate(i, no_sample, err);
	if (!r)
		r = await_answer(i, wait_ns, err);
	implant_deactivate(i);
	if (r)
		return r;
	q->state = BLOB_IDLE;
	return -q->result;
}

int implant_control(struct implant *i, uint64_t function, const struct implant_control *c, uint64_t wait_ns, struct err *err)
{
	struct blob_request *q = new_request(i, function, err);
	int r;

	if (!q)
		return -EBUSY;
	if (c->old_size > BLOB_VALUE || c->new_size > BLOB_VALUE || strlen(c->name) >= sizeof(q->name) ||
	    (c->text && strlen(c->text) >= sizeof(q->text)))
		return err_set(err, E2BIG, "%s is too long to ask jemalloc for", c->name);
	q->old_size = c->old ? c->old_size : 0;
	q->new_size = c->new ? c->new_size : 0;
	q->new_is_text = !!c->text;
	snprintf(q->name, sizeof(q->name), "%s", c->name);
	snprintf(q->text, sizeof(q->text), "%s", c->text ? c->text : "");
	if (c->new)
		memcpy(q->new_value, c->new, c->new_size);
	r = send_request(i, q, wait_ns, err);
	if (!r && c->old && q->old_size == c->old_size)
		memcpy(c->old, q->old_value, c->old_size);
	return r;
}

int implant_control_many(struct implant *i, uint64_t function, const struct implant_many *m, uint64_t *values,
			 uint64_t wait_ns, struct err *err)
{
	struct blob_request *q = new_request(i, function, err);
	int r;

	if (!q)
		return -EBUSY;
	if (m->count > BLOB_MANY || strlen(m->name) >= sizeof(q->name) || strlen(m->rest) >= sizeof(q->rest))
		return err_set(err, E2BIG, "%s is too much to ask jemalloc for", m->name);
	snprintf(q->name, sizeof(q->name), "%s", m->name);
	snprintf(q->rest, sizeof(q->rest), "%s", m->rest);
	q->many = m->count;
	q->first = m->first;
	q->old_size = m->width;
	r = send_request(i, q, wait_ns, err);
	if (!r)
		memcpy(values, q->values, m->count * sizeof(*values));
	return r;
}
