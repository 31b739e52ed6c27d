/* The delivery of windows to a store that fails at any statement, in any way. */
#include "test.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text/str.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"
#include "fleet/push/push.h"
#include "fleet/push/pushbatch.h"
#include "fleet/storeurl.h"
#include "profile/profile.h"
#include "windowed.h"

/* --- a store of two shards: what it must keep to check sums --- */

struct row {
	uint64_t window, attempt, value, digest;
	char event[16];
};

enum failure {
	FAIL_BEFORE,   /* no connection: nothing was done */
	FAIL_AFTER,    /* done, but the answer was lost */
	FAIL_TIMEOUT,  /* the same, by the clock */
	FAIL_MEMORY,   /* HTTP 500, an error that passes */
	FAIL_TEXT,     /* HTTP 200 with an error in its text */
	FAIL_HEADER,   /* HTTP 200 with an error in its header */
	FAIL_HALF,     /* half an answer, or a page where there should be none; done */
	FAILURES,
};

struct fake {
	VEC(struct row) samples, windows;
	VEC(uint64_t) stacks;
	unsigned shard, requests, inserts;
	unsigned fail_at, fail_count; /* the requests that fail, from 1 on */
	enum failure failure;
	struct buf answer;
};

static unsigned pauses;

static void no_pause(unsigned ms)
{
	pauses++;
}

static void skip_strings(struct reader *r)
{
	for (uint64_t n = reader_uleb(r); n && !r->failed; n--)
		reader_skip(r, reader_uleb(r));
}

static void skip_numbers(struct reader *r)
{
	reader_skip(r, reader_uleb(r) * 8);
}

static struct row read_key(struct reader *r)
{
	struct row row = { 0 };

	reader_u16(r);
	reader_skip(r, reader_uleb(r));
	reader_u32(r);
	row.window = reader_u64(r);
	row.attempt = reader_u64(r);
	return row;
}

static void take_rows(struct fake *f, const char *sql, const struct buf *rows)
{
	struct reader r = reader_of(rows->data, rows->n);

	f->inserts++;
	while (reader_more(&r)) {
		struct row row;

		if (strstr(sql, "INTO samples ")) {
			uint64_t n;

			row = read_key(&r);
			n = reader_uleb(&r);
			snprintf(row.event, sizeof(row.event), "%.*s", (int)n, (const char *)reader_bytes(&r, n));
			reader_skip(&r, 8);
			reader_skip(&r, reader_uleb(&r));
			reader_skip(&r, reader_uleb(&r));
			reader_skip(&r, 16);
			row.value = reader_u64(&r);
			reader_u64(&r);
			vec_push(&f->samples, row);
		} else if (strstr(sql, "INTO windows ")) {
			row = read_key(&r);
			reader_skip(&r, 24);
			row.digest = reader_u64(&r);
			for (int i = 0; i < 3; i++)
				reader_skip(&r, reader_uleb(&r));
			for (int i = 0; i < 4; i++)
				skip_strings(&r);
			for (int i = 0; i < 3; i++)
				skip_numbers(&r);
			skip_strings(&r);
			skip_numbers(&r);
			vec_push(&f->windows, row);
		} else if (strstr(sql, "INTO stacks ")) {
			reader_u16(&r);
			vec_push(&f->stacks, reader_u64(&r));
			skip_numbers(&r);
		} else {
			return;
		}
	}
	assert_false(r.failed);
}

static void answer_committed(struct fake *f, const char *sql)
{
	unsigned n = 0;

	f->answer.n = 0;
	buf_puts(&f->answer, "{\"meta\":[],\"data\":[");
	for (size_t i = 0; i < f->windows.n; i++) {
		char id[32];

		snprintf(id, sizeof(id), "%llu", (unsigned long long)f->windows.v[i].window);
		if (strstr(sql, id))
			buf_printf(&f->answer, "%s[\"%s\",\"%llu\",\"%llu\"]", n++ ? "," : "", id, (unsigned long long)f->windows.v[i].digest,
				   (unsigned long long)f->windows.v[i].digest);
	}
	buf_printf(&f->answer, "],\"rows\":%u}\n", n);
}

static int fake_send(void *context, unsigned shard, const struct clickhouse_request *q, struct clickhouse_reply *ret, struct err *err)
{
	static const char error[] = "Code: 241, e.displayText() = DB::Exception: Memory limit\nexceeded";
	struct fake *f = context;
	bool fails = ++f->requests >= f->fail_at && f->requests < f->fail_at + f->fail_count;
	bool done = !fails || f->failure == FAIL_AFTER || f->failure == FAIL_TIMEOUT || f->failure == FAIL_HALF;

	f->shard = shard;
	f->answer.n = 0;
	if (done && q->rows)
		take_rows(f, q->sql, q->rows);
	else if (done)
		answer_committed(f, q->sql);
	*ret = (struct clickhouse_reply){ .status = 200, .sent_bytes = q->rows ? q->rows->n : 0 };
	if (fails && (f->failure == FAIL_BEFORE || f->failure == FAIL_AFTER))
		return err_set(err, EIO, "the connection broke");
	if (fails && f->failure == FAIL_TIMEOUT)
		return err_set(err, ETIMEDOUT, "timed out");
	if (fails && f->failure == FAIL_HEADER)
		ret->exception = 241;
	if (fails && f->failure == FAIL_MEMORY)
		ret->status = 500;
	if (fails && f->failure != FAIL_HALF) {
		buf_puts(&f->answer, error);
	} else if (fails && q->rows) {
		ret->status = 502;
		buf_puts(&f->answer, "<html>");
	} else if (fails) {
		f->answer.n /= 2;
		f->answer.data[f->answer.n] = 0;
		/* Half of it may be in the text of an error. */
		buf_puts(&f->answer, error);
	}
	ret->text = f->answer.n ? f->answer.data : "";
	ret->n = f->answer.n;
	return 0;
}

static void fake_done(struct fake *f)
{
	vec_done(&f->samples);
	vec_done(&f->windows);
	vec_done(&f->stacks);
	buf_done(&f->answer);
}

/* The sum of an event, as a reader finds it: rows of the attempt that is the least of those that are committed. */
static uint64_t stored(const struct fake *f, const char *event)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->samples.n; i++) {
		const struct row *s = &f->samples.v[i];
		uint64_t attempt = UINT64_MAX;

		for (size_t k = 0; k < f->windows.n; k++)
			if (f->windows.v[k].window == s->window)
				attempt = MIN(attempt, f->windows.v[k].attempt);
		sum += s->attempt == attempt && !strcmp(s->event, event) ? s->value : 0;
	}
	return sum;
}

static uint64_t recorded(const struct profile *p, const char *event)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->samples.n; i++)
		sum += !strcmp(profile_str(p, p->events.v[p->samples.v[i].event].name), event) ? p->samples.v[i].value : 0;
	return sum;
}

static void assert_once(const struct fake *f, const struct profile *p)
{
	static const char *const events[] = { "cpu", "wait", "queue" };

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(stored(f, events[i]), recorded(p, events[i]));
}

static struct clickhouse *client(struct fake *f)
{
	struct storeurl url;
	struct clickhouse *c;

	assert_int_equal(storeurl_parse("clickhouse://a,b/db", 0, &url, NULL), 0);
	c = clickhouse_new(&url, &(struct clickhouse_transport){ .send = fake_send, .context = f });
	storeurl_done(&url);
	return c;
}

static int deliver(struct fake *f, const struct windows *w, unsigned tries, struct push_result *result, struct err *err)
{
	struct clickhouse *c = client(f);
	struct push_options o = { .target = "it's", .tries = tries, .pause = no_pause };
	struct pusher *p = pusher_new(c, &o);
	int r = pusher_send(p, w, result, err);

	pusher_free(p);
	clickhouse_close(c);
	return r;
}

/* --- tests --- */

static void delivered(void **state)
{
	struct fake f = { 0 };
	struct push_result result = { 0 };
	struct windowed x;

	windowed_make(&x);
	assert_int_equal(deliver(&f, &x.windows, 1, &result, NULL), 0);
	assert_int_equal(result.windows, 10);
	assert_int_equal(result.there, 0);
	assert_true(result.rows > 10 && result.bytes > 100);
	assert_int_equal(f.shard, storeurl_shard_of("it's", 2));
	assert_once(&f, x.w.s.p);
	/* And again, by another pusher. */
	result = (struct push_result){ 0 };
	f.inserts = 0;
	assert_int_equal(deliver(&f, &x.windows, 1, &result, NULL), 0);
	assert_int_equal(result.windows, 0);
	assert_int_equal(result.there, 10);
	assert_int_equal(f.inserts, 0);
	assert_once(&f, x.w.s.p);
	fake_done(&f);
	windowed_done(&x);
}

/* Each statement fails once, or three times, in each way: at the end all is there, once. */
static void fails_anywhere(void **state)
{
	struct fake whole = { 0 };
	struct push_result result = { 0 };
	struct windowed x;

	windowed_make(&x);
	assert_int_equal(deliver(&whole, &x.windows, 1, &result, NULL), 0);
	assert_true(whole.requests >= 6);
	for (unsigned at = 1; at <= whole.requests; at++)
		for (unsigned failure = 0; failure < FAILURES; failure++)
			for (unsigned count = 1; count <= 3; count += 2) {
				struct fake f = { .fail_at = at, .fail_count = count, .failure = failure };
				struct err err = { 0 };

				result = (struct push_result){ 0 };
				pauses = 0;
				if (deliver(&f, &x.windows, 5, &result, &err))
					fail_msg("request %u, failure %u, %u times: %s", at, failure, count, err.text);
				assert_true(pauses >= 1);
				assert_int_equal(result.windows, 10);
				assert_int_equal(result.there, 0);
				assert_once(&f, x.w.s.p);
				fake_done(&f);
			}
	fake_done(&whole);
	windowed_done(&x);
}

/* A pusher that gives up in the middle, and another one later. */
static void another_pusher(void **state)
{
	struct windowed x;

	windowed_make(&x);
	for (unsigned at = 1; at <= 9; at++)
		for (unsigned failure = 0; failure < FAILURES; failure++) {
			struct fake f = { .fail_at = at, .fail_count = 1000, .failure = failure };
			struct push_result result = { 0 };
			struct err err = { 0 };

			if (deliver(&f, &x.windows, 2, &result, &err))
				assert_true(*err.text && !strchr(err.text, '\n'));
			f.fail_count = 0;
			assert_int_equal(deliver(&f, &x.windows, 1, &result, NULL), 0);
			assert_once(&f, x.w.s.p);
			fake_done(&f);
		}
	windowed_done(&x);
}

/* Two pushers of the same at the same time: both commit, one counts. */
static void two_at_once(void **state)
{
	struct fake a = { 0 }, b = { 0 };
	struct push_result result = { 0 };
	struct windowed x;

	windowed_make(&x);
	assert_int_equal(deliver(&a, &x.windows, 1, &result, NULL), 0);
	assert_int_equal(deliver(&b, &x.windows, 1, &result, NULL), 0);
	for (size_t i = 0; i < b.samples.n; i++)
		vec_push(&a.samples, b.samples.v[i]);
	for (size_t i = 0; i < b.windows.n; i++)
		vec_push(&a.windows, b.windows.v[i]);
	assert_true(a.windows.v[0].attempt != b.windows.v[0].attempt);
	assert_once(&a, x.w.s.p);
	fake_done(&a);
	fake_done(&b);
	windowed_done(&x);
}

static void stacks_once(void **state)
{
	struct fake f = { 0 };
	struct clickhouse *c = client(&f);
	struct pusher *p = pusher_new(c, &(struct push_options){ .target = "x" });
	struct push_result result = { 0 };
	struct windowed x;
	size_t first;

	windowed_make(&x);
	assert_int_equal(pusher_send(p, &x.windows, &result, NULL), 0);
	first = f.stacks.n;
	for (size_t i = 0; i < first; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(f.stacks.v[i] != f.stacks.v[k]);
	/* Later on the same day none is sent again, the next day all are. */
	x.w.s.p->start_wall_ns += 1000 * MS;
	assert_int_equal(pusher_send(p, &x.windows, &result, NULL), 0);
	assert_int_equal(f.stacks.n, first);
	x.w.s.p->start_wall_ns += 86400000 * MS;
	assert_int_equal(pusher_send(p, &x.windows, &result, NULL), 0);
	assert_int_equal(f.stacks.n, 2 * first);
	pusher_free(p);
	clickhouse_close(c);
	fake_done(&f);
	windowed_done(&x);
}

/* Two captures of one target in one insert a table; each statement fails once, and one capture is in the list twice. */
static void many(void **state)
{
	const struct push_options o = { .target = "it's", .tries = 3, .pause = no_pause };
	unsigned alone, requests = 1;

	for (unsigned at = 0; at <= requests; at++) {
		struct fake f = { .fail_at = at, .fail_count = at ? 1 : 0, .failure = at % FAILURES };
		struct clickhouse *c = client(&f);
		struct pusher *p = pusher_new(c, &o);
		struct push_result result = { 0 };
		struct windowed x, y;
		const struct windows *list[] = { &x.windows, &y.windows, &x.windows };

		windowed_make(&x);
		windowed_make(&y);
		y.w.s.p->start_wall_ns += 3600000 * MS;
		assert_int_equal(pusher_send_many(p, list, 2, &result, NULL), 0);
		if (!at) {
			requests = f.requests;
			alone = f.inserts;
		}
		assert_int_equal(result.windows, 20);
		assert_int_equal(stored(&f, "cpu"), 2 * recorded(x.w.s.p, "cpu"));
		assert_int_equal(stored(&f, "wait"), 2 * recorded(x.w.s.p, "wait"));
		/* One question, and as many inserts as one capture needs. */
		if (!at) {
			assert_int_equal(requests, alone + 1);
			assert_true(alone <= 8);
		}
		assert_int_equal(pusher_send_many(p, list, 3, &result, NULL), 0);
		assert_int_equal(result.windows, 20);
		assert_int_equal(result.there, 30);
		pusher_free(p);
		/* A new one, whose list has a capture twice. */
		fake_done(&f);
		f = (struct fake){ 0 };
		p = pusher_new(c, &o);
		result = (struct push_result){ 0 };
		assert_int_equal(pusher_send_many(p, list, 3, &result, NULL), 0);
		assert_int_equal(result.windows, 20);
		assert_int_equal(result.there, 10);
		assert_int_equal(stored(&f, "cpu"), 2 * recorded(x.w.s.p, "cpu"));
		pusher_free(p);
		clickhouse_close(c);
		fake_done(&f);
		windowed_done(&x);
		windowed_done(&y);
	}
}

static int send_two(struct pushbatch *b, const struct windowed *x, const struct windowed *y, struct pushbatch_result *result)
{
	const struct push_options options[] = { { .target = "it's" }, { .target = "other", .release = "v1" } };

	for (size_t i = 0; i < x->windows.list.n; i++)
		assert_int_equal(pushbatch_add(b, &options[0], &x->windows, &x->windows.list.v[i], NULL), 0);
	for (size_t i = 0; y && i < y->windows.list.n; i++)
		assert_int_equal(pushbatch_add(b, &options[1], &y->windows, &y->windows.list.v[i], NULL), 0);
	return pushbatch_send(b, result, NULL);
}

/* Windows of two targets in one insert, the captures gone before it is sent; each statement fails once; some of the windows are there already. */
static void batches(void **state)
{
	unsigned requests = 1;

	for (unsigned there = 0; there < 2; there++)
		for (unsigned at = 0; at <= requests; at++) {
			struct fake f = { 0 };
			struct clickhouse *c = client(&f);
			struct pushbatch *b = pushbatch_new(c, 1);
			struct pushbatch_result result;
			struct windowed x, y;
			size_t stacks;

			windowed_make(&x);
			windowed_make(&y);
			if (there)
				assert_int_equal(send_two(b, &x, NULL, &result), 0);
			f.fail_at = at ? f.requests + at : 0;
			f.fail_count = at ? 1 : 0;
			f.failure = (at + there) % FAILURES;
			f.inserts = 0;
			if (send_two(b, &x, &y, &result)) {
				assert_true(at > 0);
				assert_int_equal(pushbatch_count(b), 0);
				assert_int_equal(send_two(b, &x, &y, &result), 0);
			} else if (!at) {
				assert_int_equal(result.windows, there ? 10 : 20);
				assert_int_equal(result.there, there ? 10 : 0);
				assert_true(f.inserts <= 8);
				requests = f.inserts + 1;
			}
			assert_int_equal(stored(&f, "cpu"), 2 * recorded(x.w.s.p, "cpu"));
			assert_int_equal(stored(&f, "wait"), 2 * recorded(x.w.s.p, "wait"));
			assert_int_equal(f.windows.n, 20);
			/* Nothing is sent if all is there, and no stack twice a day but after a failure. */
			stacks = f.stacks.n;
			f.inserts = 0;
			assert_int_equal(send_two(b, &x, &y, &result), 0);
			assert_int_equal(result.there, 20);
			assert_int_equal(f.inserts, 0);
			x.w.s.p->start_wall_ns += 1000 * MS;
			assert_int_equal(send_two(b, &x, &y, &result), 0);
			assert_int_equal(f.stacks.n, stacks);
			pushbatch_free(b);
			clickhouse_close(c);
			fake_done(&f);
			windowed_done(&x);
			windowed_done(&y);
		}
}

/* One that comes twice is one; with other sums it is refused, and the rest of the batch is as it was. */
static void batch_twice(void **state)
{
	const struct push_options o = { .target = "x" };
	struct fake f = { 0 };
	struct clickhouse *c = client(&f);
	struct pushbatch *b = pushbatch_new(c, 0);
	struct pushbatch_result result;
	struct windowed x;

	windowed_make(&x);
	assert_int_equal(pushbatch_add(b, &o, &x.windows, &x.windows.list.v[0], NULL), 0);
	assert_int_equal(pushbatch_add(b, &o, &x.windows, &x.windows.list.v[0], NULL), 0);
	x.windows.list.v[0].digest++;
	assert_int_equal(pushbatch_add(b, &o, &x.windows, &x.windows.list.v[0], NULL), -EEXIST);
	assert_int_equal(pushbatch_count(b), 1);
	assert_int_equal(pushbatch_send(b, &result, NULL), 0);
	assert_int_equal(result.windows, 1);
	/* The store has it, and it is not what comes now. */
	assert_int_equal(pushbatch_add(b, &o, &x.windows, &x.windows.list.v[1], NULL), 0);
	assert_int_equal(pushbatch_add(b, &o, &x.windows, &x.windows.list.v[0], NULL), 0);
	assert_int_equal(pushbatch_send(b, &result, NULL), -EEXIST);
	assert_int_equal(f.windows.n, 1);
	pushbatch_free(b);
	clickhouse_close(c);
	fake_done(&f);
	windowed_done(&x);
}

static void other_sums(void **state)
{
	struct fake f = { 0 };
	struct push_result result = { 0 };
	struct err err = { 0 };
	struct windowed x;

	windowed_make(&x);
	assert_int_equal(deliver(&f, &x.windows, 1, &result, NULL), 0);
	waiting_add(&x.w, x.w.wait, x.w.rpc, x.w.lock, 310 * MS, 5, 1);
	windows_done(&x.windows);
	assert_int_equal(windows_make(&x.windows, &x.job, 100 * MS, NULL), 0);
	assert_int_equal(deliver(&f, &x.windows, 9, &result, &err), -EEXIST);
	fake_done(&f);
	windowed_done(&x);
}

static void names(void **state)
{
	char longer[300];
	const char *const good[] = { "a=b", "x= '; drop table", NULL }, *const bad[] = { "a", NULL }, *const empty[] = { "=b", NULL };

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(push_check(&(struct push_options){ .target = "../'\n", .release = "v1", .labels = good }, NULL), 0);
	assert_int_equal(push_check(&(struct push_options){ .target = "" }, NULL), -EINVAL);
	assert_int_equal(push_check(&(struct push_options){ .target = longer }, NULL), -EINVAL);
	assert_int_equal(push_check(&(struct push_options){ .target = "x", .release = "" }, NULL), -EINVAL);
	assert_int_equal(push_check(&(struct push_options){ .target = "x", .labels = bad }, NULL), -EINVAL);
	assert_int_equal(push_check(&(struct push_options){ .target = "x", .labels = empty }, NULL), -EINVAL);
}

static void answers(void **state)
{
	static const char whole[] = "{\"meta\":[],\"data\":[[\"18446744073709551615\",7,\"a\\u0000b\",[\"1\",2],[\"x\",\"y\"]]],\"rows\":1}";
	struct answer a;

	assert_int_equal(answer_parse(&a, whole, strlen(whole), NULL), 0);
	assert_int_equal(a.rows, 1);
	assert_int_equal(answer_u64(&a, 0, 0), UINT64_MAX);
	assert_int_equal(answer_u64(&a, 0, 1), 7);
	assert_string_equal(answer_text(&a, 0, 2), "a");
	assert_int_equal(answer_count(&a, 0, 3), 2);
	assert_int_equal(answer_item_u64(&a, 0, 3, 0), 1);
	assert_int_equal(answer_item_u64(&a, 0, 3, 1), 2);
	assert_string_equal(answer_item_text(&a, 0, 4, 1), "y");
	/* What is not there. */
	assert_int_equal(answer_u64(&a, 1, 0), 0);
	assert_string_equal(answer_text(&a, 0, 9), "");
	assert_string_equal(answer_text(&a, 0, 1), "");
	assert_int_equal(answer_count(&a, 0, 0), 0);
	answer_done(&a);
	/* No beginning of it is taken for the whole. */
	for (size_t n = 0; n < strlen(whole); n++) {
		assert_int_equal(answer_parse(&a, whole, n, NULL), -EPROTO);
		answer_done(&a);
	}
	assert_int_equal(answer_parse(&a, "{\"data\":[[1]],\"rows\":2}", 23, NULL), -EPROTO);
	answer_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delivered),
		cmocka_unit_test(fails_anywhere),
		cmocka_unit_test(another_pusher),
		cmocka_unit_test(two_at_once),
		cmocka_unit_test(stacks_once),
		cmocka_unit_test(many),
		cmocka_unit_test(batches),
		cmocka_unit_test(batch_twice),
		cmocka_unit_test(other_sums),
		cmocka_unit_test(names),
		cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
