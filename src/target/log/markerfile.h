/*
 * markerfile.h - a marker file of samply's kind: found by its name, read as it grows.
 *
 * "marker-PID-TID.txt", or "marker-PID.txt" of a process as a whole, has a line for each span that ended:
 *	"123456789012345 123456799012345 on_new_payload"
 * start and end by CLOCK_MONOTONIC in nanoseconds, and the name. Writers have a buffer, so lines come late, and a file may
 * end in the middle of one. The file is a stranger's: lines that are none are counted, long ones are skipped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MARKERFILE_LINE = 512, MARKERFILE_NAME = 128 };

struct marker_span {
	uint64_t start_ns, end_ns;
	char name[MARKERFILE_NAME]; /* cut to fit */
};

/* "…/marker-4711-4712.txt". *ret_tid 0: the whole process. */
bool markerfile_is_name(const char *path, pid_t *ret_pid, pid_t *ret_tid);
/* One line without its newline. */
bool markerfile_parse(const char *line, size_t n, struct marker_span *ret);

struct markerfile {
	int fd;
	uint64_t offset;     /* read so far */
	bool skip;           /* up to the next newline: the middle of a line */
	size_t n;
	char line[MARKERFILE_LINE];
	uint64_t lines, bad; /* counted so far */
};

typedef void markerfile_fn(void *context, const struct marker_span *s);

/* Takes fd over. from_end: what is in it by now is of the past. */
void markerfile_init(struct markerfile *f, int fd, bool from_end);
/* Reads what is new, at most so many bytes; how many it were. */
size_t markerfile_read(struct markerfile *f, size_t most, markerfile_fn *fn, void *context);
void markerfile_done(struct markerfile *f);
