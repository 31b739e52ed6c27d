/*
 * batch.c - the pages as tables, or as lines of JSON, into a pipe.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "analyze/select.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"
#include "tui/look.h"
#include "tui/table.h"
#include "tui/detail/tree.h"
#include "tui/tui.h"

static volatile sig_atomic_t stop_wanted;

void tui_stop(void)
{
	stop_wanted = 1;
}

/* Prints pages that have rows, unless the user chose one. */
static bool wanted(const struct tui_options *o, enum page page, const struct table *t)
{
	if (o->page < PAGE_COUNT)
		return page == o->page;
	return page != PAGE_TREE && (page <= PAGE_THREADS || t->rows.n);
}

static void write_page(struct look *l, const struct tui_options *o, enum page page, unsigned variant,
		       struct json *j, struct buf *b)
{
	struct tree calls;
	struct table t;

	if (o->page < PAGE_COUNT && page != o->page)
		return;
	tree_init(&calls, TREE_CALLS, NULL, NULL);
	look_fill(l, &t, page, variant, &calls);
	table_filter(&t, o->filter);
	table_sort(&t);
	if (wanted(o, page, &t) && o->json) {
		_cleanup_free_ char *key = mem_printf("%s%s", pages[page].name,
						      page == PAGE_IO ? variant ? "_functions" : "_files" : "");

		table_json(&t, o->limit, key, j);
	} else if (wanted(o, page, &t)) {
		buf_printf(b, "\n%s%s%s\n", pages[page].title, page == PAGE_FUNCTIONS ? ": " : "",
			   page == PAGE_FUNCTIONS ? model_what(&l->model) : "");
		table_write(&t, o->columns, o->limit, b);
	}
	table_done(&t);
	tree_done(&calls);
}

static void write_head(struct look *l, const struct tui_options *o, struct json *j, struct buf *b)
{
	uint64_t duration = select_duration_ns(l->p);
	time_t now = clock_wall_ns() / 1000000000;
	char text[64] = "", span[32];
	struct tm tm;

	if (o->json) {
		json_open_object(j, NULL);
		json_put_string(j, "target", l->source->title);
		json_put_uint(j, "time", now);
		json_put_fixed(j, "seconds", duration / 1e9, 3);
		json_put_string(j, "what", model_what(&l->model));
		return;
	}
	if (localtime_r(&now, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	buf_puts(b, "gasflame top  ");
	cleantext_put(b, l->source->title);
	buf_printf(b, "  %s  %s %s\n", text,
		   !l->source->live ? "all"
		   : l->since_start ? "since the start,"
				    : "last",
		   str_duration(span, duration));
	page_summary(&l->model, b);
	buf_putc(b, '\n');
}

static int write_all(struct look *l, const struct tui_options *o, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct json j = json_begin(&b);
	int r;

	write_head(l, o, &j, &b);
	for (int i = 0; i < PAGE_COUNT; i++)
		for (unsigned v = 0; v < pages[i].variants; v++)
			write_page(l, o, i, v, &j, &b);
	if (o->json) {
		json_end(&j);
	}
	buf_putc(&b, '\n');
	r = plain_put(b.data, b.n);
	if (!r && fflush(stdout))
		r = -errno;
	return r ? err_errno(err, -r, "cannot write to the standard output") : 0;
}

/* 1: the target has ended. */
static int wait_until(const struct source *source, uint64_t until_ns)
{
	uint64_t now;

	while (source->step && !stop_wanted && (now = clock_mono_ns()) < until_ns) {
		uint64_t left = (until_ns - now) / 1000000 + 1;

		if (source->step(source->context, MIN(left, 100)))
			return 1;
	}
	return 0;
}

int tui_batch(const struct source *source, const struct tui_options *o, const struct scope *scope,
	      struct err *err)
{
	uint64_t next = clock_mono_ns();
	struct look l;
	int r, ended = 0;

	look_init(&l, source, scope, o->window_ns);
	l.since_start = l.since_start || !o->window_ns;
	r = look_begin(&l, err);
	for (uint64_t i = 0; !r && !ended && (source->live ? !o->count || i < o->count : !i); i++) {
		next += o->interval_ns;
		ended = wait_until(source, next);
		if (stop_wanted)
			break;
		look_refresh(&l);
		r = write_all(&l, o, err);
	}
	look_done(&l);
	return r ? r : ended;
}
