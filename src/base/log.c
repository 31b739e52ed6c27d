#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/plain.h"

static enum log_level level = LOG_NORMAL;
static bool progress_shown;
static log_sink_fn *sink;
static void *sink_context;

void log_set_level(enum log_level l)
{
	level = l;
}

bool log_is_quiet(void)
{
	return level == LOG_QUIET;
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

/* Targets chose half of the text: names, paths, log lines. */
static void add_plain(struct buf *b, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = mem_vprintf(fmt, ap);

	plain_add(b, text);
	if (!b->data)
		buf_puts(b, "");
}

static void say(const char *colour, const char *prefix, const char *fmt, va_list ap)
{
	bool coloured = log_colour(STDERR_FILENO);

	_cleanup_(buf_done) struct buf text = { 0 };

	add_plain(&text, fmt, ap);
	if (sink) {
		sink(sink_context, text.data);
		return;
	}
	log_progress_end();
	if (prefix)
		fprintf(stderr, "%s%s%s ", coloured ? colour : "", prefix, coloured ? "\033[0m" : "");
	fprintf(stderr, "%s\n", text.data);
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

void log_lines(const char *text)
{
	_cleanup_(buf_done) struct buf lines = { 0 };

	if (level < LOG_NORMAL)
		return;
	plain_add_lines(&lines, text);
	buf_puts(&lines, "");
	if (sink) {
		sink(sink_context, lines.data);
		return;
	}
	log_progress_end();
	fprintf(stderr, "%s\n", lines.data);
}

void log_debug(const char *fmt, ...)
{
	SAY(LOG_VERBOSE, "\033[2m", "debug:");
}

void log_progress(const char *fmt, ...)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	va_list ap;

	if (level < LOG_NORMAL || sink || !isatty(STDERR_FILENO))
		return;
	va_start(ap, fmt);
	add_plain(&text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\r\033[K%s", text.data);
	fflush(stderr);
	progress_shown = true;
}
