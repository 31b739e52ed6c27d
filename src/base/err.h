/*
 * err.h - an error that a person can read.
 *
 * Functions return 0 (or a count) or a negative errno. Where a sentence is
 * needed they also fill a struct err, passed last; NULL is allowed there. The
 * sentence says what happened and, where there is one, what to do next. Library
 * code never prints it: the command does, once.
 *
 *	int foo_open(const char *path, struct foo **ret, struct err *err)
 *	{
 *		int fd = open(path, O_RDONLY | O_CLOEXEC);
 *		if (fd < 0)
 *			return err_errno(err, errno, "cannot open %s", path);
 */
#pragma once

#include <stdint.h>

struct err {
	int code;        /* positive errno, 0 = none */
	uint64_t offset; /* parsers: where in the input */
	char text[512];
};

/* Both return -code, so that they can be returned at once; a code of 0 becomes EIO. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same, and appends ": " and the system's words for code. */
int err_errno(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts "text: " before the sentence that is there; returns -err->code. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
