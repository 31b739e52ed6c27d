/*
 * capturenew.h - the file of a new capture, and the connection that writes to it.
 *
 * The folder may be one that others write to: the file is made and named there by newfile.h, and SQLite reaches it by
 * its descriptor (capturevfs.h).
 *
 * The name appears when the tables are whole and the lock is held. Of two that want the same name at the same
 * time one gets it; an older capture is replaced only if it still is the one that was looked at.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "base/file/newfile.h"

struct capturenew {
	struct newfile file;
	struct owner owner; /* gets it at the end: until then nobody else writes to what SQLite reads */
	sqlite3 *db;
};

/* how: CAPTURE_… of capture.h. -EEXIST: with CAPTURE_ONCE something has that name, else what has it is no capture;
 * -EBUSY: somebody is recording into it. Ended by capturenew_close() in any case. */
int capturenew_open(struct capturenew *n, const char *path, unsigned how, const struct owner *owner, struct err *err);
/* Gives the file to its owner, too. */
void capturenew_close(struct capturenew *n);

/* Is somebody recording into the capture of that name in the folder? */
bool capturenew_is_written(int folder, const char *name);
/* The journals of the capture that had the name before are not those of the new one. */
void capturenew_remove_journals(const struct newfile *f);
