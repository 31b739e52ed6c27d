/* The board, and what is told of it: with names and notes that a target, a store or a broken process chose. */
#include "test.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "fleet/agent/board.h"
#include "fleet/agent/statustext.h"
#include "golden.h"

static const uint64_t second = 1000000000, now = UINT64_C(1794974400000000000);

/* --- the board --- */

static void texts_are_cut_between_characters(void **state)
{
	char field[8], out[64];

	board_set(field, sizeof(field), "abc\xc3\xa4\xe2\x82\xac"); /* 8 bytes: the last character does not fit */
	assert_string_equal(field, "abc\xc3\xa4");
	assert_int_equal(field[7], 0);
	board_set(field, sizeof(field), "12345678");
	assert_string_equal(board_text(field, sizeof(field), out, sizeof(out)), "1234567");
	memset(field, 'x', sizeof(field)); /* no end */
	assert_string_equal(board_text(field, sizeof(field), out, sizeof(out)), "xxxxxxxx");
	assert_string_equal(board_text(field, sizeof(field), out, 4), "xxx");
	memcpy(field, "a\n\033[1m\x9b", 8);
	assert_string_equal(board_text(field, sizeof(field), out, sizeof(out)), "a??[1m?");
	board_set(field, sizeof(field), "a\xc3\xa4");
	assert_string_equal(board_text(field, sizeof(field), out, 3), "a");
	assert_string_equal(board_text(field, sizeof(field), out, 0), "");
}

static void children_write_to_the_same_board(void **state)
{
	struct board *b = board_new();
	pid_t pid;

	assert_non_null(b);
	pid = fork();
	if (!pid) {
		b->targets[63].windows = 7;
		board_set(b->sinks[15].name, sizeof(b->sinks[15].name), "last");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(b->targets[63].windows, 7);
	assert_string_equal(b->sinks[15].name, "last");
	board_free(b);
	board_free(NULL);
}

/* --- an agent as they are --- */

static void set_target(struct board_target *t, uint32_t status, const char *name, const char *note)
{
	*t = (struct board_target){ .state = status, .since_wall_ns = now - 4000 * second, .level = 0, .pid = 4242 };
	board_set(t->name, sizeof(t->name), name);
	board_set(t->note, sizeof(t->note), note);
	if (status != BOARD_RECORDING)
		return;
	board_set(t->what, sizeof(t->what), "cpu,wait,mem");
	t->hz = 19;
	t->processes = 1;
	t->windows = 412;
	t->last_window_wall_ns = now - 7 * second;
	t->samples = 1234567;
	t->blocks = 341;
	t->cpu_ns = 11 * second;
	t->bpf_ns = 2 * second;
	t->past_cpu_ns = second;
	t->anon_bytes = 14 << 20;
	t->bpf = 1;
}

static struct board *typical(void)
{
	struct board *b = board_new();

	b->started_wall_ns = now - 93784 * second;
	b->reloaded_wall_ns = now - 600 * second;
	b->pid = 4200;
	b->sender_pid = 4201;
	b->budget_percent = 1;
	b->budget_bytes = 100 << 20;
	b->window_ns = 10 * second;
	b->begun_mono_ns = 1000 * second;
	b->all_mono_ns = 5000 * second;
	b->all_cpu_ns = 26 * second;
	b->recent_percent = 0.42;
	b->resident_bytes = 61 << 20;
	b->spool_bytes = 181 << 20;
	b->spool_limit_bytes = UINT64_C(1) << 30;
	b->spool_windows = 1240;
	board_set(b->config, sizeof(b->config), "/etc/gasflame/agent.conf");
	set_target(&b->targets[0], BOARD_RECORDING, "mainnet-reth-1", "");
	set_target(&b->targets[1], BOARD_RECORDING, "mainnet-geth-2", "waits are left out to keep the budget");
	b->targets[1].lost_samples = 17;
	set_target(&b->targets[2], BOARD_WAITING, "holesky-nethermind", "no process has this name");
	set_target(&b->targets[4], BOARD_FAILED, "lighthouse", "no permission to read its memory: run the agent as root");
	board_set(b->sinks[0].name, sizeof(b->sinks[0].name), "clickhouse");
	board_set(b->sinks[0].note, sizeof(b->sinks[0].note), "https://store:8443 does not answer: connection refused");
	b->sinks[0].waiting = 1240;
	b->sinks[0].waiting_bytes = 181 << 20;
	b->sinks[0].oldest_wall_ns = now - 3700 * second;
	b->sinks[0].last_wall_ns = now - 3690 * second;
	b->sinks[0].delivered = 80123;
	b->sinks[0].failures = 14;
	b->sinks[0].dropped = 3;
	board_set(b->sinks[1].name, sizeof(b->sinks[1].name), "files");
	b->sinks[1].delivered = 81363;
	b->sinks[1].last_wall_ns = now - 7 * second;
	return b;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in\n%s", part, text);
}

static void a_page_for_people(void **state)
{
	static const char *const parts[] = {
		"<meta http-equiv=\"refresh\" content=\"10\">", "prefers-color-scheme: dark", "3 to look at", "runs for 1 d 2 h", "reloaded 10 min ago",
		"<b>0.42 %</b>", "1.0 % promised", "<b>61.0 MB</b>", "100 MB promised", "1,240 windows &middot; at most 1.00 GB", "<b>2 of 4</b>",
		"<td class=\"name\">mainnet-reth-1</td>", "cpu,wait,mem", "1,234,567", "19 Hz", "<td class=\"n lost\">17</td>",
		"waits are left out to keep the budget", "lighthouse is not recorded: no permission", "connection refused",
		"clickhouse misses 3 windows", "up to date", "1 h 1 min", "2026-11-18 04:00:00 UTC",
	};
	struct board *b = typical();
	struct buf out = { 0 };
	const char *save = getenv("STATUS_PAGE"); /* to look at it */

	statustext_html(b, now, &out);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		has(out.data, parts[i]);
	assert_null(strstr(out.data, "<script"));
	assert_null(strstr(out.data, "src="));
	if (save) {
		FILE *f = fopen(save, "w");

		assert_non_null(f);
		assert_int_equal(fwrite(out.data, 1, out.n, f), out.n);
		fclose(f);
	}
	buf_done(&out);
	board_free(b);
}

static void nothing_wrong_is_said_to_be_well(void **state)
{
	struct board *b = board_new();
	struct buf out = { 0 };

	set_target(&b->targets[0], BOARD_RECORDING, "one", "");
	statustext_html(b, now, &out);
	has(out.data, "all is well");
	has(out.data, "No sink is configured");
	b->recent_percent = 1.5;
	b->budget_percent = 1;
	b->all_mono_ns = 100 * second; /* it starts */
	vec_clear(&out);
	statustext_html(b, now, &out);
	has(out.data, "all is well");
	b->all_mono_ns = 400 * second;
	vec_clear(&out);
	statustext_html(b, now, &out);
	has(out.data, "1 to look at");
	has(out.data, "it used 1.5 % of one CPU");
	buf_done(&out);
	board_free(b);
}

static json_t *parsed(const struct board *b)
{
	struct buf out = { 0 };
	json_error_t error;
	json_t *root;

	statustext_json(b, now, &out);
	root = json_loadb(out.data, out.n, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		fail_msg("%s in %s", error.text, out.data);
	buf_done(&out);
	return root;
}

static json_int_t number(json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	if (!json_is_integer(v))
		fail_msg("%s is no number", key);
	return json_integer_value(v);
}

static void json_has_every_figure(void **state)
{
	/* Of the struct, but for arrays and padding: a new member has to be told. */
	static const char *const of_target[] = {
		"restarts", "since_wall_ns", "level", "pid", "past_cpu_ns", "past_bpf_ns", "hz", "processes", "windows", "lost_windows",
		"last_window_wall_ns", "samples", "lost_samples", "blocks", "cpu_ns", "bpf_ns", "anon_bytes", "table_bytes",
	};
	struct board *b = typical();
	json_t *root = parsed(b), *targets = json_object_get(root, "targets"), *sinks = json_object_get(root, "sinks"), *first;

	assert_int_equal(json_array_size(targets), 4);
	first = json_array_get(targets, 0);
	for (size_t i = 0; i < ARRAY_LEN(of_target); i++)
		number(first, of_target[i]);
	assert_int_equal(number(first, "samples"), 1234567);
	assert_true(json_is_true(json_object_get(first, "bpf")));
	assert_true(fabs(json_number_value(json_object_get(first, "cpu_percent")) - 0.35) < 1e-9); /* 14 s of 4000 s */
	assert_string_equal(json_string_value(json_object_get(json_array_get(targets, 3), "state")), "failed");
	assert_int_equal(json_array_size(sinks), 2);
	assert_int_equal(number(json_array_get(sinks, 0), "waiting"), 1240);
	assert_int_equal(number(json_array_get(sinks, 0), "oldest_wall_ns"), now - 3700 * second);
	assert_int_equal(number(json_object_get(root, "spool"), "limit_bytes"), 1 << 30);
	assert_true(fabs(json_number_value(json_object_get(json_object_get(root, "cost"), "cpu_percent")) - 0.65) < 1e-9);
	assert_int_equal(json_array_size(json_object_get(root, "troubles")), 3);
	json_decref(root);
	board_free(b);
}

static void lines_for_a_terminal(void **state)
{
	struct board *b = typical();
	struct buf out = { 0 }, coloured = { 0 };

	statustext_lines(b, now, false, &out);
	assert_null(strchr(out.data, '\033'));
	golden_check("agent-status.txt", out.data, out.n);
	statustext_lines(b, now, true, &coloured);
	has(coloured.data, "\033[31mfailed");
	has(coloured.data, "\033[32mrecording");
	buf_done(&out);
	buf_done(&coloured);
	board_free(b);
}

/* --- a board full of lies --- */

static void nothing_on_the_board_controls_anything(void **state)
{
	static const char evil[] = "<script>alert('x')</script>\"&\n\033]0;title\007\xe2\x80\xae\xff";
	struct board *b = board_new();
	struct buf out = { 0 };
	json_t *root;

	for (size_t i = 0; i < BOARD_TARGETS; i++) {
		set_target(&b->targets[i], i, evil, evil);
		b->targets[i].state = i ? i : 4000000000;
		board_set(b->targets[i].what, sizeof(b->targets[i].what), evil);
	}
	for (size_t i = 0; i < BOARD_SINKS; i++) {
		board_set(b->sinks[i].name, sizeof(b->sinks[i].name), evil);
		memset(b->sinks[i].note, i % 2 ? '<' : 0xff, sizeof(b->sinks[i].note)); /* and no end */
		b->sinks[i].next_mono_ns = UINT64_MAX;
		b->sinks[i].waiting = UINT64_MAX;
	}
	memset(b->config, '"', sizeof(b->config));
	board_set(b->note, sizeof(b->note), evil);
	b->budget_percent = NAN;
	b->recent_percent = -INFINITY;
	b->all_mono_ns = 1;
	b->begun_mono_ns = UINT64_MAX;
	b->started_wall_ns = UINT64_MAX;

	statustext_html(b, now, &out);
	assert_null(strstr(out.data, "<script"));
	assert_null(strpbrk(out.data, "\033\007\xff"));
	has(out.data, "&lt;script&gt;");
	has(out.data, "unknown");
	vec_clear(&out);
	statustext_lines(b, now, false, &out);
	assert_null(strpbrk(out.data, "\033\007\xff"));
	for (const char *p = out.data; *p;) {
		size_t n;
		int32_t c = plain_decode(p, &n);

		assert_true(c == '\n' || !plain_harmful(c));
		p += n;
	}
	root = parsed(b);
	assert_int_equal(json_array_size(json_object_get(root, "targets")), BOARD_TARGETS);
	json_decref(root);
	/* Any bytes at all. */
	for (unsigned seed = 0; seed < 20; seed++) {
		for (size_t i = 0; i < sizeof(*b); i++)
			((unsigned char *)b)[i] = (i * 2654435761U + seed * 40503U) >> (seed % 24);
		vec_clear(&out);
		statustext_html(b, now, &out);
		statustext_lines(b, now, true, &out);
		json_decref(parsed(b));
	}
	buf_done(&out);
	board_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_cut_between_characters),
		cmocka_unit_test(children_write_to_the_same_board),
		cmocka_unit_test(a_page_for_people),
		cmocka_unit_test(nothing_wrong_is_said_to_be_well),
		cmocka_unit_test(json_has_every_figure),
		cmocka_unit_test(lines_for_a_terminal),
		cmocka_unit_test(nothing_on_the_board_controls_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
