/*
 * capturefile.h - finding out what a file is, and opening a capture to read. For src/profile only.
 *
 * Reading never writes to the file or its folder. A file with a journal (its
 * recorder died, or is still at work) is copied with it into a private folder,
 * where SQLite may recover it; the copy has no name any more once it is open.
 */
#pragma once

#include <sqlite3.h>

struct err;

/* Is there a capture at path? 0, or what it is instead: -ENOENT; -ENODATA an empty file; -EBADMSG
 * something else; -EPROTO a capture of a newer gasflame. */
int capturefile_check(const char *path, struct err *err);

/* Opens for reading only, with every guard against a hostile file. Close with sqlite3_close(). */
int capturefile_open(const char *path, sqlite3 **ret, struct err *err);
void capturefile_closep(sqlite3 **db);

/* The negative errno and the sentence for a failed call. doing: "cannot read x.gasflame". */
int capturefile_fail(sqlite3 *db, struct err *err, const char *doing, ...)
	__attribute__((format(printf, 3, 4), nonnull(3)));
