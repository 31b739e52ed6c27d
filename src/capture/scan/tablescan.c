#include "capture/scan/tablescan.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "capture/capture.h"
#include "capture/capturevfs.h"

enum {
	DEPTH_MAX = 20,       /* SQLite's own limit for a tree */
	HEADER_SIZE = 100,    /* of the file, on its first page */
	LEAF = 0x0d, INNER = 0x05, /* kinds of pages of a table */
	LEAF_HEADER = 8, INNER_HEADER = 12,
	MIN_LOCAL = 35,       /* a row that takes more than a page less this continues on other pages */
	WIDEST = 8,           /* bytes of a number */
	SPARE = WIDEST * (TABLESCAN_COLUMNS + 1), /* behind each page: values are loaded before their end is checked */
};

struct scan {
	int fd;
	uint32_t page_size, usable;
	uint64_t pages_left;  /* each page is visited once: a tree that has more visits has a cycle */
	uint32_t page_count;
	const struct tablescan *t;
	void *context;
	bool ended;
	unsigned leaf_depth;  /* of all leaves; 0 = none was seen yet */
	uint64_t leaves;      /* that there were, also those that were not read */
	struct tablescan_row row;
	uint8_t *pages[DEPTH_MAX]; /* one for each level */
};

static uint32_t get_u16(const uint8_t *b)
{
	return (uint32_t)b[0] << 8 | b[1];
}

static uint32_t get_u32(const uint8_t *b)
{
	return get_u16(b) << 16 | get_u16(b + 2);
}

/* A number of one to nine bytes, seven bits in each; returns the byte after it, NULL = it does not end in time. */
static const uint8_t *get_varint(const uint8_t *b, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;

	for (int i = 0; i < 9 && b < end; i++, b++) {
		if (i == 8) {
			*ret = v << 8 | *b;
			return b + 1;
		}
		v = v << 7 | (*b & 0x7f);
		if (!(*b & 0x80)) {
			*ret = v;
			return b + 1;
		}
	}
	return NULL;
}

/* Most numbers have one byte. */
static inline const uint8_t *get_number(const uint8_t *b, const uint8_t *end, uint64_t *ret)
{
	if (b < end && !(*b & 0x80)) {
		*ret = *b;
		return b + 1;
	}
	return get_varint(b, end, ret);
}

/* How a value of each type is made of the eight bytes where it begins. */
struct shape {
	uint8_t bytes, shift; /* shift: to the right */
	bool bad;             /* 7 is a fraction, 10 and 11 are not in use, the others are text */
	int64_t mask, more;   /* NULL and the numbers 0 and 1 have no bytes */
};

#define NUMBER(bytes) { bytes, 64 - 8 * (bytes), .mask = -1 }
static const struct shape shapes[16] = {
	[1] = NUMBER(1), [2] = NUMBER(2), [3] = NUMBER(3), [4] = NUMBER(4), [5] = NUMBER(6), [6] = NUMBER(8),
	[7] = { .bad = true }, [9] = { .more = 1 },
	[10] = { .bad = true }, [11] = { .bad = true }, [12] = { .bad = true }, [13] = { .bad = true },
	[14] = { .bad = true }, [15] = { .bad = true },
};

/*
 * The columns of a record: a header of types, then the values. Types of whole numbers have one byte. This is run for each of
 * tens of millions of rows, so there is one check at the end in place of one for each value.
 */
static bool get_record(struct scan *s, const uint8_t *b, const uint8_t *end)
{
	unsigned columns = s->t->columns;
	const uint8_t *types = b + 1, *values = types + columns;
	bool bad = false;

	if (values > end || *b != columns + 1)
		return false;
	s->row.nulls = 0;
	for (unsigned i = 0; i < columns; i++) {
		const struct shape *shape = &shapes[types[i] & 15];
		uint64_t bytes;

		memcpy(&bytes, values, sizeof(bytes));
		bad |= shape->bad || types[i] > 9;
		s->row.nulls |= (uint32_t)!types[i] << i;
		s->row.values[i] = ((int64_t)be64toh(bytes) >> shape->shift & shape->mask) + shape->more;
		values += shape->bytes;
	}
	return !bad && values == end;
}

static bool get_cell(struct scan *s, const uint8_t *page, uint32_t at)
{
	const uint8_t *end = page + s->usable, *b = page + at;
	uint64_t size, rowid = 0;

	b = get_number(b, end, &size);
	b = b ? get_varint(b, end, &rowid) : NULL;
	s->row.rowid = rowid;
	return b && size <= s->usable - MIN_LOCAL && size <= (uint64_t)(end - b) && get_record(s, b, b + size);
}

static _Atomic unsigned progress;

unsigned capture_read_progress(void)
{
	return atomic_load_explicit(&progress, memory_order_relaxed);
}

/* Most of a capture is its samples: the part of the file that was read by pages says how far all of it is. */
static void note_progress(const struct scan *s)
{
	uint64_t done = s->page_count - s->pages_left;

	if (done % 1024 == 0 && !s->t->every && !strcmp(s->t->table, "sample"))
		atomic_store_explicit(&progress, done * 1000 / s->page_count, memory_order_relaxed);
}

static int read_page(struct scan *s, uint32_t number, uint8_t *page)
{
	off_t at = (off_t)(number - 1) * s->page_size;
	uint32_t got = 0;

	if (!number || number > s->page_count || !s->pages_left)
		return -ENOTSUP;
	note_progress(s);
	s->pages_left--;
	while (got < s->page_size) {
		ssize_t n = pread(s->fd, page + got, s->page_size - got, at + got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -ENOTSUP; /* SQLite says what is wrong */
		got += n;
	}
	return 0;
}

static int scan_leaf(struct scan *s, const uint8_t *page, const uint8_t *head)
{
	uint32_t cells = get_u16(head + 3);
	const uint8_t *pointers = head + LEAF_HEADER;

	if (cells > (uint32_t)(page + s->usable - pointers) / 2)
		return -ENOTSUP;
	for (uint32_t i = 0; i < cells && !s->ended; i++) {
		uint32_t at = get_u16(pointers + 2 * i);

		if (at >= s->usable || !get_cell(s, page, at))
			return -ENOTSUP;
		s->ended = !s->t->row(s->context, &s->row);
	}
	return 0;
}

static int scan_page(struct scan *s, uint32_t number, unsigned depth);

/* A page below an inner one. All leaves are at one depth. */
static int scan_below(struct scan *s, uint32_t number, unsigned depth)
{
	if (depth != s->leaf_depth)
		return scan_page(s, number, depth);
	if (s->t->every && s->leaves++ % s->t->every)
		return 0;
	if (s->t->row)
		return scan_page(s, number, depth);
	if (!s->pages_left)
		return -ENOTSUP;
	s->pages_left--;
	s->t->leaf(s->context, number);
	return 0;
}

static int scan_inner(struct scan *s, const uint8_t *page, const uint8_t *head, unsigned depth)
{
	uint32_t cells = get_u16(head + 3);
	const uint8_t *pointers = head + INNER_HEADER;
	int r = 0;

	if (cells > (uint32_t)(page + s->usable - pointers) / 2)
		return -ENOTSUP;
	for (uint32_t i = 0; i < cells && !r && !s->ended; i++) {
		uint32_t at = get_u16(pointers + 2 * i);

		r = at + 4 > s->usable ? -ENOTSUP : scan_below(s, get_u32(page + at), depth + 1);
	}
	return r ?: s->ended ? 0 : scan_below(s, get_u32(head + 8), depth + 1);
}

static int scan_page(struct scan *s, uint32_t number, unsigned depth)
{
	uint8_t *page, *head;
	int r;

	if (depth >= DEPTH_MAX)
		return -ENOTSUP;
	if (!s->pages[depth])
		s->pages[depth] = mem_alloc(s->page_size + SPARE);
	page = s->pages[depth];
	r = read_page(s, number, page);
	if (r)
		return r;
	head = number == 1 ? page + HEADER_SIZE : page;
	if (*head == LEAF) {
		s->leaf_depth = depth;
		if (s->t->leaf)
			s->t->leaf(s->context, number);
		return s->t->row ? scan_leaf(s, page, head) : 0;
	}
	return *head == INNER ? scan_inner(s, page, head, depth) : -ENOTSUP;
}

static int measure(struct scan *s)
{
	uint8_t header[HEADER_SIZE];
	struct stat st;

	if (pread(s->fd, header, sizeof(header), 0) != sizeof(header) || fstat(s->fd, &st) < 0)
		return -ENOTSUP;
	s->page_size = get_u16(header + 16) == 1 ? 65536 : get_u16(header + 16);
	if (s->page_size < 512 || s->page_size & (s->page_size - 1) || header[20] > s->page_size - 480)
		return -ENOTSUP;
	s->usable = s->page_size - header[20];
	s->page_count = MIN((uint64_t)st.st_size / s->page_size, UINT32_MAX - 1);
	s->pages_left = s->page_count;
	return 0;
}

static uint32_t root_of(sqlite3 *db, const char *table)
{
	sqlite3_stmt *q = NULL;
	int64_t root = 0;

	if (sqlite3_prepare_v2(db, "select rootpage from main.sqlite_schema where type = 'table' and name = ?", -1, &q,
			       NULL) == SQLITE_OK &&
	    sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
		root = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return root > 0 && root < UINT32_MAX ? root : 0;
}

int tablescan_pages(sqlite3 *db, const struct tablescan *t, void *context)
{
	struct scan s = { .fd = capturevfs_plain_file(db), .t = t, .context = context };
	int r = s.fd < 0 || t->columns > TABLESCAN_COLUMNS ? -ENOTSUP : measure(&s);

	if (!r)
		r = scan_page(&s, root_of(db, t->table), 0);
	for (int i = 0; i < DEPTH_MAX; i++)
		free(s.pages[i]);
	return r;
}

int tablescan_leaves(sqlite3 *db, const struct tablescan *t, const uint32_t *pages, size_t n, void *context)
{
	struct scan s = { .fd = capturevfs_plain_file(db), .t = t, .context = context };
	int r = s.fd < 0 || t->columns > TABLESCAN_COLUMNS ? -ENOTSUP : measure(&s);

	/* At the greatest depth, an inner page leads nowhere. */
	for (size_t i = 0; i < n && !r && !s.ended; i++)
		r = scan_page(&s, pages[i], DEPTH_MAX - 1);
	free(s.pages[DEPTH_MAX - 1]);
	return r;
}

static void get_columns(sqlite3_stmt *q, unsigned columns, struct tablescan_row *row)
{
	row->rowid = sqlite3_column_int64(q, 0);
	row->nulls = 0;
	row->odd = false;
	for (unsigned i = 0; i < columns; i++) {
		int type = sqlite3_column_type(q, i + 1);

		row->values[i] = type == SQLITE_INTEGER ? sqlite3_column_int64(q, i + 1) : 0;
		row->nulls |= (uint32_t)(type == SQLITE_NULL) << i;
		row->odd |= type != SQLITE_INTEGER && type != SQLITE_NULL;
	}
}

int tablescan_read(sqlite3 *db, const struct tablescan *t, void *context)
{
	struct tablescan_row row = { 0 };
	sqlite3_stmt *q = NULL;
	int result;

	if (!tablescan_pages(db, t, context))
		return SQLITE_DONE;
	t->restart(context);
	result = sqlite3_prepare_v2(db, t->sql, -1, &q, NULL);
	while (result == SQLITE_OK || result == SQLITE_ROW) {
		result = sqlite3_step(q);
		if (result != SQLITE_ROW)
			break;
		get_columns(q, t->columns, &row);
		if (!t->row(context, &row))
			result = SQLITE_DONE;
	}
	sqlite3_finalize(q);
	return result;
}
