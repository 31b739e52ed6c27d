#include "tui/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"

enum { NAME_MIN = 26 }; /* columns for the name before others are left out */

void table_init(struct table *t, const struct column *columns)
{
	*t = (struct table){ .unit = "ns" };
	table_set_columns(t, columns);
	strtab_init(&t->strings);
}

void table_set_columns(struct table *t, const struct column *columns)
{
	t->columns = columns;
	for (t->column_count = 0; columns[t->column_count].title;)
		t->column_count++;
}

void table_done(struct table *t)
{
	vec_done(&t->rows);
	vec_done_each(&t->bars, e, free(*e));
	cleantext_set_done(&t->functions);
	if (t->columns)
		strtab_done(&t->strings);
	*t = (struct table){ 0 };
}

const char *table_text(struct table *t, const char *s)
{
	return strtab_get(&t->strings, strtab_add(&t->strings, s ? s : ""));
}

struct row *table_row(struct table *t)
{
	vec_push(&t->rows, (struct row){ 0 });
	t->all = t->rows.n;
	return &t->rows.v[t->rows.n - 1];
}

uint64_t *table_parts(struct table *t)
{
	uint64_t *parts = mem_alloc(CAUSE_COUNT * sizeof(*parts));

	vec_push(&t->bars, parts);
	return parts;
}

/* --- which rows, in which order --- */

static bool has_words(const struct table *t, const struct row *r, const char *words)
{
	for (size_t i = 0; i < t->column_count; i++) {
		char number[24];

		if (r->text[i] && strcasestr(r->text[i], words))
			return true;
		snprintf(number, sizeof(number), "%.0f", r->value[i]);
		if (t->columns[i].type == COLUMN_NUMBER && !strcmp(number, words))
			return true;
	}
	return false;
}

void table_filter(struct table *t, const char *words)
{
	size_t n = 0;

	if (!words || !*words)
		return;
	for (size_t i = 0; i < t->rows.n; i++)
		if (has_words(t, &t->rows.v[i], words))
			t->rows.v[n++] = t->rows.v[i];
	t->rows.n = n;
	if (!n && t->all)
		snprintf(t->empty, sizeof(t->empty), "No row has '%.80s': Esc shows all.", words);
}

static bool is_text(const struct table *t, size_t column)
{
	return t->columns[column].type == COLUMN_NAME || t->columns[column].type == COLUMN_TEXT;
}

static int compare_column(const struct table *t, const struct row *a, const struct row *b, size_t column)
{
	if (is_text(t, column))
		return strcmp(a->text[column] ? a->text[column] : "", b->text[column] ? b->text[column] : "");
	return ORDER(b->value[column], a->value[column]);
}

static int compare_rows(const void *x, const void *y, void *context)
{
	const struct table *t = context;
	const struct row *a = x, *b = y;
	int c = compare_column(t, a, b, t->sort);

	if (t->up)
		c = -c;
	/* The other columns break ties, so that rows keep their order. */
	for (size_t i = 0; !c && i < t->column_count; i++)
		c = compare_column(t, a, b, i);
	return c ?: ORDER(a->id, b->id);
}

void table_sort(struct table *t)
{
	if (t->sort >= t->column_count)
		t->sort = 0;
	if (!t->fixed && !t->natural && t->rows.n > 1)
		qsort_r(t->rows.v, t->rows.n, sizeof(*t->rows.v), compare_rows, t);
}

size_t table_next_sort(const struct table *t, size_t sort, int step)
{
	size_t n = t->column_count;

	for (size_t i = 0; i < n; i++) {
		sort = (sort + n + step) % n;
		if (t->columns[sort].type != COLUMN_BAR)
			break;
	}
	return sort;
}

/* --- appearance --- */

void table_layout(const struct table *t, unsigned width, unsigned widths[TABLE_COLUMNS])
{
	unsigned used = 0;
	size_t name = 0, shown = t->column_count;

	for (size_t i = 0; i < t->column_count; i++) {
		widths[i] = t->columns[i].width;
		if (t->columns[i].type == COLUMN_NAME) {
			widths[i] = NAME_MIN;
			name = i;
		}
		used += widths[i] + 1;
	}
	used -= shown ? 1 : 0;
	while (used > width) {
		size_t worst = TABLE_COLUMNS;

		for (size_t i = 0; i < t->column_count; i++)
			if (widths[i] && t->columns[i].drop &&
			    (worst == TABLE_COLUMNS || t->columns[i].drop > t->columns[worst].drop))
				worst = i;
		if (worst == TABLE_COLUMNS)
			break;
		used -= widths[worst] + 1;
		widths[worst] = 0;
	}
	if (used < width)
		widths[name] += width - used;
	else if (widths[name] > used - width + 3)
		widths[name] -= used - width;
}

static void number(const struct table *t, const struct row *r, size_t column, char out[32])
{
	double v = r->value[column];
	enum column_type type = t->columns[column].type;
	uint64_t n = v > 0 ? (uint64_t)v : 0;

	if (type == COLUMN_VALUE)
		type = !strcmp(t->unit, "ns")      ? COLUMN_TIME
		       : !strcmp(t->unit, "bytes") ? COLUMN_BYTES
						   : COLUMN_COUNT;
	out[0] = 0;
	if (isnan(v))
		return;
	switch (type) {
	case COLUMN_PERCENT:
		str_share(out, v < 0.01 ? 0 : v); /* less has no room */
		break;
	case COLUMN_TIME:
		str_duration(out, n);
		break;
	case COLUMN_BYTES:
		str_bytes(out, n);
		break;
	case COLUMN_NUMBER:
		snprintf(out, 32, "%llu", (unsigned long long)n);
		break;
	default:
		str_count(out, n);
	}
}

bool table_is_left(const struct table *t, size_t column)
{
	return is_text(t, column) || t->columns[column].type == COLUMN_BAR;
}

static void put_blanks(struct buf *b, size_t n)
{
	buf_printf(b, "%*s", (int)n, "");
}

void table_begin(struct table *t)
{
	map_clear(&t->functions.given);
}

/* functions: NULL where it is the name of something else. */
static void put_name(struct cleantext_set *functions, const struct row *r, const char *text, unsigned width, struct buf *b)
{
	/* Deep trees are indented at most to the middle: the rows above show the nesting. */
	unsigned indent = MIN(r->depth, width / 2);

	put_blanks(b, indent);
	width -= indent;
	if (r->mark) {
		buf_printf(b, "%c ", r->mark);
		width -= MIN(width, 2);
	}
	if (functions)
		cleantext_function(functions, b, text, width);
	else
		cleantext_fit(b, text, width);
}

void table_cell(struct table *t, const struct row *r, size_t column, unsigned width, struct buf *b)
{
	const struct column *c = &t->columns[column];
	_cleanup_(buf_done) struct buf clean = { 0 };
	const char *text;
	char out[256];
	uint8_t causes[256];

	cleantext_put(&clean, r->text[column] ? r->text[column] : "");
	text = clean.data ? clean.data : "";
	if (c->type == COLUMN_NAME) {
		bool function = !strcmp(c->key, "function") || !strcmp(c->key, "task"); /* types are called by their functions */

		put_name(function ? &t->functions : NULL, r, text, width, b);
	} else if (c->type == COLUMN_TEXT) {
		cleantext_cut(b, text, width);
	} else if (c->type == COLUMN_BAR) {
		table_bar(r, MIN(width, sizeof(out) - 1), out, causes);
		buf_puts(b, out);
	} else {
		number(t, r, column, out);
		if (cleantext_columns(out) > width) {
			memset(out, '#', width);
			out[width] = 0;
		}
		buf_printf(b, "%*s%s", (int)(width - cleantext_columns(out)), "", out);
	}
}

char table_letter(enum cause c)
{
	static const char letters[CAUSE_COUNT] = {
		[CAUSE_UNKNOWN] = '?',    [CAUSE_CPU] = '#',   [CAUSE_QUEUE] = 'q',
		[CAUSE_LOCK] = 'L',       [CAUSE_PARK] = 'c',  [CAUSE_DISK_READ] = 'R',
		[CAUSE_DISK_WRITE] = 'W', [CAUSE_FAULT] = 'F', [CAUSE_NETWORK] = 'n',
		[CAUSE_SLEEP] = 's',      [CAUSE_PIPE] = 'p',  [CAUSE_RECLAIM] = 'M',
		[CAUSE_QUOTA] = 'T',      [CAUSE_IDLE] = '.',
	};

	return letters[c];
}

/* Each column shows what its middle falls into. */
void table_bar(const struct row *r, unsigned width, char *ret, uint8_t *causes)
{
	/* Causes that keep a thread from its work are next to its work; the others at the end. */
	static const uint8_t order[] = { CAUSE_CPU,        CAUSE_QUEUE, CAUSE_QUOTA,   CAUSE_LOCK, CAUSE_DISK_READ,
					 CAUSE_DISK_WRITE, CAUSE_FAULT, CAUSE_RECLAIM, CAUSE_NETWORK,
					 CAUSE_PIPE,       CAUSE_PARK,  CAUSE_SLEEP,   CAUSE_UNKNOWN,
					 CAUSE_IDLE };
	uint64_t sum = 0, end = 0;
	size_t k = 0;

	_Static_assert(sizeof(order) == CAUSE_COUNT, "every cause has its place");
	for (size_t i = 0; r->parts && i < CAUSE_COUNT; i++)
		sum += r->parts[i];
	sum = MAX(sum, r->whole);
	for (unsigned x = 0; x < width; x++) {
		double at = (x + 0.5) / width * sum;

		while (r->parts && k < sizeof(order) && at >= end + r->parts[order[k]])
			end += r->parts[order[k++]];
		causes[x] = r->parts && k < sizeof(order) ? order[k] : CAUSE_UNKNOWN;
		ret[x] = r->parts && k < sizeof(order) && sum ? table_letter(order[k]) : ' ';
	}
	ret[width] = 0;
}

static void pad(struct buf *b, size_t start, unsigned width)
{
	size_t columns = cleantext_columns(b->data ? b->data + start : "");

	if (columns < width)
		put_blanks(b, width - columns);
}

static void trim_line(struct buf *b)
{
	while (b->n && b->data[b->n - 1] == ' ')
		b->data[--b->n] = 0;
	buf_putc(b, '\n');
}

void table_write(struct table *t, unsigned width, size_t limit, struct buf *b)
{
	unsigned widths[TABLE_COLUMNS];
	size_t n = limit && limit < t->rows.n ? limit : t->rows.n;

	table_layout(t, width, widths);
	table_begin(t);
	for (size_t c = 0; c < t->column_count; c++)
		if (widths[c])
			buf_printf(b, table_is_left(t, c) ? "%-*.*s " : "%*.*s ", (int)widths[c],
				   (int)widths[c], t->columns[c].title);
	trim_line(b);
	for (size_t i = 0; i < n; i++) {
		for (size_t c = 0; c < t->column_count; c++) {
			size_t start = b->n;

			if (!widths[c])
				continue;
			table_cell(t, &t->rows.v[i], c, widths[c], b);
			pad(b, start, widths[c] + 1);
		}
		trim_line(b);
	}
	if (!t->rows.n && *t->empty)
		buf_printf(b, "%s\n", t->empty);
}

static void json_bar(const struct row *r, const char *key, struct json *j)
{
	json_open_object(j, key);
	for (int i = 0; r->parts && i < CAUSE_COUNT; i++)
		if (r->parts[i])
			json_put_uint(j, cause_key(i), r->parts[i]);
	json_close(j);
}

void table_json(const struct table *t, size_t limit, const char *key, struct json *j)
{
	size_t n = limit && limit < t->rows.n ? limit : t->rows.n;

	json_open_array(j, key);
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &t->rows.v[i];

		json_open_object(j, NULL);
		for (size_t c = 0; c < t->column_count; c++) {
			const char *column = t->columns[c].key;

			if (t->columns[c].type == COLUMN_BAR)
				json_bar(r, column, j);
			else if (is_text(t, c))
				json_put_string(j, column, r->text[c] ? r->text[c] : "");
			else
				json_put_fixed(j, column, r->value[c], t->columns[c].type == COLUMN_PERCENT ? 3 : 0);
		}
		json_close(j);
	}
	json_close(j);
}
