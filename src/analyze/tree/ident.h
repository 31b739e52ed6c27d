/*
 * ident.h - the identity of a frame, by which frames are merged and shown.
 *
 * Addresses of one function, and one function of two merged recordings, are one
 * identity: its name, the path of its module and its kind. A frame with inlined
 * calls is several identities, outermost first. Frames without a name show
 * their module and where in it their function starts.
 *
 *	struct idents t;
 *	idents_init(&t, p, 0);
 *	const uint32_t *list = idents_of_frame(&t, frame, &n);
 *	puts(t.list.v[list[0]].name);
 *	idents_done(&t);
 *
 * The profile must outlive the table and not change meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct profile;
struct profile_range;

enum ident_kind {
	IDENT_ROOT,      /* "all" */
	IDENT_GROUP,     /* a thread or a process */
	IDENT_USER,
	IDENT_INLINED,   /* only with IDENTS_SPLIT_INLINED */
	IDENT_KERNEL,
	IDENT_UNNAMED,   /* no symbol was found: "module+0x1200", the start of the function */
	IDENT_TRUNCATED, /* "[truncated: reason]" */
	IDENT_NOTE,      /* a note about the leaf above it: a file's path */
	IDENT_CAUSE,     /* the cause of the time of the leaf above it: "[disk write]", "[on CPU]" */
};

struct ident {
	const char *name;   /* lives as long as the table */
	const char *module; /* path, "" = none */
	enum ident_kind kind;
};

/* By name, module and kind, for qsort() and bsearch() of identities, and for qsort_r() of indexes into a list of them. */
int ident_compare(const void *a, const void *b);
int ident_compare_at(const void *a, const void *b, void *list);

enum {
	IDENTS_NO_INLINE = 1,     /* the called function, without functions inlined into it */
	IDENTS_SPLIT_INLINED = 2, /* a function's inlined copies are an identity of their own */
	IDENTS_NAMES_ONLY = 4,    /* functions of one name are one, of any module */
};

struct idents {
	const struct profile *p;
	unsigned flags;
	VEC(struct ident) list;
	/* The rest is private. */
	VEC(uint32_t) expanded;
	uint32_t *frame_first; /* into expanded, PROFILE_NONE = not looked at yet */
	VEC(struct profile_range) ranges; /* of the profile, sorted, once one is looked for */
	uint32_t *own;         /* ownfunction.c: 1 + what it found for each stack, 0 = not looked at yet; NULL = for none */
	struct strtab names;
	struct map index;
};

void idents_init(struct idents *t, const struct profile *p, unsigned flags);
void idents_done(struct idents *t);

/* The identities of a frame, outermost first; *ret_n >= 1. Lives until the next call. */
const uint32_t *idents_of_frame(struct idents *t, uint32_t frame, uint32_t *ret_n);
/* An identity that is no frame: the root, a thread, a process. */
uint32_t idents_add(struct idents *t, const char *name, const char *module, enum ident_kind kind);
/* Is the identity at position k of a frame's list an inlined call? */
bool idents_is_inlined(const struct idents *t, uint32_t frame, uint32_t k);

/* Did symbolizing find no name for this frame? */
bool ident_frame_unnamed(const struct profile *p, uint32_t frame);
/* Ranks of all identities in the order of name, module, kind. Caller frees. */
uint32_t *idents_rank(const struct idents *t);
