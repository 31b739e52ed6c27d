/*
 * heapsink.h - what the readers of this folder share on their way into a profile: samples whose sums are checked, the process,
 * and frames as valgrind's tools write them.
 *
 *	struct heapsink s;
 *	heapsink_init(&s, in);
 *	uint32_t heap = profile_add_event(s.p, "heap", "bytes", "...", 0);
 *	heapsink_command(&s, "./prog -v", 4242);
 *	r = heapsink_add(&s, &(struct heapsink_value){ heap, stack, 4096, 1, 0 }, err);
 *	*ret = heapsink_take(&s);
 *	heapsink_done(&s);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "import/frames.h"

struct err;
struct import_input;
struct profile;

struct heapsink {
	struct profile *p;
	struct frames frames;
	uint32_t thread;
	/* The rest is private. */
	VEC(uint64_t) sums; /* by event */
};

struct heapsink_value {
	uint32_t event, stack;
	uint64_t bytes, count;
	uint64_t time_ns;
};

void heapsink_init(struct heapsink *s, const struct import_input *in);
/* Frees the profile, too, unless it was taken. */
void heapsink_done(struct heapsink *s);
/* The profile, which is finished then. */
struct profile *heapsink_take(struct heapsink *s);
/* Names the process and its thread, once: by a command line, or by the input's name where that is "". pid: 0 = not known. */
void heapsink_command(struct heapsink *s, const char *command, uint32_t pid);
/* Nothing and no objects give no sample. -ERANGE: the event's sum is too large; the sentence does not say where. */
int heapsink_add(struct heapsink *s, const struct heapsink_value *v, struct err *err);
/* Forgets all samples and points so far. */
void heapsink_forget(struct heapsink *s);

/* "0x109176: keep (prog.c:4)", "0x48417B4: malloc (in /usr/lib/x.so)", "0x0: ???". text is written to. */
uint32_t heapsink_valgrind_frame(struct heapsink *s, char *text);
