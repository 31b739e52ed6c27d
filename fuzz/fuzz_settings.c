/*
 * fuzz_settings.c - small texts of people and of the kernel: patterns of waits, subsystems, opcodes of a trace, lists of events, colours and attributes
 * of a flame graph, the secret of a node, amounts of gas, mounts and files of control groups. The first byte chooses
 * the reader.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/subsystem/subsystems.h"
#include "analyze/wait/pattern.h"
#include "bench/runlog.h"
#include "base/err.h"
#include "base/mem.h"
#include "export/svg/flamegraph.h"
#include "export/svg/palette.h"
#include "target/cgroup/limitgroup.h"
#include "target/trace/eventspec.h"
#include "target/cgroup/cgroupfile.h"
#include "ethereum/engine/jwt.h"
#include "ethereum/trace/opcodegas.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static void try_patterns(const char *text)
{
	struct patterns t;
	struct pattern_set sets[PATTERN_PARTS] = { 0 };
	struct err err = { 0 };
	size_t before;
	int r;

	patterns_init(&t);
	r = patterns_add(&t, "file", text, &err);
	expect(!r || (r < 0 && !t.list.n && err.text[0]));
	before = t.list.n;
	expect(before <= PATTERNS_MAX);
	patterns_match_name(&t, "tokio::runtime::park", false, sets);
	patterns_match_name(&t, "futex_wait", true, sets);
	patterns_find(&t, &(struct pattern_wait){ .own = true, .work = before & 1 }, sets);
	patterns_is_work(&t, "reth::tree::on_new_payload");
	patterns_done(&t);
}

static void try_subsystems(const char *text)
{
	struct subsystems t;
	struct subsystem_use use;
	struct err err = { 0 };

	subsystems_init(&t);
	expect(!subsystems_add(&t, "file", text, &err) || err.text[0]);
	expect(t.list.n <= SUBSYSTEMS_MAX);
	/* The text is a name, too. */
	use = subsystems_of_name(&t, text, text, false);
	expect(use.subsystem < t.list.n && use.label < t.labels.n);
	use = subsystems_of_name(&t, "<a::B<C> as d::E>::f::<G>", "/usr/lib/libx.so", false);
	expect(use.subsystem < t.list.n && use.label < t.labels.n);
	expect(subsystems_of_name(&t, "f", "", true).subsystem < t.list.n);
	subsystems_done(&t);
}

static void try_opcodegas(const char *text)
{
	struct opcodegas g = { 0 };
	struct err err = { 0 };
	int r = opcodegas_parse(text, strlen(text), &g, &err);

	expect(r ? err.text[0] && !g.rows.n && !g.transactions : g.transactions == 1);
	for (size_t i = 0; i < g.rows.n; i++)
		expect(g.rows.v[i].name[0] && strlen(g.rows.v[i].name) < OPCODEGAS_NAME);
	opcodegas_done(&g);
}

static int one_event(void *context, const char *word, unsigned line, struct err *err)
{
	struct eventspec e = { 0 };

	expect(*word && line && !strpbrk(word, " \t\r\n#"));
	if (!eventspec_parse(word, &e, err)) {
		expect(e.name && (e.kind != EVENTSPEC_TRACEPOINT || (e.group && e.point)));
		eventspec_is_pattern(&e);
		eventspec_done(&e);
	}
	return 0;
}

static void try_groups(const char *text)
{
	_cleanup_free_ char *mount2 = limitgroup_parse_mount(text, true, "/a/b");
	_cleanup_free_ char *mount1 = limitgroup_parse_mount(text, false, "/a/b");
	_cleanup_free_ char *path2 = cgroupfile_path(text, ""), *path1 = cgroupfile_path(text, "memory");

	expect(!mount2 || strlen(mount2) < strlen(text) + 100);
	expect(!mount1 || strlen(mount1) < strlen(text) + 100);
	expect(!path2 || strlen(path2) <= strlen(text));
	expect(!path1 || strlen(path1) <= strlen(text));
	cgroupfile_key(text, "anon");
	cgroupfile_key(text, "pgscan*");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = size ? mem_strndup((const char *)data + 1, size - 1) : NULL;
	struct flamegraph_attributes attributes = { 0 };
	struct palette_map colours;
	uint8_t secret[JWT_SECRET_BYTES];
	struct err err = { 0 };
	double gas;

	if (!size)
		return 0;
	switch (data[0]) {
	case 'p':
		try_patterns(text);
		break;
	case 'o':
		try_opcodegas(text);
		break;
	case 's':
		try_subsystems(text);
		break;
	case 'e':
		eventspec_parse_file((const char *)data + 1, size - 1, one_event, NULL, &err);
		break;
	case 'a':
		flamegraph_attributes_parse(&attributes, text, &err);
		flamegraph_attributes_done(&attributes);
		break;
	case 'm':
		palette_map_init(&colours);
		palette_map_parse(&colours, text);
		palette_map_done(&colours);
		break;
	case 'j':
		jwt_parse_secret((const char *)data + 1, size - 1, secret);
		break;
	case 'g':
		expect(runlog_parse_gas(text, &gas) < 0 || gas >= 0);
		break;
	default:
		try_groups(text);
	}
	return 0;
}
