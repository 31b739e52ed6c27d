/*
 * match.h - matches a compiled regular expression. As regexec(), which allocates: out of memory is an error
 * value that looks like "no match" to a caller that only tests for 0, and would silently change results.
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

/* groups may be NULL when count is 0. */
bool match_regex(const regex_t *regex, const char *text, size_t count, regmatch_t *groups);
