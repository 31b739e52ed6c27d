/*
 * fault.bpf.c - page faults and memory reclaim: how many, where, on what, how long.
 *
 * A software perf event counts each fault on each CPU, major and minor apart, and calls the program when the
 * fault is done; the tracepoint at its beginning gives the time. Faults are added up for each thread, stack,
 * part of a file and slot of time; a sum goes out when its slot is over or its place is needed.
 *
 * Faults that the kernel takes in a thread's name (populating a mapping, locking, direct I/O) pass no event.
 * Every thread's own counters are therefore read when it is first seen and when it ends: what was seen on the
 * way and what the kernel counted can be compared, and the rest is known by thread, if not by stack.
 */
#include "collect/unwind/stackcache.bpf.h"
#include "collect/scratch.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct {
	unsigned long start_brk, brk, start_stack, total_vm;
	int map_count;
};

/* How often the mappings were locked for a change: since 6.13, and from 6.4 on. */
struct mm_struct___new {
	struct {
		unsigned int sequence;
	} mm_lock_seq;
};

struct mm_struct___old {
	int mm_lock_seq;
};

struct task_struct___fault {
	unsigned long min_flt, maj_flt;
	uint64_t start_time;
	struct mm_struct *mm;
};

struct super_block {
	unsigned int s_dev;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	long long i_size;
};

struct file {
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_pgoff, vm_flags;
	struct file *vm_file;
	struct mm_struct *vm_mm;
};

struct bpf_iter__task {
	struct task_struct *task;
};

#pragma clang attribute pop

/* Since Linux 5.17; without it user space looks into /proc. */
enum bpf_func_id___fault { BPF_FUNC_find_vma___fault = 180 };
#define HAVE_FIND_VMA bpf_core_enum_value_exists(enum bpf_func_id___fault, BPF_FUNC_find_vma___fault)

/* The stored facts about a mapping. */
struct vma {
	uint64_t start, end, base; /* base: the address that the file's beginning has or would have */
	uint64_t inode, size;
	uint32_t device;
	uint8_t where, shift, flags, pad;
	uint64_t token; /* of when it was seen: see mappings_token() */
};
enum { KNOWN = 4 };

struct fault_thread {
	uint32_t ready, closed;
	uint32_t pid, tid; /* exec may give a thread its leader's number: it stays what it was */
	uint64_t minor_before, major_before;
	uint64_t entered_ns, entered_address, entered_error; /* the fault at hand */
	uint64_t reclaim_ns;                                 /* the reclaim at hand */
	uint64_t slot;
	uint32_t next, pad;                                  /* which of known is to be replaced */
	struct vma known[KNOWN];                             /* where the last faults were */
	struct shared_fault now;                             /* the one at hand: there is no room on the stack */
	struct shared_fault sums[SHARED_FAULT_SUMS];
};

/* With each task, so that there is no limit to them, and memory for those only that are recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fault_thread);
} fault_threads SEC(".maps");

SCRATCH_MAP(fault_scratches);

BPF_MAP(fault_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_fault_counts);

uint64_t fault_start_ns; /* when the recording began */
uint32_t fault_ending;   /* what on_each_task is to do */
uint32_t fault_thin;     /* each step halves how many stacks are walked; counts and times stay exact */
uint64_t fault_unsent;   /* sums that found no room when it ended */
uint64_t fault_unstored; /* threads for which the kernel had no memory at the beginning */

enum { CONTEXT_ADDRESS = REGS_COUNT + 1 }; /* behind the period */

static __always_inline struct shared_fault_counts *counts_here(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&fault_counts, &zero);
}

/* A thread from before the recording has faulted before: seen is how many of that just now. */
static __always_inline void thread_init(struct fault_thread *t, struct task_struct *task, uint32_t minor,
					uint32_t major)
{
	struct task_struct___fault *f = (void *)task;

	t->ready = 1;
	t->pid = BPF_CORE_READ(task, tgid);
	t->tid = BPF_CORE_READ(task, pid);
	if (BPF_CORE_READ(f, start_time) >= fault_start_ns)
		return;
	t->minor_before = BPF_CORE_READ(f, min_flt) - minor;
	t->major_before = BPF_CORE_READ(f, maj_flt) - major;
}

/* The current thread, made if its process is recorded. */
static __always_inline struct fault_thread *thread_here(uint32_t minor, uint32_t major)
{
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t pid = bpf_get_current_pid_tgid() >> 32;
	struct fault_thread *t;

	if (!unwind_may_be_ours(pid))
		return NULL;
	t = bpf_task_storage_get(&fault_threads, task, 0, 0);
	if (t)
		return t->closed ? NULL : t;
	if (!bpf_map_lookup_elem(&processes, &pid))
		return NULL;
	t = bpf_task_storage_get(&fault_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (t)
		thread_init(t, task, minor, major);
	return t;
}

/* How often known stacks are walked in this slot of time depends on how many faults there were in the one before: on a
 * busy CPU by chance only, and that some ten times. */
static __always_inline void start_slot(struct shared_fault_counts *c, uint64_t slot)
{
	c->allowed = c->faults > SHARED_FAULT_BUSY ? 0 : SHARED_FAULT_WALKS;
	c->rare = 5;
	for (int i = 0; i < 8; i++)
		if (c->faults >> c->rare > 8)
			c->rare++;
	c->walk_slot = slot;
	c->walks = 0;
	c->faults = 0;
}

/* The stack of the current task, from the registers in u. It is walked where none is remembered; and where one is, while
 * there are few, and by chance beyond that. */
static __always_inline uint64_t stack_here(void *ctx, struct unwind *u, struct shared_fault_counts *c,
					   uint32_t what, bool user, enum unwind_taken kernel, uint64_t now)
{
	uint64_t id = bpf_get_current_pid_tgid(), slot = now / SHARED_SLOT_NS;
	uint32_t pid = id >> 32;
	uint64_t key = stackcache_key(id, 0x100 + what, u);
	struct stackcache *place = stackcache_of(key);
	uint32_t thin = fault_thin & 15;
	struct shared_process *p;

	if (c->walk_slot != slot)
		start_slot(c, slot);
	c->faults++;
	if (c->walks >= c->allowed >> thin && place && stackcache_known(place, key) &&
	    bpf_get_prandom_u32() & ((1u << ((c->rare & 15) + thin)) - 1)) {
		c->remembered++;
		return place->stack;
	}
	c->walks++;
	c->walked++;
	u->record.pid = pid;
	p = bpf_map_lookup_elem(&processes, &pid);
	unwind_start(u, p, user);
	unwind_kernel(ctx, u, kernel);
	if (unwind_send(u, false) == UNWIND_RING_FULL)
		c->ring_full++;
	if (place && stackcache_worth(u))
		stackcache_set(place, key, u->record.stack);
	return u->record.stack;
}

/* 1 if x is not 0, without a branch: the verifier goes both ways at each. */
static __always_inline uint64_t is_set(uint64_t x)
{
	return (x | -x) >> 63;
}

/* Bits of a size, so that SHARED_FAULT_RANGES parts cover it; a page at least. */
static __always_inline uint8_t range_shift(uint64_t size)
{
	uint64_t bits = 0, shift;

	if (!size) /* a device: its offsets are no places of a file */
		return 63;
	size--;
	_Static_assert(SHARED_FAULT_RANGES == 64, "6 bits fewer");
#pragma clang loop unroll(full)
	for (uint64_t step = 32; step; step /= 2) {
		shift = step & -is_set(size >> step);
		size >>= shift;
		bits += shift;
	}
	bits += is_set(size);
	return bits > 18 ? bits - 6 : 12;
}

static long describe_vma(struct task_struct *task, struct vm_area_struct *vma, struct vma *v)
{
	struct file *file = vma->vm_file;

	v->start = vma->vm_start;
	v->end = vma->vm_end;
	v->flags = vma->vm_flags & 8 ? FAULT_SHARED : 0; /* VM_SHARED */
	if (file) {
		v->where = FAULT_FILE;
		v->base = v->start - (vma->vm_pgoff << page_shift);
		v->inode = BPF_CORE_READ(file, f_inode, i_ino);
		v->device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
		v->size = BPF_CORE_READ(file, f_inode, i_size);
		v->shift = range_shift(v->size);
		return 0;
	}
	if (v->start <= BPF_CORE_READ(vma, vm_mm, brk) && v->end >= BPF_CORE_READ(vma, vm_mm, start_brk))
		v->where = FAULT_HEAP;
	else if (v->start <= BPF_CORE_READ(vma, vm_mm, start_stack) &&
		 v->end >= BPF_CORE_READ(vma, vm_mm, start_stack))
		v->where = FAULT_STACK;
	else
		v->where = FAULT_ANONYMOUS;
	return 0;
}

/* A number that changes whenever the mappings of the current process do. Where the kernel has none, what it
 * counts and the time are nearly as good. */
static __always_inline uint64_t mappings_token(uint64_t now)
{
	struct task_struct___fault *task = (void *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct mm_struct___new *new = (void *)mm;
	struct mm_struct___old *old = (void *)mm;
	uint64_t token;

	if (bpf_core_field_exists(new->mm_lock_seq.sequence))
		token = BPF_CORE_READ(new, mm_lock_seq.sequence);
	else if (bpf_core_field_exists(old->mm_lock_seq))
		token = BPF_CORE_READ(old, mm_lock_seq);
	else
		token = ((uint64_t)BPF_CORE_READ(mm, map_count) << 32) + BPF_CORE_READ(mm, total_vm) +
			now / SHARED_SLOT_NS;
	return unwind_hash((uint64_t)mm, token);
}

/*
 * The mapping of an address, in *v. Asking the kernel costs microseconds (in a perf event it hands the lock
 * back from another interrupt), so the last answers are kept as long as nothing was mapped or unmapped. While
 * another thread changes the mappings the kernel does not answer; then an older answer must do.
 */
static __always_inline void find_vma(struct fault_thread *t, uint64_t address, uint64_t now, struct vma *v)
{
	uint64_t token = mappings_token(now);
	uint32_t stale = KNOWN;

	for (uint32_t i = 0; i < KNOWN; i++) {
		struct vma *k = &t->known[i];

		if (!k->where || address < k->start || address >= k->end)
			continue;
		if (k->token == token) {
			*v = *k;
			return;
		}
		stale = i;
	}
	if (HAVE_FIND_VMA)
		bpf_find_vma(bpf_get_current_task_btf(), address, describe_vma, v, 0);
	if (v->where) {
		v->token = token;
		if (stale == KNOWN)
			stale = t->next++;
		t->known[stale & (KNOWN - 1)] = *v;
	} else if (stale < KNOWN) {
		*v = t->known[stale & (KNOWN - 1)];
	}
}

static __always_inline void touches(struct shared_fault *f, const struct vma *v)
{
	f->where = v->where;
	f->flags |= v->flags;
	if (v->where != FAULT_FILE)
		return;
	f->inode = v->inode;
	f->device = v->device;
	f->size = v->size;
	f->shift = v->shift;
	if (f->what == FAULT_MAJOR)
		f->offset = (f->address - v->base) >> v->shift << v->shift;
}

/* Says in f what lies at its address. A global function: the verifier checks it once, not for each way that leads to it. */
__attribute__((noinline)) int fault_describe_address(struct fault_thread *t, struct shared_fault *f, uint64_t now)
{
	struct vma v = { 0 };

	if (!t || !f)
		return 0;
	find_vma(t, f->address, now, &v);
	/* Faults at unknown mappings are summed by address: finely where user space must look it up. */
	if (!v.where)
		f->shift = HAVE_FIND_VMA ? 21 : 16;
	else
		touches(f, &v);
	return 0;
}

/* Sends a sum and empties it; false: no room in the ring, it is as it was. */
static __always_inline bool send_sum(struct shared_fault *s)
{
	if (s->count && bpf_ringbuf_output(&ring, s, sizeof(*s), BPF_RB_NO_WAKEUP))
		return false;
	s->count = 0;
	s->spent_ns = 0;
	return true;
}

/* Is this better sent later? What the kernel did not say at the time of a fault may be known by a later one. */
static __always_inline bool undecided(struct fault_thread *t, struct shared_fault *s)
{
	if (!s->count || s->where != FAULT_UNKNOWN)
		return false;
	for (int i = 0; i < KNOWN; i++) {
		struct vma *k = &t->known[i];

		if (k->where && s->address >= k->start && s->address < k->end) {
			touches(s, k);
			return false;
		}
	}
	return HAVE_FIND_VMA && !t->closed && t->slot * SHARED_SLOT_NS < s->time_ns + 10 * SHARED_SLOT_NS;
}

/* Sends the sums of a thread; how many found no room. A global function: the verifier checks it once. */
__attribute__((noinline)) int fault_send_sums(struct fault_thread *t)
{
	int unsent = 0;

	if (!t)
		return 0;
	for (int i = 0; i < SHARED_FAULT_SUMS; i++)
		if (!undecided(t, &t->sums[i]) && !send_sum(&t->sums[i]))
			unsent++;
	return unsent;
}

static __always_inline bool same_kind(const struct shared_fault *a, const struct shared_fault *b)
{
	return a->stack == b->stack && a->inode == b->inode && a->offset == b->offset &&
	       a->device == b->device && a->what == b->what && a->where == b->where && a->shift == b->shift &&
	       a->flags == b->flags &&
	       (a->where != FAULT_UNKNOWN || a->address >> a->shift == b->address >> b->shift);
}

/* Adds one to the sum of its kind. Where the ring is full a sum grows on, if need be beyond its slot. */
static __always_inline void add(struct fault_thread *t, struct shared_fault *f, struct shared_fault_counts *c,
				uint64_t now)
{
	uint64_t slot = now / SHARED_SLOT_NS;
	uint64_t at = unwind_hash(f->stack ^ f->inode, f->offset + f->what + f->flags);
	struct shared_fault *s, *other;

	if (slot != t->slot) {
		c->ring_full += fault_send_sums(t);
		t->slot = slot;
	}
	/* Two places for each, so that two kinds that take turns do not drive each other out. */
	s = &t->sums[at >> 40 & (SHARED_FAULT_SUMS - 1)];
	other = &t->sums[at >> 50 & (SHARED_FAULT_SUMS - 1)];
	if (s->count && !same_kind(s, f) && (!other->count || same_kind(other, f)))
		s = other;
	if (s->count && !same_kind(s, f) && !send_sum(s)) {
		c->ring_full++;
		c->lost_faults++; /* of this stack; the thread's total still has it */
		return;
	}
	if (s->count) {
		s->count++;
		s->spent_ns += f->spent_ns;
		return;
	}
	f->kind = RECORD_FAULTS;
	f->pid = t->pid;
	f->tid = t->tid;
	f->count = 1;
	f->time_ns = slot * SHARED_SLOT_NS;
	bpf_get_current_comm(f->name, sizeof(f->name));
	*s = *f;
}

static __always_inline struct shared_fault *fault_blank(struct fault_thread *t, uint8_t what)
{
	__builtin_memset(&t->now, 0, sizeof(t->now));
	t->now.what = what;
	return &t->now;
}

static __always_inline int fault(void *ctx, uint8_t what)
{
	struct fault_thread *t = thread_here(what == FAULT_MINOR, what == FAULT_MAJOR);
	struct shared_fault_counts *c = counts_here();
	bool user, in_kernel = false;
	struct shared_fault *f;
	struct scratch *s;
	uint64_t now;

	if (!t || !c)
		return 0;
	s = scratch_take(&fault_scratches);
	if (!s) {
		c->lost_faults++; /* of this stack; the thread's total still has it */
		return 0;
	}
	now = bpf_ktime_get_ns();
	f = fault_blank(t, what);
	f->address = CONTEXT(CONTEXT_ADDRESS);
	if (t->entered_ns && t->entered_address >> page_shift == f->address >> page_shift) {
		f->spent_ns = now - t->entered_ns;
		if ((t->entered_error & 3) == 3) /* a write, and the page was present */
			f->flags = FAULT_WRITE_PROTECTED;
	}
	t->entered_ns = 0;
	if (CONTEXT_IN_USER()) {
		UNWIND_FROM(&s->u, CONTEXT);
		user = true;
	} else {
		user = unwind_from_task(&s->u);
		in_kernel = true;
	}
	f->stack = stack_here(ctx, &s->u, c, what, user, in_kernel ? UNWIND_INTERRUPTED : UNWIND_USER_ONLY, now);
	scratch_give(s);
	fault_describe_address(t, f, now);
	add(t, f, c, now);
	return 0;
}

SEC("perf_event")
int on_minor_fault(void *ctx)
{
	return fault(ctx, FAULT_MINOR);
}

SEC("perf_event")
int on_major_fault(void *ctx)
{
	return fault(ctx, FAULT_MAJOR);
}

/* A fault begins, in the program or in the kernel on its memory. */
SEC("raw_tp/page_fault_user")
int on_fault_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct fault_thread *t = bpf_task_storage_get(&fault_threads, bpf_get_current_task_btf(), 0, 0);

	if (!t)
		return 0;
	t->entered_ns = bpf_ktime_get_ns();
	t->entered_address = ctx->args[0];
	t->entered_error = ctx->args[2];
	return 0;
}

/* Reclaim for the whole machine, or for a cgroup that is full. */
SEC("raw_tp/mm_vmscan_direct_reclaim_begin")
int on_reclaim_begin(void *ctx)
{
	struct fault_thread *t = thread_here(0, 0);

	if (t)
		t->reclaim_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/mm_vmscan_direct_reclaim_end")
int on_reclaim_end(void *ctx)
{
	struct fault_thread *t = bpf_task_storage_get(&fault_threads, bpf_get_current_task_btf(), 0, 0);
	struct shared_fault_counts *c = counts_here();
	struct shared_fault *f;
	struct scratch *s;
	uint64_t now;
	bool user;

	if (!t || !c || !t->reclaim_ns || t->closed)
		return 0;
	s = scratch_take(&fault_scratches);
	if (!s) {
		c->lost_faults++;
		return 0;
	}
	now = bpf_ktime_get_ns();
	f = fault_blank(t, FAULT_RECLAIM);
	f->where = FAULT_NOWHERE;
	f->spent_ns = now - t->reclaim_ns;
	t->reclaim_ns = 0;
	user = unwind_from_task(&s->u);
	f->stack = stack_here(ctx, &s->u, c, FAULT_RECLAIM, user, UNWIND_TRACED, now);
	scratch_give(s);
	add(t, f, c, now);
	return 0;
}

SEC("raw_tp/mm_vmscan_kswapd_wake")
int on_kswapd_wake(void *ctx)
{
	struct shared_fault_counts *c = counts_here();

	if (c)
		c->kswapd_wakes++;
	return 0;
}

/* Sends all that a thread has, and last its totals. Once that is done nothing is added any more. */
static __always_inline void close_thread(struct fault_thread *t, struct task_struct *task)
{
	struct task_struct___fault *f = (void *)task;
	struct shared_fault_end end = { .kind = RECORD_FAULT_END, .time_ns = bpf_ktime_get_ns() };
	int unsent;

	if (t->closed == 2)
		return;
	if (!t->closed) {
		/* From here on minor_before and major_before are what is to be told. */
		t->minor_before = BPF_CORE_READ(f, min_flt) - t->minor_before;
		t->major_before = BPF_CORE_READ(f, maj_flt) - t->major_before;
		t->closed = 1;
	}
	unsent = fault_send_sums(t);
	end.pid = t->pid;
	end.tid = t->tid;
	end.minor = t->minor_before;
	end.major = t->major_before;
	bpf_probe_read_kernel(end.name, sizeof(end.name), task->comm);
	if (!unsent && !bpf_ringbuf_output(&ring, &end, sizeof(end), BPF_RB_NO_WAKEUP))
		t->closed = 2;
	else
		__sync_fetch_and_add(&fault_unsent, 1);
}

SEC("raw_tp/sched_process_exit")
int on_fault_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fault_thread *t = bpf_task_storage_get(&fault_threads, task, 0, 0);

	if (t)
		close_thread(t, task);
	return 0;
}

/* At the beginning: what each thread of the targets has faulted before. At the end: what is left. */
SEC("iter/task")
int on_each_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct fault_thread *t;
	uint32_t pid;

	if (!task)
		return 0;
	if (fault_ending) {
		t = bpf_task_storage_get(&fault_threads, task, 0, 0);
		if (t)
			close_thread(t, task);
		return 0;
	}
	pid = task->tgid;
	if (!bpf_map_lookup_elem(&processes, &pid))
		return 0;
	t = bpf_task_storage_get(&fault_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		__sync_fetch_and_add(&fault_unstored, 1);
	else if (!t->ready)
		thread_init(t, task, 0, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
