#include "target/host.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file/fd.h"

/* A number in a file of /proc/sys, or fallback. */
static long read_number(const char *path, long fallback)
{
	_cleanup_free_ char *text = NULL;
	char *end;
	long v;

	if (fd_read_path(path, 4096, &text, NULL))
		return fallback;
	v = strtol(text, &end, 10);
	return end == text ? fallback : v;
}

/* --- perf events --- */

static int open_event(uint32_t type, uint64_t config, pid_t pid, int cpu, bool kernel)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.sample_period = 1000000,
		.disabled = 1,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
	};

	return syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool event_opens(uint32_t type, uint64_t config, pid_t pid, int cpu, bool kernel)
{
	_cleanup_fd_ int fd = open_event(type, config, pid, cpu, kernel);

	return fd >= 0;
}

/* --- BPF --- */

static int load_code(uint32_t type, const struct bpf_insn *code, size_t n)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = n;
	attr.license = (uintptr_t)"Dual BSD/GPL";
	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int load_program(uint32_t type)
{
	/* r0 = 0; exit: every kind of program may do that. */
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return load_code(type, code, ARRAY_LEN(code));
}

static bool program_loads(uint32_t type)
{
	_cleanup_fd_ int fd = load_program(type);

	return fd >= 0;
}

/* Reads 8 bytes of user or kernel memory at address 0, as our programs do at better ones. 0, or the errno of the load: a kernel that is locked down
 * for confidentiality has no such function for programs. */
static int try_reading(int32_t function)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3 },
		{ .code = BPF_JMP | BPF_CALL, .imm = function },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	_cleanup_fd_ int fd = load_code(BPF_PROG_TYPE_PERF_EVENT, code, ARRAY_LEN(code));

	return fd >= 0 ? 0 : errno;
}

/* The attach that the recorder does: a link to a perf event, here one of our own that never runs. */
static int attach_program(int program)
{
	_cleanup_fd_ int event = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, -1, false);
	_cleanup_fd_ int link = -1;
	union bpf_attr attr;

	if (event < 0)
		return errno;
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = program;
	attr.link_create.target_fd = event;
	attr.link_create.attach_type = BPF_PERF_EVENT;
	link = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	/* Kernels before 5.15 know the call, but not for perf events. */
	return link >= 0 ? 0 : errno == EINVAL ? ENOSYS : errno;
}

static void probe_bpf(struct host *h)
{
	_cleanup_fd_ int program = load_program(BPF_PROG_TYPE_PERF_EVENT);

	h->bpf_error = program < 0 ? errno : 0;
	h->bpf_attach_error = program < 0 ? h->bpf_error : attach_program(program);
	h->bpf_read_error = program < 0 ? h->bpf_error : try_reading(BPF_FUNC_probe_read_user);
	if (!h->bpf_read_error)
		h->bpf_read_error = try_reading(BPF_FUNC_probe_read_kernel);
	h->can_bpf = !h->bpf_error && !h->bpf_attach_error && !h->bpf_read_error;
	h->bpf_tracepoint = program_loads(BPF_PROG_TYPE_TRACEPOINT);
	h->bpf_raw_tracepoint = program_loads(BPF_PROG_TYPE_RAW_TRACEPOINT);
	h->bpf_uprobe = program_loads(BPF_PROG_TYPE_KPROBE);
	/* Kernels built with BPF_JIT_ALWAYS_ON have no switch, or one that only root can read: the JIT is
	 * on then. */
	h->bpf_jit = read_number("/proc/sys/net/core/bpf_jit_enable", 1) > 0;
	h->unprivileged_bpf = read_number("/proc/sys/kernel/unprivileged_bpf_disabled", 1) == 0;
}

/* --- files --- */

static bool is_filesystem(const char *path, unsigned long magic)
{
	struct statfs fs;

	return !statfs(path, &fs) && (unsigned long)fs.f_type == magic;
}

static int cgroup_version(void)
{
	if (is_filesystem("/sys/fs/cgroup", CGROUP2_SUPER_MAGIC))
		return 2;
	if (is_filesystem("/sys/fs/cgroup/unified", CGROUP2_SUPER_MAGIC))
		return 3;
	if (is_filesystem("/sys/fs/cgroup/memory", CGROUP_SUPER_MAGIC) ||
	    is_filesystem("/sys/fs/cgroup/cpu", CGROUP_SUPER_MAGIC) ||
	    is_filesystem("/sys/fs/cgroup/systemd", CGROUP_SUPER_MAGIC))
		return 1;
	return 0;
}

static void find_tracefs(char *out, size_t size)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

	*out = 0;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char path[128];

		/* Debugfs mounts its own when it is walked into, so a file of it is the test. */
		snprintf(path, sizeof(path), "%s/events/sched/sched_switch/id", places[i]);
		if (!access(path, R_OK)) {
			snprintf(out, size, "%s", places[i]);
			return;
		}
	}
}

/* Without the right to see them all addresses are 0. */
static bool kernel_symbols_visible(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	bool visible = false;
	char line[512];

	if (!f)
		return false;
	for (int i = 0; i < 64 && !visible && fgets(line, sizeof(line), f); i++)
		visible = sscanf(line, "%llx", &address) == 1 && address;
	fclose(f);
	return visible;
}

static uint64_t effective_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return 0;
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

/* Are we in a namespace that is not the machine's? The numbers of the first ones are the same in all kernels (PROC_PID_INIT_INO and
 * its like). */
static bool is_apart(const char *kind, const char *first)
{
	char path[64], link[64] = "";

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	return readlink(path, link, sizeof(link) - 1) > 0 && strcmp(link, first);
}

static bool has_own_users(void)
{
	return is_apart("user", "user:[4026531837]");
}

static bool has_own_pids(void)
{
	return is_apart("pid", "pid:[4026531836]");
}

/* Engines leave a file, or a word in the environment. A machine may have been made from an image and have the file, too. */
static bool in_container(void)
{
	return (!access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK) || getenv("KUBERNETES_SERVICE_HOST")) &&
	       (has_own_pids() || is_apart("uts", "uts:[4026531838]") || is_apart("cgroup", "cgroup:[4026531835]"));
}

const char *host_remedy(const struct host *h)
{
	/* No option of the container gives it what its user does not have. */
	if (h->own_users)
		return "run it on the host, outside of this user namespace, with sudo; the processes in here are targets like others there";
	if (!h->container && h->paranoid >= 3)
		return "run it with sudo; capabilities of its own (setcap) are enough only with sudo sysctl kernel.perf_event_paranoid=2, as a kernel "
		       "that knows level 3 asks for CAP_SYS_ADMIN there: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,"
		       "cap_checkpoint_restore+ep \"$(command -v gasflame)\"";
	if (!h->container)
		return "run it with sudo, or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,"
		       "cap_checkpoint_restore+ep \"$(command -v gasflame)\"";
	return "start this container with --pid=host --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE --cap-add SYSLOG "
	       "--cap-add CHECKPOINT_RESTORE --security-opt seccomp=unconfined; where the engine does not know these (Docker "
	       "20.10) with --pid=host --cap-add SYS_ADMIN --cap-add SYS_PTRACE --cap-add SYSLOG";
}

void host_probe(struct host *ret)
{
	struct utsname name = { 0 };
	struct rlimit limit;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*ret = (struct host){ 0 };
	uname(&name);
	snprintf(ret->release, sizeof(ret->release), "%s", name.release);
	snprintf(ret->machine, sizeof(ret->machine), "%.*s", (int)sizeof(ret->machine) - 1, name.machine);
	if (sscanf(name.release, "%d.%d", &ret->major, &ret->minor) != 2)
		ret->major = ret->minor = 0;
	ret->cpus = cpus > 0 ? cpus : 1;
	ret->btf = !access("/sys/kernel/btf/vmlinux", R_OK);
	find_tracefs(ret->tracefs, sizeof(ret->tracefs));
	ret->paranoid = read_number("/proc/sys/kernel/perf_event_paranoid", -2);
	if (ret->paranoid < -1)
		ret->paranoid = -2;
	ret->kptr_restrict = read_number("/proc/sys/kernel/kptr_restrict", 0);
	ret->kernel_symbols = kernel_symbols_visible();
	/* BPF, perf events and kallsyms ask for capabilities of the first user namespace. */
	ret->own_users = has_own_users();
	*(ret->own_users ? &ret->namespace_capabilities : &ret->capabilities) = effective_capabilities();
	ret->memlock_bytes = getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY
				     ? UINT64_MAX
				     : limit.rlim_cur;
	ret->perf_mlock_bytes = read_number("/proc/sys/kernel/perf_event_mlock_kb", 516) * 1024;
	ret->pmu = event_opens(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1, false);
	ret->software_clock = event_opens(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, -1, false);
	ret->kernel_clock = event_opens(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, -1, true);
	ret->any_process = event_opens(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, 0, true);
	probe_bpf(ret);
	ret->cgroup_version = cgroup_version();
	ret->container = in_container();
	ret->own_pids = has_own_pids();
	ret->yama = read_number("/proc/sys/kernel/yama/ptrace_scope", -1);
}

bool host_capable(const struct host *h, int capability)
{
	return capability >= 0 && capability < 64 && (h->capabilities >> capability & 1);
}
