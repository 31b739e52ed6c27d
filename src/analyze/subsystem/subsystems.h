/*
 * subsystems.h - the table of a node's subsystems, as text that a user can extend.
 *
 * The format is explained at the top of configs/subsystems.conf, which is the built-in table itself. A user's
 * table comes before it: the first pattern that fits a function decides.
 *
 *	struct subsystems t;
 *	subsystems_init(&t);
 *	r = subsystems_add(&t, "mine.conf", text, &err);	// as often as needed
 *	subsystems_add_builtin(&t);				// last
 *	struct subsystem_use u = subsystems_of_name(&t, "keccak256", "", false);
 *	subsystems_done(&t);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/subsystem/words.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"

struct err;

enum {
	SUBSYSTEM_OTHER = 0, /* what no pattern knows */
	SUBSYSTEMS_MAX = 64, /* a bit each, with other */
};

/* What an operation of the EVM is. */
enum subsystem_label { LABEL_NONE, LABEL_OPCODE, LABEL_PRECOMPILE };

struct subsystem {
	char *name, *about; /* about: "" = nothing to say */
	bool general;       /* programs that are no nodes have it, too */
};

struct subsystem_label_name {
	const char *name; /* "SLOAD"; lives as long as the table */
	enum subsystem_label kind;
};

/* What a function is of. */
struct subsystem_use {
	uint8_t subsystem; /* SUBSYSTEM_OTHER: no pattern matches */
	bool weak;         /* only where no other function of the stack decides */
	uint16_t label;    /* into labels, 0 = none */
};

/* What a pattern says. The label's name may come from the function's. */
struct subsystem_rule {
	uint8_t subsystem;
	bool weak;
	enum subsystem_label kind;
	uint16_t label; /* 0: the word's {} is its name */
};

struct subsystems {
	VEC(struct subsystem) list;              /* [0] is other */
	VEC(struct subsystem_label_name) labels; /* [0] is none */
	bool extended;                           /* a user's table is in it */
	/* The rest is private. */
	VEC(struct subsystem_rule) rules;
	struct words functions, modules;
	struct strtab label_names;
	struct buf plain;
};

void subsystems_init(struct subsystems *t);
void subsystems_done(struct subsystems *t);
/* file is what errors call the text: "file:12: ...". -EINVAL: the table is of no use any more, and must be
 * released. */
int subsystems_add(struct subsystems *t, const char *file, const char *text, struct err *err);
void subsystems_add_builtin(struct subsystems *t);

/* Costs some microseconds: ask once for each function. module is a path; kernel: its function is the
 * kernel's. */
struct subsystem_use subsystems_of_name(struct subsystems *t, const char *name, const char *module,
					bool kernel);

/* The number of a subsystem by its name, -1 = there is none. */
int subsystems_find(const struct subsystems *t, const char *name);
/* "state root" to "state_root": for JSON, CSV and metrics. Caller frees. */
char *subsystem_key(const char *name);
