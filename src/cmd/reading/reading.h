/*
 * reading.h - commands that read untrusted files do it without privileges (sandbox/confine.h).
 *
 * main.c has reading_begin() called for every command whose table does not say otherwise (struct command,
 * keeps_rights), once its options are known and before it opens anything. The remaining rights of the command
 * follow from its options by their names, which mean the same for all commands: output is the file that is
 * written, base and marks others that are read, debuginfod, fetch and rpc ask for the network, and so does an operand that is in a
 * store; a command with no-cache has a cache of names.
 */
#pragma once

#include "cmd/cmd.h"

struct err;
struct profile;

/* 0, or an exit code after an error was printed. */
int reading_begin(const struct command *c, const struct option_spec *options, char **operands, int n);

/* Makes the capture that -o names: in a folder where this process may write, beside its place, to which it is moved
 * when it is whole. 0, or a negative errno with a sentence. */
int reading_save(const char *path, struct profile *p, struct err *err);
/* For what only reads captures: *ret is path itself if it is one, else a capture with names that is made of it, in the folder for
 * temporary files. Caller frees it. */
int reading_as_capture(const char *path, char **ret, struct err *err);
