#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static enum log_level level = LOG_NORMAL;
static bool progress_shown;
static log_sink_fn *sink;
static void *sink_context;

void log_set_level(enum log_level l)
{
	level = l;
}

void log_set_sink(log_sink_fn *to, void *context)
{
	log_progress_end();
	sink = to;
	sink_context = context;
}

bool log_colour(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb");
}

void log_progress_end(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
}

static void say(const char *colour, const char *prefix, const char *fmt, va_list ap)
{
	bool coloured = log_colour(STDERR_FILENO);

	if (sink) {
		_cleanup_free_ char *text = mem_vprintf(fmt, ap);

		sink(sink_context, text);
		return;
	}
	log_progress_end();
	if (prefix)
		fprintf(stderr, "%s%s%s ", coloured ? colour : "", prefix, coloured ? "\033[0m" : "");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

#define SAY(minimum, colour, prefix)                         \
	do {                                                 \
		va_list ap;                                  \
		if (level < (minimum))                       \
			return;                              \
		va_start(ap, fmt);                           \
		say(colour, prefix, fmt, ap);                \
		va_end(ap);                                  \
	} while (0)

void log_error(const char *fmt, ...)
{
	SAY(LOG_QUIET, "\033[1;31m", "gasflame:");
}

void log_warn(const char *fmt, ...)
{
	SAY(LOG_QUIET, "\033[1;33m", "warning:");
}

void log_info(const char *fmt, ...)
{
	SAY(LOG_NORMAL, "", NULL);
}

void log_debug(const char *fmt, ...)
{
	SAY(LOG_VERBOSE, "\033[2m", "debug:");
}

void log_progress(const char *fmt, ...)
{
	va_list ap;

	if (level < LOG_NORMAL || sink || !isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fflush(stderr);
	progress_shown = true;
}
