/*
 * perfline.h - the lines of `perf script`'s text, by the rules of stackcollapse-perf.pl.
 *
 * That script tells lines apart by regular expressions, and people's files depend on what these accept: names of threads with
 * spaces and digits, pid/tid, lines without a processor, a period or an event. Each expression is written out here as a
 * search that finds the same match. They are given in the comments. Lines come without their line break, and are not changed;
 * what is found points into them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct perfline_text {
	const char *s;
	size_t n;
};

struct perfline_header {
	struct perfline_text comm, pid, tid; /* pid: s is NULL where the line has only a tid */
	struct perfline_text event;          /* s is NULL: the line ends in none */
	uint64_t period;                     /* 1 where there is none, or 0 */
};
/* Does a sample begin here? */
bool perfline_header(const char *s, size_t n, struct perfline_header *ret);

/*
 * The same line read closely, for those who want all of it: names that the rules above cut ("a", "tokio-rt 3"), processor, time,
 * and what follows the event. Lines with a time or a processor are known by these, also where spaces precede the name; other lines
 * by the rules above.
 */
struct perfline_record {
	struct perfline_text comm;  /* may be empty */
	struct perfline_text event; /* s is NULL: none */
	struct perfline_text rest;  /* after all of these: fields of a tracepoint, or the one frame of a line without a stack */
	uint32_t pid, tid;          /* pid: tid where the line has only one number */
	uint32_t cpu;               /* UINT32_MAX: not known */
	uint64_t time_ns, period;
	bool timed, weighted;       /* has a time, a period */
};
bool perfline_record(const char *s, size_t n, struct perfline_record *ret);

struct perfline_frame {
	struct perfline_text pc, function, module; /* function: with what was inlined, and without an offset */
};
/* Is it a frame of a stack? */
bool perfline_frame(const char *s, size_t n, struct perfline_frame *ret);

struct perfline_options {
	bool kernel, jit; /* mark functions of the kernel "_[k]", and those made at run time "_[j]" */
	bool addresses;   /* of what has no name */
};
/*
 * Takes the next name off a frame: "a->b" are two, the outer one first, and it appends one of them, tidied, to b. first: it is the first of
 * its frame. java: the thread's name says so. unknown (may be NULL) is set where it has neither a name nor a module. False: there
 * was none left.
 */
bool perfline_take_name(struct perfline_frame *f, const struct perfline_options *o, bool first, bool java, struct buf *b,
			bool *ret_unknown);

/* Is the frame to be left out? Old versions of perf print the name of the process as one. */
bool perfline_frame_hidden(const struct perfline_frame *f);

/* The first n bytes without the offset at their end, "+0x1f". */
size_t perfline_without_offset(const char *s, size_t n);

static inline bool perfline_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool perfline_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
