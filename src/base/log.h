/*
 * log.h - messages to the person at the terminal, always on stderr.
 *
 * Every message is printed as plain text in one line (plain.h): targets chose the names and paths in it.
 *
 * Only commands (src/cmd) print errors; collectors may report progress and warnings. Colours and progress
 * lines appear on a terminal only, and colours not where NO_COLOR is set.
 */
#pragma once

#include <stdbool.h>

enum log_level { LOG_QUIET, LOG_NORMAL, LOG_VERBOSE };

void log_set_level(enum log_level level); /* -q, default, -v */
bool log_is_quiet(void);
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with -v only */

/* As log_info(), a table or several sentences: line breaks, tabs and our own colours stay. Names in it must be plain. */
void log_lines(const char *text);

/* Rewrites one line on a terminal, does nothing elsewhere. The next log_* call or log_progress_end clears it. */
void log_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_progress_end(void);

/* Redirects messages to a sink, and drops progress, while something else draws on the terminal. NULL: as
 * before. */
typedef void log_sink_fn(void *context, const char *text);
void log_set_sink(log_sink_fn *sink, void *context);

bool log_colour(int fd); /* may colours go to this descriptor? */
