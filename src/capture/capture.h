/*
 * capture.h - the capture file: a profile as an SQLite database (docs/capture-format.md).
 *
 * Writing follows the model's append-only tables: capture_flush() adds what is
 * new in one transaction. A recorder that is killed at any moment leaves the
 * last flush. capture_close() after profile->finished leaves one plain file.
 *
 *	capture_create("x.gasflame", &c, &err);
 *	while (recording) { ...append to p...; capture_flush(c, p, &err); }
 *	p->finished = true;
 *	capture_flush(c, p, &err);
 *	capture_close(c, &err);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct capture;
struct err;
struct owner;
struct profile;

/* Makes a new file, for its owner alone (0600); refuses to overwrite a file that is not a capture, or that
 * is being recorded into (-EBUSY), also when that recording began at the same moment. Folders must exist. */
int capture_create(const char *path, struct capture **ret, struct err *err);

enum capture_how {
	CAPTURE_ONCE = 1,    /* -EEXIST where there is anything of that name */
	CAPTURE_FOLDERS = 2, /* missing folders are made */
};
/* The same; the new file and folders belong to owner once it is closed; NULL: to the current user. */
int capture_create_with(const char *path, unsigned how, const struct owner *owner, struct capture **ret,
			struct err *err);
/* -ENOSPC and -EFBIG keep the rows written before; the caller may try again. */
int capture_flush(struct capture *c, struct profile *p, struct err *err);
/* Keeps a long recording small, from its first flush on: above a quarter of so many bytes capture_sum() sums rows that are
 * older than full_ns (docs/decisions/0021-long-recordings.md). Without this call nothing is summed. */
int capture_limit(struct capture *c, uint64_t bytes, uint64_t full_ns, struct err *err);
/* After a flush: sums what is due, within some ten milliseconds. What could not be done stays as it was, and is tried
 * again by the next call. */
int capture_sum(struct capture *c, struct profile *p, struct err *err);
/* After the last flush: notes in p which times were summed, as capture_read() finds them. */
void capture_note_summed(const struct capture *c, struct profile *p);
/* Forgets samples, wakes and points that are on disk, so that a long recording does not grow in memory. */
void capture_drop_samples(struct capture *c, struct profile *p);
/* Closes in any case; c may be NULL. */
int capture_close(struct capture *c, struct err *err);

/* The same, but a file that cannot be finished is removed. */
int capture_close_whole(struct capture *c, struct err *err);
/* Closes and removes it, where something went wrong that is to be tried again under another name; c may be NULL. */
void capture_discard(struct capture *c);
/* Which file it is, to know it again later. */
void capture_identity(const struct capture *c, dev_t *ret_device, ino_t *ret_inode);

/* A new file with all of p, which is finished. */
int capture_save(const char *path, struct profile *p, struct err *err);

/* Reads a whole capture, a recorder's that died too (its journal is recovered into a private copy,
 * the file is not written to). */
int capture_read(const char *path, struct profile **ret, struct err *err);
/* The same, but if there are more than so many samples, those of one event, thread and stack are joined: sums stay exact,
 * times do not (scan/joining.h). How many were joined is counted (KEY_CAPTURE_JOINED). 0 = all are kept. */
int capture_read_most(const char *path, size_t most, struct profile **ret, struct err *err);
/* The same, but samples within blocks, and so near them that they may tell a block's thread, are never joined nor counted. */
int capture_read_blocks(const char *path, size_t most, struct profile **ret, struct err *err);
/* The same, but of one span of time, such as that of a block somebody asks for; NULL = none. */
struct capture_span;
int capture_read_span(const char *path, size_t most, const struct capture_span *span, struct profile **ret, struct err *err);
/* For a first picture of a long capture: the heaviest nodes of the tree of stacks, without times, wakes and series
 * (scan/coarse.h). It reads the recorder's sums, or where a long capture has none an even part of the rows: some tenths of a
 * second for an hour. */
int capture_read_coarse(const char *path, size_t nodes, struct profile **ret, struct err *err);
/* capture_read() for open files that no process writes to meanwhile; takes over both, wal -1 = none. */
int capture_read_files(int file, int wal, const char *name, struct profile **ret, struct err *err);

/*
 * A long capture, whose samples are read a part at a time, for what looks at some spans of time, one after the other: memory
 * does not grow with the recording (scan/parts.h).
 *
 *	capture_parts_open(path, &parts, &p, &err);
 *	for (size_t i = 0; i < n; i += r) {
 *		r = capture_parts_read(parts, spans + i, n - i, &err);
 *		...p->samples are those of spans i to i + r...
 *	}
 *	capture_parts_close(parts);
 */
struct capture_parts;
struct capture_span {
	uint64_t start_ns, end_ns; /* both are within it */
};
/* Reads all but the samples. In place of these the profile has the recorder's sums by event, thread and stack, without
 * times; where there are none an even part of the samples. -ENOTSUP without a sentence: the capture is short, or has a log
 * beside it: read it whole. The caller frees the profile, after the parts. */
int capture_parts_open(const char *path, struct capture_parts **ret, struct profile **ret_profile, struct err *err);
/* Replaces the samples of the profile by those that are in the first spans, or reach into them, in their order; n is 1 at
 * least. Returns how many of the spans are read, 1 at least. Spans are by time, and none touches the next. */
int capture_parts_read(struct capture_parts *c, const struct capture_span *spans, size_t n, struct err *err);
/* How many rows there are of each event of the profile. */
const uint64_t *capture_parts_rows(const struct capture_parts *c);
void capture_parts_close(struct capture_parts *c); /* NULL is fine */

/* How far the reading of a capture is, in thousandths: for another thread to show. Of several at a time it tells of one. */
unsigned capture_read_progress(void);

/* For `gasflame ls`: a few facts without reading the samples. Caller frees the strings. */
struct capture_summary {
	char *target, *what; /* what: "cpu,wait" */
	uint64_t start_wall_ns, duration_ns;
	uint64_t rows;       /* of the table of samples: one may stand for many waits */
	/* By event, as `record` and `report` count them. Not known of a long capture whose recorder died, or of an older one. */
	bool counted;
	uint64_t samples, waits, others; /* samples of the CPU; waits, without the queue that follows them; all others */
	bool finished;
};
int capture_summary(const char *path, struct capture_summary *ret, struct err *err);
/* "11,401 samples, 92,201 waits, 312 others"; where that is not known "157,308 rows". The caller frees it. */
char *capture_summary_counts(const struct capture_summary *s);
void capture_summary_done(struct capture_summary *s);

/*
 * Runs one read-only SQL statement and hands over each row as text (NULL = SQL NULL); numbers says
 * which of them SQL holds as numbers. The first call has only the names, and values NULL. Anything but
 * 0 from row ends the query and is returned.
 */
typedef int capture_row_fn(void *context, int columns, const char *const *names,
			   const char *const *values, const bool *numbers);
int capture_query(const char *path, const char *sql, capture_row_fn *row, void *context,
		  struct err *err);
