/*
 * traceclock.h - when a trace's time 0 was, in the time of a recording.
 *
 * A Chrome trace does not say which clock its times are of. tracing-chrome's (reth --log.tracing-chrome) count from the
 * moment at which its file was created; Chromium's are CLOCK_MONOTONIC, and scripts like the wall clock. Values tell
 * these apart. For the first kind there are bounds: the file was created before, and no event was written before it
 * happened. docs/decisions/0016-trace-clock.md has the reasons and the accuracy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

/* What is known. Times of the wall clock are CLOCK_REALTIME; 0 = not known. */
struct traceclock_facts {
	bool given;               /* by the user, --marks-offset: */
	int64_t given_ns;         /* trace time 0, since the start of the recording */
	uint64_t start_wall_ns, start_mono_ns, duration_ns; /* of the recording */
	uint64_t born_wall_ns;    /* when the trace's file was created */
	uint64_t written_wall_ns; /* when it was last written to */
	uint64_t last_ns;         /* its last event, by its own clock; 0 = not known */
	uint64_t growths;         /* how often it was seen to grow in the recording */
	int64_t grown_ns;         /* with growths: trace time 0 was then, or earlier, since the start of the recording */
};

enum traceclock_how { TRACECLOCK_GIVEN, TRACECLOCK_WALL, TRACECLOCK_MONO, TRACECLOCK_BORN, TRACECLOCK_GROWN, TRACECLOCK_WRITTEN };

struct traceclock {
	enum traceclock_how how;
	int64_t zero_ns;  /* trace time 0, since the start of the recording */
	uint64_t blur_ns; /* how wrong that may be; UINT64_MAX = nobody knows */
};

/* first_ns: of the first event that has a time. -ENODATA: nothing says when it was. */
int traceclock_decide(const struct traceclock_facts *f, uint64_t first_ns, struct traceclock *ret, struct err *err);
/* "2.5s", "-250ms", of --marks-offset. 0 or -EINVAL. */
int traceclock_parse_offset(const char *text, int64_t *ret_ns, struct err *err);
/* A time of the trace in the recording; false: before it began. */
bool traceclock_convert(const struct traceclock *c, uint64_t trace_ns, uint64_t *ret_ns);
/* One sentence for people. */
void traceclock_say(const struct traceclock *c, struct buf *out);

/* The facts of a file: born, written and last. */
void traceclock_look(int fd, struct traceclock_facts *f);
/* The time of the last event in the last bytes of a trace; false: there is none. */
bool traceclock_last(const char *data, size_t n, uint64_t *ret_ns);
