/*
 * shape.c - finds tables that have the shape of tokio's vtables, and checks that they are.
 *
 * The shape: seven words that hold starts of functions, then three small numbers that fit each other. That alone has found
 * all tables of each program looked at, and nothing else. But the tables are written to later, so each is checked by
 * what its functions are called, or, where they have no names, by what they do:
 *
 *	drop_abort_handle gives up one reference to the task:            lock xadd %rax,(%rdi)
 *	schedule of a scheduler reads the table's own scheduler_offset:  mov 0x10(%rdi),%rax; mov 0x40(%rax),%rax (or add)
 *
 * The second one shows that the numbers start after seven functions, also in a version that is not known yet.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "elf/demangle.h"
#include "elf/file.h"
#include "elf/symtab.h"
#include "elf/tokio/tokioint.h"

enum {
	HEADER_VTABLE = 0x10, /* where the header of a task points to its table */
	MAX_TRAILER = 1 << 28, /* bytes of a future */
	MAX_SCHEDULER = 64,    /* bytes of a handle of a scheduler */
	MAX_DEPTH = 2,         /* of calls below drop_abort_handle */
};

/* The first version with these tables, and the last one whose source was read. */
#define FIRST_KNOWN 1023000ULL
#define LAST_KNOWN 1053999ULL

/* --- the shape --- */

/* The scheduler follows the header of 32 to 56 bytes, aligned as the future needs it. */
static bool fits_header(uint64_t scheduler)
{
	return (scheduler >= 0x20 && scheduler <= 0x38 && !(scheduler & 7)) ||
	       (scheduler >= 0x40 && scheduler <= 0x1000 && !(scheduler & (scheduler - 1)));
}

static bool read_numbers(const struct elf *elf, struct table *t)
{
	uint64_t after = t->address + WORD_TRAILER * 8;

	return image_word(elf, after, &t->trailer) && image_word(elf, after + 8, &t->scheduler) &&
	       image_word(elf, after + 16, &t->id) && fits_header(t->scheduler) && !(t->id & 7) && t->id >= t->scheduler &&
	       t->id - t->scheduler <= MAX_SCHEDULER && !(t->trailer & 7) && t->trailer > t->id && t->trailer <= MAX_TRAILER;
}

static bool read_functions(const struct tokio_file *f, const struct image_pointer *p, size_t n, struct table *t)
{
	if (n < SLOTS || (n > SLOTS && p[SLOTS].address == p->address + 8 * SLOTS))
		return false;
	for (int i = 0; i < SLOTS; i++) {
		struct functions_range r;

		if (p[i].address != p->address + 8 * (uint64_t)i || !code_function(f, p[i].value, &r))
			return false;
		t->functions[i] = p[i].value;
	}
	return true;
}

/* --- what the functions are called --- */

enum named { NAMED_NOT, NAMED_RIGHT, NAMED_WRONG };

/* Compares the name of a function with what this slot should be. */
static enum named check_name(const struct tokio_file *f, uint64_t function, const char *expected)
{
	static const char module[] = "tokio::runtime::task::raw::";
	const char *linkage = f->symtab ? symtab_find(f->symtab, function) : NULL;
	_cleanup_free_ char *name = linkage ? demangle(linkage, 0) : NULL;
	const char *at = name ? strstr(name, module) : NULL;
	size_t n = strlen(expected);

	/* A name of another module is that of a function with the same code, which a compiler or linker merged with it. */
	if (!at)
		return NAMED_NOT;
	at += strlen(module);
	return !strncmp(at, expected, n) && (!at[n] || !strncmp(at + n, "::<", 3)) ? NAMED_RIGHT : NAMED_WRONG;
}

static enum named check_names(const struct tokio_file *f, const struct table *t)
{
	static const char *const expected[] = { [SLOT_POLL] = "poll", [SLOT_SCHEDULE] = "schedule", [SLOT_DEALLOC] = "dealloc" };
	bool right = false;

	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		enum named named = check_name(f, t->functions[i], expected[i]);

		if (named == NAMED_WRONG)
			return NAMED_WRONG;
		right |= named == NAMED_RIGHT;
	}
	return right ? NAMED_RIGHT : NAMED_NOT;
}

/* --- what the functions do --- */

static bool see_xadd(void *context, uint64_t address, const uint8_t *bytes, const struct instruction *i)
{
	bool *found = context;

	*found = i->length >= 5 && bytes[0] == 0xf0 && (bytes[1] & 0xf8) == 0x48 && bytes[2] == 0x0f && bytes[3] == 0xc1;
	return !*found;
}

static bool drops_reference(struct tokio_file *f, uint64_t function, int depth)
{
	struct functions_range r;
	struct code_calls calls;
	bool found = false;

	if (!code_function(f, function, &r))
		return false;
	code_walk(f, &r, see_xadd, &found);
	if (found || depth >= MAX_DEPTH)
		return found;
	code_calls(f, function, &calls);
	for (size_t i = 0; !found && i < calls.n; i++)
		found = drops_reference(f, calls.v[i], depth + 1);
	vec_done(&calls);
	return found;
}

struct loading {
	unsigned vtable; /* the register that the table's address was loaded into; 16 = none yet */
	bool found;
};

/* Sees mov disp8(base),reg and add disp8(base),reg of 64 bits. */
static bool see_load(void *context, uint64_t address, const uint8_t *bytes, const struct instruction *i)
{
	struct loading *l = context;
	unsigned base, reg;

	if (i->op == OP_CALL || i->op == OP_RETURN)
		return false;
	if (i->length != 4 || (bytes[0] & 0xf8) != 0x48 || (bytes[1] != 0x8b && bytes[1] != 0x03) || bytes[2] >> 6 != 1)
		return true;
	base = (bytes[2] & 7) | (bytes[0] & 1) << 3;
	reg = (bytes[2] >> 3 & 7) | (bytes[0] & 4) << 1;
	if (base == l->vtable && bytes[3] == WORD_SCHEDULER * 8)
		l->found = true;
	else if (bytes[1] == 0x8b && bytes[3] == HEADER_VTABLE && base != l->vtable)
		l->vtable = reg;
	return !l->found;
}

static bool reads_scheduler(struct tokio_file *f, uint64_t function)
{
	struct loading l = { .vtable = 16 };
	struct functions_range r;

	if (code_function(f, function, &r))
		code_walk(f, &r, see_load, &l);
	return l.found;
}

/* --- all of it --- */

/* What is known of the tables of one file. */
struct found {
	struct tables tables;
	size_t alike; /* tables that failed a check */
	bool named, reads_scheduler;
};

static void look(struct tokio_file *f, struct found *ret)
{
	const struct image_pointers *p = &f->pointers;

	for (size_t i = 0; i < p->n; i++) {
		struct table t = { .address = p->v[i].address };
		enum named named;

		if (t.address > UINT64_MAX - 8 * WORDS || !read_functions(f, p->v + i, p->n - i, &t) || !read_numbers(f->elf, &t))
			continue;
		named = check_names(f, &t);
		if (named == NAMED_WRONG || (named == NAMED_NOT && !drops_reference(f, t.functions[SLOT_DROP_ABORT], 0)) ||
		    ret->tables.n == TOKIO_VTABLES) {
			ret->alike++;
			continue;
		}
		ret->named |= named == NAMED_RIGHT;
		if (!ret->reads_scheduler)
			ret->reads_scheduler = reads_scheduler(f, t.functions[SLOT_SCHEDULE]);
		vec_push(&ret->tables, t);
	}
}

static int judge(const struct found *found, const char *version, struct err *err)
{
	uint64_t number = tokio_version_number(version);
	const char *which = *version ? version : "of an unknown version";

	if (number && number < FIRST_KNOWN)
		return err_set(err, ENOTSUP, "it has tokio %s, whose tasks have no function for being woken: tokio 1.23 is the "
			       "first whose tasks can be followed", version);
	if (!found->tables.n && found->alike)
		return err_set(err, ENOTSUP, "it has tokio %s, and %zu tables that look like those of its tasks, but their "
			       "functions do something else: their layout is not known", which, found->alike);
	if (!found->tables.n)
		return err_set(err, ENOTSUP, "it has tokio %s, but no table of tasks with seven functions and three offsets, as "
			       "tokio 1.23 to 1.53 have: it spawns no task, or their layout is not known", which);
	if (!found->named && !found->reads_scheduler && (number < FIRST_KNOWN || number > LAST_KNOWN))
		return err_set(err, ENOTSUP, "it has tokio %s, and neither names nor code show that its tables of tasks are laid "
			       "out as those of tokio 1.23 to 1.53", which);
	return 0;
}

int shape_find(struct tokio_file *f, const char *version, struct tables *ret, size_t *ret_left_out, struct err *err)
{
	struct found found = { 0 };
	int r;

	if (f->elf->machine != EM_X86_64)
		return err_set(err, ENOTSUP, "it has tokio, but is no program for x86-64");
	look(f, &found);
	r = judge(&found, version, err);
	if (r < 0) {
		vec_done(&found.tables);
		return r;
	}
	*ret = found.tables;
	*ret_left_out = found.alike;
	return 0;
}
