/*
 * perfdatastack.h - the stack of a sample of perf.data: its frames in modules, interned.
 *
 * The kernel's part is a call chain. The user's part is one too (frame pointers), or comes from the branches that the
 * processor remembered (--call-graph lbr), or is walked over the copy of the stack (--call-graph dwarf) with the unwind tables
 * that collectors use. Why a walk ended early is said by a marker, as in a capture; chains do not say it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct perfdataattr;
struct perfdatamodules;
struct perfdatasample;
struct perfdataspaces;
struct profile;

struct perfdatastack {
	/* Set by the caller. */
	struct profile *p;
	struct perfdataspaces *spaces;
	struct perfdatamodules *modules;
	bool other_machine; /* neither x86-64 nor arm64: copies of stacks cannot be walked */
	/* Private. */
	VEC(uint32_t) frames; /* leaf first */
	const char *cut;      /* why the stack ended; NULL: it is whole, or nobody knows */
};

void perfdatastack_done(struct perfdatastack *s);
uint32_t perfdatastack_of(struct perfdatastack *s, const struct perfdataattr *a, const struct perfdatasample *sample);
