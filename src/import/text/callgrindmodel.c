/* callgrindmodel.c - a file of callgrind as a profile. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/frames.h"
#include "import/import.h"
#include "import/text/callgrind.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* A line of a header: a word of these, and a colon. */
static bool header_line(const char *s, size_t n)
{
	static const char *const keys[] = { "version", "creator", "pid", "thread", "part", "desc", "cmd", "positions", "event", "summary" };

	if (!n || *s == '#')
		return true;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (n > strlen(keys[i]) && !strncmp(s, keys[i], strlen(keys[i])) && s[strlen(keys[i])] == ':')
			return true;
	return false;
}

bool callgrind_probe(const char *data, size_t n, bool whole)
{
	static const char first[] = "# callgrind format", events[] = "events:";
	const char *end = data + n;

	if (n >= sizeof(first) && !memcmp(data, first, sizeof(first) - 1))
		return true;
	while (data < end) {
		const char *newline = memchr(data, '\n', end - data);
		size_t length = (newline ? newline : end) - data;

		if (length > strlen(events) && !memcmp(data, events, strlen(events)))
			return true;
		length -= length && data[length - 1] == '\r';
		if (!newline || !header_line(data, length))
			return false;
		data = newline + 1;
	}
	return false;
}

/* "./node --dev" is of a program "node". */
static uint32_t program_name(struct profile *p, const char *command)
{
	_cleanup_free_ char *first = mem_strndup(command, strcspn(command, " \t"));

	return profile_string(p, str_base_name(first));
}

static uint32_t add_thread(struct profile *p, struct frames *frames, const struct callgrind *c, const struct callgrind_graph *g)
{
	const char *command = strtab_get(&c->strings, c->command), *number = strtab_get(&c->strings, g->thread);
	uint32_t program = *command ? program_name(p, command) : p->target;
	_cleanup_free_ char *name = *number ? mem_printf("thread %s", number) : mem_strdup(profile_str(p, program));
	uint32_t thread = frames_thread(frames, g->pid, 0, name);
	struct profile_process *process = &p->processes.v[p->threads.v[thread].process];

	process->name = program;
	process->command = profile_string(p, command);
	return thread;
}

static void add_events(struct profile *p, const struct callgrind *c)
{
	for (size_t i = 0; i < c->event_count; i++) {
		const char *unit = strtab_get(&c->strings, c->units[i]);

		profile_add_event(p, strtab_get(&c->strings, c->events[i]), *unit ? unit : "count", "", 0);
	}
}

static int fill(struct profile *p, const struct callgrind *c, struct err *err)
{
	struct frames frames;
	int r = 0;

	frames_init(&frames, p);
	add_events(p, c);
	for (size_t i = 0; i < c->graphs.n && !r; i++)
		r = callgrind_stacks(c, &c->graphs.v[i], &frames, add_thread(p, &frames, c, &c->graphs.v[i]), 0, err);
	frames_done(&frames);
	if (!p->processes.n)
		profile_add_process(p, &(struct profile_process){ .name = p->target });
	if (c->ignored)
		profile_count(p, KEY_IMPORT_LINES_IGNORED, c->ignored);
	if (c->stated > c->total[0])
		profile_count(p, KEY_IMPORT_COST_MISSING, c->stated - c->total[0]);
	return r;
}

int callgrind_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct callgrind c;
	struct profile *p = NULL;
	int r = callgrind_read(&c, in->stream, err);

	if (!r) {
		const char *command = strtab_get(&c.strings, c.command);

		p = profile_new();
		p->target = profile_string(p, *command ? command : in->name);
		p->finished = true;
		r = fill(p, &c, err);
	}
	callgrind_done(&c);
	if (r)
		profile_free(p);
	else
		*ret = p;
	return r;
}
