#include "cmd/agent/instances.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/agent/levels.h"
#include "cmd/agent/windowrecorder.h"
#include "cmd/ps/psrows.h"
#include "fleet/agent/agentconf.h"
#include "fleet/agent/board.h"
#include "target/resolve.h"

enum { MOST_PAUSE_S = 300 };
static const uint64_t second_ns = 1000000000;
static const uint64_t look_ns = 10000000000;  /* for what is not there; also for those that a wildcard may match */
static const uint64_t soon_ns = 1000000000;   /* for what was there a moment ago: a restart */
static const uint64_t fixed_bytes = 40 << 20; /* of the memory: code, libraries, the other processes */
static const uint64_t least_bytes = 6 << 20;

/* --- what the board says --- */

static void set_state(struct instance *x, enum board_state state, const char *note)
{
	if (x->row->state != (uint32_t)state)
		x->row->since_wall_ns = clock_wall_ns();
	x->row->state = state;
	board_set(x->row->note, sizeof(x->row->note), note);
}

/* What is left out, for people. */
static void note_level(struct instance *x)
{
	_cleanup_free_ char *what = levels_what(x->conf, x->level);
	char text[BOARD_NOTE] = "";

	if (x->level)
		snprintf(text, sizeof(text), "to keep the budget only %s are recorded, at %llu Hz", what,
			 (unsigned long long)levels_hz(x->conf, x->level));
	x->row->level = x->level;
	board_set(x->row->note, sizeof(x->row->note), text);
}

/* --- recorders --- */

static void log_named(void *context, const char *text)
{
	const struct instance *x = context;
	_cleanup_(buf_done) struct buf name = { 0 };

	plain_add(&name, x->title); /* a process chooses its own */
	fprintf(stderr, "%s: %s\n", name.data ? name.data : "", text);
}

static uint64_t memory_share(const struct instances *all, const struct agentconf *conf)
{
	uint64_t n = MAX(all->list.n, 1), rest = conf->memory_bytes > fixed_bytes ? conf->memory_bytes - fixed_bytes : 0;

	return MAX(rest / n, least_bytes);
}

static char *fleet_name(const struct instance *x, const struct agentconf *conf)
{
	struct utsname u = { 0 };

	uname(&u);
	return agentconf_fill(x->conf->name ? x->conf->name : conf->names, u.nodename, x->title, NULL);
}

/* In the child. */
static int record(const struct instances *all, const struct instance *x, const struct agentconf *conf)
{
	_cleanup_free_ char *what = levels_what(x->conf, x->level), *name = fleet_name(x, conf);
	const struct windowrecorder_options o = {
		.target = x->target, .name = name, .release = x->conf->release, .labels = x->conf->labels.v, .what = what,
		.hz = levels_hz(x->conf, x->level), .window_ns = conf->window_ns, .memory_bytes = memory_share(all, conf),
		.budget_percent = conf->budget_percent, .log = x->conf->log, .client = x->conf->client, .rpc = x->conf->rpc,
		.spool = conf->spool, .kernel = all->kernel, .row = x->row,
	};

	return windowrecorder_run(&o);
}

static void start(struct instances *all, struct instance *x, const struct agentconf *conf)
{
	bool whole = !x->level;
	pid_t agent = getpid(), pid;
	sigset_t none;

	if (whole)
		x->level = all->first_level(all->context, x);
	set_state(x, BOARD_STARTING, "");
	note_level(x);
	if (whole && x->level)
		log_info("%s: %s", x->title, x->row->note);
	x->row->past_cpu_ns += x->row->cpu_ns;
	x->row->past_bpf_ns += x->row->bpf_ns;
	x->row->cpu_ns = x->row->bpf_ns = 0;
	x->started_ns = clock_mono_ns();
	x->rate = -1;
	pid = fork();
	if (pid < 0) {
		set_state(x, BOARD_FAILED, "no process could be started");
		x->next_ns = clock_mono_ns() + look_ns;
		return;
	}
	if (pid) {
		x->pid = x->row->pid = pid;
		return;
	}
	/* The last window is written when the agent dies, too. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != agent)
		_exit(WINDOWRECORDER_STOPPED);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	log_set_sink(log_named, x);
	_exit(record(all, x, conf));
}

void instances_again(struct instance *x)
{
	if (x->pid)
		kill(x->pid, SIGUSR2);
}

static void fail(struct instance *x, const char *note)
{
	uint64_t pause_s = MIN(5ULL << MIN(x->failures, 10), MOST_PAUSE_S);
	char text[BOARD_NOTE];

	x->failures++;
	x->next_ns = clock_mono_ns() + pause_s * second_ns;
	board_text(note, BOARD_NOTE, text, sizeof(text));
	set_state(x, BOARD_FAILED, text);
	log_warn("%s: %s; tried again in %llu s", x->title, *text ? text : "its recorder died", (unsigned long long)pause_s);
}

bool instances_ended(struct instances *all, pid_t pid, int status)
{
	for (size_t i = 0; i < all->list.n; i++) {
		struct instance *x = &all->list.v[i];
		int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		uint64_t now = clock_mono_ns();

		if (x->pid != pid)
			continue;
		x->pid = 0;
		x->row->pid = 0;
		x->row->restarts++;
		if (code == WINDOWRECORDER_GONE) {
			log_info("%s has ended", x->title);
			set_state(x, BOARD_WAITING, "it has ended");
			x->gone_ns = now;
			x->next_ns = now + soon_ns;
			x->failures = 0;
		} else if (code == WINDOWRECORDER_AGAIN || code == WINDOWRECORDER_STOPPED) {
			x->next_ns = now;
			x->failures = 0;
		} else {
			fail(x, code == WINDOWRECORDER_FAILED ? x->row->note : "");
		}
		return true;
	}
	return false;
}

/* --- who is there --- */

static struct instance *find(struct instances *all, const char *target)
{
	for (size_t i = 0; i < all->list.n; i++)
		if (!strcmp(all->list.v[i].target, target))
			return &all->list.v[i];
	return NULL;
}

static struct instance *add(struct instances *all, const struct agentconf_target *conf, const char *target, const char *title,
			    const struct agentconf *whole)
{
	struct instance x = { .conf = conf, .target = mem_strdup(target), .title = mem_strdup(title), .rate = -1 };
	_cleanup_free_ char *name = NULL;

	for (size_t i = 0; i < BOARD_TARGETS && !x.row; i++)
		if (all->board->targets[i].state == BOARD_FREE)
			x.row = &all->board->targets[i];
	if (!x.row) {
		board_set(all->board->note, sizeof(all->board->note), "more targets match than an agent records");
		free(x.target);
		free(x.title);
		return NULL;
	}
	memset(x.row, 0, sizeof(*x.row));
	name = fleet_name(&x, whole);
	board_set(x.row->name, sizeof(x.row->name), name);
	set_state(&x, BOARD_WAITING, "");
	vec_push(&all->list, x);
	return &all->list.v[all->list.n - 1];
}

static void drop(struct instances *all, size_t i)
{
	struct instance *x = &all->list.v[i];

	x->row->state = BOARD_FREE;
	free(x->target);
	free(x->title);
	memmove(x, x + 1, (--all->list.n - i) * sizeof(*x));
}

/* What `record` takes for a row of ps: a process by its name, as its pid will change. Caller frees. */
static char *target_of(const struct ps_row *row)
{
	return row->kind == PS_PROCESS ? mem_printf("name:%s", row->name) : mem_strdup(row->target);
}

static bool row_matches(const struct ps_row *row, const char *pattern)
{
	static const char *const kinds[] = { "container:", "pod:", "unit:", "name:" };
	_cleanup_free_ char *pod = row->kind == PS_POD ? container_title(&row->container) : NULL;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_starts(pattern, kinds[i])) {
			if (row->kind != (enum ps_kind)i)
				return false;
			pattern += strlen(kinds[i]);
			break;
		}
	return !fnmatch(pattern, row->name, 0) || (pod && !fnmatch(pattern, pod, 0));
}

static void match_rows(struct instances *all, const struct agentconf *conf, const struct psrows *rows)
{
	for (size_t i = 0; i < rows->list.n; i++)
		for (size_t k = 0; k < conf->targets.n; k++) {
			const struct agentconf_target *t = &conf->targets.v[k];
			_cleanup_free_ char *target = NULL;
			struct instance *x;

			if (!t->wildcard || !row_matches(&rows->list.v[i], t->pattern))
				continue;
			target = target_of(&rows->list.v[i]);
			x = find(all, target);
			if (!x)
				x = add(all, t, target, rows->list.v[i].name, conf);
			if (x)
				x->listed = true;
			break; /* the first section that matches has it */
		}
}

/* Those that wildcards match. */
static void look_at_wildcards(struct instances *all, const struct agentconf *conf)
{
	struct psrows rows = { 0 };
	bool any = false;

	for (size_t i = 0; i < conf->targets.n; i++)
		any |= conf->targets.v[i].wildcard;
	if (!any || psrows_read(0, false, &rows) < 0)
		return;
	for (size_t i = 0; i < all->list.n; i++)
		all->list.v[i].listed = false;
	match_rows(all, conf, &rows);
	psrows_done(&rows);
	for (size_t i = all->list.n; i-- > 0;)
		if (all->list.v[i].conf && all->list.v[i].conf->wildcard && !all->list.v[i].listed && !all->list.v[i].pid)
			drop(all, i);
}

static bool is_there(struct instance *x)
{
	struct target_found found;
	struct err err = { 0 };

	if (target_find(x->target, &found, &err) < 0) {
		set_state(x, BOARD_WAITING, err.text);
		return false;
	}
	target_found_done(&found);
	return true;
}

/* Has this just ended? A restart is to be seen from its start. */
static uint64_t pause_of(const struct instance *x, uint64_t now)
{
	return x->gone_ns && now < x->gone_ns + look_ns ? soon_ns : look_ns;
}

uint64_t instances_look(struct instances *all, const struct agentconf *conf)
{
	static uint64_t next_wildcards;
	uint64_t now = clock_mono_ns(), next = now + look_ns;

	if (now >= next_wildcards) {
		look_at_wildcards(all, conf);
		next_wildcards = clock_mono_ns() + look_ns;
	}
	for (size_t i = all->list.n; i-- > 0;) {
		struct instance *x = &all->list.v[i];

		if (x->pid)
			continue;
		if (x->unwanted) {
			drop(all, i);
			continue;
		}
		if (now >= x->next_ns) {
			if (is_there(x))
				start(all, x, conf);
			else
				x->next_ns = now + pause_of(x, now);
		}
		if (!x->pid)
			next = MIN(next, MAX(x->next_ns, now + soon_ns));
	}
	return next;
}

/* --- the configuration --- */

static const struct agentconf_target *find_section(const struct agentconf *conf, const char *pattern)
{
	for (size_t i = 0; i < conf->targets.n; i++)
		if (!strcmp(conf->targets.v[i].pattern, pattern))
			return &conf->targets.v[i];
	return NULL;
}

static void end_recorder(struct instance *x, int signal)
{
	if (x->pid)
		kill(x->pid, signal);
}

void instances_configure(struct instances *all, const struct agentconf *old, const struct agentconf *conf)
{
	bool whole = old && (strcmp(old->names, conf->names) || strcmp(old->spool, conf->spool) || old->window_ns != conf->window_ns ||
			     old->memory_bytes != conf->memory_bytes || old->budget_percent != conf->budget_percent);

	for (size_t i = 0; i < all->list.n; i++) {
		struct instance *x = &all->list.v[i];
		const struct agentconf_target *t = x->conf ? find_section(conf, x->conf->pattern) : NULL;

		if (!t) {
			x->unwanted = true;
			x->conf = NULL;
			end_recorder(x, SIGTERM);
			continue;
		}
		if (whole || !agentconf_target_same(t, x->conf)) {
			_cleanup_free_ char *name = NULL;

			x->level = 0;
			x->conf = t;
			name = fleet_name(x, conf);
			board_set(x->row->name, sizeof(x->row->name), name);
			end_recorder(x, SIGUSR2);
		}
		x->conf = t;
	}
	for (size_t i = 0; i < conf->targets.n; i++) {
		const struct agentconf_target *t = &conf->targets.v[i];
		struct instance *x = t->wildcard ? NULL : find(all, t->pattern);

		if (x) {
			x->unwanted = false;
			x->conf = t;
		} else if (!t->wildcard) {
			add(all, t, t->pattern, strchr(t->pattern, ':') ? strchr(t->pattern, ':') + 1 : t->pattern, conf);
		}
	}
}

void instances_stop(struct instances *all)
{
	for (size_t i = 0; i < all->list.n; i++)
		end_recorder(&all->list.v[i], SIGTERM);
}

size_t instances_left(const struct instances *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->list.n; i++)
		n += all->list.v[i].pid != 0;
	return n;
}

void instances_done(struct instances *all)
{
	while (all->list.n)
		drop(all, all->list.n - 1);
	vec_done(&all->list);
}
