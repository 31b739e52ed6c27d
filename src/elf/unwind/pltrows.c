#include "elf/unwind/pltrows.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "base/vec.h"
#include "elf/file.h"
#include "elf/unwind/rows.h"
#include "elf/unwind/rule.h"

enum { PLT_ENTRY = 16, ENTRY_BYTES = 64 };

static bool bytes_at(const uint8_t *p, unsigned at, const char *bytes, unsigned n)
{
	return !memcmp(p + at, bytes, n);
}

/*
 * Adds the rows of one 16-byte entry of a lazy PLT, recognized by its instructions,
 * since linkers lay entries out differently:
 *
 *	ff 35 GOT; ff 25 GOT            PLT0: entries jump here with one word pushed
 *	ff 25 GOT; 68 N; e9 PLT0        an entry: jmp, and at first push and jmp
 *	f3 0f 1e fa; 68 N; e9 PLT0      the same with endbr64
 *	68 N; f2 e9 PLT0                the same with a bound prefix
 *	(f3 0f 1e fa) (f2) ff 25 GOT    an entry that is never lazy
 */
static void add_plt_entry(struct rows *rows, struct rows_rules *rules, uint32_t offset, const uint8_t *p)
{
	uint32_t rsp8 = rows_rule(rules, rule_make(RULE_CFA_RSP, 0, 8, RULE_RBP_SAME, 0));
	uint32_t rsp16 = rows_rule(rules, rule_make(RULE_CFA_RSP, 0, 16, RULE_RBP_SAME, 0));
	uint32_t rsp24 = rows_rule(rules, rule_make(RULE_CFA_RSP, 0, 24, RULE_RBP_SAME, 0));
	unsigned skip = bytes_at(p, 0, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;

	if (bytes_at(p, 0, "\xff\x35", 2)) {
		rows_add(rows, offset, rsp16);
		rows_add(rows, offset + 6, rsp24);
	} else if (bytes_at(p, 0, "\xff\x25", 2) && p[6] == 0x68) {
		rows_add(rows, offset, rows_rule(rules, rule_make(RULE_CFA_PLT, 0, 0, RULE_RBP_SAME, 0)));
	} else if (p[skip] == 0x68) {
		rows_add(rows, offset, rsp8);
		rows_add(rows, offset + skip + 5, rsp16);
	} else if (bytes_at(p, skip, "\xff\x25", 2) || bytes_at(p, skip, "\xf2\xff\x25", 3)) {
		rows_add(rows, offset, rsp8);
	} else {
		rows_add(rows, offset, ROWS_NONE);
	}
}

static void add_section(const struct elf_section *s, uint64_t base, uint32_t limit, bool lazy,
			struct rows_rules *rules, struct rows *rows)
{
	struct rows own = { 0 };
	uint32_t offset, end;

	if (!s || !(s->flags & SHF_EXECINSTR) || !s->data || s->address < base ||
	    s->address - base >= limit)
		return;
	offset = s->address - base;
	end = offset + MIN(s->file_size, limit - offset);
	if (!lazy)
		rows_add(&own, offset, rows_rule(rules, rule_make(RULE_CFA_RSP, 0, 8, RULE_RBP_SAME, 0)));
	for (uint32_t i = 0; lazy && end - offset - i >= PLT_ENTRY; i += PLT_ENTRY)
		add_plt_entry(&own, rules, offset + i, s->data + i);
	rows_add(&own, lazy ? end - (end - offset) % PLT_ENTRY : end, ROWS_NONE);
	rows_fill(rows, &own);
	rows_done(&own);
}

void pltrows_plt(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules,
		 struct rows *rows)
{
	struct rows all = { 0 };

	add_section(elf_section(elf, ".plt"), base, limit, true, rules, &all);
	add_section(elf_section(elf, ".iplt"), base, limit, true, rules, &all);
	add_section(elf_section(elf, ".plt.sec"), base, limit, false, rules, &all);
	add_section(elf_section(elf, ".plt.got"), base, limit, false, rules, &all);
	rows_fill(rows, &all);
	rows_done(&all);
}

void pltrows_entry(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules,
		   struct rows *rows)
{
	struct rows own = { 0 };
	uint32_t offset, next;

	if (!elf->entry || elf->entry < base || elf->entry - base >= limit)
		return;
	offset = elf->entry - base;
	if (rows_find(rows, offset, &next) != ROWS_NONE)
		return;
	rows_add(&own, offset, rows_rule(rules, RULE_END));
	rows_add(&own, offset + MIN(MIN(next, limit) - offset, (uint32_t)ENTRY_BYTES), ROWS_NONE);
	rows_fill(rows, &own);
	rows_done(&own);
}
