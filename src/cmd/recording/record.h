/*
 * record.h - a recording of something that another command does.
 */
#pragma once

struct profile;

struct record_call {
	const char *what;   /* collectors, "cpu,wait" */
	const char *output; /* NULL: the usual place */
	const char *label, *target;
	void *context;
	/* In a process of its own, which is recorded with all that it starts; its exit code. */
	int (*call)(void *context);
	/* Instead of that process these are recorded, as long as it runs; NULL: it is. Label and target come from them. */
	char **targets;
	int target_count;
	const char *rpc, *log; /* of the node, whose blocks become marks; NULL = none */
	/* Here, when that has ended: marks, say. Times count from p->start_wall_ns. */
	void (*finish)(void *context, struct profile *p);
};

/* Records the call from its beginning to its end. An exit code: that of the call, where the recording is
 * good. */
int record_call(const struct record_call *call);
