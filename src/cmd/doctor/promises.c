#include "cmd/doctor/promises.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#ifdef GASFLAME_COLLECTORS
#include "collect/promise.h"
#include "collect/session.h"

/* Those that stand on their own; the others are marks and events, which come beside them. */
static const char *const names[] = { "cpu", "wait", "io", "fault", "mem", "hw", "heap", "task", "alloc", "goroutine" };
_Static_assert(ARRAY_LEN(names) == PROMISES, "one for each");
#endif

void promises_make(struct promises *ret, const struct host *h)
{
	*ret = (struct promises){ 0 };
#ifdef GASFLAME_COLLECTORS
	for (size_t k = 0; k < ARRAY_LEN(names); k++) {
		const char *describe, *name;

		for (size_t i = 0; (name = session_collector(i, &describe)); i++)
			if (!strcmp(name, names[k])) {
				ret->list[ret->n].name = name;
				ret->list[ret->n].how = promise_words[promise_of(h, i, &ret->list[ret->n].why)];
				ret->n++;
			}
	}
#endif
}

/* A line for each way, with those that can be recorded in it. */
void promises_print(const struct promises *p)
{
	static const struct {
		const char *how, *words;
	} ways[] = { { "bpf", "by BPF" }, { "perf", "by perf events" }, { "reads", "by reading /proc" }, { "none", "not to be had here" } };

	for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
		bool any = false;

		for (size_t i = 0; i < p->n; i++)
			if (!strcmp(p->list[i].how, ways[w].how)) {
				printf("%s %s", any ? "," : "-e", p->list[i].name);
				any = true;
			}
		if (any)
			printf(": %s\n", ways[w].words);
	}
}

void promises_json(const struct promises *p, struct json *j)
{
	json_open_array(j, "collectors");
	for (size_t i = 0; i < p->n; i++) {
		json_open_row(j, 2);
		json_put_string(j, "collector", p->list[i].name);
		json_put_string(j, "how", p->list[i].how);
		json_put_string(j, "why", *p->list[i].why.text ? p->list[i].why.text : NULL);
		json_close(j);
	}
	json_close(j);
}
