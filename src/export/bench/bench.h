/*
 * bench.h - measured runs, and comparisons of them, for people and for programs. Pure functions into a
 * buffer.
 */
#pragma once


struct buf;
struct comparison;
struct runs;

/* "59.75 ms", "12.30 MB", "0.6280 Ggas/s": four digits, and "-" where it is no number. */
char *bench_value(char out[32], double x, const char *unit);

/* For the terminal: a table for each command. columns 0 = do not cut. */
void benchtext_put(const struct runs *r, unsigned columns, struct buf *out);
void benchcsv_put(const struct runs *r, struct buf *out);
void benchjson_put(const struct runs *r, struct buf *out);
/* A page of its own, without a script. */
void benchpage_put(const struct runs *r, struct buf *out);

struct compare_names {
	const char *a, *b;
};
void comparetext_put(const struct comparison *c, const struct compare_names *names, struct buf *out);
void comparemarkdown_put(const struct comparison *c, const struct compare_names *names, struct buf *out);
void comparejson_put(const struct comparison *c, const struct compare_names *names, struct buf *out);
/* "exec is 3.1 % slower (95 % interval 2.4 to 3.8 %)" */
void compare_sentence(const struct comparison *c, struct buf *out);
