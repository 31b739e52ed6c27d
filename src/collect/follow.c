#include "collect/follow.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "collect/collector.h"
#include "collect/process/processes.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/cgroup/cgroupfile.h"
#include "target/proc.h"
#include "target/resolve.h"

enum {
	GROUP_AGAIN_MS = 20,   /* one small file */
	NAME_AGAIN_MS = 100,   /* all of /proc, or a question to an engine */
	NAME_LATER_MS = 1000,  /* once it is away for long */
	LONG_MS = 10000,
};

struct follow {
	struct session *session;
	struct proc_ids mains; /* at the last look */
	uint32_t wanted;       /* how many there were when all was well */
	struct map codes;      /* pid to how it ended: 1 + the code of wait() */
	struct map times;      /* and when */
	bool away;
	uint64_t away_ns;      /* since then */
	uint64_t next_group_ns, next_name_ns;
	uint32_t restarts;
	char *ended;           /* in words: how the last one did */
};

struct follow *follow_new(struct session *s)
{
	const struct session_options *o = s->options;
	struct follow *f;

	if (!s->engine || (!o->follow && !o->group_count))
		return NULL;
	f = mem_alloc(sizeof(*f));
	f->session = s;
	f->wanted = processes_mains(s->processes, &f->mains);
	return f;
}

void follow_free(struct follow *f)
{
	if (!f)
		return;
	vec_done(&f->mains.list);
	map_done(&f->codes);
	map_done(&f->times);
	free(f->ended);
	free(f);
}

bool follow_is_away(const struct follow *f)
{
	return f && f->away;
}

void follow_exit(struct follow *f, const struct shared_exit *x)
{
	if (!f)
		return;
	*map_put(&f->codes, x->pid, 0) = 1 + (uint64_t)x->code;
	*map_put(&f->times, x->pid, 0) = x->time_ns;
}

static char *end_in_words(uint32_t code)
{
	const char *name = WIFSIGNALED(code) ? sigabbrev_np(WTERMSIG(code)) : NULL;

	if (WIFSIGNALED(code))
		return name ? mem_printf("was killed by SIG%s", name) :
			      mem_printf("was killed by signal %d", WTERMSIG(code));
	return mem_printf("exited with status %d", WEXITSTATUS(code));
}

/* Notes the processes that ended since the last look: how the first of them ended, and when. */
static void note_end(struct follow *f, uint64_t now)
{
	uint64_t at = 0;

	free(f->ended);
	f->ended = NULL;
	for (size_t i = 0; i < f->mains.list.n; i++) {
		uint64_t *code = map_get(&f->codes, f->mains.list.v[i]), *time = map_get(&f->times, f->mains.list.v[i]);

		if (!code)
			continue;
		if (!f->ended)
			f->ended = end_in_words(*code - 1);
		at = MAX(at, *time);
	}
	if (!f->ended)
		f->ended = mem_strdup("ended");
	f->away_ns = at ? at : now;
}

/* Returns whether the process is an engine's setup before the program itself. */
static bool is_setup(pid_t pid)
{
	struct proc_stat st;

	return proc_stat(pid, &st) < 0 || str_starts(st.name, "runc") || str_starts(st.name, "crun") ||
	       str_starts(st.name, "conmon");
}

/* Where they stand is where they have stood. */
static pid_t tell(struct follow *f, pid_t first)
{
	struct session *s = f->session;

	for (size_t i = 0; first && i < COLLECTOR_COUNT; i++)
		if (s->running[i] && collector_table[i]->joined)
			collector_table[i]->joined(s);
	return first;
}

/* Everybody in the groups. The first pid that is new, 0 = none is. */
static pid_t join_groups(struct follow *f, bool main, uint64_t now)
{
	const struct session_options *o = f->session->options;
	pid_t first = 0;

	for (size_t i = 0; i < o->group_count; i++) {
		_cleanup_free_ char *text = cgroupfile_read(o->groups[i], "cgroup.procs");

		for (char *s = text, *end; s && *s; s = end + (*end == '\n')) {
			pid_t pid = strtol(s, &end, 10);

			if (end == s)
				break;
			if (pid > 0 && !processes_knows(f->session->processes, pid) && !is_setup(pid) &&
			    processes_join(f->session->processes, pid, main, now) && !first)
				first = pid;
		}
	}
	return tell(f, first);
}

/* Joins the processes that the names match now. A name may also match the command line that restarts it:
 * only a process that runs the same program, or has the same name, is taken. */
static pid_t join_names(struct follow *f, uint64_t now)
{
	const struct session_options *o = f->session->options;
	pid_t first = 0;

	for (size_t i = 0; i < o->name_count; i++) {
		struct proc_ids found = { 0 };

		if (target_resolve(o->names[i], &found, NULL) < 0)
			continue;
		for (size_t k = 0; k < found.list.n; k++)
			if (processes_looks_like(f->session->processes, found.list.v[k]) &&
			    processes_join(f->session->processes, found.list.v[k], true, now) && !first)
				first = found.list.v[k];
		vec_done(&found.list);
	}
	return tell(f, first);
}

static void add_mark(struct follow *f, uint64_t from, uint64_t to, const char *text)
{
	struct profile *p = f->session->profile;
	uint64_t start = f->session->start_mono_ns;

	profile_add_mark(p, &(struct profile_mark){ .start_ns = from > start ? from - start : 0,
						    .end_ns = to > start ? to - start : 0,
						    .name = profile_string(p, text), .kind = profile_string(p, "restart"),
						    .thread = PROFILE_NONE });
	profile_count(p, KEY_RESTARTS_NOT_RUNNING_NS, to > from ? to - from : 0);
}

/* They are there again. */
static void note_return(struct follow *f, pid_t first, uint64_t now)
{
	uint64_t down = now > f->away_ns ? now - f->away_ns : 0;
	_cleanup_free_ char *text = NULL;
	char time[32];

	f->restarts++;
	text = mem_printf("restart %u: %s, not running for %s, then pid %d", f->restarts, f->ended,
			  str_duration(time, down), (int)first);
	add_mark(f, f->away_ns, now, text);
	profile_count(f->session->profile, KEY_RESTARTS, 1);
	log_info("%s.", text);
	f->away = false;
	vec_clear(&f->mains.list);
	f->wanted = processes_mains(f->session->processes, &f->mains);
}

void follow_step(struct follow *f, uint64_t now)
{
	pid_t first = 0;

	if (!f || !f->away)
		return;
	if (now >= f->next_group_ns) {
		first = join_groups(f, true, now);
		f->next_group_ns = now + GROUP_AGAIN_MS * 1000000ULL;
	}
	if (!first && now >= f->next_name_ns) {
		bool later = now > f->away_ns + LONG_MS * 1000000ULL;

		first = join_names(f, now);
		f->next_name_ns = now + (later ? NAME_LATER_MS : NAME_AGAIN_MS) * 1000000ULL;
	}
	if (first)
		note_return(f, first, now);
}

/* Some of several processes have ended, the others go on: the missing ones may come back, too. */
static void look_for_missing(struct follow *f, uint32_t mains, uint64_t now)
{
	pid_t first;

	if (mains >= f->wanted || now < f->next_name_ns)
		return;
	f->next_name_ns = now + NAME_LATER_MS * 1000000ULL;
	first = join_names(f, now);
	if (first)
		log_info("pid %d has joined.", (int)first);
}

bool follow_look(struct follow *f, uint64_t now, uint32_t alive)
{
	uint32_t mains;

	if (!f)
		return alive;
	mains = processes_mains(f->session->processes, NULL);
	if (!f->session->options->follow) {
		if (alive)
			join_groups(f, false, now);
		return alive;
	}
	if (!f->away && !mains) {
		note_end(f, now);
		f->away = true;
		f->next_group_ns = f->next_name_ns = 0;
		log_info("The target %s; waiting for it to run again (Ctrl-C ends).", f->ended);
		return true;
	}
	if (!f->away) {
		join_groups(f, false, now);
		look_for_missing(f, mains, now);
		vec_clear(&f->mains.list);
		processes_mains(f->session->processes, &f->mains);
	}
	return true;
}

void follow_finish(struct follow *f, uint64_t now)
{
	_cleanup_free_ char *text = NULL;
	char time[32];

	if (!follow_is_away(f))
		return;
	text = mem_printf("%s, not running for %s, to the end of the recording", f->ended,
			  str_duration(time, now > f->away_ns ? now - f->away_ns : 0));
	add_mark(f, f->away_ns, now, text);
}
