/*
 * cmd.h - subcommands and their options, as tables.
 *
 * A command is one file with one struct command and one line in main.c's table.
 * Its options are a table, from which parsing, --help and the man page come:
 *
 *	static int hello(const struct command *c, int argc, char **argv)
 *	{
 *		bool loud = false;
 *		const struct option_spec options[] = {
 *			{ 'l', "loud", OPTION_FLAG, &loud, .help = "shout" },
 *			{ 0 },
 *		};
 *		int first = options_parse(c, options, argc, argv);
 *		if (first < 0)
 *			return -first - 1;	// EXIT_OK after --help, else EXIT_USAGE
 *
 * Numbers before the call are the defaults, and --help shows them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct err;
struct profile;

enum exit_code {
	EXIT_OK = 0,
	EXIT_ERROR = 1,   /* it could not be done */
	EXIT_USAGE = 2,   /* the command line is wrong */
	EXIT_QUALITY = 3, /* done, but the recording is not fit to read: the quality line says why */
	EXIT_GONE = 4,    /* done, but the target ended before the time was over */
	EXIT_CHANGED = 5, /* diff, watch --fail-on-change: done, and something changed beyond noise */
	EXIT_LEAK = 6,    /* run --fail-on-leak: done, and more is alive at the end than is allowed */
	EXIT_SLOWER = 7,  /* compare --fail-on-slower: done, and B is worse beyond noise */
};

/* The forms of a TARGET, for the descriptions of the commands that take one (target/resolve.h). */
#define COMMAND_TARGETS                                                                                          \
	"a pid, the name or the beginning of the id of a container, NAMESPACE/POD[/CONTAINER], a systemd unit, a " \
	"process name, or a pattern of its command line (su, sudo and sh -c are passed over); container:, pod:, unit:, name:, cmd: or pid: before it asks for " \
	"one kind only"

/* The help of --symbols (symbol/find.h). */
#define COMMAND_SYMBOLS                                                                                            \
	"symbols for programs that have none: a debug file or unstripped build, a folder of such files, the root of an " \
	"image, or another build of the same sources (used when 99 % of the functions agree in start and size)"

/* The meaning of no FILE, for the descriptions of the commands with .newest (cmd/captures/newest.h). */
#define COMMAND_NEWEST                                                                                             \
	"Without a FILE it is the newest capture in this folder or below profiling/ that is yours or root's; which one " \
	"is said on the standard error."

struct command {
	const char *name;
	const char *summary;  /* one line, for the list of commands */
	const char *usage;    /* "[options] FILE..." */
	const char *describe; /* a paragraph or two for --help and the man page; may be NULL */
	const char *example;  /* one real example, a line each */
	int (*run)(const struct command *c, int argc, char **argv); /* argv[0] is the command's last word */
	const struct command *const *parts; /* commands of two words that begin with this name; NULL-terminated, may be NULL */

	/* Without this a command drops its rights as soon as its options are known
	 * (cmd/reading/reading.h): it opens files for reading, and writes only -o or files beside its
	 * operands. */
	bool keeps_rights;       /* it records, or starts programs */
	bool removes;            /* it removes files below its operands */
	bool makes_capture;      /* -o is a capture, with any extension */
	unsigned newest;         /* captures it takes; cmd/captures/newest.h finds missing ones */
	bool listens;            /* it waits for connections */
	bool connects;           /* it asks a server, whatever its operands are */
	const char *also_writes; /* a file in addition to -o; may be NULL */
	bool pictures;           /* it draws on a terminal, and makes pictures below profiling/ when it is asked to */
	const char *const *reads_by_default; /* what is read without operands, NULL-terminated; may be NULL: the standard input */
};

enum option_type {
	OPTION_FLAG,     /* bool */
	OPTION_STRING,   /* const char * */
	OPTION_LIST,     /* struct option_list: may be repeated */
	OPTION_UINT,     /* uint64_t, min..max */
	OPTION_DURATION, /* uint64_t nanoseconds */
	OPTION_SIZE,     /* uint64_t bytes */
	OPTION_PERCENT,  /* double */
	OPTION_NUMBER,   /* double, from 0 up */
	OPTION_CHOICE,   /* const char *, one of choices */
	OPTION_MOMENT,   /* struct option_moment: a time of the recording, or with --store one of the calendar */
};

struct option_list {
	VEC(const char *) list; /* ends in a NULL that is not counted */
};

/* What it is depends on whether there is a --store: cmd/reading/storeargs.h finds out, when all options are known. */
struct option_moment {
	const char *text; /* NULL = not given */
	uint64_t ns;      /* of the recording; 0 with a store */
};

struct option_spec {
	char letter;             /* 0 = none */
	const char *name;        /* long name; NULL ends the table */
	enum option_type type;
	void *value;
	const char *argument;    /* its name in --help: "HZ" */
	const char *help;
	uint64_t min, max;       /* OPTION_UINT */
	const char *const *choices; /* NULL-terminated */
	bool *given;             /* set where the option is used, with its default too; may be NULL */
};

/* Index of the first operand in argv, which is reordered for that (options and operands may be mixed), or
 * -1 after --help was printed, or -3 after an error was printed: return -result - 1. "--" ends the
 * options; argv[result - 1] is "--" then. Every command also takes -h --help,
 * -q --quiet and -v --verbose, unless its table has a letter or a name of these. */
int options_parse(const struct command *c, const struct option_spec *options, int argc, char **argv);
/* The operands after the options, as options_parse() last left them: from argv[result] on, or the files
 * that command_begin chose when none were named. */
struct command_operands {
	char **v; /* NULL-terminated */
	int n;
};
extern struct command_operands command_operands;
/* Called by options_parse() when all is well, before it returns; an exit code other than 0 ends the command, by a
 * result of -1 - code. main.c sets it; tests of options leave it NULL. */
extern int (*command_begin)(const struct command *c, const struct option_spec *options, struct command_operands *operands);
/* The option of that long name; NULL: there is none. */
const struct option_spec *options_find(const struct option_spec *options, const char *name);
/* Called with a command's table in place of running it, by --help-table, which is for cmd/completion alone. */
extern void (*command_table)(const struct command *c, const struct option_spec *options);
/* What every command takes, in the order of --help; ends in a row without a name. */
extern const struct option_spec options_common[];
/* Whether a command's own table has an option in place of that common one. */
bool options_replace(const struct option_spec *options, const struct option_spec *common);
/* The table for people, and as a page of the manual; both on stdout. */
void command_help(const struct command *c, const struct option_spec *options);
void command_man(const struct command *c, const struct option_spec *options);

/* Columns of the terminal at stdout, within reason; 80 where there is none. */
int command_width(void);
/* Prints s and a newline to stdout from column at on, broken between words; further lines start at column
 * indent. A line of s that starts with a space stays as it is; a blank line parts two paragraphs. */
void command_wrap(const char *s, int at, int indent, int width);

/* Shows how far symbolizing is: a symbolize_progress_fn. */
void command_show_names(void *context, const char *module, size_t done, size_t total);
/* Ends that, and says what became of --symbols: another build that was used, files that were not. From counter first on. */
void command_tell_names(const struct profile *p, size_t first);
/* Prints the sentence, and returns the exit code: EXIT_USAGE of EINVAL, else EXIT_ERROR. */
int command_failed(const struct err *err);

struct command_group {
	const char *title; /* NULL ends the table */
	const struct command *commands[8]; /* NULL-terminated */
};
extern const struct command_group command_groups[]; /* in the order that help lists them */

/* `gasflame` alone, and the page gasflame(1). */
void program_help(void);
void program_man(void);
