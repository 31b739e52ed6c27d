/*
 * newest.h - chooses the captures of a command whose command line names none: the newest here.
 *
 * "Here" is this folder itself and everything below profiling/, where record writes. The newest one is the
 * last written; a capture that is being recorded is skipped. In a folder that others may write to, anyone
 * could put a newer capture: only those of the user, of root, and of the user behind sudo are taken. The
 * choice is made before the command drops its rights, since these depend on the owner of the files, so only
 * the header of a capture is read.
 */
#pragma once

#include "base/file/folder.h"
#include "cmd/cmd.h"

struct err;

/* Completes the operands of a command that has .newest, and says on stderr which captures were chosen. Of two the older
 * is the first. A command with -p has a target and gets none. -ENOENT with what to type next when there are too few.
 * The new operands live as long as the program. */
int newest_complete(const struct command *c, const struct option_spec *options, struct command_operands *operands,
		    struct owner behind_sudo, struct err *err);
