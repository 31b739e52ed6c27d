/* The rules of --when: what is understood, what is refused by which words, and when one fires. */
#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "cmd/flight/rule.h"

#define S 1000000000ULL

static struct rule parse(const char *text)
{
	struct rules r = { 0 };
	struct err err = { 0 };
	struct rule x;

	if (rules_add(&r, text, &err))
		fail_msg("%s: %s", text, err.text);
	x = r.list.v[0];
	assert_string_equal(x.text, text);
	rules_done(&r);
	return x;
}

static void refuse(const char *text, const char *says)
{
	struct rules r = { 0 };
	struct err err = { 0 };

	assert_int_equal(rules_add(&r, text, &err), -EINVAL);
	if (!strstr(err.text, says))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, err.text, says);
	assert_int_equal(r.list.n, 0);
	rules_done(&r);
}

static void test_parse(void **state)
{
	assert_int_equal(parse("block > 500ms").kind, RULE_BLOCK);
	assert_int_equal(parse("block>500ms").ns, 500000000);
	assert_int_equal(parse(" Block  >  2 ").ns, 2 * S);
	assert_int_equal(parse("no block for 30s").kind, RULE_NO_BLOCK);
	assert_int_equal(parse("no block for 1m").ns, 60 * S);
	assert_true(parse("rss > 90%").percent == 90);
	assert_int_equal(parse("rss > 90 %").bytes, 0);
	assert_int_equal(parse("rss > 8G").bytes, 8ULL << 30);
	assert_int_equal(parse("queue > 50%").kind, RULE_QUEUE);
	assert_true(parse("cpu > 350%").percent == 350);
	assert_int_equal(parse("cpu > 350%").kind, RULE_CPU);
}

static void test_refuse(void **state)
{
	static const char *const nonsense[] = { "", " ", "x", "block", "block < 5ms", "blocks > 5ms", "rss", "no block", "swap > 5%",
						"> 5", "queue = 5%", "block > 5ms; rm -rf /", "block\n>" };

	for (size_t i = 0; i < ARRAY_LEN(nonsense); i++) {
		struct rules r = { 0 };
		struct err err = { 0 };

		assert_int_equal(rules_add(&r, nonsense[i], &err), -EINVAL);
		rules_done(&r);
	}
	refuse("swap > 5%", "There are: block > 500ms; no block for 30s; rss > 90%");
	refuse("block > ", "needs a time");
	refuse("block > fast", "needs a time");
	refuse("block > 0", "needs a time");
	refuse("block > -1s", "needs a time");
	refuse("no block for 5x", "needs a time");
	refuse("rss > 90", "a percentage or a size");
	refuse("rss > 0G", "a percentage or a size");
	refuse("rss > %", "a percentage or a size");
	refuse("queue > 50", "needs a percentage");
	refuse("queue > 8G", "needs a percentage");
}

/* The reason with which a rule fires, or "". */
static const char *look(struct rules *r, const struct rule_facts *f)
{
	static char said[200];
	char *reason = NULL;

	*said = 0;
	if (rules_look(r, f, &reason))
		snprintf(said, sizeof(said), "%s", reason);
	free(reason);
	return said;
}

static struct rules rules_of(const char *text, uint64_t pause_ns)
{
	struct rules r = { .pause_ns = pause_ns };

	assert_int_equal(rules_add(&r, text, NULL), 0);
	return r;
}

static void test_reasons(void **state)
{
	struct rules r = rules_of("block > 500ms", 0);

	assert_string_equal(look(&r, &(struct rule_facts){ .now_ns = S, .block_ns = 500000000, .block_name = "block 7" }), "");
	assert_string_equal(look(&r, &(struct rule_facts){ .now_ns = 2 * S, .block_ns = 812000000, .block_name = "block 123" }),
			    "block 123 took 812 ms");
	rules_done(&r);
	r = rules_of("no block for 30s", 0);
	assert_string_equal(look(&r, &(struct rule_facts){ .now_ns = 30 * S }), "");
	assert_string_equal(look(&r, &(struct rule_facts){ .now_ns = 40 * S, .last_block_ns = 20 * S }), "");
	assert_string_equal(look(&r, &(struct rule_facts){ .now_ns = 51 * S, .last_block_ns = 20 * S }), "no block for 31.0 s");
	rules_done(&r);
	r = rules_of("rss > 90%", 0);
	assert_string_equal(look(&r, &(struct rule_facts){ .rss_bytes = 95, .limit_bytes = 100 }), "");
	assert_string_equal(look(&r, &(struct rule_facts){ .memory_known = true, .rss_bytes = 95 }), "");
	assert_string_equal(look(&r, &(struct rule_facts){ .memory_known = true, .rss_bytes = 90 << 20, .limit_bytes = 100 << 20 }), "");
	assert_string_equal(look(&r, &(struct rule_facts){ .memory_known = true, .rss_bytes = 95 << 20, .limit_bytes = 100 << 20 }),
			    "RSS is 95.0 MB, 95 % of 100 MB");
	rules_done(&r);
	r = rules_of("rss > 1M", 0);
	assert_string_equal(look(&r, &(struct rule_facts){ .memory_known = true, .rss_bytes = 2 << 20 }), "RSS is 2.00 MB, over 1.00 MB");
	rules_done(&r);
	r = rules_of("queue > 50%", 0);
	assert_string_equal(look(&r, &(struct rule_facts){ .queue_percent = 60 }), "");
	assert_string_equal(look(&r, &(struct rule_facts){ .queue_known = true, .queue_percent = 60 }),
			    "threads waited for a CPU in 60 % of their time");
	rules_done(&r);
	r = rules_of("cpu > 150%", 0);
	assert_string_equal(look(&r, &(struct rule_facts){ .cpu_known = true, .cpu_percent = 199.6 }), "CPU time is 200 % of a CPU");
	rules_done(&r);
}

/* One incident gives one capture. */
static void test_arming(void **state)
{
	struct rules r = rules_of("cpu > 50%", 60 * S);
	struct rule_facts high = { .cpu_known = true, .cpu_percent = 90 }, low = { .cpu_known = true, .cpu_percent = 10 };

	high.now_ns = S;
	assert_string_not_equal(look(&r, &high), "");
	/* It stays true, for longer than the pause. */
	for (uint64_t t = 2; t < 100; t++) {
		high.now_ns = t * S;
		assert_string_equal(look(&r, &high), "");
	}
	low.now_ns = 100 * S;
	assert_string_equal(look(&r, &low), "");
	high.now_ns = 101 * S;
	assert_string_not_equal(look(&r, &high), "");
	/* It was false, but the pause is not over; after it, it fires. */
	low.now_ns = 110 * S;
	assert_string_equal(look(&r, &low), "");
	high.now_ns = 120 * S;
	assert_string_equal(look(&r, &high), "");
	high.now_ns = 161 * S;
	assert_string_not_equal(look(&r, &high), "");
	rules_done(&r);
}

static void test_two_rules(void **state)
{
	struct rules r = rules_of("cpu > 50%", 60 * S);
	struct rule_facts f = { .now_ns = S, .cpu_known = true, .cpu_percent = 90, .block_ns = S, .block_name = "block 1" };

	assert_int_equal(rules_add(&r, "block > 500ms", NULL), 0);
	assert_true(rules_have(&r, RULE_BLOCK));
	assert_false(rules_have(&r, RULE_RSS));
	assert_string_equal(look(&r, &f), "CPU time is 90 % of a CPU");
	f.now_ns = 2 * S;
	assert_string_equal(look(&r, &f), ""); /* the same incident */
	f.now_ns = 62 * S;
	assert_string_equal(look(&r, &f), "block 1 took 1.00 s");
	rules_done(&r);
	assert_string_equal(rule_needs(RULE_RSS), "mem");
	assert_null(rule_needs(RULE_BLOCK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	cmocka_unit_test(test_refuse),	  cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_arming),	cmocka_unit_test(test_two_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
