#include "import/text/perfhead.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "import/frames.h"
#include "profile/profile.h"

/* The text after "# key :", NULL if it is another key. */
static const char *value_of(const char *line, const char *key)
{
	line++;
	while (*line == ' ')
		line++;
	if (!str_starts(line, key))
		return NULL;
	line += strlen(key);
	while (*line == ' ')
		line++;
	if (*line++ != ':')
		return NULL;
	while (*line == ' ')
		line++;
	return line;
}

/* The text after "key = " up to a comma, or to the end. Caller frees. NULL: it is not there. */
static char *member(const char *s, const char *key, bool to_end)
{
	_cleanup_free_ char *begin = mem_printf("%s = ", key);
	const char *at = strstr(s, begin);

	if (!at)
		return NULL;
	at += strlen(begin);
	return mem_strndup(at, to_end ? strlen(at) : strcspn(at, ","));
}

static void take_event(struct perfhead *h, const char *s)
{
	_cleanup_free_ char *name = member(s, "name", false), *unit = member(s, "unit", false), *period = member(s, "period", false),
			    *describe = member(s, "describe", true);
	uint64_t number = 0;

	if (!h->ours || !name || !unit || !*name || profile_find_event(h->p, name, NULL) != PROFILE_NONE)
		return;
	if (period)
		str_parse_uint(period, 0, UINT64_MAX, &number);
	profile_add_event(h->p, name, unit, describe ? describe : "", number);
}

/* perf's time is that of the machine's own zone, which is taken to be ours. */
static void take_date(struct perfhead *h, const char *s)
{
	struct tm tm = { .tm_isdst = -1 };
	time_t seconds;

	if (!strptime(s, "%a %b %d %H:%M:%S %Y", &tm))
		return;
	seconds = mktime(&tm);
	if (seconds > 0)
		h->p->start_wall_ns = (uint64_t)seconds * 1000000000;
}

/* "/usr/bin/perf record -F 99 -g -- ./node --fast": what was run, else the whole. */
static void take_command(struct perfhead *h, const char *s)
{
	const char *dashes = strstr(s, " -- "), *program = dashes ? dashes + 4 : NULL;
	_cleanup_free_ char *first = program ? mem_strndup(program, strcspn(program, " ")) : NULL;

	if (!first || !*first)
		return;
	h->p->target = profile_string(h->p, str_base_name(first));
	h->command = true;
}

void perfhead_take(struct perfhead *h, const char *line)
{
	struct profile *p = h->p;
	const char *value, *end;

	if ((value = value_of(line, "hostname")))
		p->host = profile_string(p, value);
	else if ((value = value_of(line, "os release")))
		p->kernel = profile_string(p, value);
	else if ((value = value_of(line, "captured on")))
		take_date(h, value);
	else if ((value = value_of(line, "cmdline")))
		take_command(h, value);
	else if ((value = value_of(line, "gasflame")))
		h->ours |= str_starts(value, "perf-script ");
	else if ((value = value_of(line, "target")) && h->ours)
		p->target = profile_string(p, value);
	else if ((value = value_of(line, "started")) && h->ours)
		p->start_wall_ns = frames_seconds_ns(value, &end);
	else if ((value = value_of(line, "duration")) && h->ours)
		p->duration_ns = frames_seconds_ns(value, &end);
	else if ((value = value_of(line, "event")))
		take_event(h, value);
}
