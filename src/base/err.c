#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* errno is 0 after a call that did less than it should, and an error that returned 0 would be taken for success. */
static int format(struct err *err, int code, const char *fmt, va_list ap)
{
	code = code ? code : EIO;
	if (err) {
		err->code = code;
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
	}
	return -code;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = format(err, code, fmt, ap);
	va_end(ap);
	return r;
}

int err_errno(struct err *err, int code, const char *fmt, ...)
{
	size_t n;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = format(err, code, fmt, ap);
	va_end(ap);
	n = err ? strlen(err->text) : 0;
	if (err)
		snprintf(err->text + n, sizeof(err->text) - n, ": %s", strerror(-r));
	return r;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	char old[sizeof(err->text)];
	va_list ap;
	size_t n;

	if (!err)
		return -1;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	snprintf(err->text + n, sizeof(err->text) - n, ": %s", old);
	return -err->code;
}
