#include "import/heap/heapsink.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/import.h"
#include "profile/profile.h"

/* More objects than one stack of a file can have; a sample counts 32 bits of them, so that it takes several for more. */
static const uint64_t most_objects = 1ULL << 40;

void heapsink_init(struct heapsink *s, const struct import_input *in)
{
	*s = (struct heapsink){ .p = profile_new() };
	s->p->target = profile_string(s->p, in->name);
	frames_init(&s->frames, s->p);
}

void heapsink_done(struct heapsink *s)
{
	frames_done(&s->frames);
	vec_done(&s->sums);
	profile_free(s->p);
	s->p = NULL;
}

struct profile *heapsink_take(struct heapsink *s)
{
	struct profile *p = s->p;

	p->finished = true;
	s->p = NULL;
	return p;
}

void heapsink_command(struct heapsink *s, const char *command, uint32_t pid)
{
	_cleanup_free_ char *program = mem_strndup(command, strcspn(command, " "));
	const char *name = *program ? str_base_name(program) : profile_str(s->p, s->p->target);

	if (*program)
		s->p->target = profile_string(s->p, name);
	s->thread = frames_thread(&s->frames, pid, pid, *name ? name : "heap");
	s->p->processes.v[0].command = profile_string(s->p, command);
	if (program[0] == '/')
		s->p->processes.v[0].exe = profile_string(s->p, program);
}

static void add_sample(struct heapsink *s, const struct heapsink_value *v, uint64_t bytes, uint32_t count)
{
	profile_add_sample(s->p, &(struct profile_sample){ .event = v->event, .thread = s->thread, .stack = v->stack,
							   .value = bytes, .count = count, .time_ns = v->time_ns });
}

int heapsink_add(struct heapsink *s, const struct heapsink_value *v, struct err *err)
{
	uint64_t bytes = v->bytes, count = v->count, *sum;

	while (s->sums.n <= v->event)
		vec_push(&s->sums, 0);
	sum = &s->sums.v[v->event];
	if (__builtin_add_overflow(*sum, bytes, sum) || *sum > INT64_MAX)
		return err_set(err, ERANGE, "its bytes add up to more than can be counted");
	if (count > most_objects)
		return err_set(err, ERANGE, "it has %llu objects of one stack", (unsigned long long)count);
	for (; count > UINT32_MAX; count -= UINT32_MAX) {
		uint64_t part = (unsigned __int128)bytes * UINT32_MAX / count;

		add_sample(s, v, part, UINT32_MAX);
		bytes -= part;
	}
	if (bytes || count)
		add_sample(s, v, bytes, MAX(count, 1));
	return 0;
}

void heapsink_forget(struct heapsink *s)
{
	vec_clear(&s->p->samples);
	vec_clear(&s->p->points);
	vec_clear(&s->sums);
}

/* --- frames of valgrind --- */

/* Cuts "(in PATH)" or "(FILE:LINE)" off the end; returns where it begins, after the bracket. NULL: there is none. */
static char *cut_place(char *text)
{
	size_t n = strlen(text);
	char *at = NULL;

	if (!n || text[n - 1] != ')')
		return NULL;
	for (char *p = text; (p = strstr(p, " (")); p += 2)
		if (!at || strncmp(at, " (in ", 5))
			at = p;
	if (!at || (strncmp(at, " (in ", 5) && (!strrchr(at, ':') || !isdigit((unsigned char)text[n - 2]))))
		return NULL;
	text[n - 1] = '\0';
	*at = '\0';
	return at + 2;
}

uint32_t heapsink_valgrind_frame(struct heapsink *s, char *text)
{
	size_t digits = str_starts(text, "0x") ? strspn(text + 2, "0123456789ABCDEFabcdef") : 0;
	char *name = digits && text[2 + digits] == ':' ? text + 3 + digits : text, *place, *colon;
	struct frames_call call = { 0 };
	uint32_t module = PROFILE_NONE;
	uint64_t line;

	if (name > text)
		name[-1] = '\0';
	name += *name == ' ';
	place = cut_place(name);
	if (place && str_starts(place, "in ")) {
		module = frames_module(&s->frames, place + 3, NULL, 0);
	} else if (place) {
		/* Rust's DHAT has a column, too. */
		while ((colon = strrchr(place, ':')) && !str_parse_uint(colon + 1, 0, UINT32_MAX, &line)) {
			*colon = '\0';
			call.line = line;
		}
		call.file = place;
	}
	/* What valgrind had no name for is told apart by its address; "0x0" is none. */
	call.name = strcmp(name, "???") || name == text || !strcmp(text, "0x0") ? name : text;
	return frames_named(&s->frames, module, FRAME_USER, 0, &call, 1);
}
