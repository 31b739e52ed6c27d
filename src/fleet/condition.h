/*
 * condition.h - which rows of a store are meant: conditions of SQL on days, times, targets and on what is committed.
 *
 *	char *time = condition_time("start", from, to, "reth-*");
 *	char *rows = condition_committed(time, NULL);	// SELECT ... FROM samples WHERE %s
 *
 * All tables are partitioned by day and most are in the order of target and start: each condition has both. Seconds since 1970; what is
 * returned is the caller's.
 */
#pragma once

#include <stdint.h>

struct buf;

/* from <= column < to; targets: a glob (sql_like()), NULL = all. */
char *condition_time(const char *column, uint64_t from, uint64_t to, const char *targets);
/* The same without targets, appended. */
void condition_put_time(struct buf *b, const char *column, uint64_t from, uint64_t to);
/* Rows of windows of that time whose attempt counts (push.h). more: " AND ..." on the same rows; NULL = nothing. */
char *condition_committed(const char *time, const char *more);
