/*
 * journal.h - the new log lines of a systemd unit: journalctl as a child, without a shell, its output, JSON, a pipe.
 *
 *	r = journal_open("reth.service", &j, &fd, &err);	// fd is the caller's: logs_open() takes it
 *	journal_close(j);
 */
#pragma once

struct err;
struct journal;

/* -EINVAL: that is no name of a unit. -ENOENT: there is no journalctl. */
int journal_open(const char *unit, struct journal **ret, int *ret_fd, struct err *err);
void journal_close(struct journal *j); /* ends the child; NULL is fine */
