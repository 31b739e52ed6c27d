#include "elf/unwind/goswitch.h"

#include <string.h>

#include "base/vec.h"
#include "elf/go/gotab.h"
#include "elf/unwind/rule.h"

enum { RDX = 1 }; /* DWARF's number */

/*
 * OTHER: Go 1.17 and later flag every function that writes the stack pointer; the names are for the versions
 * before. mstart has callers in a cgo program (the C library's start of a thread), but they say no more than that
 * this is a thread. mcall leaves the goroutine: by the time its function runs, the goroutine may run elsewhere.
 */
static const struct { const char *name; enum goswitch_kind kind; } functions[] = {
	{ "_rt0_amd64", GOSWITCH_ROOT },
	{ "_rt0_amd64_linux", GOSWITCH_ROOT },
	{ "gogo", GOSWITCH_LEAVE },
	{ "runtime.asmcgocall", GOSWITCH_CGO },
	{ "runtime.callCgoMmap", GOSWITCH_OTHER },
	{ "runtime.callCgoMunmap", GOSWITCH_OTHER },
	{ "runtime.callCgoSigaction", GOSWITCH_OTHER },
	{ "runtime.cgocallback", GOSWITCH_OTHER },
	{ "runtime.cgocallback_gofunc", GOSWITCH_OTHER },
	{ "runtime.clone", GOSWITCH_LEAVE },
	{ "runtime.goexit", GOSWITCH_ROOT },
	{ "runtime.gogo", GOSWITCH_LEAVE },
	{ "runtime.mcall", GOSWITCH_LEAVE },
	{ "runtime.morestack", GOSWITCH_MORESTACK },
	{ "runtime.mstart", GOSWITCH_ROOT },
	{ "runtime.nanotime", GOSWITCH_OTHER },
	{ "runtime.nanotime1", GOSWITCH_OTHER },
	{ "runtime.rt0_go", GOSWITCH_ROOT },
	{ "runtime.sigfwd", GOSWITCH_OTHER },
	{ "runtime.sigreturn", GOSWITCH_SIGNAL },
	{ "runtime.sigreturn__sigaction", GOSWITCH_SIGNAL },
	{ "runtime.systemstack", GOSWITCH_SYSTEMSTACK },
	{ "runtime.walltime", GOSWITCH_OTHER },
	{ "runtime.walltime1", GOSWITCH_OTHER },
	{ "time.now", GOSWITCH_OTHER },
};

enum goswitch_kind goswitch_kind(const struct gotab_function *f)
{
	const char *name = f->name;

	if (!strncmp(name, "runtime.", 8) || !strcmp(name, "time.now") || !strcmp(name, "gogo") || name[0] == '_')
		for (size_t i = 0; i < ARRAY_LEN(functions); i++)
			if (!strcmp(functions[i].name, name))
				return functions[i].kind;
	return f->flag & GOTAB_SP_WRITE ? GOSWITCH_OTHER : GOSWITCH_NONE;
}

/* The length of an instruction that loads rsp from a register or from memory at one; 0 if it is another one. */
static size_t loads_rsp(const uint8_t *p, size_t n)
{
	if (n < 7)
		return 0;
	if ((p[0] == 0x48 || p[0] == 0x4c) && p[1] == 0x89 && (p[2] & 0xc7) == 0xc4)
		return 3;
	if ((p[0] == 0x48 || p[0] == 0x49) && p[1] == 0x8b && (p[2] & 0x38) == 0x20 && (p[2] & 7) != 4) {
		if (p[2] >> 6 == 0)
			return (p[2] & 7) != 5 ? 3 : 0;
		return p[2] >> 6 == 1 ? 4 : p[2] >> 6 == 2 ? 7 : 0;
	}
	return 0;
}

/* The end of the next load of rsp at or after an offset, 0 if there is none. */
static size_t after_load(const uint8_t *code, size_t n, size_t at)
{
	for (; at < n; at++) {
		size_t length = loads_rsp(code + at, n - at);

		if (length)
			return at + length;
	}
	return 0;
}

/* The end of the next such bytes at or after an offset, 0 if there are none or if it is called after that. */
static size_t after(const uint8_t *code, size_t n, size_t at, const char *bytes, size_t size)
{
	const uint8_t *found = at && at < n ? memmem(code + at, n - at, bytes, size) : NULL;

	return found ? (size_t)(found - code) + size : 0;
}
#define AFTER(at, bytes) after(code, n, at, bytes, sizeof(bytes) - 1)

void goswitch_find_curg(const uint8_t *code, size_t n, struct goswitch_curg *ret)
{
	size_t at = AFTER(1, "\x64\x48\x8b\x04\x25"), m, curg; /* mov %fs:N,%rax */
	int32_t g;

	if (at && n - at >= 4) {
		memcpy(&g, code + at, 4);
		at += 4;
	} else {
		at = AFTER(1, "\x64\x48\x8b\x01"); /* mov $N,%rcx; mov %fs:(%rcx),%rax: in a PIE */
		if (at < 11 || memcmp(code + at - 11, "\x48\xc7\xc1", 3))
			return;
		memcpy(&g, code + at - 8, 4);
	}
	m = AFTER(at, "\x48\x8b\x58\x30"); /* mov RULE_GO_M(%rax),%rbx */
	curg = AFTER(m, "\x48\x3b\x83");   /* cmp N(%rbx),%rax; gsignal's offset before it has one byte */
	_Static_assert(RULE_GO_M == 0x30, "as above");
	if (m != at + 4 || !curg || n - curg < 4 || g < INT16_MIN || g > INT16_MAX)
		return;
	memcpy(&ret->curg, code + curg, 4);
	ret->g = g;
	ret->known = ret->curg > 0 && ret->curg < 4096;
}

static uint64_t curg_rule(const struct goswitch_curg *curg, unsigned words, enum rule_rbp rbp)
{
	return curg->known ? rule_make(RULE_GO_CURG, words, curg->curg, rbp, curg->g) : RULE_UNSUPPORTED;
}

/*
 * Go before 1.21 does not keep rbp in asmcgocall. On the thread's stack it keeps the goroutine and how deep its stack
 * was, or, called on the thread's stack already, the old stack pointer; until then that is in rdx.
 *
 *	mov 0x38(%rsi),%rsp; sub $64,%rsp; and $-16,%rsp; mov %rdi,48(%rsp); mov 8(%rdi),%rdi; sub %rdx,%rdi
 *	mov %rdi,40(%rsp); ...; call; ...; mov %rsi,%rsp; ...; ret
 *	sub $64,%rsp; and $-16,%rsp; movq $0,48(%rsp); mov %rdx,40(%rsp); ...; call; ...; mov %rsi,%rsp; ...; ret
 */
static size_t cgo_parts(const uint8_t *code, size_t n, size_t switched, struct goswitch_part *ret)
{
	uint64_t in_rdx = rule_make(RULE_CFA_REG, RDX, 8, RULE_RBP_SAME, 0);
	uint64_t depth = rule_make(RULE_GO_DEPTH, 1, 40, RULE_RBP_SAME, 0);
	uint64_t same_stack = rule_make(RULE_CFA_DEREF_RSP, 1, 40, RULE_RBP_SAME, 0);
	size_t kept = AFTER(switched, "\x48\x89\x7c\x24\x28"), back = AFTER(kept, "\x48\x89\xf4");
	size_t aligned = AFTER(back, "\x48\x83\xec\x40"), kept_rsp = AFTER(aligned, "\x48\x89\x54\x24\x28");
	size_t back_rsp = AFTER(kept_rsp, "\x48\x89\xf4");

	if (!back_rsp) {
		ret[0] = (struct goswitch_part){ switched, n, RULE_UNSUPPORTED };
		return 1;
	}
	ret[0] = (struct goswitch_part){ switched, kept, in_rdx };
	ret[1] = (struct goswitch_part){ kept, back, depth };
	ret[2] = (struct goswitch_part){ aligned, kept_rsp, in_rdx };
	ret[3] = (struct goswitch_part){ kept_rsp, back_rsp, same_stack };
	return 4;
}

/* The frame size is wrong from the first to the last instruction that sets rsp. */
static size_t unknown_parts(const uint8_t *code, size_t n, size_t switched, struct goswitch_part *ret)
{
	size_t aligned = AFTER(1, "\x48\x83\xe4\xf0"), last = switched;

	if (aligned && (!switched || aligned < switched))
		switched = aligned;
	for (size_t next = last; next; next = after_load(code, n, next))
		last = next;
	if (switched >= last)
		return 0;
	ret[0] = (struct goswitch_part){ switched, last, RULE_UNSUPPORTED };
	return 1;
}

size_t goswitch_parts(enum goswitch_kind kind, const struct goswitch_curg *curg, const uint8_t *code, size_t n,
		      struct goswitch_part ret[GOSWITCH_MAX_PARTS])
{
	size_t switched = after_load(code, n, 0), back;

	if (kind == GOSWITCH_OTHER)
		return unknown_parts(code, n, switched, ret);
	if (!switched)
		return 0;
	switch (kind) {
	case GOSWITCH_LEAVE:
		ret[0] = (struct goswitch_part){ switched, n, RULE_END };
		return 1;
	case GOSWITCH_SYSTEMSTACK:
		/* Go before 1.21: the goroutine's stack pointer is in sched.sp, and points to the return address. */
		back = after_load(code, n, switched);
		ret[0] = (struct goswitch_part){ switched, back ? back : n,
						 back ? curg_rule(curg, 1, RULE_RBP_SAME) : RULE_UNSUPPORTED };
		return 1;
	case GOSWITCH_MORESTACK:
		/* The stack may be copied meanwhile, without the word below sched.sp: the address is in sched.pc. */
		ret[0] = (struct goswitch_part){ switched, n, curg_rule(curg, 0, RULE_RBP_LOST) };
		return 1;
	case GOSWITCH_CGO:
		return cgo_parts(code, n, switched, ret);
	default:
		return 0;
	}
}
