/*
 * file.bpf.h - which file a descriptor is, found while the call is made.
 *
 * Outside, a descriptor may be another file by the time one looks. Here the file
 * is a key (inode, its number and generation, the name under which it was opened),
 * and what it is called goes through the ring once for each key. A path is walked
 * up across mounts to the root of the mount namespace: what the program itself
 * would call it, unless it lives in a chroot.
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

#include "collect/io/sharedio.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	unsigned long s_magic;
};
struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_generation;
};
struct qstr {
	const unsigned char *name;
};
struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};
struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
};
struct vfsmount {
	struct dentry *mnt_root;
};
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};
struct file {
	unsigned int f_mode;
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct vm_area_struct {
	struct file *vm_file;
};
struct task_struct___files {
	struct files_struct *files;
};
struct sock_common {
	uint16_t skc_dport, skc_num;
	unsigned short skc_family;
};
struct sock {
	struct sock_common __sk_common;
};
struct socket {
	short type;
	struct sock *sk;
};

#pragma clang attribute pop

#ifdef FILE_DEFINE
#define FILE_MAP
#else
#define FILE_MAP extern
#endif

/* Keys of files that were sent; a slot that was overwritten only costs sending one again. */
FILE_MAP BPF_MAP(files_seen, ARRAY, SHARED_FILE_SEEN, uint32_t, uint64_t);

FILE_MAP BPF_MAP(io_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_io_counts);

static __always_inline struct shared_io_counts *io_counts_here(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&io_counts, &zero);
}

/* The open file behind a descriptor of the current task, NULL if there is none. */
static __always_inline struct file *file_of(uint32_t fd)
{
	struct task_struct___files *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **list, *file = NULL;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	list = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), list + fd);
	return file;
}

/* Sends what a file is called; not 0: there was no room. */
int file_send(uint64_t file, uint64_t inode, uint64_t key);

/* Makes the name of a file known outside, once. False: there was no room for it. */
static __always_inline bool file_announce(struct file *file, uint64_t key)
{
	struct shared_io_counts *counts;
	uint64_t *seen, *other;
	uint32_t slot = key >> 50;

	_Static_assert(SHARED_FILE_SEEN == 1 << 14, "the shift above");
	seen = bpf_map_lookup_elem(&files_seen, &slot);
	if (!seen || *seen == key)
		return true;
	slot ^= 1; /* two that are used in turn must not drive each other out */
	other = bpf_map_lookup_elem(&files_seen, &slot);
	if (!other || *other == key)
		return true;
	if (*seen)
		seen = other;
	if (!file_send((uint64_t)file, (uint64_t)BPF_CORE_READ(file, f_inode), key)) {
		*seen = key;
		return true;
	}
	counts = io_counts_here();
	if (counts)
		counts->lost_files++;
	return false;
}

static __always_inline uint64_t file_hash(uint64_t inode, uint64_t dentry, uint64_t number, uint64_t generation)
{
	return unwind_hash(unwind_hash(unwind_hash(inode, dentry), number), generation) | 1;
}

/* The key of a file. 0: none. */
static __always_inline uint64_t file_key(struct file *file)
{
	struct inode *inode;

	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	return file_hash((uint64_t)inode, (uint64_t)BPF_CORE_READ(file, f_path.dentry), BPF_CORE_READ(inode, i_ino),
			 BPF_CORE_READ(inode, i_generation));
}

/*
 * The same two by plain loads, where the kernel has bpf_rdonly_cast() (6.2): a read by a helper costs some 20 ns, and each
 * call needs six. For programs with typed arguments (tp_btf).
 */
extern void *bpf_rdonly_cast(const void *object, uint32_t type) __ksym __weak;

/* A struct of the kernel that begins with a pointer, as an element of a list of files does. */
struct list_head {
	struct list_head *next;
} __attribute__((preserve_access_index));

/* list, file: the numbers of these types in the kernel's BTF. */
static __always_inline struct file *file_of_typed(uint32_t fd, uint32_t list, uint32_t file)
{
	struct task_struct___files *task = (void *)bpf_get_current_task_btf();
	struct files_struct *files = task->files;
	struct list_head *element;
	struct fdtable *table;

	if (!files)
		return NULL;
	table = files->fdt;
	if (!table || fd >= table->max_fds)
		return NULL;
	element = bpf_rdonly_cast(table->fd + fd, list);
	return bpf_rdonly_cast(element->next, file);
}

/* The verifier does not let one compute with pointers of the kernel. They go through memory, where they become numbers.
 * handle: the address of the file. */
static __always_inline uint64_t file_key_typed(struct shared_io_thread *t, const struct file *file, uint64_t *handle)
{
	volatile uint64_t *memory = t->pointers;
	const struct inode *inode;

	*handle = 0;
	if (!file)
		return 0;
	memory[2] = (uint64_t)file;
	*handle = memory[2];
	inode = file->f_inode;
	memory[0] = (uint64_t)inode;
	memory[1] = (uint64_t)file->f_path.dentry;
	return file_hash(memory[0], memory[1], inode->i_ino, inode->i_generation);
}
