#include "elf/unwind/gorows.h"

#include <elf.h>
#include <string.h>

#include "base/vec.h"
#include "elf/file.h"
#include "elf/go/gotab.h"
#include "elf/unwind/arm64/arm64.h"
#include "elf/unwind/goswitch.h"
#include "elf/unwind/rows.h"
#include "elf/unwind/rule.h"

enum {
	MAX_FRAME = INT32_MAX - 8, /* bytes: the CFA's offset must fit; runtime.call1073741824 has over 1 GiB */
	MAX_PADDING = 64,    /* bytes between two functions */
};
#define NEVER UINT64_MAX

/* One function, and how it keeps rbp. */
struct function {
	const struct gotab_function *f;
	const uint8_t *code;
	size_t n;
	uint64_t saved;   /* from this address on the caller's rbp is at CFA - 16, where there is a frame */
	uint64_t set;     /* and from this one on rbp is CFA - 16 */
	bool loads_early; /* the caller's rbp is back before the frame is freed */
	bool link;        /* arm64: the return address is in a register until there is a frame */
	bool by_rbp;      /* the stack pointer is written: go by rbp */
	uint64_t copied;  /* from this address on rbp is a copy of rsp, */
	int32_t copied_frame; /* made when the frame had this size */
};

struct gorows {
	const struct gotab *table;
	const struct elf *elf;
	uint64_t base;
	struct rows_rules *rules;
	struct goswitch_curg curg;
	struct rows own, switched; /* of one function */
};

/* The length of "op %rbp, slot(%rsp)" or "op slot(%rsp), %rbp"; 0 if the bytes are something else. */
static size_t rbp_and_slot(const uint8_t *p, size_t n, uint8_t op, uint32_t slot)
{
	uint32_t displacement;

	if (n < 8 || p[0] != 0x48 || p[1] != op || p[3] != 0x24)
		return 0;
	switch (p[2]) {
	case 0x2c:
		return slot == 0 ? 4 : 0;
	case 0x6c:
		return slot < 0x80 && p[4] == slot ? 5 : 0;
	case 0xac:
		memcpy(&displacement, p + 4, 4);
		return displacement == slot ? 8 : 0;
	default:
		return 0;
	}
}

/*
 * Finds out how the function keeps rbp, by the instructions where it first has a frame. From Go 1.21 on:
 *
 *	push %rbp; mov %rsp,%rbp; sub $N,%rsp
 *
 * and before:
 *
 *	sub $N,%rsp; mov %rbp,N-8(%rsp); lea N-8(%rsp),%rbp
 *
 * Anything else (assembly without a frame of the assembler's, which pushes what it needs) leaves rbp alone.
 */
static void find_frame(const struct gorows *go, struct function *fn)
{
	struct gotab_values v = gotab_values(go->table, fn->f, fn->f->pcsp);
	size_t at, length;

	fn->saved = fn->set = fn->copied = NEVER;
	do {
		if (!gotab_next(&v))
			return;
	} while (v.value <= 0);
	at = v.start - fn->f->entry;
	if (at >= fn->n)
		return;
	if (fn->link) {
		fn->saved = v.start + arm64_go_frame(fn->code + at, fn->n - at);
		return;
	}
	if (at && v.value == 8 && fn->code[at - 1] == 0x55) {
		fn->saved = v.start;
		if (fn->n - at >= 3 && !memcmp(fn->code + at, "\x48\x89\xe5", 3))
			fn->set = v.start + 3;
		return;
	}
	length = rbp_and_slot(fn->code + at, fn->n - at, 0x89, v.value - 8);
	if (!length)
		return;
	fn->saved = v.start + length;
	fn->loads_early = true;
	at += length;
	length = rbp_and_slot(fn->code + at, fn->n - at, 0x8d, v.value - 8);
	if (length)
		fn->set = fn->saved + length;
}

/* Go before 1.16 keeps the stack pointer in rbp where it calls the vdso or another signal handler. */
static void find_copy(const struct gorows *go, struct function *fn)
{
	size_t from = fn->set != NEVER ? fn->set - fn->f->entry : fn->saved != NEVER ? fn->saved - fn->f->entry : 0;
	const uint8_t *found = from < fn->n ? memmem(fn->code + from, fn->n - from, "\x48\x89\xe5", 3) : NULL;

	if (!found || (fn->saved != NEVER && !fn->loads_early))
		return;
	fn->copied = fn->f->entry + (found - fn->code) + 3;
	fn->copied_frame = gotab_value_at(go->table, fn->f, fn->f->pcsp, fn->copied);
}

static uint64_t rule_at(const struct function *fn, uint64_t address, int32_t frame)
{
	bool saved = frame >= 8 && address >= fn->saved;
	enum rule_rbp rbp = saved ? RULE_RBP_CFA : RULE_RBP_SAME;

	if (frame < 0 || frame > MAX_FRAME || frame % 8)
		return RULE_UNSUPPORTED;
	if (fn->link)
		return arm64_go_rule(frame, saved);
	if (fn->by_rbp && address >= fn->copied && frame == fn->copied_frame)
		return rule_make(RULE_CFA_RBP, 0, frame + 8, saved ? RULE_RBP_CFA : RULE_RBP_LOST, saved ? -16 : 0);
	if (fn->by_rbp && address >= fn->set && frame >= 8)
		return rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16);
	return rule_make(RULE_CFA_RSP, 0, frame + 8, rbp, saved ? -16 : 0);
}

/* The start of the instruction that frees the frame at the end of a range; the end if there is none. */
static uint64_t freeing(const struct function *fn, const struct gotab_values *v)
{
	size_t end = v->end - fn->f->entry;
	const uint8_t *p = fn->code + end;

	if (end > fn->n || end < 7)
		return v->end;
	if (!memcmp(p - 4, "\x48\x83\xc4", 3))
		return v->end - 4;
	return !memcmp(p - 7, "\x48\x81\xc4", 3) ? v->end - 7 : v->end;
}

/* Adds the rows of a range with one frame size. */
static void add_range(struct gorows *go, const struct function *fn, const struct gotab_values *v)
{
	const uint64_t breaks[] = { v->start, fn->saved, fn->set, fn->copied }; /* ascending */
	uint64_t rule, last = freeing(fn, v);

	for (size_t i = 0; i < ARRAY_LEN(breaks); i++)
		if (breaks[i] >= v->start && breaks[i] < v->end)
			rows_add(&go->own, breaks[i] - go->base,
				 rows_rule(go->rules, rule_at(fn, breaks[i], v->value)));
	if (!fn->by_rbp || !fn->loads_early || v->value < 8 || v->value > MAX_FRAME || last == v->end || last <= v->start ||
	    (fn->copied < v->end && last <= fn->copied) || (fn->set < v->end && last <= fn->set))
		return;
	rule = rule_make(RULE_CFA_RSP, 0, v->value + 8, RULE_RBP_CFA, -16);
	rows_add(&go->own, last - go->base, rows_rule(go->rules, rule));
}

static void add_switches(struct gorows *go, const struct function *fn, enum goswitch_kind kind)
{
	struct goswitch_part parts[GOSWITCH_MAX_PARTS];
	size_t n = goswitch_parts(kind, &go->curg, fn->code, fn->n, parts);
	uint32_t entry = fn->f->entry - go->base;

	go->switched.n = 0;
	for (size_t i = 0; i < n; i++) {
		rows_add(&go->switched, entry + parts[i].start, rows_rule(go->rules, parts[i].rule));
		rows_add(&go->switched, entry + parts[i].end, ROWS_NONE);
	}
	rows_fill(&go->switched, &go->own);
}

/* Adds the rows of one function; the last one holds up to its end, with the padding. */
static void add_function(struct gorows *go, struct function *fn, struct rows *ret)
{
	struct gotab_values v = gotab_values(go->table, fn->f, fn->f->pcsp);
	enum goswitch_kind kind = goswitch_kind(fn->f);
	uint32_t entry = fn->f->entry - go->base;

	if (kind == GOSWITCH_ROOT) {
		rows_add(ret, entry, rows_rule(go->rules, RULE_END));
		return;
	}
	if (kind == GOSWITCH_SIGNAL && !fn->link) {
		/* The kernel made its first byte the return address, and a return address is looked up one byte before. */
		rows_add(ret, entry - (entry > 0 && ret->n && ret->v[ret->n - 1].offset < entry),
			 rows_rule(go->rules, RULE_SIGNAL));
		return;
	}
	find_frame(go, fn);
	/* How arm64's runtime leaves a thread's stack is not known here: such stacks end on the thread's. */
	if (fn->link)
		kind = GOSWITCH_NONE;
	fn->by_rbp = kind == GOSWITCH_OTHER || kind == GOSWITCH_CGO || kind == GOSWITCH_SYSTEMSTACK;
	if (kind == GOSWITCH_OTHER)
		find_copy(go, fn);
	go->own.n = 0;
	while (gotab_next(&v))
		add_range(go, fn, &v);
	if (!go->own.n || fn->f->end - v.end > MAX_PADDING)
		rows_add(&go->own, (go->own.n ? v.end : fn->f->entry) - go->base, ROWS_NONE);
	if (kind != GOSWITCH_NONE && !(fn->by_rbp && (fn->set != NEVER || fn->copied != NEVER)))
		add_switches(go, fn, kind);
	else
		go->switched.n = 0;
	for (size_t i = 0; i < (go->switched.n ? go->switched.n : go->own.n); i++) {
		const struct rows_row *row = go->switched.n ? &go->switched.v[i] : &go->own.v[i];

		rows_add(ret, row->offset, row->rule);
	}
}

/* Reads function i; false if it lies outside the text. */
static bool get_function(const struct gorows *go, size_t i, uint32_t limit, struct gotab_function *f,
			 struct function *ret)
{
	uint64_t n;

	if (!gotab_get(go->table, i, f) || f->entry < go->base || f->end - go->base > limit)
		return false;
	n = f->end - f->entry;
	*ret = (struct function){ .f = f, .code = elf_code_at(go->elf, f->entry, &n), .link = go->elf->machine == EM_AARCH64 };
	ret->n = n;
	return ret->code;
}

static void find_curg(struct gorows *go, uint32_t limit)
{
	struct gotab_function f;
	struct function fn;

	for (size_t i = 0; i < gotab_count(go->table) && !go->curg.known; i++)
		if (get_function(go, i, limit, &f, &fn) && !strcmp(f.name, "runtime.systemstack"))
			goswitch_find_curg(fn.code, fn.n, &go->curg);
}

void gorows_read(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules, struct rows *ret)
{
	struct gorows go = { .elf = elf, .base = base, .rules = rules };
	struct gotab *table;
	struct gotab_function f;
	struct function fn;
	uint64_t end = base;

	if (gotab_open(elf, &table, NULL) < 0)
		return;
	go.table = table;
	if (elf->machine == EM_X86_64)
		find_curg(&go, limit);
	for (size_t i = 0; i < gotab_count(table); i++) {
		if (!get_function(&go, i, limit, &f, &fn))
			continue;
		if (f.entry != end)
			rows_add(ret, end - base, ROWS_NONE);
		add_function(&go, &fn, ret);
		end = f.end;
	}
	rows_add(ret, end - base, ROWS_NONE);
	rows_done(&go.own);
	rows_done(&go.switched);
	gotab_free(table);
}
