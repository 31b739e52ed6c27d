#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "base/map.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "export/page/page.h"
#include "capture/capture.h"
#include "serve/site.h"

/* How many captures are kept in memory, and how many bytes of answers at least. */
enum { CAPTURES_KEPT = 2, ANSWERS_KEPT_BYTES = 128 << 20 };

static const char html[] = "text/html; charset=utf-8";

struct shelf {
	struct site_capture *capture; /* NULL: not in memory */
	uint64_t version;             /* of it */
	uint64_t used;
};

struct kept {
	size_t capture;
	uint64_t version, used;
	uint32_t under;
	struct blob *blob;
};

struct site {
	struct site_options o;
	struct shelf *shelves; /* one a path */
	VEC(struct kept) kept;
	uint64_t clock; /* counts requests, for least-recently-used eviction */
};

struct site *site_new(const struct site_options *o)
{
	struct site *s = mem_alloc(sizeof(*s));

	s->o = *o;
	s->shelves = mem_alloc(o->n * sizeof(*s->shelves));
	return s;
}

void blob_drop(struct blob *b)
{
	if (!b || --b->users)
		return;
	buf_done(&b->data);
	free(b);
}

static struct blob *blob_take(struct blob *b)
{
	b->users++;
	return b;
}

static struct blob *blob_new(struct buf *data)
{
	struct blob *b = mem_alloc(sizeof(*b));

	*b = (struct blob){ 1, *data };
	*data = (struct buf){ 0 };
	return b;
}

struct answer site_sentence(unsigned status, const char *sentence)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s\n", sentence);
	return (struct answer){ status, "text/plain; charset=utf-8", blob_new(&b) };
}

static void release(struct shelf *shelf)
{
	if (shelf->capture)
		shelf->capture->release(shelf->capture);
	shelf->capture = NULL;
}

void site_free(struct site *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->o.n; i++)
		release(&s->shelves[i]);
	vec_done_each(&s->kept, e, blob_drop(e->blob));
	free(s->shelves);
	free(s);
}

/* --- the cache --- */

static uint64_t kept_bytes(const struct site *s)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->kept.n; i++)
		bytes += s->kept.v[i].blob->data.n;
	return bytes;
}

static void forget(struct site *s, size_t i)
{
	blob_drop(s->kept.v[i].blob);
	s->kept.v[i] = s->kept.v[--s->kept.n];
}

/* Makes room: the least recently used answer goes first; one always stays. */
static void keep(struct site *s, struct kept k)
{
	uint64_t limit = MAX((uint64_t)ANSWERS_KEPT_BYTES, 2 * s->o.max_bytes);

	k.used = s->clock;
	vec_push(&s->kept, k);
	while (s->kept.n > 1 && kept_bytes(s) > limit) {
		size_t oldest = 0;

		for (size_t i = 1; i < s->kept.n; i++)
			if (s->kept.v[i].used < s->kept.v[oldest].used)
				oldest = i;
		forget(s, oldest);
	}
}

static struct kept *find_kept(struct site *s, size_t capture, uint64_t version, uint32_t under)
{
	for (size_t i = 0; i < s->kept.n; i++) {
		struct kept *k = &s->kept.v[i];

		if (k->capture == capture && k->version == version && k->under == under) {
			k->used = s->clock;
			return k;
		}
	}
	return NULL;
}

/* --- captures --- */

static uint64_t hash_file(uint64_t hash, const char *path)
{
	struct stat st = { 0 };
	uint64_t facts[5];

	if (stat(path, &st))
		return map_hash(hash + 1);
	facts[0] = st.st_dev;
	facts[1] = st.st_ino;
	facts[2] = st.st_size;
	facts[3] = st.st_mtim.tv_sec;
	facts[4] = st.st_mtim.tv_nsec;
	return map_hash(hash ^ map_hash_bytes(facts, sizeof(facts)));
}

/* Another number whenever the file or its journal was written to or replaced. */
static uint64_t version_on_disk(const char *path)
{
	_cleanup_free_ char *journal = mem_printf("%s-wal", path);

	return hash_file(hash_file(0, path), journal);
}

static void make_room(struct site *s)
{
	size_t n = 0, oldest = s->o.n;

	for (size_t i = 0; i < s->o.n; i++) {
		if (!s->shelves[i].capture)
			continue;
		n++;
		if (oldest == s->o.n || s->shelves[i].used < s->shelves[oldest].used)
			oldest = i;
	}
	if (n >= CAPTURES_KEPT)
		release(&s->shelves[oldest]);
}

static int read_capture(struct site *s, size_t i, uint64_t version, struct err *err)
{
	struct shelf *shelf = &s->shelves[i];

	release(shelf);
	for (size_t k = s->kept.n; k-- > 0;)
		if (s->kept.v[k].capture == i && s->kept.v[k].version != version)
			forget(s, k);
	make_room(s);
	shelf->version = version;
	shelf->used = s->clock;
	return s->o.read(s->o.context, s->o.paths[i], &shelf->capture, err);
}

/* --- answers --- */

static struct answer missing(void)
{
	return site_sentence(404, "there is nothing here");
}

struct answer site_page(struct site *s, size_t i)
{
	struct err err = { 0 };
	const struct page_options o = { .max_bytes = s->o.max_bytes };
	struct buf page = { 0 };
	struct shelf *shelf;
	uint64_t version;
	char data[32];

	if (i >= s->o.n)
		return missing();
	s->clock++;
	shelf = &s->shelves[i];
	version = version_on_disk(s->o.paths[i]);
	if ((!shelf->capture || shelf->version != version) && read_capture(s, i, version, &err))
		return site_sentence(500, err.text);
	shelf->used = s->clock;
	snprintf(data, sizeof(data), "data?v=%016llx", (unsigned long long)version);
	if (page_write(&shelf->capture->job, 1, &o, data, &page, &err)) {
		buf_done(&page);
		return site_sentence(500, err.text);
	}
	return (struct answer){ 200, html, blob_new(&page) };
}

struct answer site_data(struct site *s, size_t i, uint64_t version, uint32_t under)
{
	const struct page_options o = { .max_bytes = s->o.max_bytes, .under = under };
	struct err err = { 0 };
	struct buf data = { 0 };
	struct shelf *shelf;
	struct kept *k;
	struct blob *b;

	if (i >= s->o.n)
		return missing();
	s->clock++;
	k = find_kept(s, i, version, under);
	if (k)
		return (struct answer){ 200, "application/octet-stream", blob_take(k->blob) };
	shelf = &s->shelves[i];
	if (!shelf->capture || shelf->version != version) {
		if (version != version_on_disk(s->o.paths[i]))
			return site_sentence(410, "the capture was replaced since this page was opened: "
						  "reload the page");
		if (read_capture(s, i, version, &err))
			return site_sentence(500, err.text);
	}
	shelf->used = s->clock;
	if (page_data(&shelf->capture->job, 1, &o, &data, &err)) {
		buf_done(&data);
		return site_sentence(err.code == ENOENT ? 404 : 500, err.text);
	}
	b = blob_new(&data);
	keep(s, (struct kept){ .capture = i, .version = version, .under = under, .blob = blob_take(b) });
	return (struct answer){ 200, "application/octet-stream", b };
}

/* --- the list --- */

static const char list_head[] =
	"<!doctype html>\n"
	"<html lang=\"en\"><meta charset=\"utf-8\"><title>gasflame</title>\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<style>\n"
	":root { color-scheme: light; --ground: #fff; --text: #16181d; --line: #d5d8de; --dim: #626a76;\n"
	"  --accent: #0b62c4 }\n"
	"@media (prefers-color-scheme: dark) { :root { color-scheme: dark; --ground: #14161a;\n"
	"  --text: #e4e7ec; --line: #333842; --dim: #969fad; --accent: #78b4ff } }\n"
	"body { font: 13px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums;\n"
	"  margin: 32px auto; max-width: 1180px; padding: 0 24px; background: var(--ground); color: var(--text) }\n"
	"h1 { font-size: 15px } table { border-collapse: collapse; width: 100% }\n"
	"th, i { font-weight: normal; font-style: normal; color: var(--dim) }\n"
	"th, td { text-align: left; padding: 5px 20px 5px 0; border-bottom: 1px solid var(--line);\n"
	"  vertical-align: top; white-space: nowrap }\n"
	".n { text-align: right } td.w { white-space: normal; overflow-wrap: anywhere; min-width: 160px }\n"
	"a { display: block; color: var(--accent); font-family: ui-monospace, monospace }\n"
	"</style>\n";

/* The folder in small print, and the name as the link. */
static void put_file(struct buf *b, const char *path, size_t i)
{
	const char *name = str_base_name(path);
	_cleanup_free_ char *folder = mem_strndup(path, name - path);

	buf_printf(b, "<tr><td class=\"w\"><a href=\"%zu/\">", i);
	buf_xml(b, name);
	buf_puts(b, "</a><i>");
	buf_xml(b, folder);
	buf_puts(b, "</i>");
}

/* "cpu,wait" with room to break the line. */
static void put_what(struct buf *b, const char *what)
{
	for (const char *end; *what; what = end + (*end == ',')) {
		_cleanup_free_ char *word = NULL;

		end = what + strcspn(what, ",");
		word = mem_strndup(what, end - what);
		buf_xml(b, word);
		buf_puts(b, *end ? ", " : "");
	}
}

static void list_row(const struct site *s, size_t i, struct buf *b)
{
	const char *path = s->o.paths[i], *kind = NULL;
	struct capture_summary summary = { 0 };
	struct err err = { 0 };
	char when[64] = "", text[32];
	_cleanup_free_ char *counts = NULL;
	struct tm tm;
	time_t start;

	put_file(b, path, i);
	if (s->o.check && !s->o.check(path, &kind, &err) && kind) {
		buf_puts(b, "<td class=\"w\">-<td class=\"w\">");
		buf_xml(b, kind);
		buf_puts(b, "<td>-<td class=\"n\">-<td class=\"n\">-\n");
		return;
	}
	err = (struct err){ 0 };
	if (capture_summary(path, &summary, &err)) {
		buf_puts(b, "<td class=\"w\" colspan=\"5\">");
		buf_xml(b, err.text);
		buf_puts(b, "\n");
		return;
	}
	counts = capture_summary_counts(&summary);
	start = summary.start_wall_ns / 1000000000;
	if (!localtime_r(&start, &tm) || !strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
		when[0] = 0;
	buf_puts(b, "<td class=\"w\">");
	buf_xml(b, summary.target ? summary.target : "");
	buf_puts(b, "<td class=\"w\">");
	put_what(b, summary.what ? summary.what : "");
	buf_printf(b, "<td>%s%s", when, summary.finished ? "" : " (unfinished)");
	buf_printf(b, "<td class=\"n\">%s",
		   summary.duration_ns ? str_duration(text, summary.duration_ns) : "-");
	buf_puts(b, "<td class=\"w\">");
	buf_xml(b, counts);
	buf_puts(b, "\n");
	capture_summary_done(&summary);
}

struct answer site_list(struct site *s)
{
	struct buf b = { 0 };

	buf_puts(&b, list_head);
	buf_printf(&b, "<h1>gasflame &middot; %zu capture%s</h1>\n<table>\n<tr><th>file<th>target<th>what"
		       "<th>when<th class=\"n\">duration<th>recorded\n",
		   s->o.n, s->o.n == 1 ? "" : "s");
	for (size_t i = 0; i < s->o.n; i++)
		list_row(s, i, &b);
	buf_puts(&b, "</table>\n");
	return (struct answer){ 200, html, blob_new(&b) };
}
