/*
 * account.h - the whole time of each thread, by cause.
 *
 * wall = on the CPU + in the run queue + stopped by a CPU quota + each cause + missing time. There is an
 * account only where waits were recorded. Over a whole recording the first two are the collector's own
 * sums, not samples; within a time range, or for a profile without those sums, they come from the
 * samples of "cpu" and "queue".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/wait/cause.h"
#include "base/vec.h"

struct profile;
struct select_options;

struct account_row {
	uint32_t thread;          /* PROFILE_NONE: the sum of several */
	uint32_t threads;         /* how many it is the sum of */
	uint64_t wall_ns;         /* of the thread within the recording, or within the selected range */
	uint64_t ns[CAUSE_COUNT];
	uint64_t waits;           /* how often it was blocked */
	int64_t missing_ns;       /* wall minus all of the above; below 0: more was counted than there was */
};

struct account {
	VEC(struct account_row)
	threads; /* those first that ran, or were kept from it, most */
	struct account_row total;
	uint64_t lost;          /* records of waits that found no room */
	uint64_t unseen;        /* threads that were never switched: all of their time is missing */
	bool sampled_cpu;       /* time on the CPU is from samples */
	bool cpu_is_the_rest; /* CPU time was not measured: it is the remainder, and no time can be missing */
};

/* False: no waits were recorded, and a is empty. Only threads, processes and the range of o count. */
bool account_make(struct account *a, const struct profile *p, const struct select_options *o,
		  struct causes *c);
void account_done(struct account *a);

/*
 * The rows with threads of one process and name as one, where at least ACCOUNT_CROWD of them ended during the
 * recording: a pool that makes a thread for each piece of work. Of such a row, thread is the first one, and threads says
 * how many they are. The order is that of threads. Caller frees with vec_done().
 */
enum { ACCOUNT_CROWD = 3 };
struct account_rows {
	VEC(struct account_row) list;
};
void account_join_crowds(const struct account *a, const struct profile *p, struct account_rows *ret);

/* Time in which a thread did, or waited for, something: all but idle, unknown and missing. */
uint64_t account_active_ns(const struct account_row *r);

/*
 * Returns whether this cause keeps a thread from its work. Sleep is intended.
 * Idle threads that no pattern knows also wait at conditions, pipes and sockets:
 * these causes count only for threads that also work.
 */
bool account_counts(const struct account_row *r, enum cause cause);
/* All that counts: conditions, pipes and sockets half, for some of it is waiting for work. */
uint64_t account_worth_ns(const struct account_row *r);
