/*
 * broker.h - writes the results of a process that may write nothing itself.
 *
 * A reader of untrusted files (cmd/reading/reading.h) confines itself to reading. Its results are written by
 * a child that was started before it read anything, has the user's rights, parses nothing, and writes only to
 * the place that the command line names, beside the files that it names, or new files below profiling/:
 *
 *	broker_start(&places)  ->  reader: confine, read, compute
 *	                           reader: broker_write(path, data)  ->  child: is it one of the places? captureio_write()
 *
 * The child also owns the folder for temporary files (TMPDIR of the reader) and removes it when the reader
 * ends in any way.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct buf;
struct err;
struct output_file;

struct broker_places {
	const char *output;      /* what -o says; NULL: nothing */
	const char *also;        /* another file that the command writes; NULL: none */
	char **inputs;           /* results may be written beside these; borrowed */
	int input_count;
	const char *pictures;    /* new files may be made below profiling/ in the folder of this name; NULL: none */
	const char *who;         /* the user that root became, in words; NULL: none */
	const char *temporary;   /* a folder in which the one for temporary files is made; NULL: the usual one */
	uid_t temporary_owner;   /* whose it is */
};

/* Makes the folder and starts the child. Before the first thread. */
int broker_start(const struct broker_places *places, struct err *err);
/* Returns whether this process is a reader with a broker. */
bool broker_runs(void);
/* The folder for temporary files; NULL: none could be made. */
const char *broker_folder(void);

/* Both as captureio_write() would. 0, or a negative errno with the child's sentence. */
int broker_write(const char *path, const struct buf *data, struct err *err);
/* A finished file of the folder takes the place of path. */
int broker_move(const char *name, const char *path, struct err *err);
/* As output_write_new() would, with the label of the places (pictures); extensions are .svg and .html. */
int broker_write_new(const char *what, const struct output_file *files, size_t n, char **ret_stem, struct err *err);
