#include "collect/inject/hookset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "collect/inject/blobhead.h"
#include "collect/inject/blobkind.h"
#include "target/proc.h"

enum { MOST_LEFT = 16, TRIES = 3 };

/* --- opening --- */

void hookset_init(struct hookset *h, const struct blobkind *kind, pid_t pid)
{
	*h = (struct hookset){ .kind = kind, .pid = pid, .process = -1 };
	h->mem.pid = pid;
	h->mem.file = h->mem.traced = h->map.image_file = h->map.shared_file = -1;
}

void hookset_done(struct hookset *h)
{
	hookset_let_go(h);
	implantmap_done(&h->map);
	fd_close(&h->process);
	fd_close(&h->mem.file);
}

/* Both descriptors are of the same process, for as long as we have them. */
int hookset_open(struct hookset *h, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/mem", h->pid);

	h->process = syscall(SYS_pidfd_open, h->pid, 0);
	if (h->process >= 0)
		h->mem.file = open(path, O_RDWR | O_CLOEXEC);
	if (h->mem.file < 0 && (errno == ESRCH || errno == ENOENT))
		return err_set(err, ESRCH, "process %d has no memory: it has ended, or is a thread of the kernel", h->pid);
	if (h->mem.file < 0)
		return err_errno(err, errno, "cannot open the memory of process %d", h->pid);
	if (syscall(SYS_pidfd_send_signal, h->process, 0, NULL, 0) < 0 && errno == ESRCH)
		return err_set(err, ESRCH, "process %d has ended", h->pid);
	return 0;
}

static int found(struct hookset *h, int r)
{
	if (!r)
		snprintf(h->path, sizeof(h->path), "/proc/%d/fd/%d", getpid(), h->map.image_file);
	return r;
}

int hookset_find(struct hookset *h, bool any, struct err *err)
{
	int r;

	for (int k = 0; k < MOST_LEFT; k++) {
		r = implantmap_find(h->kind, h->pid, h->mem.file, &h->map, err);
		if (r || h->map.shared || any)
			return found(h, r);
		if (hookset_unhook(h, err))
			return err_prefix(err, "process %d has hooks of the process that it is a child of, which cannot be put back", h->pid);
		implantmap_done(&h->map);
	}
	return err_set(err, EIO, "process %d has more hooks than we have ever made", h->pid);
}

int hookset_make(struct hookset *h, struct err *err)
{
	int r = h->held ? implantmap_make_by(h->kind, &h->remote, h->process, h->mem.file, err)
			: implantmap_make(h->kind, h->pid, h->process, h->mem.file, &h->stopped_ns, err);

	r = r ?: implantmap_find(h->kind, h->pid, h->mem.file, &h->map, err);
	if (r == -ENOENT || (!r && !h->map.shared))
		r = err_set(err, EIO, "our code is not where it was put in process %d", h->pid);
	return found(h, r);
}

int hookset_hold(struct hookset *h, int (*hold)(struct ptracecall *, pid_t, struct err *), struct err *err)
{
	int r = hold(&h->remote, h->pid, err);

	h->held = !r;
	return r;
}

void hookset_let_go(struct hookset *h)
{
	if (h->held)
		h->stopped_ns = ptracecall_go(&h->remote);
	h->held = false;
}

/* --- memory of the process --- */

int hookset_get(const struct hookset *h, uint64_t address, void *ret, size_t n)
{
	return remotemem_get(&h->mem, address, ret, n);
}

int hookset_put(const struct hookset *h, uint64_t address, const void *data, size_t n)
{
	return remotemem_put(&h->mem, address, data, n);
}

int hookset_set_active(const struct hookset *h, uint32_t active)
{
	return hookset_put(h, h->map.image + h->kind->local_at, &active, sizeof(active));
}

uint64_t hookset_fixed_at(const struct hookset *h, const void *part)
{
	return h->map.image + h->kind->fixed_at + ((const char *)part - (const char *)h->map.fixed);
}

int hookset_put_fixed(const struct hookset *h, const void *part, size_t n)
{
	return hookset_put(h, hookset_fixed_at(h, part), part, n);
}

/* The beginning of the fixed part is the proof that the memory is the known one. */
int hookset_write(struct hookset *h, int (*write)(void *context), void *context, struct err *err)
{
	h->mem.is_tracer = h->held;
	return remotemem_write(&h->mem, hookset_fixed_at(h, h->map.fixed), write, context, err);
}

/* --- slots --- */

static struct blob_slot *slots_of(const struct hookset *h)
{
	return (struct blob_slot *)((char *)h->map.fixed + h->kind->slots_at);
}

/* Remembers the slot before it is changed: whoever comes after us must find it. */
int hookset_hook(struct hookset *h, uint64_t address, uint64_t value, uint64_t hook)
{
	struct blob_head *f = h->map.fixed;
	struct blob_slot *slots = slots_of(h);
	uint64_t now;
	int r;

	if (f->slot_count >= h->kind->slots_max || hookset_get(h, address, &now, sizeof(now)))
		return 0;
	if (now != value)
		return 1;
	slots[f->slot_count] = (struct blob_slot){ address, value, hook };
	r = hookset_put_fixed(h, &slots[f->slot_count], sizeof(slots[0]));
	if (r < 0)
		return r;
	f->slot_count++;
	r = hookset_put_fixed(h, &f->slot_count, sizeof(f->slot_count));
	r = r ?: hookset_put(h, address, &hook, sizeof(hook));
	if (r < 0)
		f->slot_count--;
	return r;
}

int hookset_hooked(const struct hookset *h)
{
	const struct blob_slot *slots = slots_of(h);
	uint64_t now;
	int n = 0;

	for (uint64_t k = 0; k < h->map.fixed->slot_count; k++)
		n += !hookset_get(h, slots[k].address, &now, sizeof(now)) && now == slots[k].hook;
	return n;
}

static const struct proc_mapping *mapping_of(const struct proc_maps *maps, uint64_t address)
{
	for (size_t k = 0; k < maps->list.n; k++)
		if (address >= maps->list.v[k].start && address < maps->list.v[k].end)
			return &maps->list.v[k];
	return NULL;
}

/* Is it one of our hooks? What a gasflame before us wrote down was in the hands of the process since. */
static bool is_hook(const struct hookset *h, uint64_t address)
{
	return address >= h->map.image && h->kind->is_hook(address - h->map.image);
}

/* 0: the slot does not hold our hook any more. */
static int put_back(struct hookset *h, const struct proc_maps *maps, const struct blob_slot *slot)
{
	const struct proc_mapping *code = mapping_of(maps, slot->original);
	uint64_t now;

	if (!is_hook(h, slot->hook))
		return 0;
	if (hookset_get(h, slot->address, &now, sizeof(now)))
		return mapping_of(maps, slot->address) ? -EIO : 0; /* its library was unloaded, or the process is gone */
	if (now != slot->hook)
		return 0; /* somebody else's by now: not ours to change */
	/* Of a process whose main thread has ended the kernel does not say what is mapped. */
	if (maps->list.n && (!code || !code->executable))
		return -EIO;
	return hookset_put(h, slot->address, &slot->original, sizeof(slot->original));
}

struct unhooking {
	struct hookset *h;
	struct proc_maps maps;
	int left;
};

static int put_all_back(void *context)
{
	struct unhooking *u = context;
	struct blob_head *f = u->h->map.fixed;
	const struct blob_slot *slots = slots_of(u->h);
	const uint64_t none = 0;
	int r;

	u->left = 0;
	for (uint64_t k = f->slot_count; k-- > 0;) {
		r = put_back(u->h, &u->maps, &slots[k]);
		if (r == -EACCES)
			return r;
		u->left += r < 0;
	}
	if (u->left)
		return 0;
	r = hookset_put(u->h, hookset_fixed_at(u->h, &f->slot_count), &none, sizeof(none));
	if (r != -EACCES)
		f->slot_count = 0;
	return r == -EACCES ? r : 0;
}

int hookset_unhook(struct hookset *h, struct err *err)
{
	const struct blob_head *f = h->map.fixed;
	struct unhooking u = { .h = h };
	int r = -EAGAIN, left = 0;

	hookset_set_active(h, 0);
	for (int k = 0; f->slot_count && r && r != -ESRCH && k < TRIES; k++)
		r = proc_maps_read(h->pid, false, &u.maps);
	if (f->slot_count && r < 0 && r != -ESRCH) {
		left = (int)f->slot_count;
		err_errno(err, -r, "cannot read what process %d has mapped", h->pid);
	} else if (f->slot_count && !r) {
		r = hookset_write(h, put_all_back, &u, err);
		left = r < 0 ? hookset_hooked(h) : u.left;
		if (!r && left)
			err_set(err, EIO, "what was in them does not lead to code any more, or they cannot be read");
	}
	proc_maps_done(&u.maps);
	return left;
}

/* --- the process --- */

bool hookset_gone(const struct hookset *h)
{
	char byte;

	/* Our descriptor is of the memory that it had then, which ends with it. */
	return pread(h->mem.file, &byte, 1, h->map.image) != 1;
}

bool hookset_replaced(const struct hookset *h)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { 0 };

	/* A dying process has no memory at all. */
	return hookset_gone(h) && proc_maps_read(h->pid, false, &maps) >= 0 && maps.list.n;
}
