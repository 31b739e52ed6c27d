/*
 * str.h - text that people type and read: durations, sizes, counts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* For qsort() of pointers to strings. */
int str_order(const void *a, const void *b);
/* What follows the last slash; all of the path where nothing follows it. */
const char *str_base_name(const char *path);
/* How many letters to add, drop, change or swap with the next one make b of a (upper and
 * lower case are the same); for "did you mean". Only the first 64 bytes of each are looked at. */
size_t str_distance(const char *a, const char *b);

/* "0.5", "30", "30s", "2m", "1h", "7d", "250ms" to nanoseconds; a bare number is seconds. 0 or -EINVAL. */
int str_parse_duration(const char *s, uint64_t *ret_ns);
/* "512K", "8G", "100" to bytes, powers of 1024. 0 or -EINVAL. */
int str_parse_size(const char *s, uint64_t *ret_bytes);
/* "1%", "0.5%", "0.5" to percent. 0 or -EINVAL. */
int str_parse_percent(const char *s, double *ret_percent);
/* "12", "0.5": no sign, no exponent. 0 or -EINVAL. */
int str_parse_number(const char *s, double *ret);
int str_parse_uint(const char *s, uint64_t min, uint64_t max, uint64_t *ret);

/* part of whole in percent; 0 where there is no whole. */
static inline double str_percent(double part, double whole)
{
	return whole > 0 ? 100.0 * part / whole : 0;
}

/* Into out, which is returned. */
char *str_count(char out[32], uint64_t n);         /* 1,234,567 */
char *str_bytes(char out[32], uint64_t bytes);     /* 12.3 MB */
char *str_duration(char out[32], uint64_t ns);     /* 12.3 ms, 60.0 s */
char *str_share(char out[32], double percent);     /* 12.3 %, 0.12 %, <0.01 %: seven columns at most up to 999 % */
/* A text, which may be that of out, at the right end of so many columns. printf() counts bytes, of which the µ has two: "%9s"
 * is for text that is no duration. */
char *str_right(char out[32], const char *text, int columns);
