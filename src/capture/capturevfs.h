/*
 * capturevfs.h - gives SQLite access to the files of a capture: by two descriptors, and nothing else. For
 * src/capture only.
 *
 * SQLite trusts the files beside a database and the names in it: a rollback journal is played back, and may
 * name another file to be deleted. So it gets a file system of its own in which there is one database and its
 * write-ahead log, that is, the descriptors that the caller opened and checked. No name in a file reaches the
 * real file system. Each connection has a file system of its own, which nothing else can find by its name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

struct capturevfs_files {
	int main; /* the database; to be written, it must be opened so */
	int wal;  /* -1 = there is none */
	/* To write, else -1 and NULL: the folder where a log is made when there is none, and its name there. Without
	 * them nothing can be written but the database itself, in journal mode off. */
	int folder;
	const char *wal_name;
	bool write;
	uint64_t bytes; /* of data in both files, for capturevfs_bytes() */
};

/* Takes over the descriptors, also when it fails: -EBUSY when another process writes to the file, else -EIO with
 * the reason in *ret, which is to be closed in any case. */
int capturevfs_open(const struct capturevfs_files *files, sqlite3 **ret);
void capturevfs_close(sqlite3 *db); /* NULL is fine; its statements are finalized before */
uint64_t capturevfs_bytes(sqlite3 *db);
/* The database file where all of it is in that file, to read; -1 when a log has its newest pages. The connection keeps
 * the descriptor. */
int capturevfs_plain_file(sqlite3 *db);
bool capturevfs_is_locked(int fd); /* does another open file write to it? */

/* How many steps its statements may take from now on, all together, and reads in proportion to its bytes; then they
 * fail with SQLITE_INTERRUPT. 0 = any. */
void capturevfs_set_budget(sqlite3 *db, int64_t steps);
