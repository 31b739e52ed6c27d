#include "cmd/logblocks.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/input.h"
#include "ethereum/log/logfile.h"
#include "stats/stats.h"
#include "target/log/xlayertrace.h"

#define DIM "\033[2m"
#define YELLOW "\033[33m"
#define NORMAL "\033[0m"

enum { SLOW_PERCENT = 150 }; /* of the median */

/* The blocks of a log together. */
struct summary {
	uint64_t blocks;           /* those of groups, too */
	uint64_t gas, transactions;
	uint64_t timed_gas, timed_ns; /* of the blocks that have both */
	double *rates, *times;     /* of single blocks: Ggas/s, ms; ascending */
	size_t rate_count, time_count;
	const struct logfile_row *slowest; /* NULL: none has a time */
	uint64_t lowest, highest;  /* numbers */
	bool several_clients;
};

static bool is_timed(const struct logfile_row *r)
{
	return r->lasted_ns && !r->inserted;
}

/* 0 = not known. */
static double ggas_per_s(const struct logfile_row *r)
{
	return is_timed(r) && r->block.known & BLOCK_GAS ? (double)r->block.gas / r->lasted_ns : 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void add_row(struct summary *s, const struct logfile_row *r)
{
	s->blocks += r->count;
	s->gas += r->block.known & BLOCK_GAS ? r->block.gas : 0;
	s->transactions += r->block.known & BLOCK_TRANSACTIONS ? r->block.transactions : 0;
	s->lowest = MIN(s->lowest, r->first);
	s->highest = MAX(s->highest, r->block.number);
	if (ggas_per_s(r) > 0) {
		s->timed_gas += r->block.gas;
		s->timed_ns += r->lasted_ns;
	}
	if (r->count > 1 || !is_timed(r))
		return;
	s->times[s->time_count++] = r->lasted_ns / 1e6;
	if (ggas_per_s(r) > 0)
		s->rates[s->rate_count++] = ggas_per_s(r);
	if (!s->slowest || r->lasted_ns > s->slowest->lasted_ns)
		s->slowest = r;
}

static void summarize(struct summary *s, const struct logfile *l)
{
	*s = (struct summary){ .lowest = UINT64_MAX };
	s->rates = mem_alloc((l->rows.n + 1) * sizeof(*s->rates));
	s->times = mem_alloc((l->rows.n + 1) * sizeof(*s->times));
	for (size_t i = 0; i < l->rows.n; i++) {
		const char *client = l->rows.v[i].client, *first = l->rows.v[0].client;

		add_row(s, &l->rows.v[i]);
		s->several_clients |= client && first ? strcmp(client, first) != 0 : client != first;
	}
	qsort(s->rates, s->rate_count, sizeof(*s->rates), compare_numbers);
	qsort(s->times, s->time_count, sizeof(*s->times), compare_numbers);
}

static void summary_done(struct summary *s)
{
	free(s->rates);
	free(s->times);
}

/* --- for people --- */

static void put_known(struct buf *out, const struct logfile_row *r, uint32_t bit, int width, const char *text)
{
	buf_printf(out, "%*s", width, r->block.known & bit ? text : "-");
}

static void put_notes(struct buf *out, const struct logfile_row *r, const struct summary *s)
{
	char text[32];

	if (s->several_clients)
		buf_printf(out, "  %s", r->client ? r->client : "?");
	if (r->count > 1)
		buf_printf(out, "  %llu blocks, from %s", (unsigned long long)r->count, str_count(text, r->first));
	if (r->inserted)
		buf_printf(out, "  built here: its insertion took %s", str_duration(text, r->lasted_ns));
	if (r->again)
		buf_puts(out, "  again: the chain was reorganized");
}

static void put_row(struct buf *out, const struct logfile_row *r, const struct summary *s, bool colour)
{
	double median = stats_quantile(s->times, s->time_count, 0.5);
	bool slow = colour && is_timed(r) && r->count == 1 && r->lasted_ns / 1e6 * 100 >= median * SLOW_PERCENT;
	char text[32];

	buf_printf(out, "%s%12s", slow ? YELLOW : "", str_count(text, r->block.number));
	snprintf(text, sizeof(text), "%.2fM", r->block.gas / 1e6);
	put_known(out, r, BLOCK_GAS, 13, text);
	put_known(out, r, BLOCK_TRANSACTIONS, 9, str_count(text, r->block.transactions));
	if (is_timed(r))
		buf_printf(out, "%12.2f", r->lasted_ns / 1e6);
	else
		buf_printf(out, "%12s", "-");
	if (ggas_per_s(r) > 0)
		buf_printf(out, "%9.3f", ggas_per_s(r));
	else
		buf_printf(out, "%9s", "-");
	put_notes(out, r, s);
	buf_printf(out, "%s\n", slow ? NORMAL : "");
}

static int compare_slow(const void *a, const void *b)
{
	const struct logfile_row *x = *(const struct logfile_row *const *)a, *y = *(const struct logfile_row *const *)b;
	uint64_t mine = is_timed(x) ? x->lasted_ns : 0, its = is_timed(y) ? y->lasted_ns : 0;

	if (mine != its)
		return mine < its ? 1 : -1;
	return (x > y) - (x < y);
}

static void put_summary(struct buf *out, const struct logfile *l, const struct summary *s)
{
	const char *client = l->rows.v[0].client;
	char text[4][32];

	buf_printf(out, "%s block%s%s%s, %s to %s", str_count(text[0], s->blocks), s->blocks == 1 ? "" : "s",
		   s->several_clients || !client ? "" : " of ", s->several_clients || !client ? "" : client,
		   str_count(text[1], s->lowest), str_count(text[2], s->highest));
	if (s->gas)
		buf_printf(out, ", %.2f %s", s->gas / (s->gas < 1e10 ? 1e6 : 1e9), s->gas < 1e10 ? "Mgas" : "Ggas");
	if (s->transactions)
		buf_printf(out, ", %s transactions", str_count(text[3], s->transactions));
	buf_puts(out, ".\n");
	if (s->timed_ns)
		buf_printf(out, "%.3f Ggas/s over their own time", (double)s->timed_gas / s->timed_ns);
	if (s->rate_count)
		buf_printf(out, "; of single blocks p5 %.3f, median %.3f, p95 %.3f", stats_quantile(s->rates, s->rate_count, 0.05),
			   stats_quantile(s->rates, s->rate_count, 0.5), stats_quantile(s->rates, s->rate_count, 0.95));
	if (s->timed_ns)
		buf_puts(out, ".\n");
	if (s->slowest)
		buf_printf(out, "Time: median %.2f ms, p95 %.2f ms, p99 %.2f ms; the slowest is %s with %.2f ms.\n",
			   stats_quantile(s->times, s->time_count, 0.5), stats_quantile(s->times, s->time_count, 0.95),
			   stats_quantile(s->times, s->time_count, 0.99), str_count(text[0], s->slowest->block.number),
			   s->slowest->lasted_ns / 1e6);
	else
		buf_puts(out, "The log does not say how long they took; a recording (gasflame record --log) measures it.\n");
}

static void put_table(struct buf *out, const struct logblocks_options *o, const struct logfile *l, const struct summary *s)
{
	bool colour = (!o->output || !strcmp(o->output, "-")) && log_colour(STDOUT_FILENO);
	const struct logfile_row **order = mem_alloc((l->rows.n + 1) * sizeof(*order));
	size_t n = o->limit && o->limit < l->rows.n ? o->limit : l->rows.n;

	for (size_t i = 0; i < l->rows.n; i++)
		order[i] = &l->rows.v[i];
	if (!o->by_time)
		qsort(order, l->rows.n, sizeof(*order), compare_slow);
	buf_printf(out, "%s%12s%13s%9s%12s%9s%s\n", colour ? DIM : "", "block", "gas", "txs", "ms", "Ggas/s", colour ? NORMAL : "");
	for (size_t i = 0; i < n; i++)
		put_row(out, order[i], s, colour);
	if (n < l->rows.n)
		buf_printf(out, "%12s%s%zu more: -n 0 shows all\n", "...", "  ", l->rows.n - n);
	buf_putc(out, '\n');
	put_summary(out, l, s);
	free(order);
}

/* --- for programs --- */

static void put_json_known(struct json *j, const char *key, bool known, uint64_t value)
{
	if (known)
		json_put_uint(j, key, value);
	else
		json_put_null(j, key);
}

static void put_json_row(struct json *j, const struct logfile_row *r)
{
	json_open_row(j, 0);
	json_put_uint(j, "number", r->block.number);
	put_json_known(j, "gas", r->block.known & BLOCK_GAS, r->block.gas);
	put_json_known(j, "transactions", r->block.known & BLOCK_TRANSACTIONS, r->block.transactions);
	put_json_known(j, "elapsed_ns", r->lasted_ns, r->lasted_ns);
	json_put_string(j, "client", r->client);
	json_put_fixed(j, "ggas_per_s", ggas_per_s(r) > 0 ? ggas_per_s(r) : NAN, 6);
	json_put_uints(j, { "first", r->first }, { "count", r->count });
	json_put_bool(j, "insertion", r->inserted);
	json_put_bool(j, "slow", r->slow);
	json_put_bool(j, "again", r->again);
	json_close(j);
}

static void put_json(struct buf *out, const struct logblocks_options *o, const struct logfile *l, const struct summary *s)
{
	const struct blocklog_counts *c = &l->counts;
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_string(&j, "log", *o->path);
	json_put_string(&j, "client", l->rows.n && !s->several_clients ? l->rows.v[0].client : NULL);
	json_put_uints(&j, { "lines", l->lines }, { "blocks", s->blocks }, { "groups", c->groups }, { "gas", s->gas },
		       { "transactions", s->transactions });
	json_put_fixed(&j, "ggas_per_s", s->timed_ns ? (double)s->timed_gas / s->timed_ns : NAN, 6);
	json_open_object(&j, "ggas_per_s_of_blocks");
	json_put_fixed(&j, "p5", stats_quantile(s->rates, s->rate_count, 0.05), 6);
	json_put_fixed(&j, "p50", stats_quantile(s->rates, s->rate_count, 0.5), 6);
	json_put_fixed(&j, "p95", stats_quantile(s->rates, s->rate_count, 0.95), 6);
	json_close(&j);
	json_open_object(&j, "counted");
	json_put_uints(&j, { "lines_malformed", c->bad_lines }, { "lines_too_long", l->too_long },
		       { "figures_beyond_bounds", c->bad_figures }, { "bad_durations", c->bad_times },
		       { "inserted", c->inserted }, { "merged", c->merged }, { "repeated", c->repeated },
		       { "reorganized", c->reorged }, { "out_of_order", c->out_of_order }, { "client_changed", c->clients },
		       { "blocks_beyond_the_limit", l->beyond });
	json_close(&j);
	json_open_array_line(&j, "rows", 0);
	for (size_t i = 0; i < l->rows.n; i++)
		put_json_row(&j, &l->rows.v[i]);
	json_break(&j, 0);
	json_close(&j);
	json_end_line(&j);
}

static void put_csv_known(struct buf *out, bool known, uint64_t value)
{
	if (known)
		buf_printf(out, "%llu", (unsigned long long)value);
	buf_putc(out, ',');
}

static void put_csv(struct buf *out, const struct logfile *l)
{
	buf_puts(out, "number,gas,transactions,elapsed_ns,ggas_per_s,first,count,insertion,client\n");
	for (size_t i = 0; i < l->rows.n; i++) {
		const struct logfile_row *r = &l->rows.v[i];

		put_csv_known(out, true, r->block.number);
		put_csv_known(out, r->block.known & BLOCK_GAS, r->block.gas);
		put_csv_known(out, r->block.known & BLOCK_TRANSACTIONS, r->block.transactions);
		put_csv_known(out, r->lasted_ns, r->lasted_ns);
		if (ggas_per_s(r) > 0)
			buf_printf(out, "%.6f", ggas_per_s(r));
		buf_printf(out, ",%llu,%llu,%d,%s\n", (unsigned long long)r->first, (unsigned long long)r->count, r->inserted,
			   r->client ? r->client : "");
	}
}

/* --- all of it --- */

static void warn_count(uint64_t n, const char *one, const char *many)
{
	char text[32];

	if (n)
		log_warn("%s %s", str_count(text, n), n == 1 ? one : many);
}

static void tell_counts(const struct logfile *l)
{
	warn_count(l->counts.bad_lines, "line should be about a block, but is cut or malformed: it is left out",
		   "lines should be about blocks, but are cut or malformed: they are left out");
	warn_count(l->too_long, "line is longer than 16 KiB: its end was not read", "lines are longer than 16 KiB: their ends were not read");
	warn_count(l->counts.bad_figures, "line has a figure that is too large to be: the block goes without it",
		   "lines have figures that are too large to be: the blocks go without them");
	warn_count(l->counts.bad_times, "duration cannot be, it is zero, cut or longer than an hour: the block goes without it",
		   "durations cannot be, they are zero, cut or longer than an hour: the blocks go without them");
	warn_count(l->counts.clients, "time the log goes on as that of another client", "times the log goes on as that of another client");
	warn_count(l->beyond, "block more than a table holds is left out: cut the log", "blocks more than a table holds are left out: cut the log");
}

bool logblocks_is_log(const char *path)
{
	struct stat st;

	if (!strcmp(path, "-"))
		return true;
	if (stat(path, &st) || str_ends(path, ".gasflame"))
		return false;
	return S_ISFIFO(st.st_mode) || (S_ISREG(st.st_mode) && !input_is_capture(path));
}

static int write_result(const struct logblocks_options *o, const struct logfile *l, struct err *err)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	_cleanup_(summary_done) struct summary s;

	summarize(&s, l);
	if (o->json)
		put_json(&out, o, l, &s);
	else if (o->csv)
		put_csv(&out, l);
	else if (l->rows.n)
		put_table(&out, o, l, &s);
	return out.n ? captureio_write(o->output, &out, o->path, strcmp(*o->path, "-") ? 1 : 0, err) : 0;
}

/* A block of X Layer's trace.log, by its own times. */
static void got_xlayer_block(void *context, const struct xlayertrace_block *b)
{
	struct logfile *l = context;

	if (l->rows.n == LOGFILE_ROWS)
		l->beyond++;
	else
		vec_push(&l->rows, (struct logfile_row){ .block = { .number = b->number, .known = BLOCK_NUMBER }, .first = b->number,
							 .count = 1, .lasted_ns = b->end_wall_ns - b->start_wall_ns, .client = "xlayer" });
}

static bool take_xlayer_line(void *context, const char *line, size_t n)
{
	return xlayertrace_line(context, line, n);
}

int logblocks_run(const struct logblocks_options *o, struct err *err)
{
	bool standard = !strcmp(*o->path, "-");
	_cleanup_fd_ int own = standard ? -1 : open(*o->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_(logfile_done) struct logfile l = { 0 };
	struct xlayertrace *xlayer;
	int r;

	if (own < 0 && !standard)
		return err_errno(err, errno, "cannot read %s", *o->path);
	xlayer = xlayertrace_new(got_xlayer_block, &l);
	r = logfile_read_with(standard ? STDIN_FILENO : own, o->client, o->pattern,
			      o->client || o->pattern ? NULL : take_xlayer_line, xlayer, &l, err);
	l.counts.bad_lines += xlayertrace_counted(xlayer)->bad;
	xlayertrace_free(xlayer);
	if (r)
		return r;
	r = write_result(o, &l, err);
	if (r)
		return r;
	tell_counts(&l);
	if (!l.rows.n)
		return err_set(err, ENODATA, "%s is no capture, and no line of it is about a block (%llu were read): --log-client says whose log it "
			       "is, --log-pattern what its lines are like", standard ? "the standard input" : *o->path,
			       (unsigned long long)l.lines);
	return 0;
}
