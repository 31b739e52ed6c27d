/*
 * newfile.h - creates every file that we write, so that no other user decides which file that is.
 *
 * The folder is opened once (folder.h). In it the file is made under a name that was not there before, and is
 * renamed to its own name when it is complete; an existing file is replaced, never written to. So a planted
 * link is not followed, another name of the same file keeps its content, the owner is changed only of files
 * that we made, and a failure leaves the old file.
 *
 * A name that the user typed (NEWFILE_TYPED) may also be a terminal, /dev/null, a FIFO, or a descriptor
 * (/dev/stdout), which are written to as they are. It may be a symbolic link of our own where we are not
 * root.
 *
 *	struct newfile f;
 *	r = newfile_open(&f, path, NEWFILE_TYPED, 0666, err);
 *	if (!r)
 *		r = fd_write_all(f.fd, ...);
 *	if (!r)
 *		r = newfile_keep(&f, err);
 *	newfile_done(&f);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/file/folder.h"

struct err;

enum newfile_how {
	NEWFILE_TYPED = 1,   /* the user typed the name; else we made it up */
	NEWFILE_ONCE = 2,    /* -EEXIST where something has that name, also when it comes while we write */
	NEWFILE_FOLDERS = 4, /* missing folders are made, for the owner */
};

struct newfile {
	int fd;             /* to write to */
	int folder;         /* O_PATH */
	char *path, *name;  /* as given; the last part of where it goes */
	char temporary[32]; /* its name in the folder until it has its own; "" when that is so, or it has none */
	bool once;
	struct owner owner; /* may be set until newfile_keep() */
	dev_t device;
	ino_t inode;
};

/* mode is cut by the umask. *f is to be ended by newfile_done() in any case. owner may be NULL. */
int newfile_open(struct newfile *f, const char *path, unsigned how, mode_t mode, const struct owner *owner,
		 struct err *err);
/* Gives it its name at once; it can be written to on. */
int newfile_show(struct newfile *f, struct err *err);
/* Closes it, and gives it its name if that went well. */
int newfile_keep(struct newfile *f, struct err *err);
/* Removes a file that was not kept. */
void newfile_done(struct newfile *f);

/* All of it at once. */
int newfile_write(const char *path, unsigned how, mode_t mode, const struct owner *owner, const void *data, size_t n,
		  struct err *err);

/* Moves from to another name in the same folder; -EEXIST if that is taken. */
int newfile_rename_once(int folder, const char *from, const char *to);
