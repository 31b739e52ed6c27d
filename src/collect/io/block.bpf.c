/*
 * block.bpf.c - requests to block devices: how many, how large, how long the device took.
 *
 * All requests of the machine: who asked is known only where the thread itself issues
 * them (reads, direct and synced writes). The rest comes from the kernel's own
 * threads, for whomever, and is counted apart. Completions come in interrupts, so
 * that several CPUs add to one device: atomically.
 */
#include "collect/unwind/unwind.bpf.h"

#include "collect/io/sharedio.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major, first_minor;
	char disk_name[32];
};
struct request_queue {
	struct gendisk *disk;
};
struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
};

#pragma clang attribute pop

struct issued {
	uint64_t since_ns;
	uint32_t device, kind;
	uint32_t left; /* bytes not completed yet */
	uint32_t own;
};

BPF_MAP(block_requests, HASH, SHARED_REQUESTS, uint64_t, struct issued);

/* By major << 20 | minor. */
BPF_MAP(block_devices, HASH, SHARED_DEVICES, uint32_t, struct shared_device);

BPF_MAP(new_device, ARRAY, 1, uint32_t, struct shared_device);

uint64_t block_unknown; /* requests without room to remember them */

static __always_inline struct shared_device *device_of(struct gendisk *disk, uint32_t key)
{
	struct shared_device *d = bpf_map_lookup_elem(&block_devices, &key), *blank;
	uint32_t zero = 0;

	if (d)
		return d;
	blank = bpf_map_lookup_elem(&new_device, &zero);
	if (!blank || bpf_map_update_elem(&block_devices, &key, blank, BPF_NOEXIST))
		return bpf_map_lookup_elem(&block_devices, &key);
	d = bpf_map_lookup_elem(&block_devices, &key);
	if (d)
		bpf_probe_read_kernel_str(d->name, sizeof(d->name), disk->disk_name);
	return d;
}

static __always_inline enum shared_request_kind kind_of(uint32_t flags)
{
	switch (flags & 0xff) { /* REQ_OP_ */
	case 0:
		return REQUEST_READ;
	case 1:
	case 7: /* zone append */
		return REQUEST_WRITE;
	case 2:
		return REQUEST_FLUSH;
	default:
		return REQUEST_OTHER;
	}
}

SEC("raw_tp/block_rq_issue")
int on_block_issue(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq = (void *)ctx->args[0];
	uint64_t key = (uint64_t)rq;
	uint32_t pid = bpf_get_current_pid_tgid() >> 32;
	struct gendisk *disk = BPF_CORE_READ(rq, q, disk);
	struct issued i = { 0 };

	if (!disk)
		return 0;
	i.device = (uint32_t)BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
	i.kind = kind_of(BPF_CORE_READ(rq, cmd_flags));
	i.left = BPF_CORE_READ(rq, __data_len);
	i.own = bpf_map_lookup_elem(&processes, &pid) != NULL;
	i.since_ns = bpf_ktime_get_ns();
	if (!device_of(disk, i.device) || bpf_map_update_elem(&block_requests, &key, &i, BPF_ANY))
		__sync_fetch_and_add(&block_unknown, 1);
	return 0;
}

static __always_inline uint32_t log2_of(uint64_t v)
{
	uint32_t r = 0;

	for (int shift = 32; shift; shift >>= 1)
		if (v >> shift) {
			v >>= shift;
			r += shift;
		}
	return r & 63;
}

SEC("raw_tp/block_rq_complete")
int on_block_complete(struct bpf_raw_tracepoint_args *ctx)
{
	uint64_t key = ctx->args[0], bytes = (uint32_t)ctx->args[2], ns;
	struct issued *i = bpf_map_lookup_elem(&block_requests, &key);
	struct shared_device *d;
	typeof(&d->kinds[0]) k;
	uint32_t kind, device;

	if (!i)
		return 0;
	device = i->device;
	kind = i->kind;
	d = bpf_map_lookup_elem(&block_devices, &device);
	asm volatile("" : "+r"(kind)); /* else clang compares a copy, and the verifier of 6.1 does not see it */
	k = d ? &d->kinds[kind & (REQUEST_KINDS - 1)] : NULL;
	_Static_assert(REQUEST_KINDS == 4, "the mask above");
	if (k) {
		__sync_fetch_and_add(&k->bytes, bytes);
		if (i->own)
			__sync_fetch_and_add(&k->own_bytes, bytes);
	}
	if (bytes && bytes < i->left) { /* a part of it */
		i->left -= bytes;
		return 0;
	}
	ns = bpf_ktime_get_ns() - i->since_ns;
	if (k) {
		__sync_fetch_and_add(&k->requests, 1);
		__sync_fetch_and_add(&k->ns, ns);
		__sync_fetch_and_add(&k->latency[log2_of(ns)], 1);
		if (i->own)
			__sync_fetch_and_add(&k->own_requests, 1);
		if ((uint8_t)ctx->args[1])
			__sync_fetch_and_add(&k->errors, 1);
	}
	bpf_map_delete_elem(&block_requests, &key);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
