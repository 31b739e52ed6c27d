/*
 * match.h - does a compiled regular expression match? As regexec(), which allocates: when memory is out it says
 * so by the value that means "no" to whoever only looks for 0, and names would silently lack their meaning.
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

/* groups may be NULL when count is 0. */
bool match_regex(const regex_t *regex, const char *text, size_t count, regmatch_t *groups);
