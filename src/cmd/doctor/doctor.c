#include "cmd/doctor/doctor.h"
#include "cmd/doctor/promises.h"
#include "cmd/recording/targets.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#ifdef GASFLAME_COLLECTORS
#include "collect/inject/remotemem.h"
#include "collect/probestack.h"
#include "collect/task/taskclock.h"
#endif
#include "elf/worker/worker.h"
#include "target/cgroup/cgroupcpu.h"
#include "target/host.h"
#include "target/proc.h"

/* --- the list of checks --- */

static const char *const state_words[] = { "ok", "limited", "missing" };

void checks_add(struct checks *c, const char *name, enum check_state state, const char *how,
		const char *without, const char *found, ...)
{
	struct check k = {
		.name = name, .state = state, .how = mem_strdup(how), .without = mem_strdup(without)
	};
	va_list ap;

	va_start(ap, found);
	if (vasprintf(&k.found, found, ap) < 0)
		abort();
	va_end(ap);
	plain_in_place(k.found);
	vec_push(&c->list, k);
}

/* The same remedy is spelled out once. */
static const char *told_before(const struct checks *c, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (c->list.v[j].how && !strcmp(c->list.v[j].how, c->list.v[i].how))
			return c->list.v[j].name;
	return NULL;
}

static void print_note(const char *title, const char *text, int column, int width)
{
	int at = printf("%*s%s ", column, "", title);

	command_wrap(text, at, column + 2, width);
}

void checks_print(const struct checks *c)
{
	enum { COLUMN = 33 };
	static const char *const colours[] = { "\033[32m", "\033[33m", "\033[31m" };
	bool coloured = log_colour(STDOUT_FILENO);
	/* In a pipe a line stays a line. */
	int width = isatty(STDOUT_FILENO) ? command_width() : INT_MAX;

	for (size_t i = 0; i < c->list.n; i++) {
		const struct check *k = &c->list.v[i];

		printf("%s%-7s%s  %-*s", coloured ? colours[k->state] : "", state_words[k->state],
		       coloured ? "\033[0m" : "", COLUMN - 9, k->name);
		command_wrap(k->found, COLUMN, COLUMN, width);
		if (k->how && told_before(c, i))
			print_note("to get it: as for", told_before(c, i), COLUMN, width);
		else if (k->how)
			print_note("to get it:", k->how, COLUMN, width);
		if (k->without)
			print_note("without it:", k->without, COLUMN, width);
	}
}

static void checks_json(const struct checks *c, struct json *j)
{
	json_open_array(j, "checks");
	for (size_t i = 0; i < c->list.n; i++) {
		const struct check *k = &c->list.v[i];

		json_open_row(j, 2);
		json_put_string(j, "name", k->name);
		json_put_string(j, "state", state_words[k->state]);
		json_put_string(j, "found", k->found);
		json_put_string(j, "how", k->how);
		json_put_string(j, "without", k->without);
		json_close(j);
	}
	json_close(j);
}

void checks_done(struct checks *c)
{
	vec_done_each(&c->list, e, free(e->found); free(e->how); free(e->without));
}

/* --- the machine --- */

#define PERF_INSTEAD "perf events with a copy of the stack, unwound outside the kernel: more overhead"

/* The programs in the kernel are made for the machine that this program is built for. */
static bool is_known(const struct host *h)
{
#ifdef __aarch64__
	return !strcmp(h->machine, "aarch64");
#else
	return !strcmp(h->machine, "x86_64");
#endif
}

static void check_kernel(const struct host *h, struct checks *c)
{
	bool new_enough = h->major > 5 || (h->major == 5 && h->minor >= 15);

	if (!is_known(h))
		checks_add(c, "kernel", CHECK_MISSING, "a machine with an x86-64 or arm64 processor",
			   "ls, report and query, on captures from elsewhere",
			   "%s on %s: recording knows x86-64 and arm64 only", h->release, h->machine);
	else if (new_enough)
		checks_add(c, "kernel", CHECK_OK, NULL, NULL, "%s on %s, %u CPUs", h->release, h->machine,
			   h->cpus);
	else
		checks_add(c, "kernel", CHECK_LIMITED, "Linux 5.15 or newer", PERF_INSTEAD,
			   "%s: too old for BPF recording", h->release);
	if (h->btf)
		checks_add(c, "BTF", CHECK_OK, NULL, NULL, "/sys/kernel/btf/vmlinux");
	else
		checks_add(c, "BTF", CHECK_MISSING,
			   "a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions ship", PERF_INSTEAD,
			   "no /sys/kernel/btf/vmlinux: the BPF programs cannot fit themselves to this "
			   "kernel");
}

/* Root without the right: a container's filter, or a locked-down kernel. */
static const char *why_no_bpf(const struct host *h)
{
	_cleanup_free_ char *lockdown = NULL;

	if (h->bpf_error == ENOSYS)
		return "a kernel with CONFIG_BPF_SYSCALL=y";
	if (!host_capable(h, CAP_SYS_ADMIN) && !(host_capable(h, CAP_BPF) && host_capable(h, CAP_PERFMON)))
		return host_remedy(h);
	if (h->bpf_attach_error && h->paranoid >= 3 && !host_capable(h, CAP_SYS_ADMIN))
		return host_remedy(h);
	if (!fd_read_path("/sys/kernel/security/lockdown", 4096, &lockdown, NULL) &&
	    strstr(lockdown, "[confidentiality]"))
		return "boot without lockdown=confidentiality";
	return h->container ? host_remedy(h) :
			      "it is refused in spite of the rights: a seccomp filter, or another security module";
}

/* Programs at uprobes may be preempted, which not every kernel survives: probestack.h. */
static void check_probes(const struct host *h, struct checks *c)
{
#ifdef GASFLAME_COLLECTORS
	struct err why = { 0 };

	if (h->bpf_uprobe && probestack_check_kernel(&why) == -ENOTSUP)
		checks_add(c, "uprobes", CHECK_LIMITED, "a kernel up to 7.3, or root with kernel.kptr_restrict below 2",
			   "everything but heap, task, alloc and function marks", "%s", why.text);
	/* The hooks of the heap and of tasks are in memory that is read-only in the target. */
	if (h->bpf_uprobe && remotemem_check(&why) == -EACCES)
		checks_add(c, "read-only memory", CHECK_LIMITED, "the kernel parameter proc_mem.force_override=ptrace (or always)",
			   "everything but heap and task", "the kernel does not let us write to read-only memory of a process, not even as its tracer");
#ifndef __x86_64__
	checks_add(c, "hooks", CHECK_LIMITED, "a machine with an x86-64 processor", "everything but task",
		   "what is put into a target for -e task is known for x86-64 only");
#else
	if (h->bpf_uprobe && taskclock_check(&why) == -ENOTSUP)
		checks_add(c, "time-stamp counter", CHECK_LIMITED, "a machine whose counter never stops (invariant TSC)",
			   "everything but task", "%s", why.text);
#endif
#endif
}

static void check_bpf(const struct host *h, struct checks *c)
{
	if (h->bpf_error)
		checks_add(c, "BPF", CHECK_MISSING, why_no_bpf(h), PERF_INSTEAD,
			   "loading a program fails: %s", strerror(h->bpf_error));
	else if (h->bpf_attach_error)
		checks_add(c, "BPF", CHECK_MISSING,
			   h->bpf_attach_error == ENOSYS ? "Linux 5.15 or newer" : host_remedy(h), PERF_INSTEAD,
			   "a program loads, but attaching it to a perf event fails: %s",
			   strerror(h->bpf_attach_error));
	else if (h->bpf_read_error)
		checks_add(c, "BPF", CHECK_MISSING, why_no_bpf(h), PERF_INSTEAD,
			   "a program loads, but none that reads memory, which walking a stack is: %s", strerror(h->bpf_read_error));
	else
		checks_add(c, "BPF", CHECK_OK, NULL, NULL, "a program loads, may read memory, and attaches to a perf event");
	if (!h->bpf_error) {
		bool all = h->bpf_tracepoint && h->bpf_raw_tracepoint && h->bpf_uprobe;

		checks_add(c, "BPF programs", all ? CHECK_OK : CHECK_LIMITED, all ? NULL : why_no_bpf(h),
			   all ? NULL : "CPU time; processes and libraries that come later may be missed",
			   "tracepoints %s, raw tracepoints %s, uprobes %s", h->bpf_tracepoint ? "yes" : "no",
			   h->bpf_raw_tracepoint ? "yes" : "no", h->bpf_uprobe ? "yes" : "no");
	}
	check_probes(h, c);
	if (h->bpf_jit)
		checks_add(c, "BPF JIT", CHECK_OK, NULL, NULL, "on");
	else
		checks_add(c, "BPF JIT", CHECK_LIMITED, "sudo sysctl net.core.bpf_jit_enable=1",
			   "everything, at several times the cost a sample", "off: programs are interpreted");
}

static void check_capabilities(const struct host *h, struct checks *c)
{
	static const struct {
		int id;
		const char *name;
		bool by_admin; /* the kernel takes SYS_ADMIN for it */
		const char *purpose, *without;
	} wanted[] = {
		{ CAP_BPF, "CAP_BPF", true, "to load the programs that walk stacks in the kernel",
		  PERF_INSTEAD },
		{ CAP_PERFMON, "CAP_PERFMON", true, "to sample other users' processes and the kernel",
		  "your own processes, as far as perf_event_paranoid lets you" },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", false, "to read other users' maps and files",
		  "your own processes, as long as they may be dumped" },
		{ CAP_SYSLOG, "CAP_SYSLOG", false, "to see the kernel's symbols",
		  "kernel frames by module and offset, unless kptr_restrict is 0" },
		{ CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", true,
		  "to open libraries that were deleted or replaced since they were mapped",
		  "the program itself, and every file that is still in its place" },
		{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN", false,
		  "to attach uprobes (heap); stands in for most of the others", "all but uprobes" },
	};

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		bool own = host_capable(h, wanted[i].id);
		bool lent = !own && wanted[i].by_admin && host_capable(h, CAP_SYS_ADMIN);
		bool empty = !own && (h->namespace_capabilities >> wanted[i].id & 1);
		enum check_state state = own || lent			   ? CHECK_OK
					 : wanted[i].id == CAP_SYS_ADMIN ? CHECK_LIMITED
									 : CHECK_MISSING;

		checks_add(c, wanted[i].name, state, state == CHECK_MISSING ? host_remedy(h) : NULL,
			   state == CHECK_OK ? NULL : wanted[i].without, "%s%s",
			   lent ? "by way of CAP_SYS_ADMIN: " : empty ? "of this user namespace only: " : "",
			   wanted[i].purpose);
	}
}

static void check_paranoid(const struct host *h, struct checks *c)
{
	static const char change[] =
		"sudo sysctl kernel.perf_event_paranoid=1 (until the next boot; to keep it: echo "
		"'kernel.perf_event_paranoid = 1' | sudo tee /etc/sysctl.d/60-perf.conf)";
	/* Tried, not inferred: Debian's kernels ask for CAP_SYS_ADMIN at level 3, others take CAP_PERFMON. */
	bool rights = host_capable(h, CAP_PERFMON) || host_capable(h, CAP_SYS_ADMIN);
	bool free_of_it = rights && h->any_process;

	if (h->paranoid == -2)
		checks_add(c, "perf events", CHECK_MISSING,
			   "a kernel with CONFIG_PERF_EVENTS=y, and /proc/sys", "nothing can be recorded",
			   "no /proc/sys/kernel/perf_event_paranoid");
	else if (free_of_it)
		checks_add(c, "paranoid level", CHECK_OK, NULL, NULL,
			   "perf_event_paranoid is %d%s, which does not bind this user", h->paranoid,
			   h->paranoid == 3 ? " (Debian's stock value)" : "");
	else if (h->paranoid >= 3 && !h->software_clock && rights)
		checks_add(c, "paranoid level", CHECK_MISSING, "sudo sysctl kernel.perf_event_paranoid=2, or run it with sudo",
			   "nothing can be recorded",
			   "perf_event_paranoid is %d, where this kernel asks for CAP_SYS_ADMIN: CAP_PERFMON is not enough", h->paranoid);
	else if (h->paranoid >= 3 && !h->software_clock)
		checks_add(c, "paranoid level", CHECK_MISSING, h->own_users ? host_remedy(h) : change,
			   "nothing can be recorded, but with sudo",
			   "perf_event_paranoid is %d%s: no perf event without CAP_PERFMON, not even on "
			   "your own processes",
			   h->paranoid, h->paranoid == 3 ? ", Debian's stock value" : "");
	else if (h->paranoid >= 2) /* kernels without Debian's patch take more than 2 for 2 */
		checks_add(c, "paranoid level", CHECK_LIMITED, h->own_users ? host_remedy(h) : change, "your own processes, user frames",
			   "perf_event_paranoid is %d: no kernel frames, no other users' processes",
			   h->paranoid);
	else if (h->paranoid == 1)
		checks_add(c, "paranoid level", CHECK_LIMITED, host_remedy(h),
			   "your own processes, user and kernel frames",
			   "perf_event_paranoid is 1: no other users' processes");
	else
		checks_add(c, "paranoid level", CHECK_OK, NULL, NULL, "perf_event_paranoid is %d",
			   h->paranoid);
}

static void check_events(const struct host *h, struct checks *c)
{
	check_paranoid(h, c);
	if (h->software_clock)
		checks_add(c, "cpu-clock", CHECK_OK, NULL, NULL, "opens%s%s",
			   h->kernel_clock ? ", with the kernel" : "",
			   h->any_process ? ", on whole CPUs" : "");
	else
		checks_add(c, "cpu-clock", CHECK_MISSING,
			   h->paranoid >= 3 ? "see the paranoid level"
			   : h->container   ? host_remedy(h)
					    : "it is refused by a seccomp filter, or another security module",
			   "nothing can be recorded", "the timer that samples are taken by does not open");
	if (h->pmu)
		checks_add(c, "PMU", CHECK_OK, NULL, NULL, "a hardware cycles event opens");
	else
		checks_add(c, "PMU", CHECK_LIMITED,
			   h->software_clock ? "real hardware, or a virtual machine with a PMU"
					     : "see the paranoid level",
			   "CPU time by the timer (cpu-clock): the same picture; no cycles or cache misses",
			   "no hardware counters");
	if (*h->tracefs)
		checks_add(c, "tracefs", CHECK_OK, NULL, NULL, "%s", h->tracefs);
	else
		checks_add(c, "tracefs", CHECK_LIMITED,
			   h->own_users ? host_remedy(h) :
			   h->container ? "start this container with -v /sys/kernel/tracing:/sys/kernel/tracing:ro" :
			   geteuid()	? host_remedy(h) :
					  "mount -t tracefs tracefs /sys/kernel/tracing",
			   "CPU time and waits; events by name are not to be had", "not mounted, or not readable");
}

/* Returns whether there is a process whose cgroup is not visible from here. */
static bool any_hidden(void)
{
	bool hidden = false;
	struct proc_ids all;

	if (proc_list(&all))
		return false;
	for (size_t i = 0; i < all.list.n && !hidden; i++)
		hidden = cgroupcpu_hidden(all.list.v[i]);
	vec_done(&all.list);
	return hidden;
}

/* Checks what a container hides. */
static void check_container(const struct host *h, struct checks *c)
{
	if (h->own_users)
		checks_add(c, "user namespace", CHECK_MISSING, host_remedy(h),
			   "the processes in here, as far as perf_event_paranoid lets an ordinary user",
			   "one of its own, as in a rootless container: its root is an ordinary user of the machine, without rights to BPF or the kernel's events");
	if (h->own_pids)
		checks_add(c, "pid namespace", CHECK_MISSING,
			   h->own_users ? host_remedy(h) :
			   h->container ? "start this container with --pid=host" : "run it outside of that namespace",
			   "the processes in here, by perf events: the kernel's BPF programs count in other pids",
			   "one of its own: other processes cannot be seen");
	else if (h->container)
		checks_add(c, "pid namespace", CHECK_OK, NULL, NULL, "the machine's: its processes can be seen from this container");
	if (h->container && any_hidden())
		checks_add(c, "others' cgroups", CHECK_LIMITED,
			   "start this container with --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:ro",
			   "everything but limits and quotas by their numbers", "not to be seen from this container");
}

static void check_kernel_symbols(const struct host *h, struct checks *c)
{
	if (h->kernel_symbols)
		checks_add(c, "kernel symbols", CHECK_OK, NULL, NULL,
			   "/proc/kallsyms shows addresses (kptr_restrict %d)", h->kptr_restrict);
	else
		checks_add(c, "kernel symbols", CHECK_LIMITED,
			   h->kptr_restrict == 2 ? "sudo sysctl kernel.kptr_restrict=1" : host_remedy(h),
			   "kernel frames without names", "/proc/kallsyms hides addresses (kptr_restrict %d)",
			   h->kptr_restrict);
}

static void check_limits(const struct host *h, struct checks *c)
{
	static const char *const cgroups[] = { "none", "version 1", "version 2",
					       "hybrid: version 1, and 2 at unified" };
	bool locks = host_capable(h, CAP_IPC_LOCK) || h->memlock_bytes == UINT64_MAX;
	char memlock[32], perf[32];

	if (h->cgroup_version)
		checks_add(c, "cgroups", CHECK_OK, NULL, NULL, "%s", cgroups[h->cgroup_version]);
	else
		checks_add(c, "cgroups", CHECK_LIMITED, "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
			   "everything but telling containers apart", "none mounted");
	/* Each CPU's ring takes from the two together; 516 KiB is the kernel's own default. */
	str_bytes(memlock, h->memlock_bytes);
	str_bytes(perf, h->perf_mlock_bytes);
	if (locks || h->memlock_bytes + h->perf_mlock_bytes >= 516 * 1024)
		checks_add(c, "locked memory", CHECK_OK, NULL, NULL,
			   "memlock %s, perf_event_mlock_kb %s a CPU",
			   h->memlock_bytes == UINT64_MAX ? "unlimited" : memlock, perf);
	else
		checks_add(c, "locked memory", CHECK_LIMITED,
			   "ulimit -l 8192, or sudo sysctl kernel.perf_event_mlock_kb=516",
			   "smaller buffers: samples may be lost under load",
			   "memlock %s, perf_event_mlock_kb %s a CPU", memlock, perf);
	if (h->yama < 1)
		checks_add(c, "ptrace scope", CHECK_OK, NULL, NULL, "%s",
			   h->yama < 0 ? "Yama is not there" : "0");
	else if (host_capable(h, CAP_SYS_PTRACE) && h->yama < 3)
		checks_add(c, "ptrace scope", CHECK_OK, NULL, NULL,
			   "Yama's ptrace_scope is %d, which does not bind this user", h->yama);
	else
		checks_add(c, "ptrace scope", CHECK_LIMITED, "sudo sysctl kernel.yama.ptrace_scope=0",
			   "all recording: it reads, and attaches to nothing", "Yama's ptrace_scope is %d",
			   h->yama);
}

static void check_build(struct checks *c)
{
#ifndef GASFLAME_COLLECTORS
	checks_add(c, "recording", CHECK_MISSING, "a build with -Dcollectors=enabled",
		   "ls, report and query, on captures from elsewhere", "not built in");
#endif
#ifdef GASFLAME_HTTP
	const char *urls = getenv("DEBUGINFOD_URLS");

	checks_add(c, "debuginfod", CHECK_OK, NULL, NULL, "built in; DEBUGINFOD_URLS is %s",
		   urls && *urls ? urls : "not set");
#else
	checks_add(c, "debuginfod", CHECK_LIMITED, "a build with -Dhttp=enabled",
		   "debug files on this machine, and --symbols", "not built in");
#endif
}

/* --- the verdict --- */

struct verdict {
	const char *mode; /* "bpf", "perf", "none" */
	bool kernel_stacks, other_processes;
	char text[256];
};

static void judge(const struct host *h, struct verdict *ret)
{
#ifdef GASFLAME_COLLECTORS
	bool known = is_known(h);
#else
	bool known = false; /* built without record */
#endif

	*ret = (struct verdict){ .mode = "none" };
	if (known && h->can_bpf && h->btf && h->any_process && !h->own_pids) {
		ret->mode = "bpf";
		ret->kernel_stacks = ret->other_processes = true;
		snprintf(ret->text, sizeof(ret->text),
			 "full recording (BPF) of every process, user and kernel stacks");
	} else if (known && h->software_clock) {
		ret->mode = "perf";
		ret->kernel_stacks = h->kernel_clock;
		ret->other_processes = h->any_process;
		snprintf(ret->text, sizeof(ret->text),
			 "fallback: perf events with stack dumps, of %s, %s stacks",
			 h->any_process ? "every process" : "your own processes",
			 h->kernel_clock ? "user and kernel" : "user");
	} else {
		snprintf(ret->text, sizeof(ret->text), "no recording; reports of existing captures only");
	}
}

/* --- the command --- */

static void examine_machine(const struct host *h, struct checks *c)
{
	check_kernel(h, c);
	check_bpf(h, c);
	check_capabilities(h, c);
	check_events(h, c);
	check_container(h, c);
	check_kernel_symbols(h, c);
	check_limits(h, c);
	check_build(c);
}

struct checked_process {
	pid_t pid;
	int operand; /* that named it */
	struct checks checks;
	struct doctor_build build;
};

/* The processes that the operands name. */
struct checked {
	VEC(struct checked_process) list;
};

/* Fills the pids; -ESRCH and a message if any name matches no process. */
static int find_processes(char *const *names, int count, struct checked *ret)
{
	for (int i = 0; i < count; i++) {
		struct err err = { 0 };
		struct target_found found;

		if (target_find(names[i], &found, &err)) {
			log_error("%s", err.text);
			return -ESRCH;
		}
		targets_say(names[i], &found);
		for (size_t p = 0; p < found.pids.list.n; p++)
			vec_push(&ret->list, (struct checked_process){ .pid = found.pids.list.v[p], .operand = i });
		target_found_done(&found);
	}
	return 0;
}

static bool has_ended(pid_t pid)
{
	struct proc_stat s;

	return proc_stat(pid, &s) || s.state == 'Z' || s.state == 'X';
}

/* Is it one of several that the operand named? */
static bool has_others(const struct checked *p, size_t i)
{
	return (i && p->list.v[i - 1].operand == p->list.v[i].operand) ||
	       (i + 1 < p->list.n && p->list.v[i + 1].operand == p->list.v[i].operand);
}

/* Can all of them be recorded? Of a unit or a container processes come and go: one that ended meanwhile is left out, unless it is the last. */
static bool check_processes(struct checked *p, const struct host *host)
{
	struct worker *worker = worker_new();
	bool all = true;

	for (size_t i = 0; i < p->list.n;) {
		struct checked_process *x = &p->list.v[i];
		bool can = doctor_check_process(x->pid, host, worker, &x->checks, &x->build);

		if (!can && has_ended(x->pid) && has_others(p, i)) {
			checks_done(&x->checks);
			memmove(x, x + 1, (--p->list.n - i) * sizeof(*x));
			continue;
		}
		all &= can;
		i++;
	}
	worker_free(worker);
	return all;
}

static void checked_done(struct checked *p)
{
	vec_done_each(&p->list, e, checks_done(&e->checks));
}

static void print_json(const struct checks *machine, const struct verdict *v, const struct promises *promises, const struct checked *checked)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct json j = json_begin(&b);

	json_open_object(&j, NULL);
	checks_json(machine, &j);
	json_break(&j, 0);
	json_put_string(&j, "mode", v->mode);
	json_put_bool(&j, "kernel_stacks", v->kernel_stacks);
	json_put_bool(&j, "other_processes", v->other_processes);
	json_put_string(&j, "summary", v->text);
	json_break(&j, 0);
	promises_json(promises, &j);
	json_open_array_line(&j, "targets", 0);
	for (size_t i = 0; i < checked->list.n; i++) {
		json_open_row(&j, 1);
		json_put_int(&j, "pid", checked->list.v[i].pid);
		checks_json(&checked->list.v[i].checks, &j);
		doctor_build_json(&checked->list.v[i].build, &j);
		json_close(&j);
	}
	json_close(&j);
	json_end_line(&j);
	plain_put(b.data, b.n);
}

static void print_text(const struct checks *machine, const struct verdict *v, const struct promises *promises, const struct checked *checked)
{
	checks_print(machine);
	for (size_t i = 0; i < checked->list.n; i++) {
		putchar('\n');
		checks_print(&checked->list.v[i].checks);
	}
	printf("\nOn this machine: %s.\n", v->text);
	promises_print(promises);
}

static int doctor_run(const struct command *c, int argc, char **argv)
{
	struct checked checked = { 0 };
	struct promises promises;
	struct checks machine = { 0 };
	struct verdict verdict;
	bool json = false;
	struct host host;
	const struct option_spec options[] = {
		{ 0, "json", OPTION_FLAG, &json, .help = "the same as JSON" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv);
	bool possible;

	if (first < 0)
		return -first - 1;
	if (find_processes(argv + first, argc - first, &checked)) {
		checked_done(&checked);
		return EXIT_ERROR;
	}
	host_probe(&host);
	examine_machine(&host, &machine);
	judge(&host, &verdict);
	promises_make(&promises, &host);
	possible = check_processes(&checked, &host) && strcmp(verdict.mode, "none");
	if (json)
		print_json(&machine, &verdict, &promises, &checked);
	else
		print_text(&machine, &verdict, &promises, &checked);
	checks_done(&machine);
	checked_done(&checked);
	return possible ? EXIT_OK : EXIT_ERROR;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check what this machine allows, and how to enable the rest",
	.usage = "[options] [TARGET...]",
	.describe =
		"Looks at the kernel, the rights of this user and the settings that recording depends on. It "
		"tries what it can (a BPF program is loaded, a timer opened) and changes nothing.\n\n"
		"With a TARGET (" COMMAND_TARGETS ") it also tells "
		"what can be seen of each such process: rights, symbols, debug information, unwind tables, "
		"allocator; which Ethereum client it is, in which version and build, whether its jemalloc profiles the heap, "
		"and which build of it has more.\n\n"
		"The exit status is 0 when recording is possible in some way, and 1 when it is not, of this "
		"machine or of a TARGET.",
	.example = "gasflame doctor\nsudo gasflame doctor reth",
	.run = doctor_run,
	.keeps_rights = true,
};
