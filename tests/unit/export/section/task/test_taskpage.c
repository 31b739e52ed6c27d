/* The tasks of the page: the figures of tests/unit/tasks.h, and names that want to be something else. */
#include "test.h"

#include "analyze/quality.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/json.h"
#include "export/export.h"
#include "export/section/section.h"
#include "tasks.h"

/* The member "tasks" of the page of a profile. */
static struct buf page_of(const struct profile *p)
{
	struct patterns patterns;
	struct causes causes;
	struct selection s;
	struct quality q;
	struct buf out = { 0 };
	struct json j = json_begin(&out);

	patterns_init(&patterns);
	patterns_add_builtin(&patterns);
	causes_init(&causes, p, &patterns);
	assert_int_equal(selection_make(p, &(struct select_options){ .causes = &causes }, &s, NULL), 0);
	quality_measure(&q, p, &s);
	json_open_object(&j, NULL);
	section_tasks.page(&(struct export_job){ .profile = p, .selection = &s, .quality = &q }, &j);
	json_close(&j);
	quality_done(&q);
	selection_done(&s);
	causes_done(&causes);
	patterns_done(&patterns);
	return out;
}

static void has(const struct buf *b, const char *text)
{
	if (!strstr(b->data, text))
		fail_msg("no %s in %s", text, b->data);
}

static void types_have_their_figures(void **state)
{
	struct made_tasks m = made_tasks();
	struct buf b = page_of(m.p);

	has(&b, "\"name\":\"node::db::flush\",\"seen\":1,\"alive\":1,\"polls\":5,\"pollNs\":100000000,\"longestNs\":20000000,"
		"\"longPolls\":5,\"queueNs\":0,\"awaitNs\":900000000,\"awaitedNs\":900000000,\"notEndedNs\":70000000,\"wakers\":[{\"kind\":\"a timer\",\"type\":-1,");
	has(&b, "\"name\":\"node::rpc::serve\",\"seen\":3,\"alive\":2,\"polls\":1000,\"pollNs\":100000000,");
	/* The waker's stack begins with the thread, not with the type that waited. */
	has(&b, "\"stack\":[\"clone3\",\"start_thread\",");
	has(&b, "\"longPolls\":[");
	has(&b, "\"startNs\":110000000,\"endNs\":130000000,");
	has(&b, "\"function\":\"node::db::commit\",\"ns\":{\"cpu\":5000000,\"disk-write\":15000000}}");
	buf_done(&b);
	profile_free(m.p);
}

static void without_tasks_there_is_nothing(void **state)
{
	struct waiting w = waiting_make();
	struct buf b = page_of(w.s.p);

	assert_string_equal(b.data, "{\"tasks\":null\n}");
	buf_done(&b);
	profile_free(w.s.p);
}

/* A type may be called anything, and marks may be of threads and types that are not there. */
static void names_are_text(void **state)
{
	struct made_tasks m = made_tasks();
	uint32_t evil = profile_stack(m.p, 0, profile_named_frame(m.p, PROFILE_NONE, FRAME_USER, "task </script>\"\n\x1b[31m\xff"));
	struct buf b;

	made_add(&m, m.poll, m.worker1, evil, 5 * MS, MS, 1);
	profile_count_set_of(m.p, KEY_TASK_POLLS_OF, "</script>\"\n\x1b[31m\xff", 1);
	profile_add_mark(m.p, &(struct profile_mark){ .start_ns = 900 * MS, .end_ns = 800 * MS, .kind = profile_string(m.p, "long poll"),
						      .name = profile_string(m.p, "nobody"), .thread = PROFILE_NONE });
	b = page_of(m.p);
	assert_null(strchr(b.data, '\x1b'));
	assert_null(strchr(b.data, '\xff'));
	has(&b, "\"types\":[");
	buf_done(&b);
	profile_free(m.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_have_their_figures),
		cmocka_unit_test(without_tasks_there_is_nothing),
		cmocka_unit_test(names_are_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
