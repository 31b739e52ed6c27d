#include "collect/choose.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "collect/collector.h"
#include "target/trace/eventspec.h"

enum { EVENTS_FILE_LIMIT = 4 << 20 };

static int unknown_collector(const char *name, struct err *err)
{
	_cleanup_(buf_done) struct buf all = { 0 };

	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", collector_table[i]->name);
	return err_set(err, EINVAL, "there is no collector or event '%s'; there are: %s, and events (gasflame events lists them)",
		       name, all.data);
}

struct choice {
	struct session *session;
	const char *file; /* that the words come from, NULL = the command line */
	bool lacking;     /* a word meant nothing that this kernel has */
};

/* A collector's name, or a word that a collector takes. */
static int choose_word(void *context, const char *word, unsigned line, struct err *err)
{
	struct choice *c = context;
	_cleanup_free_ char *where = c->file ? mem_printf("%s, line %u: ", c->file, line) : mem_strdup("");
	struct session *s = c->session;
	int r = COLLECTOR_NOT_MINE;

	for (size_t i = 0; i < COLLECTOR_COUNT && r == COLLECTOR_NOT_MINE; i++) {
		const struct collector *one = collector_table[i];

		if (one->choose)
			r = one->choose(s, word, where, err);
		else if (!strcmp(one->name, word))
			r = COLLECTOR_CHOSEN;
		s->chosen[i] |= r == COLLECTOR_CHOSEN;
	}
	c->lacking |= r == COLLECTOR_LACKING;
	if (r != COLLECTOR_NOT_MINE)
		return r < 0 ? r : 0;
	r = unknown_collector(word, err);
	return c->file ? err_prefix(err, "%s, line %u", c->file, line) : r;
}

static int choose_from_file(struct choice *c, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = fd_read_path(c->file, EVENTS_FILE_LIMIT, &text, &n);

	if (r < 0)
		return err_errno(err, -r, "cannot read the list of events %s", c->file);
	r = eventspec_parse_file(text, n, choose_word, c, err);
	/* The parser knows lines, not files. */
	return r < 0 && err && str_starts(err->text, "line ") ? err_prefix(err, "%s", c->file) : r;
}

int choose_collectors(struct session *s, struct err *err)
{
	_cleanup_free_ char *copy = mem_strdup(s->options->what);
	struct choice c = { .session = s };
	char *save = NULL;
	bool any = false;
	int r = 0;

	for (char *name = strtok_r(copy, ",", &save); r >= 0 && name; name = strtok_r(NULL, ",", &save))
		r = choose_word(&c, name, 0, err);
	c.file = s->options->events_file;
	if (r >= 0 && c.file)
		r = choose_from_file(&c, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		any |= s->chosen[i];
	for (size_t i = 0; any && i < COLLECTOR_COUNT; i++)
		s->chosen[i] |= collector_table[i]->beside && collector_table[i]->beside(s->options);
	if (any)
		return 0;
	/* An event that this kernel lacks is no error beside others that it has. */
	if (c.lacking)
		return err_set(err, ENOENT,
			       "none of the events asked for is there: gasflame events lists those that are");
	return c.file ? err_set(err, EINVAL, "%s names no event", c.file) :
			err_set(err, EINVAL, "say what to record with -e: cpu, for example");
}

int choose_without_bpf(struct session *s, const char *why, struct err *err)
{
	const char *colon = *why ? ": " : "";

	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		const struct collector *c = collector_table[i];

		bool beside = c->beside && c->beside(s->options);

		if (beside ? !(c->flags & COLLECTOR_READS) : s->options->what_default && !(c->flags & (COLLECTOR_CLOCK | COLLECTOR_PERF)))
			s->chosen[i] = false;
		if (s->chosen[i] && !(c->flags & (COLLECTOR_CLOCK | COLLECTOR_PERF | COLLECTOR_READS)))
			return err_set(err, ENOTSUP, "-e %s needs BPF%s%s", c->name, colon, why);
	}
	return 0;
}
