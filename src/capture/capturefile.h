/*
 * capturefile.h - identifies a file, and opens a capture. For src/profile only.
 *
 * A capture is opened once, by descriptor, and all checks and reads use that descriptor.
 * SQLite sees it through capturevfs.h. Reading never writes to the file or its folder: a
 * file with a log (its recorder died, or is still at work) is copied with it into files
 * without a name.
 */
#pragma once

#include <stdint.h>

#include <sqlite3.h>

struct err;

/* A capture and its log. */
struct capturefile {
	int main, wal, folder; /* wal -1 = there is none */
	char *wal_name;        /* in the folder */
	uint64_t bytes;        /* of data in both: holes are none */
};

/* Checks that path is a capture. 0, or: -ENOENT; -ENODATA an empty file; -EBADMSG another format; -EPROTO
 * a capture of a newer gasflame. */
int capturefile_check(const char *path, struct err *err);

void capturefile_done(struct capturefile *f);

/* Opens for reading only, with every guard against a hostile file; the tables are those of schema.h. */
int capturefile_open(const char *path, sqlite3 **ret, struct err *err);
/* The same for files that are open: their header and f->bytes, then the database, which takes over both descriptors.
 * path is for the sentence. */
int capturefile_measure(struct capturefile *f, const char *path, struct err *err);
int capturefile_open_files(struct capturefile *f, const char *path, sqlite3 **ret, struct err *err);
void capturefile_closep(sqlite3 **db);

/* The negative errno and the sentence for a failed call. doing: "cannot read x.gasflame". db may be NULL: no memory. */
int capturefile_fail(sqlite3 *db, struct err *err, const char *doing, ...)
	__attribute__((format(printf, 3, 4), nonnull(3)));
