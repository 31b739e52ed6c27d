/*
 * gotab.h - the functions of a Go program as .gopclntab tells them.
 *
 * Every Go program has this table, stripped or not: the runtime walks stacks and prints panics by it. It is
 * found by its section or, where section headers are gone, by its magic number in the loaded segments.
 *
 *	struct gotab *t;
 *	if (!gotab_open(elf, &t, &err)) {
 *		for (size_t i = 0; i < gotab_count(t); i++) {
 *			struct gotab_function f;
 *			struct gotab_values v;
 *
 *			if (!gotab_get(t, i, &f))
 *				continue;
 *			for (v = gotab_values(t, &f, f.pcsp); gotab_next(&v);)
 *				use(f.name, v.start, v.end, v.value);
 *		}
 *		gotab_free(t);
 *	}
 *
 * Addresses are those of the ELF file, also in a PIE (relocations are applied). Every byte is hostile: what is
 * handed out lies within the file, functions ascend and do not overlap, ranges lie within their function. Any
 * other field is only as true as the file.
 *
 * Versions: Go 1.12 to 1.15, 1.16 and 1.17, 1.18 and 1.19, 1.20 and later (checked up to 1.27). x86-64 and
 * arm64. Left out: several text sections in one module, which the linker makes on neither.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf;
struct err;
struct gotab;
struct symbols_call;

/* The layout of the table, by the first version of Go that wrote it. */
enum gotab_version { GOTAB_112 = 112, GOTAB_116 = 116, GOTAB_118 = 118, GOTAB_120 = 120 };

/* Bits of gotab_function.flag, from Go 1.17 on. */
enum {
	GOTAB_TOP_FRAME = 1, /* a stack ends here: runtime.goexit, runtime.mstart, ... */
	GOTAB_SP_WRITE = 2,  /* writes the stack pointer in a way that pcsp cannot tell */
	GOTAB_ASSEMBLY = 4,  /* from Go 1.18 on */
};

struct gotab_function {
	uint64_t entry, end; /* [entry, end), with the padding after it */
	const char *name;    /* "main.(*T).run"; points into the file, "" = damaged */
	uint32_t pcsp, pcfile, pcln; /* tables for gotab_values(), 0 = there is none */
	int32_t args_bytes;  /* INT32_MIN = unknown (assembly) */
	uint32_t deferreturn; /* offset of the call of deferreturn, 0 = none */
	int32_t start_line;  /* of the func keyword; 0 before Go 1.20 */
	uint8_t id;          /* the runtime's funcID, numbered differently in each version: prefer the name */
	uint8_t flag;        /* 0 before Go 1.17 */
	uint32_t unit;       /* where the files of its compile unit begin, from Go 1.16 on */
	uint32_t pcdata_count, funcdata_count;
	const uint8_t *pcdata, *funcdata; /* within the file; for this folder only */
};

/* Reads the header of the table and checks the order of all functions. elf must outlive the table.
 * -ENOENT: this is no Go program. -EBADMSG: a table that cannot be used, with the reason. */
int gotab_open(const struct elf *elf, struct gotab **ret, struct err *err);
void gotab_free(struct gotab *t);
void gotab_freep(struct gotab **t);

enum gotab_version gotab_version(const struct gotab *t);
/* The number of functions. */
size_t gotab_count(const struct gotab *t);
/* Reads function i; false when its record is damaged (skip it). */
bool gotab_get(const struct gotab *t, size_t i, struct gotab_function *ret);
/* Finds the function at an address in O(log n); false when it lies in none. */
bool gotab_find(const struct gotab *t, uint64_t address, size_t *ret_index);
/* The address range that the functions cover; C code of a cgo program lies outside. */
void gotab_range(const struct gotab *t, uint64_t *ret_start, uint64_t *ret_end);

/* --- values by address: the frame size, the index of the file, the line --- */

struct gotab_values {
	uint64_t start, end; /* the value holds in [start, end) */
	int32_t value;       /* pcsp: bytes between the stack pointer and the return address */
	/* of gotab_next() only */
	const uint8_t *at, *limit;
	uint64_t function_end;
	uint32_t quantum;
	bool begun;
};

/* Begins at the function's entry. table is f->pcsp, f->pcfile or f->pcln; 0 gives no range. */
struct gotab_values gotab_values(const struct gotab *t, const struct gotab_function *f, uint32_t table);
/* Goes to the next range; they follow each other without gaps and never pass the function's end. False at
 * the end of the table, and where it is damaged. */
bool gotab_next(struct gotab_values *v);
/* The value at an address within f; -1 when there is none (as the runtime has it). */
int32_t gotab_value_at(const struct gotab *t, const struct gotab_function *f, uint32_t table, uint64_t address);

/* --- source positions --- */

/* The line at an address within f, 0 = unknown, and its file, "" = unknown, which points into the file. */
uint32_t gotab_line(const struct gotab *t, const struct gotab_function *f, uint64_t address, const char **ret_file);
/* The calls at an address as symbols.h has them: calls[0] is the innermost inlined one, the last the function
 * itself. Returns how many, at most max; 0 when the address lies in no function of the table. Strings point
 * into the file. */
size_t gotab_calls(const struct gotab *t, uint64_t address, struct symbols_call *calls, size_t max);
