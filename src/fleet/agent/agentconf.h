/*
 * agentconf.h - the configuration of an agent, as read from its file.
 *
 *	[agent]
 *	spool = /var/lib/gasflame/spool
 *	window = 60s
 *
 *	[target reth-*]			a container, pod, unit or process, as `record` takes it; * and ? in it: each one that matches
 *	log = /var/log/reth/reth.log
 *	label = region=eu
 *
 *	[sink store]
 *	url = clickhouse://127.0.0.1:8123/gasflame
 *	password-file = /etc/gasflame/password
 *
 * Every key is checked when it is read: an unknown one is an error with its line. The file is trusted, as a command line is; secrets are in files
 * of their own, which only their owner may read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "fleet/sink/sink.h"

struct err;

struct agentconf_target {
	char *pattern;   /* what stands in its section: "container:reth-*" */
	bool wildcard;
	char *name;      /* with {host} and {target}; NULL = as [agent] has it */
	char *what;      /* "cpu,wait,mem" */
	char *release;   /* {image}: the tag of the container's image; NULL = that, where there is one */
	char *log, *client, *rpc; /* NULL = none */
	uint64_t hz;
	VEC(const char *) labels; /* "key=value"; ends in a NULL that is not counted */
};

/* Strings of options are owned by it. */
struct agentconf_sink {
	char *name;
	struct sink_options options;
	uint64_t every_ns; /* windows are collected for so long; 0 = each goes when it is there */
	VEC(char *) texts; /* what options refers to */
};

struct agentconf {
	char *spool, *listen; /* listen NULL = no page */
	char *names;          /* "{host}/{target}" */
	uint64_t spool_bytes, memory_bytes, window_ns;
	double budget_percent;
	VEC(struct agentconf_target) targets;
	VEC(struct agentconf_sink) sinks;
};

/* The queue in the spool for what the agent itself shows of the windows: no sink may have its name. */
#define AGENTCONF_METRICS "metrics"
/* The beginning of the address of a sink that is a folder. */
#define AGENTCONF_FILES "file://"

enum { AGENTCONF_SINKS = 16, AGENTCONF_TARGETS = 64, AGENTCONF_BYTES = 1 << 20 };

/* Reads the file, and those with secrets. agentconf_done() in any case. */
int agentconf_read(const char *path, struct agentconf *ret, struct err *err);
/* The same of a text, which is changed; secrets: read the files that it names (else they stay NULL, as a fuzzer wants it). */
int agentconf_parse(char *text, bool secrets, struct agentconf *ret, struct err *err);
void agentconf_done(struct agentconf *c);

/* A name with its placeholders: {host}, {target}, {image}; what is not known is left empty. Caller frees. */
char *agentconf_fill(const char *pattern, const char *host, const char *target, const char *image);
/* Are all settings of the two the same, so that a recorder can go on? */
bool agentconf_target_same(const struct agentconf_target *a, const struct agentconf_target *b);
