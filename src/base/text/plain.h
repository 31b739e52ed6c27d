/*
 * plain.h - makes text safe to show: on a terminal, in a log, in a report.
 *
 * Targets choose the names of processes, threads, functions, files and containers, and the lines of logs.
 * Plain text is valid UTF-8 in which nothing controls a terminal or reorders a line: no C0 and C1 control
 * characters (a raw byte 0x80..0x9f is not UTF-8), no DEL, no line breaks, nothing without a width, no change
 * of direction. Any other character becomes U+FFFD.
 *
 * Where it happens: log_*() (stderr) does it to every message. Tables and text reports do it to each field,
 * so that a name cannot make a line of its own, whether or not they go to a terminal. JSON escapes
 * (buf_json()), pages and SVG have their own rules. All other standard output (CSV, paths) is unchanged,
 * except on a terminal, where plain_put() is the last filter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* The character at s and its length in bytes; -1 and 1 if it is not UTF-8. s ends in NUL. */
int32_t plain_decode(const char *s, size_t *ret_n);
/* Returns whether the character must not be shown. -1 must not. */
bool plain_harmful(int32_t c);

/* Appends s as plain text. */
void plain_add(struct buf *b, const char *s);
/* Appends s as plain text, and as one word of a shell: in quotes where it needs them. */
void plain_add_word(struct buf *b, const char *s);
/* s itself as plain text, with '?' where something was: for fields of a fixed size. Returns s. */
char *plain_in_place(char *s);
/* Appends a text of several lines: line breaks, tabs and our own colours stay, the rest is plain. */
void plain_add_lines(struct buf *b, const char *s);

/* To the standard output, which is not flushed; made plain, line by line, if that is a terminal. 0 or a negative errno. */
int plain_put(const char *data, size_t n);
/* A path that is a command's answer, and a line break: exact where a program reads it. */
void plain_put_path(const char *path);
