/*
 * rule.h - the rules of --when: parsing them, and telling when one has come true.
 *
 *	block > 500ms		a block took longer
 *	no block for 30s	none ended for so long
 *	rss > 90%, rss > 8G	resident memory, of the cgroup's limit (of the machine's memory where there is none) or as it is
 *	queue > 50%		of the time in which threads wanted to run, over the last seconds, they waited for a CPU
 *	cpu > 350%		of one CPU, over the last seconds
 *
 * rules_look() is called about once a second with what is known then. A rule that fired is armed again after it was false and
 * after the pause; within the pause after a rule fired no other fires either, so that an incident gives one capture.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct err;

enum rule_kind { RULE_BLOCK, RULE_NO_BLOCK, RULE_RSS, RULE_QUEUE, RULE_CPU, RULE_KINDS };

struct rule {
	enum rule_kind kind;
	uint64_t ns, bytes;  /* what it is compared with; bytes 0: percent */
	double percent;
	char *text;          /* as it was typed; owned */
	bool fired;          /* and is not armed again */
	bool was_false;      /* since it fired */
};

struct rules {
	VEC(struct rule) list;
	uint64_t pause_ns;
	uint64_t quiet_until_ns; /* no rule fires before */
};

/* What is known at a look. */
struct rule_facts {
	uint64_t now_ns;
	uint64_t block_ns;        /* the longest of the blocks that came since the last look; 0 = none */
	const char *block_name;
	uint64_t last_block_ns;   /* when the last one ended; 0: there was none */
	bool memory_known;
	uint64_t rss_bytes, limit_bytes; /* limit 0: not known */
	bool queue_known, cpu_known;
	double queue_percent, cpu_percent;
};

/* Adds a rule; -EINVAL with a sentence that says what there is. */
int rules_add(struct rules *r, const char *text, struct err *err);
void rules_done(struct rules *r);
bool rules_have(const struct rules *r, enum rule_kind kind);
/* The collector that a rule needs, "mem"; NULL: blocks, which come from a log or a node. */
const char *rule_needs(enum rule_kind kind);
/* Returns the rule that has come true, with the reason in words, which the caller frees; NULL: none. */
const struct rule *rules_look(struct rules *r, const struct rule_facts *f, char **ret_reason);
