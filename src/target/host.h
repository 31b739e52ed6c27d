/*
 * host.h - what this machine allows: for doctor, and for the choice of collectors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct host {
	char release[128], machine[32];
	int major, minor;
	bool btf;                    /* /sys/kernel/btf/vmlinux */
	char tracefs[64];            /* where it is mounted and readable, "" = nowhere */
	int paranoid;                /* perf_event_paranoid; -2 = no perf events at all */
	int kptr_restrict;
	bool unprivileged_bpf;
	uint64_t capabilities;       /* effective, of the machine; 0 in a user namespace, whose own are in namespace_capabilities */
	uint64_t namespace_capabilities; /* effective in a user namespace of its own: over its processes, not over the kernel */
	uint64_t memlock_bytes;      /* RLIMIT_MEMLOCK, UINT64_MAX = unlimited */
	uint64_t perf_mlock_bytes;   /* perf_event_mlock_kb */
	bool pmu;                    /* a hardware cycles event opens */
	bool software_clock;         /* a cpu-clock event opens on ourselves */
	bool can_bpf;                /* a program that reads memory loads, and a trivial one attaches to a perf event */
	int bpf_error;               /* errno of the load, 0 = it loads */
	int bpf_attach_error;        /* errno of the attach; ENOSYS before 5.15 */
	int bpf_read_error;          /* errno of the load of a program that reads user and kernel memory */
	bool bpf_tracepoint, bpf_raw_tracepoint, bpf_uprobe; /* programs of these kinds load */
	bool bpf_jit;                /* programs are compiled, not interpreted */
	bool kernel_clock;           /* cpu-clock opens with kernel samples too */
	bool any_process;            /* cpu-clock opens on a whole CPU: every process may be sampled */
	bool kernel_symbols;         /* /proc/kallsyms shows us addresses */
	int cgroup_version;          /* 0 none, 1, 2, 3 = hybrid */
	int yama;                    /* ptrace_scope, -1 = none */
	bool container;              /* we run in one */
	bool own_users;              /* in a user namespace of its own: its root is not the machine's */
	bool own_pids;               /* in a pid namespace of its own: pids differ from the kernel's */
	uint32_t cpus;               /* online */
};
void host_probe(struct host *ret);
/* Returns how to get the rights that recording needs: on the host, with sudo, or by options of the container. */
const char *host_remedy(const struct host *h);
/* CAP_*, of the machine: what a user namespace gives to its root does not count. */
bool host_capable(const struct host *h, int capability);
