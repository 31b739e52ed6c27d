#include "test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "export/page/page.h"
#include "serve/guard.h"
#include "serve/site.h"
#include "serve/visitors.h"
#include "folder.h"

/* --- who stays --- */

static void the_oldest_stranger_makes_room(void **state)
{
	struct visitors all = { .limit = 3 };
	struct visitor *v[6];

	for (int i = 0; i < 3; i++)
		assert_null(visitors_come(&all, 10 + i, &v[i]));
	visitors_know(&all, v[0]); /* a friend takes no stranger's place */
	assert_null(visitors_come(&all, 13, &v[3]));
	assert_ptr_equal(visitors_come(&all, 14, &v[4]), v[1]);
	assert_int_equal(v[1]->fd, 11);
	/* One who is on his way out may still have had the token. */
	visitors_know(&all, v[1]);
	assert_ptr_equal(visitors_come(&all, 15, &v[5]), v[2]);
	assert_int_equal(all.strangers, 3);
	for (int i = 5; i >= 0; i--)
		visitors_leave(&all, v[i]);
	assert_int_equal(all.strangers, 0);
	assert_null(all.oldest);
	assert_null(all.newest);
	visitors_leave(&all, NULL);
}

/* --- who may ask --- */

static void tokens_differ_and_are_compared_whole(void **state)
{
	char a[GUARD_TOKEN_CHARS + 1], b[GUARD_TOKEN_CHARS + 1];

	assert_int_equal(guard_token_make(a), 0);
	assert_int_equal(guard_token_make(b), 0);
	assert_int_equal(strspn(a, "0123456789abcdef"), GUARD_TOKEN_CHARS);
	assert_string_not_equal(a, b);
	assert_true(guard_token_is(a, a, GUARD_TOKEN_CHARS));
	assert_false(guard_token_is(a, a, GUARD_TOKEN_CHARS - 1));
	assert_false(guard_token_is(a, b, GUARD_TOKEN_CHARS));
	for (size_t i = 0; i < GUARD_TOKEN_CHARS; i++) {
		memcpy(b, a, sizeof(b));
		b[i] ^= 1;
		assert_false(guard_token_is(a, b, GUARD_TOKEN_CHARS));
	}
}

static void only_our_own_names_are_hosts(void **state)
{
	static const char *const good[] = { "127.0.0.1:8080", "localhost:8080", "LocalHost:8080" };
	static const char *const bad[] = {
		"", "127.0.0.1", "localhost", "127.0.0.1:80", "127.0.0.1:8080.evil.example", "evil.example:8080",
		"localhost.:8080", "127.0.0.1:08080", "[::1]:8080", " 127.0.0.1:8080", "127.0.0.1:8080 ",
		"user@127.0.0.1:8080",
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(guard_host(good[i], 8080));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(guard_host(bad[i], 8080));
	assert_false(guard_host(NULL, 8080));
	assert_true(guard_host("127.0.0.1", 80));
}

static void paths_lead_where_they_should(void **state)
{
	static const char token[] = "0123456789abcdef0123456789abcdef";
	static const struct {
		const char *path;
		enum guard_kind kind;
		size_t capture, before;
	} cases[] = {
		{ "/0123456789abcdef0123456789abcdef/", GUARD_LIST, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef", GUARD_SLASH, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/0/", GUARD_PAGE, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/12/", GUARD_PAGE, 12, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/12", GUARD_SLASH, 12, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/7/data", GUARD_DATA, 7, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/7/first", GUARD_FIRST, 7, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/7/progress", GUARD_PROGRESS, 7, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/3-12/", GUARD_PAGE, 12, 3 },
		{ "/0123456789abcdef0123456789abcdef/3-12/data", GUARD_DATA, 12, 3 },
		{ "/0123456789abcdef0123456789abcdef/3-12", GUARD_SLASH, 12, 3 },
		{ "/0123456789abcdef0123456789abcdef/3-/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/3-4-5/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/diff", GUARD_DIFF, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/fleet", GUARD_SLASH, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/fleet/", GUARD_FLEET, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/fleet/map", GUARD_ASK, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/fleet/nodes", GUARD_ASK, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/fleet/open", GUARD_OPEN, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/fleet/map/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/fleet/../0/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdee/fleet/map", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/diff/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/7/data/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/7/../../etc/passwd", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/-1/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef/99999999999999999999/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef//", GUARD_NOTHING, 0, GUARD_NONE },
		{ "0123456789abcdef0123456789abcdef/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789ABCDEF0123456789abcdef/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdee/0/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/0123456789abcdef0123456789abcdef0/", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/", GUARD_NOTHING, 0, GUARD_NONE }, { "", GUARD_NOTHING, 0, GUARD_NONE }, { "//", GUARD_NOTHING, 0, GUARD_NONE },
		{ "/favicon.ico", GUARD_NOTHING, 0, GUARD_NONE },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct guard_route r = guard_path(token, cases[i].path);

		assert_int_equal(r.kind, cases[i].kind);
		assert_int_equal(r.capture, cases[i].capture);
		assert_int_equal(r.before, cases[i].before);
	}
}

static void versions_are_sixteen_digits(void **state)
{
	uint64_t v = 0;

	assert_true(guard_version("0123456789abcdef", &v));
	assert_int_equal(v, 0x0123456789abcdef);
	assert_false(guard_version("0123456789abcdeF", &v));
	assert_false(guard_version("0123456789abcde", &v));
	assert_false(guard_version("0123456789abcdef0", &v));
	assert_false(guard_version("", &v));
	assert_false(guard_version(NULL, &v));
}

/* --- what is kept: with a page writer that only counts, and data of a size that the test sets --- */

static unsigned reads, alive, encodings, comparisons;
static size_t data_bytes = 100;

int page_data(const struct export_job *sides, size_t n, const struct page_options *o, struct buf *out,
	      struct err *err)
{
	static const char block[1 << 16];

	if (o->under == 404)
		return err_set(err, ENOENT, "there is no such node");
	encodings++;
	assert_int_equal(n, o->diff ? 2 : 1);
	for (size_t left = data_bytes, part; left; left -= part)
		buf_add(out, block, part = MIN(left, sizeof(block)));
	return 0;
}

int page_write(const struct export_job *sides, size_t n, const struct page_options *o, const char *data_url,
	       struct buf *out, struct err *err)
{
	buf_printf(out, "%s %s %s", data_url, o->first_url ? o->first_url : "-", o->list_url ? o->list_url : "-");
	return 0;
}

static void release(struct site_capture *c)
{
	alive--;
	free(c);
}

static int read_one(void *context, const char *path, struct site_capture **ret, struct err *err)
{
	if (access(path, R_OK))
		return err_errno(err, errno, "cannot open %s", path);
	reads++;
	alive++;
	*ret = mem_alloc(sizeof(**ret));
	(*ret)->release = release;
	return 0;
}

static void release_diff(struct site_diff *d)
{
	alive--;
	free(d);
}

static int compare(void *context, const struct site_capture *before, const struct site_capture *after, struct site_diff **ret,
		   struct err *err)
{
	static const char some_diff;

	assert_non_null(before);
	assert_non_null(after);
	comparisons++;
	alive++;
	*ret = mem_alloc(sizeof(**ret));
	**ret = (struct site_diff){ (const struct diff *)&some_diff, release_diff };
	return 0;
}

static const char *const paths[] = { "one", "two", "three" };

static struct site *new_site(void)
{
	const struct site_options o = { .paths = paths, .n = 3, .max_bytes = 1 << 20,
					.reader = { .read = read_one, .first = read_one, .compare = compare } };

	reads = encodings = comparisons = 0;
	data_bytes = 100;
	return site_new(&o);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static unsigned finish(struct answer a)
{
	blob_drop(a.body);
	return a.status;
}

static struct site_show show(size_t i)
{
	return (struct site_show){ i, SITE_NONE };
}

/* Opens a page; the version that it will ask with. */
static uint64_t open_show(struct site *s, struct site_show what)
{
	struct answer a = site_page(s, what);
	char digits[17] = "";
	uint64_t version = 0;

	assert_int_equal(a.status, 200);
	assert_true(str_starts(a.body->data.data, "data?v="));
	memcpy(digits, a.body->data.data + 7, sizeof(digits) - 1);
	assert_true(guard_version(digits, &version));
	blob_drop(a.body);
	return version;
}

/* A page, and its data: the capture is in memory after that. */
static uint64_t open_page(struct site *s, size_t i)
{
	uint64_t version = open_show(s, show(i));

	assert_int_equal(finish(site_data(s, show(i), version, 0)), 200);
	return version;
}

static void a_capture_is_read_once(void **state)
{
	struct site *s = new_site();
	uint64_t v = open_page(s, 0);

	assert_int_equal(finish(site_data(s, show(0), v, 0)), 200);
	assert_int_equal(finish(site_data(s, show(0), v, 0)), 200);
	assert_int_equal(open_page(s, 0), v);
	assert_int_equal(reads, 1);
	assert_int_equal(encodings, 1);
	assert_int_equal(finish(site_data(s, show(0), v, 7)), 200);
	assert_int_equal(finish(site_data(s, show(0), v, 7)), 200);
	assert_int_equal(encodings, 2);
	assert_int_equal(finish(site_data(s, show(0), v, 404)), 404);
	assert_int_equal(finish(site_data(s, show(3), v, 0)), 404);
	assert_int_equal(finish(site_page(s, show(3))), 404);
	site_free(s);
	assert_int_equal(alive, 0);
}

static void a_replaced_capture_is_noticed(void **state)
{
	struct site *s = new_site();
	uint64_t v = open_page(s, 0), later;

	put("one", "something else, and longer");
	/* The page that is open goes on with what it has. */
	assert_int_equal(finish(site_data(s, show(0), v, 5)), 200);
	assert_int_equal(reads, 1);
	later = open_page(s, 0);
	assert_int_not_equal(v, later);
	assert_int_equal(reads, 2);
	assert_int_equal(finish(site_data(s, show(0), v, 6)), 410);
	assert_int_equal(finish(site_data(s, show(0), v, 5)), 410);
	assert_int_equal(finish(site_data(s, show(0), later, 6)), 200);
	put("one-wal", "a journal");
	assert_int_not_equal(open_page(s, 0), later);
	unlink("one-wal");
	unlink("one");
	assert_int_equal(finish(site_page(s, show(0))), 500);
	put("one", "1");
	open_page(s, 0);
	site_free(s);
	assert_int_equal(alive, 0);
}

static void few_captures_stay_in_memory(void **state)
{
	struct site *s = new_site();
	uint64_t v[3];

	for (size_t i = 0; i < 3; i++)
		v[i] = open_page(s, i);
	assert_int_equal(alive, 2);
	open_page(s, 2);
	assert_int_equal(reads, 3);
	/* The first one went; its page can still ask, for the file is the same. */
	assert_int_equal(finish(site_data(s, show(0), v[0], 8)), 200);
	assert_int_equal(reads, 4);
	assert_int_equal(alive, 2);
	site_free(s);
	assert_int_equal(alive, 0);
}

static void answers_are_kept_within_a_bound(void **state)
{
	struct site *s = new_site();
	uint64_t v = open_page(s, 0);
	struct answer held;

	encodings = 0;
	data_bytes = 40 << 20;
	held = site_data(s, show(0), v, 1);
	for (uint32_t under = 2; under < 5; under++)
		assert_int_equal(finish(site_data(s, show(0), v, under)), 200);
	assert_int_equal(encodings, 4);
	/* 128 MB hold three of them: the first went, but who is still sending it has it. */
	assert_int_equal(held.body->users, 1);
	assert_int_equal(held.body->data.n, data_bytes);
	blob_drop(held.body);
	assert_int_equal(finish(site_data(s, show(0), v, 4)), 200);
	assert_int_equal(encodings, 4);
	assert_int_equal(finish(site_data(s, show(0), v, 1)), 200);
	assert_int_equal(encodings, 5);
	site_free(s);
}

static void a_page_comes_before_its_capture_is_read(void **state)
{
	struct site *s = new_site();
	uint64_t v = open_show(s, show(1));
	struct answer a;

	assert_int_equal(reads, 0);
	a = site_progress(s, show(1));
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(a.body->data.data, "Waiting"));
	blob_drop(a.body);
	assert_int_equal(finish(site_progress(s, show(9))), 404);
	assert_int_equal(finish(site_data(s, show(1), v, 0)), 200);
	assert_int_equal(reads, 1);
	site_free(s);
	assert_int_equal(alive, 0);
}

static bool has_first(struct site *s, size_t i)
{
	struct answer a = site_page(s, show(i));
	bool there = strstr(a.body->data.data, " first?v=") != NULL;

	assert_non_null(strstr(a.body->data.data, " ../"));
	blob_drop(a.body);
	return there;
}

static void a_long_capture_has_a_first_picture(void **state)
{
	struct site *s = new_site();
	uint64_t v;

	assert_false(has_first(s, 2));
	assert_int_equal(truncate("three", 8 << 20), 0);
	assert_true(has_first(s, 2));
	v = open_show(s, show(2));
	assert_int_equal(finish(site_first(s, show(2), v)), 200);
	assert_int_equal(alive, 0); /* it is not kept, only what was made of it */
	assert_int_equal(finish(site_first(s, show(2), v)), 200);
	assert_int_equal(reads, 1);
	assert_int_equal(finish(site_first(s, show(2), v + 1)), 410);
	assert_int_equal(finish(site_first(s, (struct site_show){ 2, 1 }, v)), 404);
	assert_true(has_first(s, 2));
	assert_int_equal(finish(site_data(s, show(2), v, 0)), 200);
	assert_false(has_first(s, 2));
	put("three", "three");
	site_free(s);
	assert_int_equal(alive, 0);
}

static void two_captures_are_compared(void **state)
{
	struct site *s = new_site();
	struct site_show two = { 2, 0 };
	uint64_t v = open_show(s, two), other = open_show(s, (struct site_show){ 0, 2 });

	assert_int_not_equal(v, other);
	assert_int_equal(finish(site_data(s, two, v, 0)), 200);
	assert_int_equal(finish(site_data(s, two, v, 5)), 200);
	assert_int_equal(comparisons, 1);
	assert_int_equal(reads, 2);
	assert_int_equal(alive, 3);
	assert_int_equal(finish(site_data(s, (struct site_show){ 0, 2 }, other, 0)), 200);
	assert_int_equal(comparisons, 2);
	assert_int_equal(reads, 2);
	/* A third takes the place of one of them, and then there is nothing to compare. */
	open_page(s, 1);
	assert_int_equal(alive, 2);
	put("one", "a longer one");
	assert_int_equal(finish(site_data(s, two, v, 6)), 410);
	assert_int_equal(finish(site_data(s, (struct site_show){ 2, 3 }, v, 0)), 404);
	put("one", "1");
	site_free(s);
	assert_int_equal(alive, 0);
}

static void the_list_shows_names_as_text(void **state)
{
	static const char *const hostile[] = { "<script>alert(1)</script>&\"'" };
	const struct site_options o = { .paths = hostile, .n = 1, .reader = { .read = read_one } };
	struct site *s = site_new(&o);
	struct answer a = site_list(s);

	assert_int_equal(a.status, 200);
	assert_null(strstr(a.body->data.data, "<script"));
	assert_non_null(strstr(a.body->data.data, "&lt;script&gt;"));
	blob_drop(a.body);
	site_free(s);
}


/* --- a store --- */

static unsigned asked, cancelled;

static int ask(void *context, const struct site_question *q, struct buf *ret, struct err *err)
{
	asked++;
	buf_printf(ret, "{\"figure\":\"%s\"}", q->figure ? q->figure : "");
	return !q->name ? 0 : !strcmp(q->name, "stop") ? err_set(err, ECANCELED, "ended") : !strcmp(q->name, "bad") ?
		err_set(err, EINVAL, "makes no sense") : err_set(err, ETIMEDOUT, "does not answer");
}

static void cancel(void *context)
{
	cancelled++;
}

/* A place is a file of that name here. */
static int place(void *context, const struct site_place *p, char **ret, struct err *err)
{
	if (!p->target)
		return err_set(err, EINVAL, "no target");
	*ret = mem_printf("%s%s", p->target, p->from ? p->from : "");
	return 0;
}

static int kind_of(const char *path, const char **ret_kind, struct err *err)
{
	*ret_kind = str_starts(path, "store") ? SITE_STORE : NULL;
	return 0;
}

static void places_of_a_store_become_captures(void **state)
{
	const struct site_fleet fleet = { ask, cancel, place, NULL };
	const struct site_options o = { .fleet = &fleet, .max_bytes = 1 << 20, .reader = { .read = read_one, .compare = compare, .check = kind_of } };
	struct site *s = site_new(&o), *none = new_site();
	struct err err = { 0 };
	struct answer a;
	size_t i, k;

	assert_false(site_has_list(s));
	assert_true(site_has_list(none));
	assert_int_equal(finish(site_page(s, show(0))), 404);
	put("store-a", "1");
	put("store-a7", "1");
	assert_int_equal(site_open(s, &(struct site_place){ "store-a" }, &i, &err), 0);
	assert_int_equal(site_open(s, &(struct site_place){ "store-a", "7" }, &k, &err), 0);
	assert_int_equal(i, 0);
	assert_int_equal(k, 1);
	assert_int_equal(site_open(s, &(struct site_place){ "store-a" }, &k, &err), 0);
	assert_int_equal(k, 0);
	assert_int_equal(site_open(s, &(struct site_place){ NULL }, &k, &err), -EINVAL);
	a = site_page(s, show(0));
	assert_int_equal(a.status, 200);
	assert_true(str_ends(a.body->data.data, " ../fleet/"));
	blob_drop(a.body);
	open_page(s, 0);
	open_page(s, 1);
	assert_int_equal(finish(site_page(s, (struct site_show){ 1, 0 })), 200);
	assert_int_equal(finish(site_page(s, show(2))), 404);
	/* Its page and its answers; without a store there are none. */
	assert_int_equal(finish(site_nodes(s)), 200);
	assert_int_equal(finish(site_nodes(none)), 404);
	assert_int_equal(finish(site_ask(none, &(struct site_question){ 0 })), 404);
	assert_int_equal(finish(site_ask(s, &(struct site_question){ .figure = "cpu" })), 200);
	assert_int_equal(finish(site_ask(s, &(struct site_question){ .name = "bad" })), 400);
	assert_int_equal(finish(site_ask(s, &(struct site_question){ .name = "stop" })), 409);
	assert_int_equal(finish(site_ask(s, &(struct site_question){ .name = "slow" })), 502);
	site_free(s);
	site_free(none);
	assert_int_equal(alive, 0);
}

static void a_question_replaces_one_of_its_page(void **state)
{
	const struct site_question map = { .topic = SITE_MAP, .page = "1" }, again = map, other = { .topic = SITE_MAP, .page = "2" },
		nodes = { .topic = SITE_NODES, .page = "1" }, nameless = { .topic = SITE_MAP };

	assert_true(site_question_replaces(&again, &map));
	assert_false(site_question_replaces(&other, &map));
	assert_false(site_question_replaces(&nodes, &map));
	assert_false(site_question_replaces(&nameless, &nameless));
}

static int set_up(void **state)
{
	if (enter_folder(state))
		return -1;
	for (size_t i = 0; i < 3; i++)
		put(paths[i], paths[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_stranger_makes_room),
		cmocka_unit_test(tokens_differ_and_are_compared_whole),
		cmocka_unit_test(only_our_own_names_are_hosts),
		cmocka_unit_test(paths_lead_where_they_should),
		cmocka_unit_test(versions_are_sixteen_digits),
		cmocka_unit_test(a_capture_is_read_once),
		cmocka_unit_test(a_replaced_capture_is_noticed),
		cmocka_unit_test(few_captures_stay_in_memory),
		cmocka_unit_test(answers_are_kept_within_a_bound),
		cmocka_unit_test(a_page_comes_before_its_capture_is_read),
		cmocka_unit_test(a_long_capture_has_a_first_picture),
		cmocka_unit_test(two_captures_are_compared),
		cmocka_unit_test(the_list_shows_names_as_text),
		cmocka_unit_test(places_of_a_store_become_captures),
		cmocka_unit_test(a_question_replaces_one_of_its_page),
	};

	return cmocka_run_group_tests(tests, set_up, remove_folder);
}
