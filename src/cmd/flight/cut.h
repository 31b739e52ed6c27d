/*
 * cut.h - a profile of what is kept: the window as if it were the whole recording.
 *
 * Time 0 is the start of the window. Waits that had begun before count from there on; sums and moments before it are left out. Threads have the
 * times that they spent in the window, counters and histograms what was counted in it; levels (a rate, a limit, a flag) are as they
 * were at its end. Processes and threads that had ended before are left out, and so are stacks that no row has. Marks are there that
 * lie in it as a whole; blocks that had begun before are counted (KEY_MARKS_BEGAN_BEFORE). Other counters of marks are known of the whole
 * recording only and are left out, unless that is the window. A thread's CPU time by the kernel is not known.
 *
 *	cut_begin(&c, &snap, out);
 *	for (size_t i = 0; i < cut_pieces(&c); i++) {
 *		cut_piece(&c, i);
 *		... out has more rows, which may be written and dropped ...
 *	}
 *	cut_end(&c);
 *
 * Reads the snap only: it may run in another thread than the recorder's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct keep_snap;
struct profile;

struct cut {
	const struct keep_snap *snap;
	struct profile *out;
	/* The rest is private: ids of out by ids of the snap, PROFILE_NONE = not there yet. */
	uint32_t *strings, *processes, *threads, *modules, *frames, *stacks;
	uint32_t *path; /* room for the nodes of a stack */
	size_t path_capacity;
	unsigned char *roles;
	uint64_t began_before;
};

/* All but the rows. out is new. */
void cut_begin(struct cut *c, const struct keep_snap *snap, struct profile *out);
/* Pieces of rows; the last are those of what was under way at the end. */
size_t cut_pieces(const struct cut *c);
void cut_piece(struct cut *c, size_t i);
/* The module of out for one of the recording; PROFILE_NONE: it has no code there. */
uint32_t cut_module(const struct cut *c, uint32_t module);
void cut_end(struct cut *c);

/* Adds the mark of an incident. */
void cut_mark(struct profile *out, const char *reason, uint64_t time_ns);
