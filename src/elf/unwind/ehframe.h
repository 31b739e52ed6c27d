/*
 * ehframe.h - the entries of .eh_frame or .debug_frame, and the addresses that they
 * describe.
 *
 * This reads CIEs and FDEs and leaves their programs to cfi.h. Entries that make no
 * sense are left out; a length that does not fit ends the reading, and the entries
 * before it stay. Work and memory are linear in the section's size.
 *
 *	struct ehframe f = { .data = bytes, .size = n, .address = section->address };
 *	ehframe_read(&f);
 *	for (size_t i = 0; i < f.fde_count; i++)
 *		use(&f.fdes[i], &f.cies[f.fdes[i].cie]);
 *	ehframe_done(&f);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader;

enum {
	EHFRAME_MAX_BYTES = 128 << 20, /* browsers have 30 MB */
	EHFRAME_MAX_CIES = 1 << 18,
};

struct ehframe_cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint32_t program, program_end; /* offsets in the section */
	uint8_t encoding;              /* DW_EH_PE_* of the FDEs' addresses */
	bool sized;                    /* 'z': FDEs carry the size of their augmentation */
	bool signal;                   /* 'S' */
	bool usable;                   /* false: its FDEs cannot be read */
};

struct ehframe_fde {
	uint64_t start, end; /* addresses, start < end */
	uint32_t program, program_end;
	uint32_t cie;
};

struct ehframe {
	/* Set by the caller, who keeps the bytes. size is at most EHFRAME_MAX_BYTES. */
	const uint8_t *data;
	size_t size;
	uint64_t address;
	uint16_t machine;  /* EM_AARCH64, or 0 or another: x86-64 */
	bool debug_frame;  /* the other format: .debug_frame */
	bool stop_at_zero; /* the size is a guess: an entry of length 0 is the end */
	/* Made by ehframe_read(). */
	struct ehframe_cie *cies;
	size_t cie_count, cie_capacity;
	struct ehframe_fde *fdes; /* in the order of the file */
	size_t fde_count, fde_capacity;
};

void ehframe_read(struct ehframe *f);
void ehframe_done(struct ehframe *f);
/* A pointer at r->pos, which must read f->data. False if it is indirect, relative to something unknown,
 * or cut off. */
bool ehframe_pointer(const struct ehframe *f, struct reader *r, uint8_t encoding, uint64_t *ret);
