/*
 * storeargs.h - a profile in a store by options: --store, --target, --release, --label, --from and --to become the operand that they
 * stand for, clickhouse://HOST/DATABASE?target=NAME&from=TIME (fleet/storeurl.h), before the command looks at its operands.
 *
 *	const struct option_spec options[] = {
 *		STORE_OPTIONS(&o.store), STORE_TIMES(&o.store),		// cmd/filters.h
 *
 * Options are found by their names, which mean the same for all commands. Where --from and --to are a time of the recording
 * (OPTION_MOMENT) they are one of the calendar with a store, and none of the recording.
 */
#pragma once

#include "cmd/cmd.h"

struct buf;
struct err;

struct store_choice {
	const char *store, *target, *release, *from, *to;
	struct option_list labels;
};
void store_choice_done(struct store_choice *c);

/* The other side of diff: --base-target and so on. What is not said is as of the first; --base-to is --from if --base-from is given. */
struct store_base {
	const char *target, *release, *from, *to;
};

/* Puts the operand before those that were named, and in a diff the base before it, or after a file. Users and passwords are taken off the
 * command line. Nothing is done for a command that asks a server whatever its operands are (.connects). -EINVAL: an option without its store, or a time that is none. The operands live as long as the program. */
int storeargs_complete(const struct command *c, const struct option_spec *options, struct command_operands *operands, struct err *err);

/* The address of a target and a time in a store, whose address may have values already: NULL is left out. For what is not on the
 * command line: serve makes one of a click. Caller frees it. */
struct storeargs_place {
	const char *target, *release, *from, *to;
	const char *const *labels; /* NULL-terminated, or NULL */
	bool exact;                /* the target is a name, whatever is in it */
};
char *storeargs_address(const char *store, const struct storeargs_place *place);
