#include "collect/promise.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "base/err.h"
#include "collect/collector.h"
#include "collect/inject/remotemem.h"
#include "collect/probestack.h"
#include "collect/task/taskclock.h"
#include "target/host.h"

const char *const promise_words[] = { "none", "reads", "perf", "bpf" };

int promise_machine(const struct host *h, struct err *err)
{
	if (h->major < 5 || (h->major == 5 && h->minor < 15))
		return err_set(err, ENOSYS, "kernel %s is older than 5.15, which BPF unwinding needs", h->release);
	if (!h->btf)
		return err_set(err, ENOSYS,
			       "this kernel has no BTF (/sys/kernel/btf/vmlinux; CONFIG_DEBUG_INFO_BTF), which BPF "
			       "programs need");
	if (h->own_pids)
		return err_set(err, ENOTSUP, "gasflame runs in a pid namespace of its own, and the kernel counts in the machine's pids%s",
			       h->container ? " (start this container with --pid=host)" : "");
	return 0;
}

int promise_bpf(const struct host *h, struct err *err)
{
	int r = promise_machine(h, err);

	if (r < 0)
		return r;
	if (h->bpf_error)
		return err_errno(err, h->bpf_error, "no BPF program can be loaded");
	if (h->bpf_read_error)
		return err_errno(err, h->bpf_read_error, "BPF programs may not read memory");
	if (h->bpf_attach_error)
		return err_errno(err, h->bpf_attach_error, "no BPF program can be attached to a perf event");
	if (!h->any_process)
		return err_set(err, EACCES, "perf events of whole CPUs are refused");
	return 0;
}

/* Programs at uprobes, and for two of these collectors code that is put into the target. */
static int check_probes(const struct host *h, size_t i, struct err *err)
{
	bool hooks = i == COLLECTOR_heap || i == COLLECTOR_task;
	int r = h->bpf_uprobe ? 0 : err_set(err, EPERM, "no BPF program can be loaded for a uprobe");

#ifndef __x86_64__
	if (i == COLLECTOR_task)
		return err_set(err, ENOTSUP, "its hooks are for x86-64 only");
#endif
	if (!r && probestack_check_kernel(err) == -ENOTSUP)
		r = -ENOTSUP;
	/* /proc/PID/mem is its owner's. */
	if (!r && hooks && !host_capable(h, CAP_DAC_OVERRIDE))
		r = err_set(err, EACCES, "the memory of other users' processes is written to, which takes root, or CAP_DAC_OVERRIDE beside the others");
	if (!r && hooks && remotemem_check(err) == -EACCES)
		r = -EACCES;
	if (!r && i == COLLECTOR_task)
		r = taskclock_check(err);
	return r;
}

static bool is_at_probes(size_t i)
{
	return i == COLLECTOR_heap || i == COLLECTOR_task || i == COLLECTOR_alloc || i == COLLECTOR_goroutine || i == COLLECTOR_span;
}

enum promise_how promise_of(const struct host *h, size_t i, struct err *err)
{
	unsigned flags = collector_table[i]->flags;

	*err = (struct err){ 0 };
	if (flags & COLLECTOR_READS)
		return PROMISE_READS;
	if (promise_bpf(h, err) >= 0 && (!is_at_probes(i) || check_probes(h, i, err) >= 0))
		return PROMISE_BPF;
	if (flags & (COLLECTOR_CLOCK | COLLECTOR_PERF))
		return h->software_clock ? PROMISE_PERF : PROMISE_NONE;
	return PROMISE_NONE;
}
