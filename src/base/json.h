/*
 * json.h - writes JSON into a buffer. Commas, colons, quotes and escapes are the writer's business.
 *
 * A value in an object has a key, a value in an array and the outermost value have none (NULL). Whoever breaks that
 * rule, closes more than was opened, or ends a document that is open or empty, fails an assertion: no output of this
 * writer is unbalanced. (jansson reads JSON; its functions begin with json_, too, but none with these verbs.)
 *
 *	struct json j = json_begin(&out);
 *
 *	json_open_object(&j, NULL);
 *	json_put_string(&j, "file", path);
 *	json_open_array(&j, "rows");
 *	json_open_row(&j, 1);
 *	json_put_uint(&j, "ns", 7);
 *	json_close(&j);
 *	json_close(&j);
 *	json_end(&j);
 *
 * writes {"file":"/a","rows":[
 *  {"ns":7}]}
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum { JSON_DEPTH = 31 }; /* levels that may be open at once */

struct json {
	struct buf *out; /* the caller's */
	uint32_t arrays, filled; /* a bit for each level: is it an array, does it hold a value */
	unsigned depth;
	int indent; /* of the line that the next value begins; -1 = none */
};

/* A member that is a number. */
struct json_count {
	const char *key;
	uint64_t value;
};

struct json json_begin(struct buf *out);
/* Closes the outermost bracket. All others must be closed. */
void json_end(struct json *j);
/* The same, and a newline. */
void json_end_line(struct json *j);

/* The next value, or the bracket that closes, begins a line, after so many spaces. */
void json_break(struct json *j, int indent);
void json_open_object(struct json *j, const char *key);
void json_open_array(struct json *j, const char *key);
/* The same after json_break(). */
void json_open_object_line(struct json *j, const char *key, int indent);
void json_open_array_line(struct json *j, const char *key, int indent);
/* An object of an array, on a line of its own. */
void json_open_row(struct json *j, int indent);
void json_close(struct json *j);
/* The same, and then json_break(). */
void json_close_line(struct json *j, int indent);

/* NULL becomes null; bytes that are not UTF-8 become U+FFFD (buf_json()). */
void json_put_string(struct json *j, const char *key, const char *value);
/* An array of n strings. */
void json_put_strings(struct json *j, const char *key, const char *const *list, size_t n);
void json_put_uint(struct json *j, const char *key, uint64_t value);
void json_put_counts(struct json *j, const struct json_count *list, size_t n);
/* json_put_uints(&j, { "first", 1 }, { "second", 2 }); */
#define json_put_uints(j, ...)                                               \
	json_put_counts(j, (const struct json_count[]){ __VA_ARGS__ },       \
			sizeof((const struct json_count[]){ __VA_ARGS__ }) / sizeof(struct json_count))
void json_put_int(struct json *j, const char *key, int64_t value);
/* With so many decimals, or so many significant digits; NaN and infinity become null. */
void json_put_fixed(struct json *j, const char *key, double value, int decimals);
void json_put_real(struct json *j, const char *key, double value, int digits);
void json_put_bool(struct json *j, const char *key, bool value);
void json_put_null(struct json *j, const char *key);
/* n bytes of JSON from elsewhere: one value, or in an array several with commas between them. Not checked. */
void json_put_raw(struct json *j, const char *key, const char *value, size_t n);
