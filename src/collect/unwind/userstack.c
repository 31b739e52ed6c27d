#include "collect/unwind/userstack.h"

#include <elf.h>
#include <sys/uio.h>

#include "base/vec.h"
#include "collect/process/processes.h"

static bool read_bytes(pid_t pid, uint64_t address, void *data, size_t n)
{
	struct iovec here = { data, n }, there = { (void *)address, n };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

bool userstack_read_process(void *context, uint64_t address, uint64_t *ret)
{
	return read_bytes(*(pid_t *)context, address, ret, sizeof(*ret));
}

static const struct shared_mapping *find_mapping(const struct shared_mapping *list, uint32_t count, uint64_t pc)
{
	uint32_t low = vec_search(i, 0, count, list[i].end <= pc);

	return low < count && list[low].start <= pc ? &list[low] : NULL;
}

/* See guess.bpf.h: code that the file's table leaves out. Here the stack is not searched. context: the pid. */
static bool follows_call(void *context, uint64_t address)
{
	uint8_t b[8];

	return read_bytes(*(pid_t *)context, address - sizeof(b), b, sizeof(b)) && unwind_ends_with_call(UNWIND_HOST, b);
}

/* A call stands before it, or a signal handler returns there. Of a process that is gone no more is known than that code was
 * there. */
static bool is_proven(struct userstack *how, uint64_t address)
{
	uint64_t code;

	if (!read_bytes(how->pid, address, &code, sizeof(code)))
		return true;
	return follows_call(&how->pid, address) || code == 0x0f0000000fc0c748ULL;
}

static enum shared_reason reason_of(enum unwind_result result, uint64_t rule)
{
	switch (result) {
	case UNWIND_DONE:
		return REASON_COMPLETE;
	case UNWIND_NO_RULE:
		return REASON_NO_RULE;
	case UNWIND_BAD_RULE:
		return RULE_CFA(rule) == RULE_UNSUPPORTED ? REASON_UNSUPPORTED : REASON_LOST_REGISTER;
	case UNWIND_NOT_RISING:
		return RULE_CFA(rule) == RULE_FRAME_POINTER ? REASON_FRAME_POINTER : REASON_NOT_RISING;
	case UNWIND_BAD_MEMORY:
		return REASON_BAD_STACK;
	default:
		return REASON_TOO_DEEP;
	}
}

uint64_t userstack_pc_mask(void)
{
	uint64_t stack = (uintptr_t)__builtin_frame_address(0);

	return (1ULL << MIN(64 - __builtin_clzll(stack), 48)) - 1;
}

enum shared_reason userstack_walk(struct userstack *how, struct unwind_regs *regs, uint64_t *frames,
				  uint16_t *ret_count)
{
	uint32_t count = how->map_count;
	const struct shared_mapping *maps = how->processes ? processes_mappings(how->processes, how->pid, &count) : how->maps;

	how->guessed = how->derived = false;
	regs->link = UNWIND_HOST == EM_AARCH64;
	regs->pc_mask = userstack_pc_mask();
	for (*ret_count = 0; *ret_count < SHARED_MAX_USER_FRAMES;) {
		uint64_t pc = regs->r[UNWIND_RIP] - !regs->leaf, rule;
		const struct shared_mapping *m = find_mapping(maps, count, pc);
		enum unwind_result result;
		struct unwind_regs before;

		if (!m)
			return REASON_NO_MAPPING;
		frames[(*ret_count)++] = SHARED_FRAME(m->module, pc - m->bias);
		rule = how->rule(how->rule_context, m->module, pc - m->bias);
		/* The kernel has the handler return to the first byte of a function; the byte before is another's. */
		if (RULE_CFA(rule) == RULE_SIGNAL)
			frames[*ret_count - 1] = SHARED_FRAME(m->module, regs->r[UNWIND_RIP] - m->bias);
		before = *regs;
		result = unwind_step(regs, rule, how->read, how->read_context);
		if (rule & RULE_DERIVED) {
			how->derived = true;
			/* Not right for the code in memory: see unwind_derived() of guess.bpf.h. */
			if (RULE_CFA(rule) != RULE_SIGNAL && result == UNWIND_MORE &&
			    !(find_mapping(maps, count, regs->r[UNWIND_RIP] - 1) && is_proven(how, regs->r[UNWIND_RIP]))) {
				*regs = before;
				result = UNWIND_NO_RULE;
			}
		}
		if (result == UNWIND_NO_RULE && unwind_guess(regs, how->read, how->read_context, follows_call, &how->pid)) {
			how->guessed = true;
			continue;
		}
		if (result != UNWIND_MORE)
			return reason_of(result, rule);
	}
	return REASON_TOO_DEEP;
}
