/*
 * kernel.bpf.h - the few kernel types that our BPF programs read, relocated by BTF (CO-RE), and how a map is declared.
 *
 * Only the fields that are used: the build does not need, and never takes, the
 * build host's own BTF.
 */
#pragma once

#include <linux/types.h>
#include <linux/bpf.h>

typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __u64 uint64_t;
typedef __s16 int16_t;
typedef __s32 int32_t;
typedef __s64 int64_t;
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* A group's run queue on one CPU. How long it was stopped by a CPU quota, its own or that of a group above, summed at the
 * end of each stop: since 6.6, from 5.19 on, and before. */
struct cfs_rq {
	__u64 throttled_clock_self_time;
};

struct cfs_rq___from519 {
	__u64 throttled_clock_pelt_time;
};

struct cfs_rq___before519 {
	__u64 throttled_clock_task_time;
};

struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime; /* when it was put on its CPU */
	struct cfs_rq *cfs_rq;       /* CONFIG_FAIR_GROUP_SCHED */
};

struct sched_info {
	unsigned long long run_delay;
};

struct thread_struct {
	unsigned long fsbase; /* x86-64: kept when set by arch_prctl() or clone(), and at each switch */
};

struct task_struct {
	struct thread_struct thread;
	struct sched_entity se;
	struct sched_info sched_info; /* CONFIG_SCHED_INFO */
	__u64 start_time;             /* CLOCK_MONOTONIC */
	__u64 start_boottime;         /* CLOCK_BOOTTIME: what /proc/PID/stat has, in ticks */
	struct task_struct *group_leader;
	int pid, tgid;
	int exit_code;
	unsigned int flags;
	unsigned int __state;
	int on_cpu; /* CONFIG_SMP */
	bool throttled; /* CONFIG_CFS_BANDWIDTH, since 6.18: stopped by the quota; before, only its run queue knows */
	char comm[16];
};

#pragma clang attribute pop

/* A map that libbpf creates, without flags. A map with flags or without a value type is written out where it stands. */
#define BPF_MAP(name, kind, entries, key_type, value_type) \
	struct {                                           \
		__uint(type, BPF_MAP_TYPE_##kind);         \
		__uint(max_entries, entries);              \
		__type(key, key_type);                     \
		__type(value, value_type);                 \
	} name SEC(".maps")

/* Only ever handled as a pointer; its layout on x86-64 is ABI, see user_registers in unwind.bpf.h. */
struct pt_regs;
