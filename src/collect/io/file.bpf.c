/*
 * file.bpf.c - what a file is called: its names up to the root of the mount namespace, through the ring.
 */
#define FILE_DEFINE
#include "collect/io/file.bpf.h"
#include "collect/scratch.bpf.h"

/* The record, and how far the way up has come. Taken and given back as a struct scratch is, and for the same reason. */
struct file_scratch {
	uint64_t busy;
	struct shared_file record;
	char names[SHARED_FILE_BYTES + 256];
	uint64_t dentry, mount, root; /* root: of the mount */
	uint64_t at;
};

BPF_MAP(file_scratches, PERCPU_ARRAY, SCRATCHES, uint32_t, struct file_scratch);

/* From a mount to the one it is mounted on. Not 0: there is none, the path is whole. */
static __always_inline int climb(struct file_scratch *s)
{
	struct mount *mount = (void *)s->mount, *above = BPF_CORE_READ(mount, mnt_parent);

	if (!above || above == mount) {
		s->record.flags &= ~FILE_CUT;
		return 1;
	}
	s->dentry = (uint64_t)BPF_CORE_READ(mount, mnt_mountpoint);
	s->mount = (uint64_t)above;
	s->root = (uint64_t)BPF_CORE_READ(above, mnt.mnt_root);
	return 0;
}

/* Takes one name further up, or over a mount; a function of its own, so that the verifier checks it once.
 * Not 0: that was all. */
int file_step(struct file_scratch *s)
{
	struct dentry *dentry, *parent;
	const unsigned char *name;
	uint64_t at;
	long n;

	if (!s)
		return 1;
	dentry = (void *)s->dentry;
	if (s->dentry == s->root)
		return climb(s);
	at = s->at;
	if (at >= SHARED_FILE_BYTES)
		return 1;
	parent = BPF_CORE_READ(dentry, d_parent);
	name = BPF_CORE_READ(dentry, d_name.name);
	n = bpf_probe_read_kernel_str(s->names + at, 256, name);
	if (n <= 0)
		return 1;
	s->at = at + n;
	s->record.count++;
	if (dentry == parent) { /* no tree above it: a memfd, an anonymous inode */
		s->record.flags &= ~FILE_CUT;
		s->record.flags |= FILE_ROOTLESS;
		return 1;
	}
	s->dentry = (uint64_t)parent;
	return 0;
}

static __always_inline void name_path(struct file_scratch *s, struct file *file)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct vfsmount *vfs = BPF_CORE_READ(file, f_path.mnt);

	s->record.flags = FILE_CUT | (BPF_CORE_READ(dentry, d_hash.pprev) ? 0 : FILE_DELETED);
	s->dentry = (uint64_t)dentry;
	s->mount = (uint64_t)vfs - bpf_core_field_offset(struct mount, mnt);
	s->root = (uint64_t)BPF_CORE_READ(vfs, mnt_root);
	for (int i = 0; i < SHARED_FILE_PARTS; i++)
		if (file_step(s))
			break;
	s->record.bytes = s->at;
}

static __always_inline void name_socket(struct file_scratch *s, struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sock = BPF_CORE_READ(socket, sk);

	s->record.type = BPF_CORE_READ(socket, type);
	s->record.family = BPF_CORE_READ(sock, __sk_common.skc_family);
	s->record.local_port = BPF_CORE_READ(sock, __sk_common.skc_num);
	s->record.peer_port = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));
}

static __always_inline int send_name(struct file_scratch *s, struct file *file, struct inode *inode, uint64_t key)
{
	uint64_t bytes;

	__builtin_memset(&s->record, 0, sizeof(s->record));
	s->at = 0;
	s->record.kind = RECORD_FILE;
	s->record.key = key;
	s->record.inode = BPF_CORE_READ(inode, i_ino);
	s->record.mode = BPF_CORE_READ(inode, i_mode);
	s->record.magic = BPF_CORE_READ(inode, i_sb, s_magic);
	if ((s->record.mode & 0170000) == 0140000) /* S_IFSOCK */
		name_socket(s, file);
	else
		name_path(s, file);
	bytes = s->record.bytes;
	asm volatile("" : "+r"(bytes)); /* else clang checks a copy, and the verifier does not see it */
	if (bytes > sizeof(s->names))
		return -1;
	return bpf_ringbuf_output(&ring, &s->record, sizeof(s->record) + bytes, BPF_RB_NO_WAKEUP);
}

int file_send(uint64_t file, uint64_t inode, uint64_t key)
{
	struct file_scratch *s = NULL;
	int r;

	for (uint32_t i = 0; i < SCRATCHES && !s; i++) {
		uint32_t at = i;

		s = bpf_map_lookup_elem(&file_scratches, &at);
		if (s && __sync_lock_test_and_set(&s->busy, 1))
			s = NULL;
	}
	if (!s)
		return -1;
	r = send_name(s, (void *)file, (void *)inode, key);
	__sync_lock_test_and_set(&s->busy, 0);
	return r;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
