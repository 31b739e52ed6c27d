/*
 * completion.h - the tables of commands and options as a script that a shell completes command lines by.
 *
 * The build installs the scripts; of a gasflame that is one file, `source <(gasflame help --completion bash)` is the same.
 *
 * Names of targets come from `gasflame ps --names`, when the key is pressed. They are strangers': no script may evaluate
 * one. So they are compared and quoted, and never are an argument of eval or of bash's compgen -W, which expands it.
 */
#pragma once

#include <stdbool.h>

struct buf;
struct command;
struct option_spec;

/* What may follow. Bits, as `top` takes targets and files. */
enum completes {
	COMPLETES_FILES = 1,
	COMPLETES_FOLDERS = 2,
	COMPLETES_TARGETS = 4,
	COMPLETES_COMMAND = 8, /* of the machine, with its arguments, after -- */
	COMPLETES_WORDS = 16,  /* completion_words() */
	COMPLETES_LIST = 32,   /* the words, separated by commas */
};

struct completion_shell {
	const char *name;
	void (*begin)(struct buf *b);
	void (*command)(struct buf *b, const struct command *c, const struct option_spec *options);
	void (*end)(struct buf *b);
};

/* Prints the script of that shell. false: it is not known. */
bool completion_print(const char *shell);

/* For the shells: of the value of an option, and of the operands of a command. */
unsigned completion_of_option(const struct option_spec *o);
unsigned completion_of_operands(const struct command *c);
/* Words for a value of COMPLETES_WORDS; ends in NULL. */
const char *const *completion_words(const struct option_spec *o);
/* The options that a command takes: its own, then those that every command has. NULL after the last one. */
const struct option_spec *completion_next(const struct option_spec *options, const struct option_spec *o);
/* The beginning of an option's help, fit for a line; free it. */
char *completion_line(const char *help);
/* s within single quotes; extra: characters that get a backslash before them. */
void completion_quote(struct buf *b, const char *s, const char *extra);
/* "heap dump" as "heap_dump", for names of functions. */
void completion_identifier(struct buf *b, const char *name);
