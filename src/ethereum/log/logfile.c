#include "ethereum/log/logfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "ethereum/clients.h"

enum { CHUNK = 65536 };
/* The moment of all lines: when they were written does not matter, only that no duration is longer. */
static const uint64_t at_ns = 1ULL << 60;

struct reading {
	struct logfile *to;
	struct blocklog *parser;
	logfile_line_fn *other; /* may be NULL */
	void *context;
	char line[LOGFILE_LINE];
	size_t n;
	bool cut;
};

static void set_row(struct logfile_row *r, const struct blocklog_block *b)
{
	*r = (struct logfile_row){ .block = b->block, .first = b->first, .count = b->count, .lasted_ns = b->lasted_ns,
				   .inserted = b->inserted, .slow = b->slow, .again = b->again,
				   .client = b->client ? client_of_rules(b->client) : NULL };
}

static void got_block(void *context, const struct blocklog_block *b)
{
	struct logfile *l = context;

	if (b->amends) {
		if (b->order < l->rows.n)
			set_row(&l->rows.v[b->order], b);
		return;
	}
	if (l->rows.n == LOGFILE_ROWS) {
		l->beyond++;
		return;
	}
	vec_push(&l->rows, (struct logfile_row){ 0 });
	set_row(&l->rows.v[l->rows.n - 1], b);
}

static void end_line(struct reading *r)
{
	r->to->lines++;
	if (!r->other || !r->other(r->context, r->line, r->n))
		blocklog_line(r->parser, r->line, r->n, at_ns);
	r->n = 0;
	r->cut = false;
}

static void take(struct reading *r, const char *data, size_t n)
{
	while (n) {
		const char *end = memchr(data, '\n', n);
		size_t part = end ? (size_t)(end - data) : n, kept = MIN(part, LOGFILE_LINE - r->n);

		memcpy(r->line + r->n, data, kept);
		r->n += kept;
		if (kept < part && !r->cut) {
			r->cut = true;
			r->to->too_long++;
		}
		if (end)
			end_line(r);
		data += part + (end != NULL);
		n -= part + (end != NULL);
	}
}

/* Logs that were rotated are often compressed. */
static const char *find_packer(const char *data, size_t n)
{
	static const struct {
		const char *magic, *reader;
	} packers[] = { { "\x1f\x8b", "zcat" }, { "\x28\xb5\x2f\xfd", "zstdcat" }, { "\xfd" "7zXZ", "xzcat" }, { "BZh", "bzcat" } };

	for (size_t i = 0; i < ARRAY_LEN(packers); i++)
		if (n >= strlen(packers[i].magic) && !memcmp(data, packers[i].magic, strlen(packers[i].magic)))
			return packers[i].reader;
	return NULL;
}

static int read_all(struct reading *r, int fd, struct err *err)
{
	_cleanup_free_ char *data = mem_alloc(CHUNK);
	bool first = true;

	for (;;) {
		ssize_t n = read(fd, data, CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "cannot read the log");
		if (!n)
			break;
		if (first && find_packer(data, n))
			return err_set(err, EINVAL, "the log is compressed: `%s LOG | gasflame blocks -` reads it", find_packer(data, n));
		first = false;
		take(r, data, n);
	}
	if (r->n)
		end_line(r);
	return 0;
}

/* A line that several clients have is that of the only client that the log names. */
static void name_clients(struct logfile *l)
{
	const char *only = NULL;

	for (size_t i = 0; i < l->rows.n; i++) {
		if (only && l->rows.v[i].client && strcmp(only, l->rows.v[i].client))
			return;
		only = l->rows.v[i].client ? l->rows.v[i].client : only;
	}
	for (size_t i = 0; i < l->rows.n; i++)
		l->rows.v[i].client = only;
}

int logfile_read_with(int fd, const char *client, const char *pattern, logfile_line_fn *other, void *context,
		      struct logfile *ret, struct err *err)
{
	struct reading *r = mem_alloc(sizeof(*r));
	int e;

	*ret = (struct logfile){ 0 };
	r->to = ret;
	r->other = other;
	r->context = context;
	e = blocklog_new(client, pattern, got_block, ret, &r->parser, err);
	if (!e)
		e = read_all(r, fd, err);
	if (!e) {
		blocklog_flush(r->parser);
		ret->counts = *blocklog_counted(r->parser);
		name_clients(ret);
	}
	blocklog_free(r->parser);
	free(r);
	return e;
}

int logfile_read(int fd, const char *client, const char *pattern, struct logfile *ret, struct err *err)
{
	return logfile_read_with(fd, client, pattern, NULL, NULL, ret, err);
}

void logfile_done(struct logfile *l)
{
	vec_done(&l->rows);
}
