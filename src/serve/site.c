#include "serve/site.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/capture.h"
#include "export/page/page.h"

/* How many captures are kept in memory, and how many bytes of answers at least. */
enum { CAPTURES_KEPT = 2, ANSWERS_KEPT_BYTES = 128 << 20 };
/* A capture of this size is read and shown in about half a second; a larger one has a first picture. */
enum { LONG_BYTES = 6 << 20 };

static const char html[] = "text/html; charset=utf-8", bytes[] = "application/octet-stream";

struct shelf {
	struct site_capture *capture; /* NULL: not in memory */
	uint64_t version;             /* of it */
	uint64_t used;
};

struct kept {
	struct site_show show;
	uint64_t version, used;
	uint32_t under;
	bool first; /* the first picture */
	struct blob *blob;
};

struct site {
	struct site_options o;
	char **places; /* the paths behind those of the options */
	atomic_size_t place_count; /* only grows */
	struct shelf *shelves; /* one a path */
	struct site_diff *diff; /* the last one; NULL = none */
	struct site_show diff_of;
	uint64_t diff_version;
	uint64_t clock; /* counts requests, for least-recently-used eviction */
	pthread_mutex_t lock; /* of what follows: both threads need it */
	VEC(struct kept) kept;
	struct site_show doing_for;
	const char *doing; /* NULL: nothing */
};

struct site *site_new(const struct site_options *o)
{
	struct site *s = mem_alloc(sizeof(*s));

	s->o = *o;
	s->places = mem_alloc(SITE_PLACES * sizeof(*s->places));
	s->shelves = mem_alloc((o->n + SITE_PLACES) * sizeof(*s->shelves));
	atomic_init(&s->place_count, 0);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

/* How many captures there are now. */
static size_t count(const struct site *s)
{
	return s->o.n + atomic_load(&s->place_count);
}

static const char *path_of(const struct site *s, size_t i)
{
	return i < s->o.n ? s->o.paths[i] : s->places[i - s->o.n];
}

bool site_has_list(const struct site *s)
{
	return s->o.n > 0;
}

void blob_drop(struct blob *b)
{
	if (!b || atomic_fetch_sub(&b->users, 1) > 1)
		return;
	buf_done(&b->data);
	free(b);
}

static struct blob *blob_take(struct blob *b)
{
	atomic_fetch_add(&b->users, 1);
	return b;
}

static struct blob *blob_new(struct buf *data)
{
	struct blob *b = mem_alloc(sizeof(*b));

	atomic_init(&b->users, 1);
	b->data = *data;
	*data = (struct buf){ 0 };
	return b;
}

struct answer site_sentence(unsigned status, const char *sentence)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s\n", sentence);
	return (struct answer){ status, "text/plain; charset=utf-8", blob_new(&b) };
}

struct answer site_bytes(unsigned status, const char *type, struct buf *data)
{
	return (struct answer){ status, type, blob_new(data) };
}

const struct site_fleet *site_store(const struct site *s)
{
	return s->o.fleet;
}

int site_open(struct site *s, const struct site_place *place, size_t *ret, struct err *err)
{
	size_t n = atomic_load(&s->place_count);
	char *path = NULL;
	int r = s->o.fleet->place(s->o.fleet->context, place, &path, err);

	if (r)
		return r;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s->places[i], path)) {
			free(path);
			*ret = s->o.n + i;
			return 0;
		}
	if (n == SITE_PLACES) {
		free(path);
		return err_set(err, ENOSPC, "%d pages were opened: start gasflame serve again", SITE_PLACES);
	}
	s->places[n] = path;
	atomic_store(&s->place_count, n + 1);
	*ret = s->o.n + n;
	return 0;
}

static void forget_diff(struct site *s)
{
	if (s->diff)
		s->diff->release(s->diff);
	s->diff = NULL;
}

/* What was compared with it goes, too. */
static void release(struct site *s, struct shelf *shelf)
{
	if (!shelf->capture)
		return;
	forget_diff(s);
	shelf->capture->release(shelf->capture);
	shelf->capture = NULL;
}

void site_free(struct site *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < count(s); i++)
		release(s, &s->shelves[i]);
	for (size_t i = 0; i < atomic_load(&s->place_count); i++)
		free(s->places[i]);
	vec_done_each(&s->kept, e, blob_drop(e->blob));
	pthread_mutex_destroy(&s->lock);
	free(s->places);
	free(s->shelves);
	free(s);
}

static bool same_show(struct site_show a, struct site_show b)
{
	return a.capture == b.capture && a.before == b.before;
}

static bool exists(const struct site *s, struct site_show show)
{
	return show.capture < count(s) && (show.before == SITE_NONE || show.before < count(s));
}

/* --- the cache; with the lock --- */

static uint64_t kept_bytes(const struct site *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->kept.n; i++)
		n += s->kept.v[i].blob->data.n;
	return n;
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
	pthread_mutex_lock(&s->lock);
	vec_push(&s->kept, k);
	while (s->kept.n > 1 && kept_bytes(s) > limit) {
		size_t oldest = 0;

		for (size_t i = 1; i < s->kept.n; i++)
			if (s->kept.v[i].used < s->kept.v[oldest].used)
				oldest = i;
		forget(s, oldest);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Returns what is kept for a request, taken for the caller; NULL = nothing. */
static struct blob *take_kept(struct site *s, const struct kept *wanted)
{
	struct blob *found = NULL;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->kept.n && !found; i++) {
		struct kept *k = &s->kept.v[i];

		if (!same_show(k->show, wanted->show) || k->version != wanted->version || k->under != wanted->under ||
		    k->first != wanted->first)
			continue;
		k->used = s->clock;
		found = blob_take(k->blob);
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

/* What is kept of another version of a capture can never be asked for again. */
static void forget_others(struct site *s, struct site_show show, uint64_t version)
{
	pthread_mutex_lock(&s->lock);
	for (size_t k = s->kept.n; k-- > 0;)
		if (same_show(s->kept.v[k].show, show) && s->kept.v[k].version != version)
			forget(s, k);
	pthread_mutex_unlock(&s->lock);
}

static void say_doing(struct site *s, struct site_show show, const char *doing)
{
	pthread_mutex_lock(&s->lock);
	s->doing = doing;
	s->doing_for = show;
	pthread_mutex_unlock(&s->lock);
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
static uint64_t version_of(const struct site *s, size_t capture)
{
	const char *path = path_of(s, capture);
	_cleanup_free_ char *journal = mem_printf("%s-wal", path);

	return hash_file(hash_file(0, path), journal);
}

static uint64_t version_on_disk(const struct site *s, struct site_show show)
{
	uint64_t version = version_of(s, show.capture);

	return show.before == SITE_NONE ? version : map_hash(version ^ map_hash(version_of(s, show.before)));
}

static void make_room(struct site *s)
{
	size_t n = 0, all = count(s), oldest = all;

	for (size_t i = 0; i < all; i++) {
		if (!s->shelves[i].capture)
			continue;
		n++;
		if (oldest == all || s->shelves[i].used < s->shelves[oldest].used)
			oldest = i;
	}
	if (n >= CAPTURES_KEPT)
		release(s, &s->shelves[oldest]);
}

/* Reads a capture that is not in memory, or not as it is on disk. */
static int get_capture(struct site *s, size_t i, uint64_t version, struct err *err)
{
	struct shelf *shelf = &s->shelves[i];

	shelf->used = s->clock;
	if (shelf->capture && shelf->version == version)
		return 0;
	release(s, shelf);
	make_room(s);
	shelf->version = version;
	return s->o.reader.read(s->o.reader.context, path_of(s, i), &shelf->capture, err);
}

/* Is what a page asks for in memory, in the version that it asks for? */
static bool is_in_memory(const struct site *s, struct site_show show, uint64_t version)
{
	const struct shelf *after = &s->shelves[show.capture];

	if (show.before != SITE_NONE)
		return s->diff && same_show(s->diff_of, show) && s->diff_version == version;
	return after->capture && after->version == version;
}

/* Reads what a page shows. */
static int get_all(struct site *s, struct site_show show, uint64_t version, struct err *err)
{
	int r;

	if (is_in_memory(s, show, version)) {
		s->shelves[show.capture].used = s->clock;
		return 0;
	}
	forget_others(s, show, version);
	say_doing(s, show, "reading");
	if (show.before == SITE_NONE)
		return get_capture(s, show.capture, version, err);
	forget_diff(s);
	r = get_capture(s, show.before, version_of(s, show.before), err);
	if (!r)
		r = get_capture(s, show.capture, version_of(s, show.capture), err);
	if (!r)
		r = s->o.reader.compare(s->o.reader.context, s->shelves[show.before].capture, s->shelves[show.capture].capture,
					&s->diff, err);
	s->diff_of = show;
	s->diff_version = version;
	return r;
}

/* --- answers --- */

static struct answer missing(void)
{
	return site_sentence(404, "there is nothing here");
}

struct answer site_list(struct site *s)
{
	struct buf b = { 0 };

	list_put(&s->o, &b);
	return (struct answer){ 200, html, blob_new(&b) };
}

/* A file that is none any more is told at once, not behind a page. *ret_long: a capture that takes long to read. */
static int check_file(const struct site *s, size_t i, bool *ret_long, struct err *err)
{
	const char *kind = NULL;
	struct stat st;
	int r = s->o.reader.check ? s->o.reader.check(path_of(s, i), &kind, err) : 0;

	*ret_long = false;
	if (!r && kind && !strcmp(kind, SITE_STORE))
		return 0;
	if (!r && stat(path_of(s, i), &st))
		r = err_errno(err, errno, "cannot open %s", path_of(s, i));
	*ret_long = !r && !kind && st.st_size >= LONG_BYTES;
	return r;
}

struct answer site_page(struct site *s, struct site_show show)
{
	struct page_options o = { .max_bytes = s->o.max_bytes,
				  .list_url = show.capture >= s->o.n ? "../fleet/" : s->o.n > 1 || s->o.fleet ? "../" : NULL };
	struct buf page = { 0 };
	struct err err = { 0 };
	struct blob *made;
	bool is_long;
	char data[32], first[32];
	uint64_t version;

	if (!exists(s, show))
		return missing();
	if (check_file(s, show.capture, &is_long, &err) || (show.before != SITE_NONE && check_file(s, show.before, &is_long, &err)))
		return site_sentence(500, err.text);
	version = version_on_disk(s, show);
	snprintf(data, sizeof(data), "data?v=%016llx", (unsigned long long)version);
	snprintf(first, sizeof(first), "first?v=%016llx", (unsigned long long)version);
	made = take_kept(s, &(struct kept){ .show = show, .version = version });
	if (!made && is_long && show.before == SITE_NONE && s->o.reader.first)
		o.first_url = first;
	blob_drop(made);
	if (page_write(NULL, 0, &o, data, &page, &err)) {
		buf_done(&page);
		return site_sentence(500, err.text);
	}
	return (struct answer){ 200, html, blob_new(&page) };
}

static bool is_in_store(const struct site *s, size_t i)
{
	const char *kind = NULL;
	struct err err = { 0 };

	return i >= s->o.n || (s->o.reader.check && !s->o.reader.check(path_of(s, i), &kind, &err) && kind && !strcmp(kind, SITE_STORE));
}

struct answer site_progress(struct site *s, struct site_show show)
{
	char text[64] = "Waiting for another page …";
	const char *doing;

	if (!exists(s, show))
		return missing();
	pthread_mutex_lock(&s->lock);
	doing = s->doing && same_show(s->doing_for, show) ? s->doing : NULL;
	pthread_mutex_unlock(&s->lock);
	if (doing && *doing == 'r' && is_in_store(s, show.capture))
		snprintf(text, sizeof(text), "Asking the store …");
	else if (doing && *doing == 'r')
		snprintf(text, sizeof(text), "Reading the recording: %u %%", capture_read_progress() / 10);
	else if (doing)
		snprintf(text, sizeof(text), "Making the page …");
	return site_sentence(200, text);
}

static struct answer keep_answer(struct site *s, struct kept k, struct buf *data)
{
	struct blob *b = blob_new(data);

	k.blob = blob_take(b);
	keep(s, k);
	return (struct answer){ 200, bytes, b };
}

static struct answer replaced(void)
{
	return site_sentence(410, "the capture was replaced since this page was opened: reload the page");
}

struct answer site_first(struct site *s, struct site_show show, uint64_t version)
{
	const struct page_options o = { .max_bytes = s->o.max_bytes, .no_times = true };
	struct kept k = { .show = show, .version = version, .first = true };
	struct site_capture *c = NULL;
	struct err err = { 0 };
	struct buf data = { 0 };
	int r;

	if (!exists(s, show) || show.before != SITE_NONE || !s->o.reader.first)
		return missing();
	s->clock++;
	k.blob = take_kept(s, &k);
	if (k.blob)
		return (struct answer){ 200, bytes, k.blob };
	if (version != version_on_disk(s, show))
		return replaced();
	r = s->o.reader.first(s->o.reader.context, path_of(s, show.capture), &c, &err);
	if (!r)
		r = page_data(&c->job, 1, &o, &data, &err);
	if (c)
		c->release(c);
	if (!r)
		return keep_answer(s, k, &data);
	buf_done(&data);
	return site_sentence(500, err.text);
}

static int encode(struct site *s, struct site_show show, uint32_t under, struct buf *data, struct err *err)
{
	struct page_options o = { .max_bytes = s->o.max_bytes, .under = under };
	struct export_job sides[2];

	say_doing(s, show, "making");
	if (show.before == SITE_NONE)
		return page_data(&s->shelves[show.capture].capture->job, 1, &o, data, err);
	sides[0] = s->shelves[show.before].capture->job;
	sides[1] = s->shelves[show.capture].capture->job;
	o.diff = s->diff->diff;
	return page_data(sides, 2, &o, data, err);
}

struct answer site_data(struct site *s, struct site_show show, uint64_t version, uint32_t under)
{
	struct kept k = { .show = show, .version = version, .under = under };
	struct err err = { 0 };
	struct buf data = { 0 };
	int r;

	if (!exists(s, show))
		return missing();
	s->clock++;
	k.blob = take_kept(s, &k);
	if (k.blob)
		return (struct answer){ 200, bytes, k.blob };
	if (!is_in_memory(s, show, version) && version != version_on_disk(s, show))
		return replaced();
	r = get_all(s, show, version, &err);
	if (!r)
		r = encode(s, show, under, &data, &err);
	say_doing(s, show, NULL);
	if (!r)
		return keep_answer(s, k, &data);
	buf_done(&data);
	return site_sentence(err.code == ENOENT ? 404 : 500, err.text);
}
