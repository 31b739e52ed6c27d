#include "fleet/agent/agentconf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/conf.h"
#include "base/text/str.h"

enum { SECRET_BYTES = 64 << 10 };
static const uint64_t second_ns = 1000000000;

struct parse {
	struct agentconf *conf;
	struct agentconf_target *target; /* of the section that is open; NULL = none */
	struct agentconf_sink *sink;
	bool agent, secrets;
};

/* --- values --- */

static int set_text(char **to, const char *value, struct err *err)
{
	if (*to)
		return err_set(err, EINVAL, "it is there twice");
	if (!*value)
		return err_set(err, EINVAL, "it has no value");
	*to = mem_strdup(value);
	return 0;
}

static int set_size(uint64_t *to, const char *value, struct err *err)
{
	return str_parse_size(value, to) ? err_set(err, EINVAL, "%s is no size: 512M, 2G", value) : 0;
}

static int set_duration(uint64_t *to, const char *value, uint64_t least, uint64_t most, struct err *err)
{
	char a[32], b[32];

	if (str_parse_duration(value, to))
		return err_set(err, EINVAL, "%s is no time: 30s, 2m, 7d", value);
	if (*to < least || *to > most)
		return err_set(err, EINVAL, "%s is not between %s and %s", value, str_duration(a, least), str_duration(b, most));
	return 0;
}

/* A secret that others may read is none. */
static int read_secret(const char *path, char **ret, struct err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	size_t n;
	int r;

	if (fd < 0 || fstat(fd, &st))
		return err_errno(err, errno, "cannot read %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s is no file", path);
	if (st.st_mode & 077)
		return err_set(err, EPERM, "others may read %s: chmod 600 it", path);
	r = fd_read_file(fd, SECRET_BYTES, ret, &n);
	if (r)
		return err_errno(err, -r, "cannot read %s", path);
	while (n && isspace((unsigned char)(*ret)[n - 1]))
		(*ret)[--n] = 0;
	return n && !strpbrk(*ret, "\r\n") ? 0 : err_set(err, EINVAL, "%s is not one line", path);
}

/* --- the sections --- */

static int set_agent(struct agentconf *c, const char *key, const char *value, struct err *err)
{
	if (!strcmp(key, "spool"))
		return *value == '/' ? set_text(&c->spool, value, err) : err_set(err, EINVAL, "it begins with a slash");
	if (!strcmp(key, "spool-size"))
		return set_size(&c->spool_bytes, value, err);
	if (!strcmp(key, "memory"))
		return set_size(&c->memory_bytes, value, err);
	if (!strcmp(key, "window"))
		return set_duration(&c->window_ns, value, 10 * second_ns, 60 * second_ns, err);
	if (!strcmp(key, "budget"))
		return str_parse_percent(value, &c->budget_percent) || c->budget_percent <= 0 || c->budget_percent > 100 ?
			       err_set(err, EINVAL, "%s is no part of one CPU: 1%%", value) : 0;
	if (!strcmp(key, "listen"))
		return set_text(&c->listen, value, err);
	if (!strcmp(key, "names"))
		return set_text(&c->names, value, err);
	return err_set(err, EINVAL, "[agent] has spool, spool-size, memory, window, budget, listen and names");
}

static int add_label(struct agentconf_target *t, const char *value, struct err *err)
{
	const char *equals = strchr(value, '=');

	if (!equals || equals == value || strlen(value) > 200)
		return err_set(err, EINVAL, "a label is key=value, of 200 bytes at most");
	if (t->labels.n >= 60)
		return err_set(err, EINVAL, "a target has 60 labels at most");
	vec_push(&t->labels, mem_strdup(value));
	vec_push(&t->labels, NULL);
	t->labels.n--;
	return 0;
}

/* What goes on for weeks: figures that are known at the end only are of no use, and nothing is hooked. */
static int check_what(const char *what, struct err *err)
{
	static const char *const known[] = { "cpu", "wait", "mem", "io", "fault" };

	for (const char *s = what; *s;) {
		size_t n = strcspn(s, ","), i = 0;

		while (i < ARRAY_LEN(known) && (strlen(known[i]) != n || strncmp(known[i], s, n)))
			i++;
		if (i == ARRAY_LEN(known))
			return err_set(err, EINVAL, "an agent records cpu, wait, mem, io and fault, not %.*s", (int)n, s);
		s += n;
		s += *s == ',' && s[1];
	}
	return 0;
}

static int set_target(struct agentconf_target *t, const char *key, const char *value, struct err *err)
{
	int r;

	if (!strcmp(key, "name"))
		return set_text(&t->name, value, err);
	if (!strcmp(key, "events")) {
		r = set_text(&t->what, value, err);
		return r ? r : check_what(value, err);
	}
	if (!strcmp(key, "frequency"))
		return str_parse_uint(value, 1, 999, &t->hz) ? err_set(err, EINVAL, "%s is not from 1 to 999", value) : 0;
	if (!strcmp(key, "release"))
		return set_text(&t->release, value, err);
	if (!strcmp(key, "label"))
		return add_label(t, value, err);
	if (!strcmp(key, "log"))
		return set_text(&t->log, value, err);
	if (!strcmp(key, "log-client"))
		return set_text(&t->client, value, err);
	if (!strcmp(key, "rpc"))
		return set_text(&t->rpc, value, err);
	return err_set(err, EINVAL, "[target] has name, events, frequency, release, label, log, log-client and rpc");
}

/* A text of the options, which then is the sink's. */
static int set_option(struct agentconf_sink *s, const char **to, char *value, struct err *err)
{
	if (*to) {
		free(value);
		return err_set(err, EINVAL, "it is there twice");
	}
	vec_push(&s->texts, value);
	*to = value;
	return 0;
}

static int set_secret(struct parse *p, const char **to, const char *path, struct err *err)
{
	char *text = NULL;
	int r = p->secrets ? read_secret(path, &text, err) : 0;

	if (r || !text) {
		free(text);
		return r;
	}
	return set_option(p->sink, to, text, err);
}

static int set_sink(struct parse *p, const char *key, const char *value, struct err *err)
{
	struct sink_options *o = &p->sink->options;
	const struct {
		const char *key;
		const char **to;
		bool secret;
	} texts[] = {
		{ "url", &o->url },       { "user", &o->user },       { "tenant", &o->tenant },
		{ "ca-file", &o->ca_file }, { "region", &o->region }, { "token-file", &o->token, true },
		{ "password-file", &o->password, true },
	};
	uint64_t timeout_ns;
	int r;

	if (!*value)
		return err_set(err, EINVAL, "it has no value");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (!strcmp(key, texts[i].key))
			return texts[i].secret ? set_secret(p, texts[i].to, value, err) :
						 set_option(p->sink, texts[i].to, mem_strdup(value), err);
	if (!strcmp(key, "keep-size"))
		return set_size(&o->keep_bytes, value, err);
	if (!strcmp(key, "keep-time"))
		return set_duration(&o->keep_ns, value, 60 * second_ns, 3650 * 86400 * second_ns, err);
	if (!strcmp(key, "every"))
		return set_duration(&p->sink->every_ns, value, second_ns, 3600 * second_ns, err);
	if (!strcmp(key, "timeout")) {
		r = set_duration(&timeout_ns, value, second_ns / 10, 600 * second_ns, err);
		o->timeout_ms = timeout_ns / 1000000;
		return r;
	}
	return err_set(err, EINVAL,
		       "[sink] has url, user, password-file, token-file, tenant, ca-file, region, timeout, every, keep-size and keep-time");
}

static bool is_sink_name(const char *s)
{
	if (!isalnum((unsigned char)*s) || strlen(s) > 60)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-_.", *s))
			return false;
	return true;
}

static int open_target(struct parse *p, const char *pattern, struct err *err)
{
	struct agentconf *c = p->conf;

	if (c->targets.n >= AGENTCONF_TARGETS)
		return err_set(err, EINVAL, "there are %d targets at most", AGENTCONF_TARGETS);
	for (size_t i = 0; i < c->targets.n; i++)
		if (!strcmp(c->targets.v[i].pattern, pattern))
			return err_set(err, EINVAL, "the target %s is there twice", pattern);
	vec_push(&c->targets, (struct agentconf_target){ .pattern = mem_strdup(pattern), .wildcard = strpbrk(pattern, "*?") != NULL,
							 .hz = 19 });
	p->target = &c->targets.v[c->targets.n - 1];
	vec_push(&p->target->labels, NULL);
	p->target->labels.n--;
	return 0;
}

static int open_sink(struct parse *p, const char *name, struct err *err)
{
	struct agentconf *c = p->conf;

	if (c->sinks.n >= AGENTCONF_SINKS)
		return err_set(err, EINVAL, "there are %d sinks at most", AGENTCONF_SINKS);
	if (!is_sink_name(name))
		return err_set(err, EINVAL, "the name of a sink is letters, digits, -, _ and ., not %s", name);
	if (!strcmp(name, AGENTCONF_METRICS))
		return err_set(err, EINVAL, "the name %s is taken by the agent itself: call the sink another", name);
	for (size_t i = 0; i < c->sinks.n; i++)
		if (!strcmp(c->sinks.v[i].name, name))
			return err_set(err, EINVAL, "the sink %s is there twice", name);
	vec_push(&c->sinks, (struct agentconf_sink){ .name = mem_strdup(name) });
	p->sink = &c->sinks.v[c->sinks.n - 1];
	p->sink->options.name = p->sink->name;
	return 0;
}

static int open_section(struct parse *p, const char *section, struct err *err)
{
	size_t n = strcspn(section, " \t");
	const char *rest = section + n + strspn(section + n, " \t");

	p->agent = false;
	p->target = NULL;
	p->sink = NULL;
	if (n == 5 && !strncmp(section, "agent", n) && !*rest) {
		p->agent = true;
		return 0;
	}
	if (n == 6 && !strncmp(section, "target", n) && *rest)
		return open_target(p, rest, err);
	if (n == 4 && !strncmp(section, "sink", n) && *rest)
		return open_sink(p, rest, err);
	return err_set(err, EINVAL, "a section is [agent], [target NAME] or [sink NAME], not [%s]", section);
}

static int set_key(struct parse *p, const char *key, const char *value, struct err *err)
{
	int r;

	if (p->agent)
		r = set_agent(p->conf, key, value, err);
	else if (p->target)
		r = set_target(p->target, key, value, err);
	else if (p->sink)
		r = set_sink(p, key, value, err);
	else
		return err_set(err, EINVAL, "%s stands before the first section", key);
	return r ? err_prefix(err, "%s", key) : 0;
}

/* --- all of it --- */

static int finish(struct agentconf *c, struct err *err)
{
	if (!c->spool)
		c->spool = mem_strdup("/var/lib/gasflame/spool");
	if (!c->names)
		c->names = mem_strdup("{host}/{target}");
	if (!c->listen)
		c->listen = mem_strdup("127.0.0.1:9911");
	if (!strcmp(c->listen, "off")) {
		free(c->listen);
		c->listen = NULL;
	}
	if (!c->targets.n)
		return err_set(err, EINVAL, "it has no target: [target NAME]");
	if (!c->sinks.n)
		return err_set(err, EINVAL, "it has no sink: [sink NAME] and url = file:///var/lib/gasflame/captures, say");
	for (size_t i = 0; i < c->targets.n; i++) {
		struct agentconf_target *t = &c->targets.v[i];

		if (!t->what)
			t->what = mem_strdup("cpu,wait,mem");
		if (t->wildcard && t->name && !strstr(t->name, "{target}"))
			return err_set(err, EINVAL, "[target %s] is several: its name needs {target} in it", t->pattern);
		if (t->wildcard && (t->log || t->rpc))
			return err_set(err, EINVAL, "[target %s] is several: log and rpc are of one", t->pattern);
	}
	for (size_t i = 0; i < c->sinks.n; i++)
		if (!c->sinks.v[i].options.url)
			return err_set(err, EINVAL, "[sink %s] has no url", c->sinks.v[i].name);
	return 0;
}

int agentconf_parse(char *text, bool secrets, struct agentconf *ret, struct err *err)
{
	struct parse p = { .conf = ret, .secrets = secrets };
	unsigned number = 0;

	*ret = (struct agentconf){ .spool_bytes = 1ULL << 30, .memory_bytes = 100 << 20, .window_ns = 60 * second_ns, .budget_percent = 1 };
	while (text) {
		char *line = strsep(&text, "\n");
		struct conf_line l = conf_line(line);
		int r = 0;

		number++;
		if (l.kind == CONF_SECTION)
			r = open_section(&p, l.key, err);
		else if (l.kind == CONF_KEY)
			r = set_key(&p, l.key, l.value, err);
		else if (l.kind != CONF_EMPTY)
			r = err_set(err, EINVAL, "this is neither [section] nor key = value: %s", l.key);
		if (r)
			return err_prefix(err, "line %u", number);
	}
	return finish(ret, err);
}

int agentconf_read(const char *path, struct agentconf *ret, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = fd_read_path(path, AGENTCONF_BYTES, &text, &n);

	*ret = (struct agentconf){ 0 };
	if (r)
		return err_errno(err, -r, "cannot read %s", path);
	if (strlen(text) != n)
		return err_set(err, EINVAL, "%s is no text", path);
	r = agentconf_parse(text, true, ret, err);
	return r ? err_prefix(err, "%s", path) : 0;
}

void agentconf_done(struct agentconf *c)
{
	vec_done_each(&c->targets, t, free(t->pattern); free(t->name); free(t->what); free(t->release); free(t->log); free(t->client);
		      free(t->rpc); for (size_t i = 0; i < t->labels.n; i++) free((char *)t->labels.v[i]); vec_done(&t->labels));
	vec_done_each(&c->sinks, s, free(s->name); for (size_t i = 0; i < s->texts.n; i++) free(s->texts.v[i]); vec_done(&s->texts));
	free(c->spool);
	free(c->listen);
	free(c->names);
	*c = (struct agentconf){ 0 };
}

char *agentconf_fill(const char *pattern, const char *host, const char *target, const char *image)
{
	const struct {
		const char *word, *value;
	} words[] = { { "{host}", host }, { "{target}", target }, { "{image}", image } };
	struct buf b = { 0 };

	buf_puts(&b, "");
	for (const char *s = pattern; *s;) {
		size_t i = 0;

		while (i < ARRAY_LEN(words) && !str_starts(s, words[i].word))
			i++;
		if (i < ARRAY_LEN(words)) {
			buf_puts(&b, words[i].value ? words[i].value : "");
			s += strlen(words[i].word);
		} else {
			buf_putc(&b, *s++);
		}
	}
	return b.data;
}

static bool same(const char *a, const char *b)
{
	return (!a && !b) || (a && b && !strcmp(a, b));
}

bool agentconf_target_same(const struct agentconf_target *a, const struct agentconf_target *b)
{
	if (!same(a->pattern, b->pattern) || !same(a->name, b->name) || !same(a->what, b->what) || !same(a->release, b->release) ||
	    !same(a->log, b->log) || !same(a->client, b->client) || !same(a->rpc, b->rpc) || a->hz != b->hz || a->labels.n != b->labels.n)
		return false;
	for (size_t i = 0; i < a->labels.n; i++)
		if (!same(a->labels.v[i], b->labels.v[i]))
			return false;
	return true;
}
