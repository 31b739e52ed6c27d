#include "fleet/answer.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/err.h"

int answer_parse(struct answer *a, const char *text, size_t n, struct err *err)
{
	json_error_t why;
	json_t *data, *rows;

	*a = (struct answer){ 0 };
	/* Names of others may have a NUL in them: what is behind it is not shown. */
	a->root = json_loadb(text, n, JSON_ALLOW_NUL, &why);
	data = json_object_get(a->root, "data");
	rows = json_object_get(a->root, "rows");
	if (!json_is_array(data) || !json_is_integer(rows))
		return err_set(err, EPROTO, n ? "its answer is not whole (%zu bytes)" : "its answer is empty", n);
	if (json_integer_value(rows) != (json_int_t)json_array_size(data))
		return err_set(err, EPROTO, "its answer is not whole: %zu of %lld rows", json_array_size(data), (long long)json_integer_value(rows));
	a->data = data;
	a->rows = json_array_size(data);
	return 0;
}

void answer_done(struct answer *a)
{
	json_decref(a->root);
	*a = (struct answer){ 0 };
}

static const json_t *field(const struct answer *a, size_t row, size_t column)
{
	return json_array_get(json_array_get(a->data, row), column);
}

/* Numbers of 64 bits come as strings. */
static uint64_t number(const json_t *v)
{
	if (json_is_string(v))
		return strtoull(json_string_value(v), NULL, 10);
	return json_is_integer(v) ? (uint64_t)json_integer_value(v) : 0;
}

static const char *text(const json_t *v)
{
	return json_is_string(v) ? json_string_value(v) : "";
}

uint64_t answer_u64(const struct answer *a, size_t row, size_t column)
{
	return number(field(a, row, column));
}

int64_t answer_i64(const struct answer *a, size_t row, size_t column)
{
	const json_t *v = field(a, row, column);

	return json_is_string(v) ? strtoll(json_string_value(v), NULL, 10) : json_integer_value(v);
}

const char *answer_text(const struct answer *a, size_t row, size_t column)
{
	return text(field(a, row, column));
}

size_t answer_count(const struct answer *a, size_t row, size_t column)
{
	return json_array_size(field(a, row, column));
}

uint64_t answer_item_u64(const struct answer *a, size_t row, size_t column, size_t i)
{
	return number(json_array_get(field(a, row, column), i));
}

const char *answer_item_text(const struct answer *a, size_t row, size_t column, size_t i)
{
	return text(json_array_get(field(a, row, column), i));
}
