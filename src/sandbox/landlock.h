/*
 * landlock.h - restricts this process's use of files, sockets and signals, where the kernel has Landlock
 * (Linux 5.13). Any process may restrict itself, and cannot undo it.
 *
 *	landlock_init(&l, 0, &err);
 *	landlock_allow(&l, "/", LANDLOCK_READ);
 *	landlock_allow(&l, folder, LANDLOCK_WRITE);
 *	landlock_enter(&l, &err);
 *
 * A right on a folder covers everything below it. Open descriptors stay usable.
 */
#pragma once


struct err;

enum {
	LANDLOCK_READ = 1,    /* open files for reading, list folders */
	LANDLOCK_WRITE = 2,   /* open files for writing; make and remove regular files and folders */
	LANDLOCK_REMOVE = 4,  /* remove files and empty folders */
	LANDLOCK_EXECUTE = 8, /* the file itself */
	LANDLOCK_DEVICE = 16, /* open a device that is there for writing, /dev/null for example */
	LANDLOCK_MOVE = 32,   /* move and link files from one folder to another below it, from version 2 on (Linux 5.19): version 1 refuses
				 that, with EXDEV */
};

enum {
	LANDLOCK_LISTEN = 1,  /* TCP: bind */
	LANDLOCK_CONNECT = 2, /* TCP: connect */
};

struct landlock {
	int version;  /* of the kernel's Landlock, 0 = it has none */
	int rules_fd;
};

/* -EOPNOTSUPP where the kernel has no Landlock, which a caller may ignore. */
int landlock_init(struct landlock *l, unsigned network, struct err *err);
/* A path that is not there is none to allow. */
int landlock_allow(struct landlock *l, const char *path, unsigned rights, struct err *err);
/* Needs no_new_privs. Frees l in any case. */
int landlock_enter(struct landlock *l, struct err *err);
