/*
 * sink.h - where an agent's windows go: a kind of server, or a folder, behind one small interface.
 *
 *	r = sink_open(&(struct sink_options){ .url = "otlp+http://127.0.0.1:4318", .name = "otel" }, &s, &err);
 *	r = sink_send(s, &window, &err);	// again with the same window, when that is worth it
 *	sink_close(s);
 *
 * Where many wait, and sink_has_batches():
 *
 *	r = sink_add(s, &window, &err);		// any number of them; nothing is sent yet
 *	r = sink_flush(s, &err);
 *
 * A sink tries once: pauses, repetitions and the order are the agent's business (cmd/agent). A window
 * may come again after any failure, also in a later process: sinks whose server can tell must make it count once (the key of a window
 * is target, start and sequence). One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct export_job;
struct metrics;
struct sink;

/* All is borrowed: it has to outlive the sink. Strings that are not given are NULL. */
struct sink_options {
	const char *name;      /* of its section in the configuration, for messages and metrics */
	const char *url;       /* its scheme chooses the kind; users and passwords in it are never printed */
	const char *token;     /* Authorization: Bearer */
	const char *user, *password; /* Authorization: Basic; for S3 the access key and the secret */
	const char *tenant;    /* X-Scope-OrgID */
	const char *ca_file;   /* certificates that are trusted in place of the system's */
	const char *region;    /* S3 */
	uint64_t keep_bytes, keep_ns; /* files: how much and how long they stay; 0 = no limit */
	unsigned timeout_ms;   /* of one request; 0 = 30 s */
	const struct metrics *metrics; /* prometheus: the agent's own figures (metrics.h), which go along with each window; read by sink_send(): no other thread may change them meanwhile */
};

/* Those that a kind of sink takes beside name, url, timeout_ms and metrics. Any other that is given is -EINVAL. */
enum sink_takes { SINK_TOKEN = 1, SINK_USER = 2, SINK_TENANT = 4, SINK_CA = 8, SINK_REGION = 16, SINK_KEEP = 32 };

/* A window of a target, 10 to 60 s long, as it was recorded. */
struct sink_window {
	const char *target, *release; /* release NULL = not known */
	const char *const *labels;    /* "key=value", NULL-terminated; NULL = none */
	uint64_t start_wall_ns, duration_ns, sequence;
	const struct export_job *job; /* all of it: job->profile, account, causes ... */
	int fd;                       /* the capture file, open for reading; for sinks that store it as it is */
	uint64_t bytes;               /* of the file */
};

struct sink_type {
	const char *schemes[4]; /* "otlp+http"; NULL-terminated */
	const char *describe;   /* for the manual and gasflame agent --help */
	int (*open)(const struct sink_options *o, void **ret, struct err *err);
	int (*send)(void *sink, const struct sink_window *w, struct err *err);
	int (*add)(void *sink, const struct sink_window *w, struct err *err); /* both NULL: no batches */
	int (*flush)(void *sink, struct err *err);
	void (*close)(void *sink); /* NULL is fine */
	unsigned takes;         /* of enum sink_takes */
};

/* In the order that the manual lists them; NULL ends the table. */
extern const struct sink_type *const sink_types[];

/* -EINVAL: the address or an option is wrong. Nothing is sent yet. */
int sink_open(const struct sink_options *o, struct sink **ret, struct err *err);
void sink_close(struct sink *s); /* NULL is fine */
const char *sink_name(const struct sink *s);

/*
 * 0: the server has it, for good. Else a sentence, without secrets, and:
 *  -EAGAIN, -EIO, -ETIMEDOUT	not now: no answer, half of one, or the server is busy (429, 502, 503, 504)
 *  -EACCES			token, user or certificate are wrong: it may be set right, so the window is kept
 *  -ENXIO			the server has no such place (404, no tables): likewise
 *  -EREMOTEIO			the server failed (other 5xx, or 200 with an error inside): likewise
 *  -EBADMSG			the server refuses this window whatever happens (400, 413, 422 ...): it is set aside and counted
 *  -EEXIST			the server has another window with this key: likewise
 */
int sink_send(struct sink *s, const struct sink_window *w, struct err *err);

bool sink_has_batches(const struct sink *s);
/* Copies what it needs. 0, or 1: that is enough for one delivery. An error is of this window only, which is then not among those that are sent. */
int sink_add(struct sink *s, const struct sink_window *w, struct err *err);
/* As sink_send(), of all that were added; they are forgotten in any case. Where it fails none is known to be there; -EBADMSG, -EEXIST: at least one of them is refused,
 * and sink_send() of each finds out which. */
int sink_flush(struct sink *s, struct err *err);
