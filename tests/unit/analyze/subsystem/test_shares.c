/* test_shares.c - the subsystem of stacks, how much each has on the CPU and waiting, and stacks of
 * subsystems. */
#include "test.h"

#include "analyze/quality.h"
#include "analyze/select.h"
#include "analyze/subsystem/chain.h"
#include "analyze/subsystem/opcodes.h"
#include "analyze/subsystem/shares.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "base/json.h"
#include "export/section/section.h"
#include "waiting.h"

struct made {
	struct waiting w;
	struct patterns patterns;
	struct causes causes;
	struct subsystems table;
	struct classifier c;
};

static void begin(struct made *m)
{
	m->w = waiting_empty();
	patterns_init(&m->patterns);
	patterns_add_builtin(&m->patterns);
	causes_init(&m->causes, m->w.s.p, &m->patterns);
	subsystems_init(&m->table);
	subsystems_add_builtin(&m->table);
	classifier_init(&m->c, m->w.s.p, &m->table);
}

static void end(struct made *m)
{
	classifier_done(&m->c);
	subsystems_done(&m->table);
	causes_done(&m->causes);
	patterns_done(&m->patterns);
	profile_free(m->w.s.p);
}

static void the_innermost_known_function_decides(void **state)
{
	static const char *const stacks[][2] = {
		{ "_start;main;tokio::run;reth_engine_tree::tree::H::run;revm_interpreter::interpreter::run",
		  "EVM" },
		{ "reth_engine_tree::tree::H::run;revm_interpreter::run;reth_revm::database::D::storage;mdbx_"
		  "get",
		  "database reads" },
		{ "reth_trie::walk;alloy_primitives::utils::keccak256;l:memcpy", "Keccak" },
		{ "reth_trie::walk;hashbrown::map::insert;l:__memmove_avx512_unaligned_erms", "state root" },
		{ "reth_trie::walk;somebody::elses;_rjem_malloc;k:asm_exc_page_fault", "allocator" },
		/* Elliptic curves are those of whoever asks. */
		{ "revm_precompile::secp256k1::ec_recover_run;k256::ecdsa::recover", "EVM" },
		{ "tokio::run;k256::ecdsa::recover", "sender recovery" },
		{ "l:start_thread;tokio::runtime::park;l:syscall;k:futex_wait", "runtime" },
		/* A function that nobody knows is not hidden behind the runtime. */
		{ "l:start_thread;tokio::run;somebody::elses;l:syscall;k:futex_wait", "other" },
		{ "?;tokio::run", "other" },
		{ "!no table;mdbx_get", "database reads" },
		{ "!no table;tokio::run", "other" },
		{ "k:ret_from_fork;k:kswapd", "kernel" },
		{ "k:[preempted]", "other" },
		{ "revm_handler::run;i:revm_interpreter::instructions::host::sload;i:reth_revm::database::D::"
		  "storage",
		  "state reads" },
	};
	struct made m;

	begin(&m);
	assert_string_equal(classifier_name(&m.c, 0), "other");
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++) {
		const char *name = classifier_name(&m.c, sample_stack(&m.w.s, "%s", stacks[i][0]));

		if (strcmp(name, stacks[i][1]))
			fail_msg("%s is %s, not %s", stacks[i][0], name, stacks[i][1]);
	}
	end(&m);
}

#define SLOAD                                                                                                \
	"reth_engine_tree::tree::run;revm_interpreter::run;revm_interpreter::instructions::host::sload;"     \
	"reth_revm::database::D::storage"
#define ROOT  "reth_engine_tree::tree::run;reth_trie::state_root"
#define FAULT ";mdbx_get;k:asm_exc_page_fault;k:filemap_fault;k:folio_wait_bit_common;k:io_schedule"

/* 21 ms of the state root on the CPU, 17 in page faults of its database; 30 of the EVM, 2 that nobody knows.
 */
static void fill(struct made *m)
{
	struct waiting *w = &m->w;

	waiting_add(w, w->s.cpu, w->engine, sample_stack(&w->s, ROOT), 0, 21 * MS, 1);
	waiting_add(w, w->wait, w->engine, sample_stack(&w->s, ROOT FAULT), 21 * MS, 17 * MS, 1);
	waiting_add(w, w->s.cpu, w->engine, sample_stack(&w->s, SLOAD), 40 * MS, 20 * MS, 1);
	waiting_add(w, w->s.cpu, w->engine,
	            sample_stack(&w->s, "revm_interpreter::instructions::stack::push<_>"), 60 * MS, 10 * MS,
	            1);
	waiting_add(w, w->s.cpu, w->engine, sample_stack(&w->s, "somebody::elses;l:memcpy"), 70 * MS, 2 * MS,
	            1);
	causes_grow(&m->causes);
}

static const struct subsystem_share *row_of(const struct made *m, const struct subsystem_shares *s,
                                            const char *name)
{
	for (size_t i = 0; i < s->rows.n; i++)
		if (!strcmp(m->table.list.v[s->rows.v[i].subsystem].name, name))
			return &s->rows.v[i];
	fail_msg("no row of %s", name);
	return NULL;
}

static void shares_add_up(void **state)
{
	struct subsystem_shares s;
	const struct subsystem_share *r;
	uint64_t sum = 0;
	struct made m;

	begin(&m);
	fill(&m);
	/* CPU time is selected, but waits were recorded: both are shown. */
	assert_true(subsystem_shares_make(
		&s, &m.c, &(struct select_options){ .event = m.w.s.cpu, .causes = &m.causes }));
	assert_string_equal(s.name, "wall");
	assert_true(s.node);
	assert_int_equal(s.all, 70 * MS);
	for (size_t i = 0; i < s.rows.n; i++)
		sum += s.rows.v[i].self;
	assert_int_equal(sum, s.all);
	r = row_of(&m, &s, "state root");
	assert_int_equal(r->self, 21 * MS);
	assert_int_equal(r->total, 38 * MS);
	assert_int_equal(r->total_by[CAUSE_CPU], 21 * MS);
	assert_int_equal(r->total_by[CAUSE_FAULT], 17 * MS);
	r = row_of(&m, &s, "database reads");
	assert_int_equal(subsystem_waits(r->self_by), 17 * MS);
	assert_int_equal(subsystem_cpu(r->self_by), 0);
	assert_int_equal(row_of(&m, &s, "EVM")->total, 30 * MS);
	assert_int_equal(row_of(&m, &s, "other")->self, 2 * MS);
	assert_int_equal(s.unknown.n, 1);
	assert_string_equal(s.unknown.v[0].name, "somebody::elses");
	assert_int_equal(s.labels.n, 2);
	assert_string_equal(m.table.labels.v[s.labels.v[0].label].name, "SLOAD");
	assert_int_equal(s.labels.v[0].value, 20 * MS);
	assert_string_equal(m.table.labels.v[s.labels.v[1].label].name, "PUSH");
	subsystem_shares_done(&s);
	end(&m);
}

static void the_file_of_faults_is_named(void **state)
{
	struct subsystem_shares s;
	struct made m;
	uint32_t faults;

	begin(&m);
	faults = profile_add_event(m.w.s.p, "major-time", "ns", "page faults", 0);
	fill(&m);
	waiting_add(&m.w, faults, m.w.engine,
	            sample_stack(&m.w.s, ROOT ";mdbx_get;n:/data/db/mdbx.dat;n:1 MB on"), 21 * MS, 15 * MS,
	            1);
	waiting_add(&m.w, faults, m.w.engine, sample_stack(&m.w.s, ROOT ";n:/lib/x.so"), 22 * MS, 2 * MS, 1);
	causes_grow(&m.causes);
	assert_true(subsystem_shares_make(
		&s, &m.c, &(struct select_options){ .event = SELECT_WALL, .causes = &m.causes }));
	assert_string_equal(row_of(&m, &s, "state root")->file, "/data/db/mdbx.dat");
	assert_null(row_of(&m, &s, "EVM")->file);
	subsystem_shares_done(&s);
	end(&m);
}

/* 20 ms of SLOAD and 10 of all PUSHes; the second span has neither. */
static void opcodes_have_their_gas(void **state)
{
	static const struct opcode_figure figures[] = {
		{ "SLOAD", LABEL_OPCODE, 10, 20000 }, { "PUSH1", LABEL_OPCODE, 100, 300 }, { "PUSH32", LABEL_OPCODE, 2, 6 },
		{ "MSTORE", LABEL_OPCODE, 5, 15 },    { "ecrecover", LABEL_PRECOMPILE, 1, 3000 },
	};
	static const struct opcode_span spans[] = { { 0, 71 * MS }, { 100 * MS, 200 * MS } };
	struct opcode_costs o;
	struct made m;

	begin(&m);
	fill(&m);
	opcode_costs_make(&o, &m.c, &m.causes, figures, ARRAY_LEN(figures), spans, ARRAY_LEN(spans));
	assert_int_equal(o.rows.n, 4);
	assert_string_equal(o.rows.v[0].name, "SLOAD");
	assert_int_equal(o.rows.v[0].ns, 20 * MS);
	assert_int_equal(o.rows.v[0].gas, 20000);
	assert_string_equal(o.rows.v[1].name, "PUSH");
	assert_int_equal(o.rows.v[1].ns, 10 * MS);
	assert_int_equal(o.rows.v[1].count, 102);
	assert_int_equal(o.rows.v[1].gas, 306);
	assert_string_equal(o.rows.v[2].name, "ecrecover");
	assert_int_equal(o.rows.v[2].ns, 0);
	opcode_costs_done(&o);
	/* Nothing is known of a span without samples. */
	opcode_costs_make(&o, &m.c, &m.causes, figures, 1, spans + 1, 1);
	assert_int_equal(o.rows.v[0].ns, 0);
	opcode_costs_done(&o);
	end(&m);
}

static void other_programs_have_no_section(void **state)
{
	struct subsystem_shares s;
	struct made m;

	begin(&m);
	waiting_add(&m.w, m.w.s.cpu, m.w.busy, sample_stack(&m.w.s, "main;work;malloc"), 0, 10 * MS, 1);
	causes_grow(&m.causes);
	assert_true(subsystem_shares_make(
		&s, &m.c, &(struct select_options){ .event = m.w.s.cpu, .causes = &m.causes }));
	assert_false(s.node);
	subsystem_shares_done(&s);
	end(&m);
}

static void stacks_become_subsystems(void **state)
{
	struct selection s = { 0 };
	struct made m;
	struct err err;
	size_t seen = 0;

	begin(&m);
	fill(&m);
	assert_int_equal(selection_make(m.w.s.p,
	                                &(struct select_options){ .event = SELECT_WALL, .causes = &m.causes },
	                                &s, &err),
	                 0);
	chain_apply(m.w.s.p, &s, &m.c);
	for (size_t i = 0; i < s.entries.n; i++) {
		struct buf b = { 0 };

		for (uint32_t k = s.entries.v[i].stack; k; k = m.w.s.p->stacks.v[k].parent)
			buf_printf(&b, "%s%s", b.n ? "<" : "",
			           cause_frame_name(m.w.s.p, m.w.s.p->stacks.v[k].frame));
		seen += !strcmp(b.data, "database reads<state root<engine") &&
		        s.entries.v[i].weight.value == 17 * MS;
		seen += !strcmp(b.data, "state reads<EVM<engine") && s.entries.v[i].weight.value == 20 * MS;
		seen += !strcmp(b.data, "other") && s.entries.v[i].weight.value == 2 * MS;
		buf_done(&b);
	}
	assert_int_equal(seen, 3);
	selection_done(&s);
	end(&m);
}

static void text_and_json_say_the_same(void **state)
{
	struct selection s = { 0 };
	struct quality q = { 0 };
	struct export_job job;
	struct buf out = { 0 };
	struct json j;
	struct made m;
	struct err err;

	begin(&m);
	fill(&m);
	assert_int_equal(selection_make(m.w.s.p,
	                                &(struct select_options){ .event = m.w.s.cpu, .causes = &m.causes },
	                                &s, &err),
	                 0);
	job = (struct export_job){ m.w.s.p, &s, &q, .subsystems = &m.c };
	section_subsystems.text(&job, &out);
	assert_non_null(strstr(out.data, "By subsystem, % of 70.0 ms of wall"));
	assert_non_null(strstr(out.data,
	                       " 30.0 %  54.3 %   30.0 %     0 %  state root          page fault 24.3 %\n"));
	assert_non_null(strstr(out.data, "97.1 % are in a named subsystem. Unknown to the patterns "
	                                 "(--subsystems): somebody::elses 2.9 %\n"));
	assert_non_null(strstr(out.data, " 28.6 %   20.0 ms  SLOAD\n"));
	out.n = 0;
	j = json_begin(&out);
	json_open_object(&j, NULL);
	section_subsystems.json(&job, &j);
	json_close(&j);
	assert_non_null(strstr(out.data, "\"total\":38000000"));
	assert_non_null(strstr(out.data, "\"fault\":17000000"));
	assert_non_null(strstr(out.data, "\"name\":\"SLOAD\",\"kind\":\"opcode\""));
	/* Without a table there is no section. */
	out.n = 0;
	job.subsystems = NULL;
	section_subsystems.text(&job, &out);
	assert_int_equal(out.n, 0);
	buf_done(&out);
	selection_done(&s);
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_innermost_known_function_decides),
		cmocka_unit_test(shares_add_up),
		cmocka_unit_test(the_file_of_faults_is_named),
		cmocka_unit_test(opcodes_have_their_gas),
		cmocka_unit_test(other_programs_have_no_section),
		cmocka_unit_test(stacks_become_subsystems),
		cmocka_unit_test(text_and_json_say_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
