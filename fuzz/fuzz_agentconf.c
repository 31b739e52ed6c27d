/*
 * fuzz_agentconf.c - the configuration of an agent. What is taken is whole and within its bounds, what is refused is explained, and the names of a
 * target are made of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "fleet/agent/agentconf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static void check_target(const struct agentconf *c, const struct agentconf_target *t)
{
	const char *pattern = t->name ? t->name : c->names;
	_cleanup_free_ char *name = agentconf_fill(pattern, "host", "target", NULL);

	expect(*t->pattern && t->what && *t->what && t->hz >= 1 && t->hz <= 999);
	expect(t->labels.n <= 60 && !t->labels.v[t->labels.n]);
	for (size_t i = 0; i < t->labels.n; i++)
		expect(strchr(t->labels.v[i], '=') && strlen(t->labels.v[i]) <= 200);
	expect(!t->wildcard || !t->name || strstr(name, "target"));
	expect(agentconf_target_same(t, t));
}

static void check(const struct agentconf *c)
{
	expect(c->spool && *c->spool == '/' && c->names && c->targets.n && c->sinks.n);
	expect(c->targets.n <= AGENTCONF_TARGETS && c->sinks.n <= AGENTCONF_SINKS);
	expect(c->window_ns >= 10000000000 && c->window_ns <= 60000000000);
	expect(c->budget_percent > 0 && c->budget_percent <= 100);
	for (size_t i = 0; i < c->targets.n; i++)
		check_target(c, &c->targets.v[i]);
	for (size_t i = 0; i < c->sinks.n; i++) {
		const struct sink_options *o = &c->sinks.v[i].options;

		/* Its name is that of a folder in the spool. */
		expect(o->url && *o->url && o->name && *o->name != '.' && !strchr(o->name, '/'));
		expect(!o->token && !o->password);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = mem_strndup((const char *)data, size);
	struct agentconf c;
	struct err err = { 0 };

	if (agentconf_parse(text, false, &c, &err))
		expect(err.code && *err.text);
	else
		check(&c);
	agentconf_done(&c);
	return 0;
}
