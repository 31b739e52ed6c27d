/*
 * filter.h - the system calls that a process may still make (seccomp).
 *
 * Filters hold for this thread and for all threads and processes that it starts later; they cannot be undone.
 * Both return 0, or a negative errno with a sentence.
 */
#pragma once

#include <stdbool.h>

struct err;

/* For processes that read untrusted files: a list of allowed system calls; all others fail with ENOSYS or
 * EPERM. */
struct filter_reader {
	bool execute; /* programs may be started */
	bool listen;  /* sockets that wait for connections */
	bool connect; /* sockets that are connected to others */
	bool terminal; /* the modes of a terminal */
	bool link;     /* second names of files */
};
int filter_reader(const struct filter_reader *f, struct err *err);

/* For all threads of a recorder: a list of system calls that a recorder never makes once it records; they
 * fail with EPERM. execute: programs may be started. Not for -e heap: the kernel does not let a process
 * with a filter suspend that of a target. */
int filter_recorder(bool execute, struct err *err);
