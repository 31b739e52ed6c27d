#include "import/perf/perfdatastack.h"

#include <elf.h>

#include "base/mem.h"
#include "elf/unwind/unwind.h"
#include "import/perf/perfdataattr.h"
#include "import/perf/perfdatamodule.h"
#include "import/perf/perfdatasample.h"
#include "import/perf/perfdataspace.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum {
	WALK_MOST = 1024,       /* frames of a walk */
	CHAIN_USUAL = 127,      /* the kernel's limit of a chain, unless it was set */
	LBR_ENTRIES = 32,       /* of processors that remember calls */
	DUMP_SLACK = 4096,      /* the kernel cuts a copy to fit its record */
	CALL_STACK = 1 << 11,   /* PERF_SAMPLE_BRANCH_CALL_STACK */
};

void perfdatastack_done(struct perfdatastack *s)
{
	vec_done(&s->frames);
}

/* --- frames --- */

/* Names a frame of a kernel that is not this machine's by its place: nobody else could. */
static void name_by_place(struct profile *p, uint32_t frame, uint32_t module, uint64_t distance)
{
	_cleanup_free_ char *name = mem_printf("%s+0x%llx", module == PROFILE_NONE ? "[kernel]" : profile_str(p, p->modules.v[module].path),
					       (unsigned long long)distance);
	struct profile_function f = { .name = profile_string(p, name), .module = module, .named = NAMED_ADDRESS };
	struct profile_line line = { .function = profile_function(p, &f) };

	profile_set_lines(p, frame, &line, 1);
}

static uint32_t kernel_frame(struct perfdatastack *s, uint64_t address)
{
	struct perfdatamap *m = perfdataspaces_find(s->spaces, &s->spaces->kernel, address);
	uint32_t module, frame;
	bool known = m != NULL;

	if (m && m->name)
		return profile_named_frame(s->p, PROFILE_NONE, FRAME_KERNEL, profile_str(s->p, m->name));
	module = m ? m->module : perfdatamodules_kernel(s->modules, "[kernel]");
	module = s->modules->list.v[module].id;
	address -= m ? m->bias : 0;
	frame = profile_frame(s->p, module, FRAME_KERNEL, address);
	if (s->p->frames.v[frame].line_count || (known && perfdatamodules_name_kernel(s->modules, frame)))
		return frame;
	if (!known || !perfdatamodules_kernel_is_ours(s->modules))
		name_by_place(s->p, frame, module, address);
	return frame;
}

static uint32_t unknown_frame(struct perfdatastack *s, const char *name)
{
	return profile_named_frame(s->p, PROFILE_NONE, FRAME_USER, name);
}

static uint32_t user_frame(struct perfdatastack *s, struct perfdataspace *space, uint64_t address)
{
	const struct perfdatamap *m = perfdataspaces_find(s->spaces, space, address);

	if (!m)
		return unknown_frame(s, "[unknown]");
	return profile_frame(s->p, s->modules->list.v[m->module].id, FRAME_USER, address - m->bias);
}

/* --- call chains --- */

enum side { SIDE_KERNEL, SIDE_USER, SIDE_OTHER };

static enum side side_of_misc(uint16_t misc)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return SIDE_KERNEL;
	case PERF_RECORD_MISC_USER:
		return SIDE_USER;
	default:
		return SIDE_OTHER;
	}
}

static enum side side_of_context(uint64_t context)
{
	switch (context) {
	case PERF_CONTEXT_KERNEL:
		return SIDE_KERNEL;
	case PERF_CONTEXT_USER:
		return SIDE_USER;
	default:
		return SIDE_OTHER;
	}
}

/* leaf: the address is of the instruction itself, not where a call returns to. */
static void add_frame(struct perfdatastack *s, struct perfdataspace *space, enum side side, uint64_t address, bool leaf)
{
	address -= !leaf;
	vec_push(&s->frames, side == SIDE_KERNEL ? kernel_frame(s, address) :
			     side == SIDE_USER   ? user_frame(s, space, address) :
						   unknown_frame(s, "[guest]"));
}

struct chain {
	bool kernel, user; /* parts that it has */
	uint64_t user_ip;  /* the first of the user's part */
};

/* Adds the chain, of the user's part nothing if that comes from elsewhere. */
static struct chain add_chain(struct perfdatastack *s, struct perfdataspace *space, const struct perfdatasample *x, bool user_elsewhere)
{
	enum side side = side_of_misc(x->misc);
	struct chain found = { 0 };
	bool leaf = true;

	for (uint64_t i = 0; i < x->chain_count; i++) {
		uint64_t address = perfdatasample_word(x->chain, i);

		if (address >= PERF_CONTEXT_MAX) {
			side = side_of_context(address);
			leaf = true;
			continue;
		}
		if (side == SIDE_USER && !found.user_ip)
			found.user_ip = address;
		if (side == SIDE_USER && user_elsewhere)
			continue;
		add_frame(s, space, side, address, leaf);
		found.kernel |= side != SIDE_USER;
		found.user |= side == SIDE_USER;
		leaf = false;
	}
	return found;
}

/* The processor remembers for each call that has not returned where it was made. */
static void add_branches(struct perfdatastack *s, struct perfdataspace *space, const struct perfdatasample *x, uint64_t ip)
{
	if (ip || x->branch_count)
		add_frame(s, space, SIDE_USER, ip ? ip : perfdatasample_word(x->branches, 1), true);
	for (uint64_t i = 0; i < x->branch_count; i++) {
		uint64_t from = perfdatasample_word(x->branches, 3 * i);

		if (from)
			add_frame(s, space, SIDE_USER, from, true);
	}
	if (x->branch_count >= LBR_ENTRIES)
		s->cut = "more calls than the processor remembers";
}

/* --- a copy of the stack --- */

/* The registers of a record have the order of the kernel's bits. */
static bool take_regs(unsigned machine, const struct perfdatasample *x, uint64_t mask, struct unwind_regs *ret)
{
	uint64_t needed = machine == EM_AARCH64 ? 0xfULL << 29 : 1 << 6 | 1 << 7 | 1 << 8;
	unsigned n = 0;

	*ret = (struct unwind_regs){ .leaf = true, .link = machine == EM_AARCH64 };
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!(mask >> bit & 1))
			continue;
		if (unwind_perf_register(machine, bit) >= 0)
			ret->r[unwind_perf_register(machine, bit)] = perfdatasample_word(x->regs, n);
		n++;
	}
	return x->regs_abi == PERF_SAMPLE_REGS_ABI_64 && (mask & needed) == needed;
}

static const char *reason_of(enum unwind_result result, uint64_t rule)
{
	switch (result) {
	case UNWIND_DONE:
		return NULL;
	case UNWIND_NO_RULE:
		return "no unwind information there";
	case UNWIND_BAD_RULE:
		return RULE_CFA(rule) == RULE_UNSUPPORTED ? "unwind rule not supported" : "register not known there";
	case UNWIND_NOT_RISING:
		return RULE_CFA(rule) == RULE_FRAME_POINTER ? "no table and no frame pointer" : "stack does not rise";
	case UNWIND_BAD_MEMORY:
		return "stack memory not readable";
	default:
		return "deeper than the limit";
	}
}

struct code {
	struct perfdatastack *s;
	struct perfdataspace *space;
};

/* Is there a call before this address? */
static bool follows_call(void *context, uint64_t address)
{
	struct code *c = context;
	const struct perfdatamap *m = perfdataspaces_find(c->s->spaces, c->space, address - 1);

	return m && perfdatamodules_follows_call(c->s->modules, m->module, address - m->bias);
}

/* Adds a frame and takes the registers of its caller. False: that was the last. */
static bool walk_on(struct perfdatastack *s, struct perfdataspace *space, struct unwind_regs *regs, struct unwind_dump *d)
{
	uint64_t pc = regs->r[UNWIND_RIP] - !regs->leaf, rule;
	const struct perfdatamap *m = perfdataspaces_find(s->spaces, space, pc);
	struct unwind_regs before = *regs;
	struct code code = { s, space };
	enum unwind_result result;
	uint32_t module;

	if (!m) {
		s->cut = "address in no known mapping";
		return false;
	}
	module = s->modules->list.v[m->module].id;
	rule = perfdatamodules_rule(s->modules, m->module, pc - m->bias);
	/* The kernel has the handler return to the first byte of a function; the byte before is another's. */
	if (RULE_CFA(rule) == RULE_SIGNAL)
		pc = regs->r[UNWIND_RIP];
	vec_push(&s->frames, profile_frame(s->p, module, FRAME_USER, pc - m->bias));
	result = unwind_step(regs, rule, unwind_read_dump, d);
	if (rule & RULE_DERIVED && RULE_CFA(rule) != RULE_SIGNAL && result == UNWIND_MORE && !follows_call(&code, regs->r[UNWIND_RIP])) {
		*regs = before;
		result = UNWIND_NO_RULE;
	}
	if (result == UNWIND_MORE || (result == UNWIND_NO_RULE && unwind_guess(regs, unwind_read_dump, d, follows_call, &code)))
		return true;
	s->cut = reason_of(result, rule);
	return false;
}

static void walk(struct perfdatastack *s, struct perfdataspace *space, const struct perfdataattr *a, const struct perfdatasample *x)
{
	struct unwind_dump d = { .size = x->stack_bytes, .bytes = x->stack };
	struct unwind_regs regs;
	size_t first = s->frames.n;
	bool more;

	if (s->other_machine || !take_regs(s->modules->machine, x, a->attr.sample_regs_user, &regs)) {
		s->cut = s->other_machine ? "recorded on another kind of machine" : "no user registers";
		if (side_of_misc(x->misc) == SIDE_USER)
			add_frame(s, space, SIDE_USER, x->ip, true);
		return;
	}
	d.sp = regs.r[UNWIND_RSP];
	do
		more = walk_on(s, space, &regs, &d);
	while (more && s->frames.n - first < WALK_MOST);
	if (more)
		s->cut = "deeper than the limit";
	if (s->cut && d.beyond && d.size + DUMP_SLACK > a->attr.sample_stack_user)
		s->cut = "deeper than the stack dump";
	if (s->frames.n == first)
		vec_push(&s->frames, unknown_frame(s, "[unknown]"));
}

/* --- all --- */

static uint32_t intern(struct perfdatastack *s)
{
	uint32_t stack = 0;

	if (s->cut) {
		profile_count_of(s->p, KEY_TRUNCATED_OF, s->cut, 1);
		stack = profile_stack(s->p, 0, profile_truncation_frame(s->p, s->cut));
	}
	for (size_t i = s->frames.n; i-- > 0;)
		stack = profile_stack(s->p, stack, s->frames.v[i]);
	return stack;
}

static bool chain_is_cut(const struct perfdataattr *a, const struct perfdatasample *x)
{
	return x->chain_count >= (a->attr.sample_max_stack ? a->attr.sample_max_stack : CHAIN_USUAL);
}

uint32_t perfdatastack_of(struct perfdatastack *s, const struct perfdataattr *a, const struct perfdatasample *x)
{
	struct perfdataspace *space = perfdataspaces_of(s->spaces, x->pid);
	bool copied = a->attr.sample_type & PERF_SAMPLE_STACK_USER && a->attr.sample_type & PERF_SAMPLE_REGS_USER;
	bool lbr = a->attr.branch_sample_type & CALL_STACK && a->attr.sample_type & PERF_SAMPLE_BRANCH_STACK;
	struct chain chain;

	vec_clear(&s->frames);
	s->cut = NULL;
	chain = add_chain(s, space, x, copied || (lbr && x->branch_count));
	/* Kernel threads have no registers of a user, and no user's part. */
	if (copied && x->regs_abi != PERF_SAMPLE_REGS_ABI_NONE)
		walk(s, space, a, x);
	else if (lbr && x->branch_count)
		add_branches(s, space, x, chain.user_ip ? chain.user_ip : side_of_misc(x->misc) == SIDE_USER ? x->ip : 0);
	else if (chain.kernel || chain.user)
		s->cut = chain_is_cut(a, x) ? "deeper than the limit" : NULL;
	/* A program without frame pointers has the leaf, and whatever its register led to. */
	if (chain.user && !copied && !s->cut)
		profile_count(s->p, KEY_IMPORT_CHAINS, 1);
	if (!s->frames.n && a->attr.sample_type & PERF_SAMPLE_IP)
		add_frame(s, space, side_of_misc(x->misc), x->ip, true);
	return intern(s);
}
