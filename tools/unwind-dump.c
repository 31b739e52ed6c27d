/*
 * unwind-dump - prints the unwind table of an ELF file, one row a line, for check-unwind and for people.
 *
 *	unwind-dump FILE      address, rule
 *	unwind-dump -s FILE   sizes and the time it took
 *
 * Rules are written as "cfa=rsp+16 rbp=c-16": the CFA, and the caller's rbp
 * ("u" untouched, "c-16" at CFA - 16, "*(rbp+0)", "lost"), or as one word:
 * none, end, signal, unsupported. In a file that needs it rbx follows in the same
 * way ("rbx=c-56"); "ra=r5" is a return address in a register. Equal neighbours
 * are joined. arm64: "cfa=sp+32 fp=c-32 ra=c-24", where fp is x29, and "ra=u" the link register.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "elf/file.h"
#include "elf/unwind/unwind.h"

static const char *const registers[16] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					   "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };

/* RULE_LINK */
static void print_link(uint64_t rule)
{
	const char *base = RULE_REG(rule) == RULE_BASE_FP ? "x29" : "sp";
	unsigned link = RULE_LINK_OF(rule), how = RULE_RBP(rule);
	int64_t cfa = RULE_CFA_OFFSET(rule), at = RULE_RBP_OFFSET(rule) - (how == RULE_RBP_RBP || link == RULE_LINK_BASE ? cfa : 0);

	printf("cfa=%s%+" PRId64, base, cfa);
	if (how == RULE_RBP_CFA || how == RULE_RBP_RBP)
		printf(" fp=c%+" PRId64, at);
	else
		fputs(how == RULE_RBP_SAME ? " fp=u" : " fp=lost", stdout);
	if (link == RULE_LINK_REGISTER)
		fputs(" ra=u", stdout);
	else
		printf(" ra=c%+" PRId64, at + (link >= RULE_LINK_NEAR ? 8 * ((int64_t)link - RULE_LINK_BESIDE) : 0));
}

static void print_rule(uint64_t rule, bool rbx)
{
	int64_t offset = RULE_CFA_OFFSET(rule), rbp_offset = RULE_RBP_OFFSET(rule);
	unsigned addend = RULE_REG(rule) * 8;

	switch (RULE_CFA(rule)) {
	case RULE_NONE:
		fputs("none", stdout);
		return;
	case RULE_END:
		fputs("end", stdout);
		return;
	case RULE_SIGNAL:
		fputs("signal", stdout);
		return;
	case RULE_LINK:
		print_link(rule);
		return;
	case RULE_CFA_RSP:
		printf("cfa=rsp%+" PRId64, offset);
		break;
	case RULE_CFA_RBP:
		printf("cfa=rbp%+" PRId64, offset);
		break;
	case RULE_CFA_REG:
		printf("cfa=%s%+" PRId64, registers[RULE_REG(rule)], offset);
		break;
	case RULE_CFA_PLT:
		fputs("cfa=plt", stdout);
		break;
	case RULE_RA_REG:
		printf("cfa=rsp%+" PRId64 " rbp=u ra=r%u", offset, RULE_REG(rule));
		return;
	case RULE_CFA_DEREF_RSP:
		printf("cfa=*(rsp%+" PRId64 ")+%u", offset, addend);
		break;
	case RULE_CFA_DEREF_RBP:
		printf("cfa=*(rbp%+" PRId64 ")+%u", offset, addend);
		break;
	case RULE_GO_CURG:
		printf("cfa=curg(fs%+" PRId64 ",m%+" PRId64 ")+%u%s", rbp_offset, offset, addend,
		       RULE_RBP(rule) == RULE_RBP_SAME ? "" : " rbp=lost");
		return;
	case RULE_GO_DEPTH:
		printf("cfa=depth(rsp%+" PRId64 ")+%u", offset, addend);
		break;
	default:
		fputs("unsupported", stdout);
		return;
	}
	switch (RULE_RBP(rule)) {
	case RULE_RBP_SAME:
		fputs(" rbp=u", stdout);
		break;
	case RULE_RBP_CFA:
		printf(" rbp=c%+" PRId64, rbp_offset);
		break;
	case RULE_RBP_RBP:
		printf(" rbp=*(rbp%+" PRId64 ")", rbp_offset);
		break;
	default:
		fputs(" rbp=lost", stdout);
	}
	if (rbx && RULE_RBX(rule) >= RULE_RBX_CFA)
		printf(" rbx=c-%u", RULE_RBX(rule) * 8);
	else if (rbx)
		fputs(RULE_RBX(rule) == RULE_RBX_SAME ? " rbx=u" : " rbx=lost", stdout);
}

static bool keeps_rbx(const struct unwind_table *t)
{
	for (uint32_t i = 0; i < t->rule_count; i++)
		if (RULE_CFA(t->rules[i]) != RULE_LINK && RULE_RBX(t->rules[i]))
			return true;
	return false;
}

static void print_rows(const struct unwind_table *t)
{
	uint32_t last = 0;
	bool rbx = keeps_rbx(t);

	for (uint32_t page = 0; page < t->page_count; page++) {
		for (uint32_t i = 0; i < t->pages[page].count; i++) {
			uint32_t row = t->rows[t->pages[page].first + i];

			if ((page || i) && row >> 16 == last)
				continue;
			last = row >> 16;
			printf("%" PRIx64 " ",
			       ((t->first_page + page) << UNWIND_PAGE_SHIFT) + (row & 0xffff));
			print_rule(t->rules[last], rbx);
			puts(t->rules[last] & RULE_DERIVED ? " (read from the code)" : "");
		}
	}
	printf("%" PRIx64 " none\n", (t->first_page + t->page_count) << UNWIND_PAGE_SHIFT);
}

int main(int argc, char **argv)
{
	bool summary = argc == 3 && !strcmp(argv[1], "-s");
	_cleanup_(elf_freep) struct elf *elf = NULL;
	struct unwind_table t;
	struct err err = { 0 };
	_cleanup_fd_ int fd = -1;
	uint64_t start;

	if (argc != 2 + summary) {
		fputs("usage: unwind-dump [-s] FILE\n", stderr);
		return 2;
	}
	fd = open(argv[argc - 1], O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		perror(argv[argc - 1]);
		return 1;
	}
	start = clock_mono_ns();
	if (elf_open(fd, &elf, &err) < 0 || unwind_build(elf, &t, &err) < 0) {
		fprintf(stderr, "unwind-dump: %s: %s\n", argv[argc - 1], err.text);
		return 1;
	}
	start = clock_mono_ns() - start;
	if (!unwind_valid(&t)) {
		fprintf(stderr, "unwind-dump: %s: the table is not valid\n", argv[argc - 1]);
		return 1;
	}
	if (summary)
		printf("%u rows, %u pages, %u rules, %u unsupported, %.1f ms\n", t.row_count, t.page_count,
		       t.rule_count, t.unsupported, start / 1e6);
	else
		print_rows(&t);
	unwind_done(&t);
	return 0;
}
