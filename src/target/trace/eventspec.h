/*
 * eventspec.h - events as people write them: with -e, in a file, in a list.
 *
 *	sched:sched_switch              a tracepoint, counted
 *	syscalls:sys_enter_*            all that match
 *	block:block_rq_issue/bytes      summed by a field of its record
 *	page-faults, cycles:u           a software or hardware event; :u in user code only, :k in the kernel
 *
 * Whether this kernel has it is another question.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum eventspec_kind { EVENTSPEC_TRACEPOINT, EVENTSPEC_SOFTWARE, EVENTSPEC_HARDWARE };

struct eventspec {
	enum eventspec_kind kind;
	char *name;              /* as it is called in a profile: without the field */
	char *group, *point;     /* tracepoints; either may be a pattern */
	char *field;             /* NULL: count */
	uint32_t type;           /* PERF_TYPE_* of the others */
	uint64_t config;
	bool sampled;            /* too many to look at each: by a clock or every nth */
	bool user_only, kernel_only;
};

/* Parses an event. -EINVAL: it is none. */
int eventspec_parse(const char *text, struct eventspec *ret, struct err *err);
void eventspec_done(struct eventspec *e);
bool eventspec_is_pattern(const struct eventspec *e);

/*
 * The text of a file: an event a line; # begins a comment wherever it stands; blanks and empty
 * lines do not matter, nor do the line ends of Windows. word() gets each word of it with its line, and
 * ends it with a number below 0. -EINVAL and a line number for what cannot be an event's name.
 */
typedef int eventspec_word_fn(void *context, const char *word, unsigned line, struct err *err);
int eventspec_parse_file(const char *text, size_t n, eventspec_word_fn *fn, void *context, struct err *err);

/* The software and hardware events that have names, in order; NULL beyond the last. */
const char *eventspec_named(size_t i, enum eventspec_kind *ret_kind, const char **ret_describe);
/* Checks whether the event opens on this machine. Returns errno if not. */
int eventspec_probe(const struct eventspec *e);
