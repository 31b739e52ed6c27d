/* Series of tasks have a hundred points a second: the page has fewer, which say the same. */
#include "test.h"

#include <inttypes.h>

#include "base/json.h"
#include "export/page/pagedata.h"
#include "profile/keys.h"
#include "sample.h"

enum { POINTS = 9999 };

/* The numbers of a member of the series of that name, in their order. */
static size_t numbers(const char *text, const char *name, const char *member, long long *ret)
{
	const char *at = strstr(text, name), *end;
	size_t n = 0;

	assert_non_null(at);
	at = strstr(at, member);
	assert_non_null(at);
	at += strlen(member);
	end = strchr(at, ']');
	for (; at < end && n < POINTS; at = strchr(at, ',') && strchr(at, ',') < end ? strchr(at, ',') + 1 : end)
		ret[n++] = strtoll(at, NULL, 10);
	return n;
}

static void points_are_joined(void **state)
{
	static const char *const keys[] = { KEY_TASK_BUSY, KEY_TASK_LONGEST_POLL, KEY_MEM_RSS };
	static long long t[POINTS], v[POINTS];
	struct sample s = sample_empty();
	struct buf b = { 0 };
	struct json j = json_begin(&b);

	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		uint32_t series = profile_series(s.p, keys[k]);

		for (int i = 0; i < POINTS; i++)
			profile_add_point(s.p, series, (i + 1) * 10000000ULL, i == 5000 ? 900 : i % 7);
	}
	json_open_object(&j, NULL);
	page_series(&j, s.p);
	json_close(&j);
	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		size_t n = numbers(b.data, keys[k], "\"t\":[", t);
		long long sum = 0, most = 0, all = 0;

		assert_int_equal(numbers(b.data, keys[k], "\"v\":[", v), n);
		assert_int_equal(n, k < 2 ? POINTS / 3 : POINTS);
		assert_int_equal(t[n - 1], POINTS * 10000000LL);
		for (size_t i = 0; i < n; i++) {
			sum += v[i];
			most = v[i] > most ? v[i] : most;
		}
		for (int i = 0; i < POINTS; i++)
			all += i == 5000 ? 900 : i % 7;
		/* Amounts add up, the longest stays the longest; the rest is as it was. */
		if (k != 1)
			assert_int_equal(sum, all);
		if (k != 0)
			assert_int_equal(most, 900);
	}
	buf_done(&b);
	profile_free(s.p);
}

/* Sums of a file's numbers may be too large. */
static void sums_do_not_overflow(void **state)
{
	struct sample s = sample_empty();
	uint32_t series = profile_series(s.p, KEY_TASK_BUSY);
	struct buf b = { 0 };
	struct json j = json_begin(&b);
	char most[32];

	for (int i = 0; i < 2 * PAGE_POINTS; i++)
		profile_add_point(s.p, series, i, INT64_MAX);
	json_open_object(&j, NULL);
	page_series(&j, s.p);
	json_close(&j);
	snprintf(most, sizeof(most), "\"v\":[%" PRId64 ",", INT64_MAX);
	assert_non_null(strstr(b.data, most));
	buf_done(&b);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_are_joined),
		cmocka_unit_test(sums_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
