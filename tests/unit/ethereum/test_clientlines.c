/*
 * test_clientlines.c - the lines of each client, in all forms, as the blocks that they tell of.
 *
 * tests/golden/logs/client-lines.tsv and more-lines.tsv hold lines that were constructed from the clients' sources, with
 * the block, gas, transactions and duration of each, or nothing where the lines tell of no block. Each is read as it
 * is, and wrapped as containers and the journal wrap it: the result is the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "ethereum/clients.h"
#include "ethereum/log/blocklog.h"
#include "test.h"

enum { CELLS = 8, CLIENT = 0, NOTE, LINE, BLOCK, GAS, TXS, ELAPSED, SOURCE };

struct got {
	struct blocklog_block list[8];
	size_t n;
};

static void got_block(void *context, const struct blocklog_block *b)
{
	struct got *g = context;

	if (b->amends) {
		g->list[b->order] = *b;
		return;
	}
	assert_true(g->n < ARRAY_LEN(g->list));
	g->list[g->n++] = *b;
}

/* --- forms --- */

static void wrap_plain(struct buf *out, const char *line)
{
	buf_puts(out, line);
}

static void wrap_docker(struct buf *out, const char *line)
{
	_cleanup_free_ char *ended = mem_printf("%s\n", line);

	buf_puts(out, "{\"log\":");
	buf_json(out, ended);
	buf_puts(out, ",\"stream\":\"stdout\",\"time\":\"2026-08-01T10:00:00.123456789Z\"}");
}

static void wrap_cri(struct buf *out, const char *line)
{
	buf_printf(out, "2026-08-01T10:00:00.123456789Z stdout F %s", line);
}

/* The journal strips a line, and writes one with control characters as an array of bytes. */
static void wrap_journal(struct buf *out, const char *line)
{
	line += strspn(line, " ");
	buf_puts(out, "{\"_PID\":\"77\",\"__CURSOR\":\"s=1\",\"PRIORITY\":\"6\",\"MESSAGE\":");
	if (strchr(line, '\033')) {
		for (const char *c = line; *c; c++)
			buf_printf(out, "%c%u", c == line ? '[' : ',', (unsigned char)*c);
		buf_puts(out, "]");
	} else {
		buf_json(out, line);
	}
	buf_puts(out, ",\"SYSLOG_IDENTIFIER\":\"node\",\"_SYSTEMD_UNIT\":\"node.service\"}");
}

typedef void wrap_fn(struct buf *out, const char *line);
static wrap_fn *const forms[] = { wrap_plain, wrap_docker, wrap_cri, wrap_journal };

/* --- rows --- */

/* \n, \x1b and \\ of a cell, in place. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (*s != '\\') {
			*out++ = *s;
		} else if (*++s == 'x') {
			char hex[3] = { s[1], s[2], 0 };

			*out++ = (char)strtoul(hex, NULL, 16);
			s += 2;
		} else {
			*out++ = *s == 'n' ? '\n' : *s;
		}
	}
	*out = 0;
}

static void parse(const char *client, const char *text, wrap_fn *wrap, struct got *g, struct blocklog_counts *counts)
{
	struct blocklog *m;
	struct err err = { 0 };

	*g = (struct got){ 0 };
	if (blocklog_new(client, NULL, got_block, g, &m, &err))
		fail_msg("%s", err.text);
	for (const char *end; *text; text = *end ? end + 1 : end) {
		_cleanup_free_ char *line = NULL;
		_cleanup_(buf_done) struct buf wrapped = { 0 };

		end = strchrnul(text, '\n');
		line = mem_strndup(text, end - text);
		wrap(&wrapped, line);
		if (wrapped.n)
			blocklog_line(m, wrapped.data, wrapped.n, 1000000000000);
	}
	blocklog_flush(m);
	*counts = *blocklog_counted(m);
	blocklog_free(m);
}

static bool is_figure(const char *cell, bool known, uint64_t value)
{
	return *cell ? known && strtoull(cell, NULL, 10) == value : !known;
}

/* "7", or of a group in more-lines.tsv "5..7". */
static bool is_block(const char *cell, const struct blocklog_block *b)
{
	const char *last = strstr(cell, "..");

	if (last && (strtoull(cell, NULL, 10) != b->first || b->count != b->block.number - b->first + 1))
		return false;
	return strtoull(last ? last + 2 : cell, NULL, 10) == b->block.number;
}

static void check_row(char **cells, const char *client, size_t form)
{
	const char *rules = client_find(cells[CLIENT])->rules;
	struct blocklog_counts counts;
	const struct blocklog_block *b;
	struct got g;

	parse(client, cells[LINE], forms[form], &g, &counts);
	b = &g.list[0];
	if (counts.bad_lines || counts.bad_figures || counts.bad_times)
		fail_msg("%s, %s (form %zu): an error is counted", cells[CLIENT], cells[NOTE], form);
	if (g.n != (*cells[BLOCK] != 0))
		fail_msg("%s, %s (form %zu): %zu blocks", cells[CLIENT], cells[NOTE], form, g.n);
	if (!g.n)
		return;
	if (!is_block(cells[BLOCK], b) || !is_figure(cells[GAS], b->block.known & BLOCK_GAS, b->block.gas) ||
	    !is_figure(cells[TXS], b->block.known & BLOCK_TRANSACTIONS, b->block.transactions) ||
	    !is_figure(cells[ELAPSED], b->lasted_ns, b->lasted_ns))
		fail_msg("%s, %s (form %zu): block %llu, gas %llu, %llu transactions, %llu ns", cells[CLIENT], cells[NOTE], form,
			 (unsigned long long)b->block.number, (unsigned long long)b->block.gas,
			 (unsigned long long)b->block.transactions, (unsigned long long)b->lasted_ns);
	if (b->client ? strcmp(b->client, rules) : client != NULL)
		fail_msg("%s, %s (form %zu): a line of %s", cells[CLIENT], cells[NOTE], form, b->client);
}

static void check_file(const char *name)
{
	_cleanup_free_ char *path = mem_printf(GOLDEN_DIR "/logs/%s", name), *line = NULL;
	FILE *f = fopen(path, "re");
	size_t size = 0, rows = 0;

	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		char *cells[CELLS], *rest = line;

		line[strcspn(line, "\n")] = 0;
		for (int i = 0; i < CELLS; i++)
			if (!(cells[i] = strsep(&rest, "\t")))
				fail_msg("%s: a row with %d cells: %.60s", name, i, cells[0]);
		if (rows++) {
			unescape(cells[LINE]);
			for (size_t form = 0; form < ARRAY_LEN(forms); form++) {
				check_row(cells, NULL, form);
				check_row(cells, cells[CLIENT], form);
			}
		}
	}
	fclose(f);
	assert_true(rows > 20);
}

static void lines_of_the_sources(void **state)
{
	check_file("client-lines.tsv");
}

static void older_and_other_forms(void **state)
{
	check_file("more-lines.tsv");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_the_sources),
		cmocka_unit_test(older_and_other_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
