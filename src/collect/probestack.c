#include "collect/probestack.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "target/host.h"

/* The first version with private stacks, and the newest on which tools/test-kernels has preempted our programs some
 * million times without harm. */
enum { FIRST_MAJOR = 6, FIRST_MINOR = 13, PROVEN_MAJOR = 7, PROVEN_MINOR = 3 };

static bool at_least(const struct probestack_facts *f, int major, int minor)
{
	return f->major > major || (f->major == major && f->minor >= minor);
}

int probestack_judge(const struct probestack_facts *f, struct err *err)
{
	if (f->ours == PROBESTACK_PRIVATE)
		return err_set(err, ENOTSUP,
			       "this kernel would run our programs at uprobes on a stack that they overwrite when they preempt each other, and "
			       "crash: heap, alloc, goroutine and function marks are not recorded here");
	if (!f->jit || !at_least(f, FIRST_MAJOR, FIRST_MINOR))
		return 0;
	if (f->ours == PROBESTACK_OF_TASK && f->control == PROBESTACK_PRIVATE)
		return 0;
	if (!at_least(f, PROVEN_MAJOR, PROVEN_MINOR + 1))
		return 0;
	return err_set(err, ENOTSUP,
		       "Linux %d.%d is newer than %d.%d, the last one on which programs at uprobes were proven not to harm the kernel, and its code "
		       "does not show it (run as root, with kernel.kptr_restrict below 2): heap, alloc, goroutine and function marks are not recorded",
		       f->major, f->minor, PROVEN_MAJOR, PROVEN_MINOR);
}

/*
 * A program on a private stack begins with its address, to which that of this CPU's part is added:
 *
 *	movabs $..., %r9
 *	add    %gs:..., %r9
 *
 * The compiler uses r9 for nothing else.
 */
static bool adds_cpu_to_r9(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i + 5 <= n; i++)
		if (code[i] == 0x65 && code[i + 1] == 0x4c && code[i + 2] == 0x03 &&
		    ((code[i + 3] == 0x0c && code[i + 4] == 0x25) || code[i + 3] == 0x0d))
			return true;
	return false;
}

enum probestack_seen probestack_look(int program_fd)
{
	struct bpf_prog_info info = { 0 };
	_cleanup_free_ uint8_t *code = NULL;
	uint32_t size = sizeof(info), n;

	if (bpf_obj_get_info_by_fd(program_fd, &info, &size) || !info.jited_prog_len)
		return PROBESTACK_UNSEEN;
	n = info.jited_prog_len;
	code = mem_alloc(n);
	memset(&info, 0, sizeof(info));
	info.jited_prog_insns = (uintptr_t)code;
	info.jited_prog_len = n;
	size = sizeof(info);
	/* A process that may not see kernel addresses gets only the length. */
	if (bpf_obj_get_info_by_fd(program_fd, &info, &size) || !info.jited_prog_insns || !info.jited_prog_len)
		return PROBESTACK_UNSEEN;
	return adds_cpu_to_r9(code, n < info.jited_prog_len ? n : info.jited_prog_len) ? PROBESTACK_PRIVATE : PROBESTACK_OF_TASK;
}

/* 72 bytes of stack: from 64 on it may be a private one. */
static size_t write_control(struct bpf_insn *code, int programs_fd)
{
	size_t n = 0;

	code[n++] = (struct bpf_insn){ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -72 };
	if (programs_fd >= 0) {
		code[n++] = (struct bpf_insn){ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_2, .src_reg = BPF_PSEUDO_MAP_FD,
					       .imm = programs_fd };
		code[n++] = (struct bpf_insn){ 0 };
		code[n++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3 };
		code[n++] = (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call };
	}
	code[n++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 };
	code[n++] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	return n;
}

int probestack_control(bool tail_call)
{
	_cleanup_fd_ int programs = -1;
	struct bpf_insn code[8];
	int fd;

	if (tail_call) {
		programs = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, NULL, sizeof(uint32_t), sizeof(uint32_t), 1, NULL);
		if (programs < 0)
			return -errno;
	}
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "Dual BSD/GPL", code, write_control(code, programs), NULL);
	return fd < 0 ? -errno : fd;
}

static void learn_kernel(struct probestack_facts *f)
{
	_cleanup_fd_ int control = probestack_control(false);
	struct host host;

	host_probe(&host);
	f->major = host.major;
	f->minor = host.minor;
	f->jit = host.bpf_jit;
	f->control = control < 0 ? PROBESTACK_UNSEEN : probestack_look(control);
}

static const char *seen_text(enum probestack_seen seen)
{
	return seen == PROBESTACK_PRIVATE ? "a private" : seen == PROBESTACK_OF_TASK ? "the task's" : "an unseen";
}

int probestack_check(const struct bpf_program *program, struct err *err)
{
	struct probestack_facts f = { .ours = probestack_look(bpf_program__fd(program)) };

	learn_kernel(&f);
	log_debug("%s: %s stack (a program without our measure: %s)", bpf_program__name(program), seen_text(f.ours), seen_text(f.control));
	return probestack_judge(&f, err);
}

int probestack_check_kernel(struct err *err)
{
	_cleanup_fd_ int like_ours = probestack_control(true);
	struct probestack_facts f = { 0 };

	if (like_ours < 0)
		return like_ours;
	f.ours = probestack_look(like_ours);
	learn_kernel(&f);
	return probestack_judge(&f, err);
}
