/*
 * young.bpf.h - mappings found in the kernel, for processes that have just begun.
 *
 * User space hears of an exec a millisecond later at best, and a program of a shell loop has ended by then. So the
 * program, its loader and the vdso are entered at the exec itself, and a library when the first stack leads into it
 * (bpf_find_vma). A mapping is named by its file; user space says once for each file which module that is and where
 * its code lies (code_files), so that every later process is complete from its first instruction.
 *
 * The kernel answers once in each interrupt: with interrupts off it gives back the lock of the mappings from another
 * interrupt (irq_work), and until then it refuses further questions. Nearly all stacks need only one answer, as what
 * was found is kept. It also refuses while the mappings are being changed, and always with PREEMPT_RT.
 *
 * Part of unwind.bpf.c.
 */
#pragma once

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	__u32 s_dev;
};

/* The time of change: since 6.11, in 6.7 to 6.10, and before. */
struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	__s64 i_size;
	__s64 i_mtime_sec;
	__u32 i_mtime_nsec;
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

struct inode___from67 {
	struct timespec64 __i_mtime;
};

struct inode___before67 {
	struct timespec64 i_mtime;
};

struct file {
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct file *vm_file;
};


struct mm_struct {
	unsigned long start_code;
	struct {
		void *vdso;
	} context;
};

struct task_struct___young {
	struct mm_struct *mm;
};

#pragma clang attribute pop

enum bpf_func_id___young { BPF_FUNC_find_vma___young = 180 };
#define HAVE_FIND_VMA bpf_core_enum_value_exists(enum bpf_func_id___young, BPF_FUNC_find_vma___young)

enum { YOUNG_VM_EXEC = 4 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SHARED_MAX_CODE_FILES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct shared_code_key);
	__type(value, struct shared_code_file);
} code_files SEC(".maps");

BPF_MAP(young_none, ARRAY, 1, uint32_t, struct shared_young);

struct young_found {
	uint64_t start, end, offset;
	struct shared_code_key file;
};

static __always_inline void young_changed(struct inode *inode, struct shared_code_key *k)
{
	struct inode___from67 *newer = (void *)inode;
	struct inode___before67 *older = (void *)inode;

	if (bpf_core_field_exists(inode->i_mtime_sec)) {
		k->changed_s = BPF_CORE_READ(inode, i_mtime_sec);
		k->changed_ns = BPF_CORE_READ(inode, i_mtime_nsec);
	} else if (bpf_core_field_exists(newer->__i_mtime)) {
		k->changed_s = BPF_CORE_READ(newer, __i_mtime.tv_sec);
		k->changed_ns = BPF_CORE_READ(newer, __i_mtime.tv_nsec);
	} else {
		k->changed_s = BPF_CORE_READ(older, i_mtime.tv_sec);
		k->changed_ns = BPF_CORE_READ(older, i_mtime.tv_nsec);
	}
}

/* Executable memory without a file is left to user space: it needs a module of its own. */
static long young_describe(struct task_struct *task, struct vm_area_struct *vma, struct young_found *f)
{
	struct file *file = vma->vm_file;
	struct inode *inode;

	if (!file || !(vma->vm_flags & YOUNG_VM_EXEC))
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	f->file.size = BPF_CORE_READ(inode, i_size);
	young_changed(inode, &f->file);
	f->file.inode = BPF_CORE_READ(inode, i_ino);
	f->file.device = BPF_CORE_READ(inode, i_sb, s_dev);
	f->start = vma->vm_start;
	f->offset = (uint64_t)vma->vm_pgoff << page_shift;
	f->end = vma->vm_end;
	return 0;
}

/* Takes the next slot. 1 + its number, 0 = there is no room. */
static __always_inline uint64_t young_add(struct shared_young *y, const struct young_found *f)
{
	uint32_t at = __sync_fetch_and_add(&y->count, 1);
	struct shared_young_mapping *m;

	if (at >= SHARED_YOUNG_MAPPINGS) {
		y->count = SHARED_YOUNG_MAPPINGS;
		return 0;
	}
	m = &y->mappings[masked(at, SHARED_YOUNG_MAPPINGS - 1)];
	m->m.start = f->start;
	m->offset = f->offset;
	m->file = f->file;
	*(volatile uint64_t *)&m->m.end = f->end;
	return at + 1;
}

/* Asks the kernel what is mapped at an address of the current task. */
static __always_inline uint64_t young_ask(struct shared_young *y, uint64_t address)
{
	struct young_found f = { 0 };

	if (!HAVE_FIND_VMA || y->asked >= SHARED_YOUNG_ASKS || y->count >= SHARED_YOUNG_MAPPINGS)
		return 0;
	y->asked++;
	bpf_find_vma((void *)bpf_get_current_task_btf(), address, young_describe, &f, 0);
	return f.end ? young_add(y, &f) : 0;
}

/* 1 + the number of the mapping at an address, 0 = none is known. Branch-free, see SEARCH. */
static __always_inline uint64_t young_find(const struct shared_young *y, uint64_t address)
{
	uint64_t found = 0;

	if (address >> 48)
		return 0;
	for (uint64_t i = 0; i < SHARED_YOUNG_MAPPINGS; i++) {
		const struct shared_mapping *m = &y->mappings[i].m;
		uint64_t hit = not_above(m->start, address) & not_above(address + 1, *(volatile uint64_t *)&m->end);

		found |= (i + 1) & -hit & -(uint64_t)!found;
	}
	return found;
}

/* Finds the module of a mapping, once its file is known. */
static __always_inline bool young_place(struct shared_young_mapping *m)
{
	struct shared_code_file *f = bpf_map_lookup_elem(&code_files, &m->file);
	uint64_t offset = m->offset, address = 0, there = 0;

	if (!f)
		return false;
	for (int i = 0; i < SHARED_CODE_PARTS; i++) {
		uint64_t from = f->parts[i].offset;
		uint64_t hit = not_above(from, offset) & not_above(offset + 1, from + f->parts[i].size);

		address |= (f->parts[i].address + (offset - from)) & -(hit & ~there);
		there |= hit;
	}
	if (!there)
		return false;
	m->m.bias = m->m.start - address;
	*(volatile uint32_t *)&m->m.module = f->module;
	return true;
}

/* Puts the mapping of pc into u->last. False: the process is not young, or the file not known (yet). */
__attribute__((noinline)) int unwind_young(struct unwind *u, uint64_t pc)
{
	struct shared_young_mapping *m;
	struct shared_young *y;
	uint32_t pid;
	uint64_t at;

	if (!u)
		return 0;
	pid = u->record.pid;
	y = bpf_map_lookup_elem(&young, &pid);
	if (!y)
		return 0;
	at = young_find(y, pc);
	if (!at)
		at = young_ask(y, pc);
	if (!at)
		return 0;
	m = &y->mappings[masked(at - 1, SHARED_YOUNG_MAPPINGS - 1)];
	if (!*(volatile uint32_t *)&m->m.module && !young_place(m))
		return 0;
	u->last.start = m->m.start;
	u->last.end = m->m.end;
	u->last.bias = m->m.bias;
	u->last.module = m->m.module;
	return 1;
}

/* A child has what its parent has mapped. */
static __always_inline void young_fork(uint32_t from, uint32_t to)
{
	struct shared_young *y = bpf_map_lookup_elem(&young, &from);

	if (y)
		bpf_map_update_elem(&young, &to, y, BPF_ANY);
	else
		bpf_map_delete_elem(&young, &to);
}

static __always_inline void young_enter_vdso(struct shared_young *y, struct mm_struct *mm)
{
	struct young_found f = { .start = (uint64_t)BPF_CORE_READ(mm, context.vdso) };
	struct shared_code_file *vdso = bpf_map_lookup_elem(&code_files, &f.file);

	if (!f.start || !vdso)
		return;
	f.end = f.start + ((vdso->parts[0].offset + vdso->parts[0].size + (1ULL << page_shift) - 1) & -(1ULL << page_shift));
	young_add(y, &f);
}

/* The current task runs another program: enters it and its loader, which is where it begins. */
static __always_inline void young_exec(uint32_t pid, struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	struct mm_struct *mm = BPF_CORE_READ((struct task_struct___young *)task, mm);
	uint32_t zero = 0;
	struct shared_young *y = bpf_map_lookup_elem(&young_none, &zero);
	uint64_t pc = 0, code;

	if (!HAVE_FIND_VMA || !y || bpf_map_update_elem(&young, &pid, y, BPF_ANY))
		return;
	y = bpf_map_lookup_elem(&young, &pid);
	if (!y)
		return;
	bpf_probe_read_kernel(&pc, sizeof(pc), (uint64_t *)regs + REGS_IP);
	code = BPF_CORE_READ(mm, start_code);
	young_ask(y, pc);
	if (!young_find(y, code))
		young_ask(y, code);
	young_enter_vdso(y, mm);
}
