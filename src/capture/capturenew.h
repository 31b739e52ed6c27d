/*
 * capturenew.h - creates the file of a new capture, and the connection that writes to it.
 *
 * The folder may be writable by other users: newfile.h makes and names the file there, and SQLite reaches it
 * by its descriptor (capturevfs.h).
 *
 * The name appears when the tables are complete and the lock is held. Of two recorders that want the same
 * name at the same time one gets it; an older capture is replaced only if it still is the one that was
 * checked.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "base/file/newfile.h"

struct capturenew {
	struct newfile file;
	struct owner owner; /* gets it at the end: until then no other user can write to what SQLite reads */
	sqlite3 *db;
};

/* how: CAPTURE_… of capture.h. -EEXIST: with CAPTURE_ONCE the name exists, else the existing file is no
 * capture; -EBUSY: a recorder writes to it. Ended by capturenew_close() in any case. */
int capturenew_open(struct capturenew *n, const char *path, unsigned how, const struct owner *owner, struct err *err);
/* Gives the file to its owner, too. */
void capturenew_close(struct capturenew *n);

/* Returns whether a recorder writes to the capture of that name in the folder. */
bool capturenew_is_written(int folder, const char *name);
/* What SQLite appends to the name of a capture for a file beside it. */
enum { CAPTURENEW_JOURNALS = 3 };
extern const char *const capturenew_journals[CAPTURENEW_JOURNALS];
/* Removes the journals of the capture that had the name before. */
void capturenew_remove_journals(const struct newfile *f);
