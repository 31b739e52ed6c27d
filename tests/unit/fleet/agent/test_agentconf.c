/* The configuration of an agent: every key, every refusal with its line, secrets, placeholders. */
#include "folder.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "fleet/agent/agentconf.h"
#include "putfile.h"

#define S 1000000000ULL
#define LEAST "[target reth]\n[sink files]\nurl = file:///x\n"

static int parse(const char *text, bool secrets, struct agentconf *ret, struct err *err)
{
	_cleanup_free_ char *copy = mem_strdup(text);

	return agentconf_parse(copy, secrets, ret, err);
}

static void take(const char *text, struct agentconf *ret)
{
	struct err err = { 0 };

	if (parse(text, false, ret, &err))
		fail_msg("%s: %s", text, err.text);
}

static void refuse(const char *text, const char *says)
{
	struct agentconf c;
	struct err err = { 0 };

	assert_int_equal(parse(text, false, &c, &err), -EINVAL);
	if (!strstr(err.text, says))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, err.text, says);
	agentconf_done(&c);
}

/* What is not said is as the manual has it. */
static void test_defaults(void **state)
{
	struct agentconf c;

	take(LEAST, &c);
	assert_string_equal(c.spool, "/var/lib/gasflame/spool");
	assert_string_equal(c.listen, "127.0.0.1:9911");
	assert_string_equal(c.names, "{host}/{target}");
	assert_int_equal(c.spool_bytes, 1ULL << 30);
	assert_int_equal(c.memory_bytes, 100 << 20);
	assert_int_equal(c.window_ns, 60 * S);
	assert_true(c.budget_percent == 1);
	assert_int_equal(c.targets.n, 1);
	assert_string_equal(c.targets.v[0].pattern, "reth");
	assert_string_equal(c.targets.v[0].what, "cpu,wait,mem");
	assert_int_equal(c.targets.v[0].hz, 19);
	assert_false(c.targets.v[0].wildcard);
	assert_null(c.targets.v[0].labels.v[0]);
	assert_null(c.targets.v[0].name);
	assert_int_equal(c.sinks.n, 1);
	assert_string_equal(c.sinks.v[0].name, "files");
	assert_ptr_equal(c.sinks.v[0].options.name, c.sinks.v[0].name);
	assert_null(c.sinks.v[0].options.token);
	agentconf_done(&c);
	agentconf_done(&c); /* twice is fine */
}

static void test_agent_keys(void **state)
{
	struct agentconf c;

	take("# all of it\n[agent]\nspool = /s/p\nspool-size = 2G\nmemory = 64M\nwindow = 10s\nbudget = 2.5%\nlisten = [::1]:9\n"
	     "names = {target}@{host} # a comment\n" LEAST, &c);
	assert_string_equal(c.spool, "/s/p");
	assert_int_equal(c.spool_bytes, 2ULL << 30);
	assert_int_equal(c.memory_bytes, 64 << 20);
	assert_int_equal(c.window_ns, 10 * S);
	assert_true(c.budget_percent == 2.5);
	assert_string_equal(c.listen, "[::1]:9");
	assert_string_equal(c.names, "{target}@{host}");
	agentconf_done(&c);
	take("[agent]\nlisten = off\n" LEAST, &c);
	assert_null(c.listen);
	agentconf_done(&c);
}

static void test_target_keys(void **state)
{
	const struct agentconf_target *t;
	struct agentconf c;

	take("[target container:reth-a]\nname = node-1\nevents = cpu,wait,mem,io,fault\nfrequency = 99\nrelease = v2\nlabel = region=eu\n"
	     "label = a=b=c\nlog = /l\nlog-client = reth\nrpc = http://127.0.0.1:8545\n"
	     "[target pod:eth/reth-?]\nname = x-{target}\n[sink f]\nurl = file:///x\n", &c);
	t = &c.targets.v[0];
	assert_int_equal(c.targets.n, 2);
	assert_string_equal(t->pattern, "container:reth-a");
	assert_string_equal(t->name, "node-1");
	assert_string_equal(t->what, "cpu,wait,mem,io,fault");
	assert_int_equal(t->hz, 99);
	assert_string_equal(t->release, "v2");
	assert_int_equal(t->labels.n, 2);
	assert_string_equal(t->labels.v[0], "region=eu");
	assert_string_equal(t->labels.v[1], "a=b=c");
	assert_null(t->labels.v[2]);
	assert_string_equal(t->log, "/l");
	assert_string_equal(t->client, "reth");
	assert_string_equal(t->rpc, "http://127.0.0.1:8545");
	assert_true(c.targets.v[1].wildcard);
	assert_string_equal(c.targets.v[1].name, "x-{target}");
	agentconf_done(&c);
}

static void test_sink_keys(void **state)
{
	const struct sink_options *o;
	struct agentconf c;

	take("[target a]\n[sink a.b-c_1]\nurl = https://x\nuser = u\ntenant = t\nca-file = /ca\nregion = eu\ntimeout = 5s\nevery = 5m\nkeep-size = 1G\n"
	     "keep-time = 7d\ntoken-file = /nowhere\npassword-file = /nowhere\n", &c);
	o = &c.sinks.v[0].options;
	assert_string_equal(o->url, "https://x");
	assert_string_equal(o->user, "u");
	assert_string_equal(o->tenant, "t");
	assert_string_equal(o->ca_file, "/ca");
	assert_string_equal(o->region, "eu");
	assert_int_equal(o->timeout_ms, 5000);
	assert_int_equal(c.sinks.v[0].every_ns, 300 * S);
	assert_int_equal(o->keep_bytes, 1ULL << 30);
	assert_int_equal(o->keep_ns, 7 * 86400 * S);
	/* Without secrets no file is read. */
	assert_null(o->token);
	assert_null(o->password);
	agentconf_done(&c);
}

static void test_agent_refusals(void **state)
{
	refuse("[agent]\nspol = /x\n", "line 2: spol: [agent] has spool, spool-size");
	refuse("[agent]\n\nspool = x\n", "line 3: spool: it begins with a slash");
	refuse("[agent]\nspool = /x\nspool = /y\n", "line 3: spool: it is there twice");
	refuse("[agent]\nspool-size = much\n", "line 2: spool-size: much is no size");
	refuse("[agent]\nmemory = -1\n", "line 2: memory: -1 is no size");
	refuse("[agent]\nwindow = x\n", "line 2: window: x is no time");
	refuse("[agent]\nwindow = 9s\n", "line 2: window: 9s is not between 10");
	refuse("[agent]\nwindow = 61s\n", "line 2: window: 61s is not between");
	refuse("[agent]\nbudget = 0%\n", "line 2: budget: 0% is no part of one CPU");
	refuse("[agent]\nbudget = 101%\n", "line 2: budget: 101% is no part");
	refuse("[agent]\nbudget = little\n", "line 2: budget: little is no part");
	refuse("[agent]\nlisten =\n", "line 2: listen: it has no value");
	refuse("[agent]\nnames = a\nnames = b\n", "line 3: names: it is there twice");
}

static void test_target_refusals(void **state)
{
	_cleanup_free_ char *label = mem_printf("[target a]\nlabel = k=%0200d\n", 0);

	refuse("[target a]\nhz = 19\n", "line 2: hz: [target] has name, events");
	refuse("[target a]\nfrequency = 0\n", "line 2: frequency: 0 is not from 1 to 999");
	refuse("[target a]\nfrequency = 1000\n", "line 2: frequency: 1000 is not");
	refuse("[target a]\nevents = cpu,heap\n", "line 2: events: an agent records cpu, wait, mem, io and fault, not heap");
	refuse("[target a]\nevents = cpu,\n", "line 2: events: an agent records");
	refuse("[target a]\nevents = cpux\n", "not cpux");
	refuse("[target a]\nevents = ,\n", "line 2: events");
	refuse("[target a]\nlabel = x\n", "line 2: label: a label is key=value");
	refuse("[target a]\nlabel = =x\n", "line 2: label: a label is key=value");
	refuse(label, "line 2: label: a label is key=value, of 200 bytes at most");
	refuse("[target a]\nlog = /x\nlog = /y\n", "line 3: log: it is there twice");
	refuse("[target a]\nrelease =\n", "line 2: release: it has no value");
	refuse("[target a]\n[target b]\n[target a]\n", "line 3: the target a is there twice");
	refuse("[sink f]\nurl = file:///x\n", "it has no target");
	refuse("[target a*]\nname = one\n[sink f]\nurl = file:///x\n", "[target a*] is several: its name needs {target}");
	refuse("[target a*]\nlog = /x\n[sink f]\nurl = file:///x\n", "[target a*] is several: log and rpc are of one");
	refuse("[target a?]\nrpc = http://x\n[sink f]\nurl = file:///x\n", "[target a?] is several: log and rpc are of one");
}

static void test_sink_refusals(void **state)
{
	_cleanup_free_ char *longest = mem_printf("[sink a%060d]\n", 0);

	refuse("[target a]\n", "it has no sink");
	refuse("[target a]\n[sink f]\n", "[sink f] has no url");
	refuse("[sink f]\nurl =\n", "line 2: url: it has no value");
	refuse("[sink f]\nurl = a\nurl = b\n", "line 3: url: it is there twice");
	refuse("[sink f]\npassword = x\n", "line 2: password: [sink] has url, user, password-file");
	refuse("[sink f]\ntimeout = 1ms\n", "line 2: timeout: 1ms is not between");
	refuse("[sink f]\nevery = 2h\n", "line 2: every: 2h is not between");
	refuse("[sink f]\ntimeout = soon\n", "line 2: timeout: soon is no time");
	refuse("[sink f]\nkeep-size = x\n", "line 2: keep-size: x is no size");
	refuse("[sink f]\nkeep-time = 1s\n", "line 2: keep-time: 1s is not between");
	refuse("[sink ../x]\n", "line 1: the name of a sink is letters");
	refuse("[sink a b]\n", "line 1: the name of a sink is letters");
	refuse("[sink .x]\n", "line 1: the name of a sink is letters");
	refuse(longest, "line 1: the name of a sink is letters");
	refuse("[sink metrics]\n", "line 1: the name metrics is taken");
	refuse("[sink f]\n[sink f]\n", "line 2: the sink f is there twice");
}

static void test_text_refusals(void **state)
{
	refuse("", "it has no target");
	refuse("spool = /x\n", "line 1: spool stands before the first section");
	refuse("[agents]\n", "line 1: a section is [agent], [target NAME] or [sink NAME], not [agents]");
	refuse("[agent x]\n", "line 1: a section is");
	refuse("[target]\n", "line 1: a section is");
	refuse("[sink ]\n", "line 1: a section is");
	refuse("[agent\n", "line 1: this is neither [section] nor key = value");
	refuse("[agent]\r\n\r\nnonsense\r\n", "line 3: this is neither");
}

/* There are bounds on all that is repeated. */
static void test_many(void **state)
{
	struct buf b = { 0 };
	struct agentconf c;

	for (int i = 0; i < AGENTCONF_TARGETS; i++)
		buf_printf(&b, "[target t%d]\n", i);
	for (int i = 0; i < AGENTCONF_SINKS; i++)
		buf_printf(&b, "[sink s%d]\nurl = file:///x\n", i);
	take(b.data, &c);
	assert_int_equal(c.targets.n, AGENTCONF_TARGETS);
	assert_int_equal(c.sinks.n, AGENTCONF_SINKS);
	agentconf_done(&c);
	buf_puts(&b, "[sink more]\n");
	refuse(b.data, "line 97: there are 16 sinks at most");
	b.n = 0;
	for (int i = 0; i <= AGENTCONF_TARGETS; i++)
		buf_printf(&b, "[target t%d]\n", i);
	refuse(b.data, "line 65: there are 64 targets at most");
	b.n = 0;
	buf_puts(&b, "[target a]\n");
	for (int i = 0; i <= 60; i++)
		buf_printf(&b, "label = k%d=v\n", i);
	refuse(b.data, "line 62: label: a target has 60 labels at most");
	buf_done(&b);
}

/* --- files --- */

/* Writes a configuration whose sink has this line more, and reads it. */
static int read_with(const char *line, const char *file, struct agentconf *ret, struct err *err)
{
	_cleanup_free_ char *path = in_folder("agent.conf"), *other = in_folder(file);
	_cleanup_free_ char *text = mem_printf(LEAST "%s = %s\n", line, other);

	put(folder, "agent.conf", text);
	return agentconf_read(path, ret, err);
}

static void refuse_secret(const char *file, int code, const char *says)
{
	struct agentconf c;
	struct err err = { 0 };

	assert_int_equal(read_with("token-file", file, &c, &err), code);
	if (!strstr(err.text, says) || !strstr(err.text, "agent.conf: line 4: token-file: "))
		fail_msg("%s: %s", file, err.text);
	if (strstr(err.text, "topsecret"))
		fail_msg("a secret is told: %s", err.text);
	agentconf_done(&c);
}

static void put_secret(const char *name, const char *text, mode_t mode)
{
	_cleanup_free_ char *path = in_folder(name);

	put_bytes(path, text, strlen(text), mode);
}

static void test_secrets(void **state)
{
	struct agentconf c;
	struct err err = { 0 };

	put_secret("token", "topsecret \n", 0600);
	put_secret("group", "topsecret\n", 0640);
	put_secret("others", "topsecret\n", 0604);
	put_secret("empty", "\n", 0600);
	put_secret("two", "topsecret\ntopsecret\n", 0400);
	assert_int_equal(read_with("token-file", "token", &c, &err), 0);
	assert_string_equal(c.sinks.v[0].options.token, "topsecret");
	assert_null(c.sinks.v[0].options.password);
	agentconf_done(&c);
	assert_int_equal(read_with("password-file", "token", &c, &err), 0);
	assert_string_equal(c.sinks.v[0].options.password, "topsecret");
	agentconf_done(&c);
	refuse_secret("group", -EPERM, "chmod 600");
	refuse_secret("others", -EPERM, "chmod 600");
	refuse_secret("empty", -EINVAL, "is not one line");
	refuse_secret("two", -EINVAL, "is not one line");
	refuse_secret("nowhere", -ENOENT, "cannot read");
	refuse_secret(".", -EINVAL, "is no file");
}

static void test_read(void **state)
{
	_cleanup_free_ char *path = in_folder("bytes"), *none = in_folder("none");
	struct agentconf c;
	struct err err = { 0 };

	assert_int_equal(agentconf_read(none, &c, &err), -ENOENT);
	agentconf_done(&c);
	put_bytes(path, LEAST "\0x", strlen(LEAST) + 2, 0644);
	assert_int_equal(agentconf_read(path, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is no text"));
	agentconf_done(&c);
}

/* --- the rest --- */

static void expect_fill(const char *pattern, const char *host, const char *target, const char *image, const char *want)
{
	_cleanup_free_ char *got = agentconf_fill(pattern, host, target, image);

	assert_string_equal(got, want);
}

static void test_fill(void **state)
{
	expect_fill("{host}/{target}", "h1", "reth-a", NULL, "h1/reth-a");
	expect_fill("{target}{target}-{image}", "h", "t", "reth:2", "tt-reth:2");
	expect_fill("[{image}]", "h", "t", NULL, "[]");
	expect_fill("", "h", "t", NULL, "");
	expect_fill("{hos}{{host}}{", "h", "t", NULL, "{hos}{h}{");
	/* What is put in is not looked at again. */
	expect_fill("{host}{target}", "{target}", "{host}", NULL, "{target}{host}");
}

/* One key other, each in its turn. */
static void test_same(void **state)
{
	static const char *const others[] = { "name = y", "events = cpu,mem", "frequency = 20", "release = 2", "label = k=w", "log = /m",
					      "log-client = geth", "rpc = http://y" };
	static const char *const lines[] = { "name = x", "events = cpu", "frequency = 19", "release = 1", "label = k=v", "log = /l",
					     "log-client = reth", "rpc = http://x" };
	struct agentconf a, b;

	for (size_t other = 0; other <= ARRAY_LEN(lines); other++) {
		struct buf text[2] = { 0 };

		for (int side = 0; side < 2; side++) {
			buf_puts(&text[side], "[target t]\n");
			for (size_t i = 0; i < ARRAY_LEN(lines); i++)
				buf_printf(&text[side], "%s\n", side && i == other ? others[i] : lines[i]);
			buf_puts(&text[side], "[sink f]\nurl = file:///x\n");
		}
		take(text[0].data, &a);
		take(text[1].data, &b);
		assert_int_equal(agentconf_target_same(&a.targets.v[0], &b.targets.v[0]), other == ARRAY_LEN(lines));
		agentconf_done(&a);
		agentconf_done(&b);
		buf_done(&text[0]);
		buf_done(&text[1]);
	}
	take(LEAST, &a);
	take("[target reth]\nlabel = k=v\n[sink f]\nurl = file:///x\n", &b);
	assert_false(agentconf_target_same(&a.targets.v[0], &b.targets.v[0]));
	agentconf_done(&b);
	take("[target geth]\n[sink f]\nurl = file:///x\n", &b);
	assert_false(agentconf_target_same(&a.targets.v[0], &b.targets.v[0]));
	agentconf_done(&a);
	agentconf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),       cmocka_unit_test(test_agent_keys),      cmocka_unit_test(test_target_keys),
		cmocka_unit_test(test_sink_keys),      cmocka_unit_test(test_agent_refusals),  cmocka_unit_test(test_target_refusals),
		cmocka_unit_test(test_sink_refusals),  cmocka_unit_test(test_text_refusals),   cmocka_unit_test(test_many),
		cmocka_unit_test(test_secrets),	       cmocka_unit_test(test_read),	       cmocka_unit_test(test_fill),
		cmocka_unit_test(test_same),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
