/*
 * limit.c - `limit`: a program in a cgroup with a limit of memory, recorded until the kernel kills it.
 *
 * The program is recorded as `run` does it; beside that the cgroup and the kernel's
 * log are watched (collect/mem/oomwatch.h). Nothing is left behind: the cgroup is
 * removed here, or, if we are killed, by the guard (target/cgroup/limitgroup.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/recording/recording.h"
#include "collect/mem/oomwatch.h"
#include "export/section/oomtext.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/cgroup/limitgroup.h"
#include "target/resolve.h"
#include "target/trace/tracefs.h"

enum {
	SAMPLES = 16384, /* that a heap as large as the limit is to give */
	SAMPLE_LEAST = 4 << 10,
	SAMPLE_MOST = 512 << 10,
	EARLY_NS = 500000000,
};

struct limit {
	struct recording recording;
	struct limitgroup cgroup;
	struct limitgroup_memory before;
	struct oomwatch *watch;
	uint64_t memory, swap;
	const char *swap_text;
	uint64_t began_ns; /* the program runs: the first look, since the recording began */
	bool made;         /* we made the cgroup */
};

/* --- while it is recorded --- */

static void look(void *context, uint64_t time_ns)
{
	struct limit *l = context;

	/* The profile is made only when the recording begins. */
	if (!l->watch) {
		l->watch = oomwatch_new(l->recording.profile, &l->cgroup);
		l->began_ns = time_ns;
	}
	oomwatch_look(l->watch, time_ns);
}

static void finish(void *context, struct profile *p)
{
	struct limit *l = context;

	if (!l->watch)
		l->watch = oomwatch_new(p, &l->cgroup);
	oomwatch_finish(l->watch, &l->before, p->duration_ns);
}

/* --- before --- */

/* The limits of the group that another process is in. */
static int take_limits(struct limit *l, const char *name, struct limitgroup *ret, struct err *err)
{
	struct proc_ids found = { 0 };
	struct limitgroup_memory m;
	int r = target_resolve(name, &found, err);

	if (r < 0)
		return r;
	r = limitgroup_of(found.list.v[0], ret, err);
	if (!r && limitgroup_read(ret, &m) < 0)
		r = err_set(err, ENOTSUP, "the cgroup of %s, %s, has no memory controller", name, ret->path);
	if (!r && !l->memory && m.limit == LIMITGROUP_UNLIMITED)
		r = err_set(
			err, EINVAL,
			"the cgroup of %s, %s, has no limit of memory: give one with --memory and a command",
			name, ret->path);
	vec_done(&found.list);
	if (r < 0)
		return r;
	if (!l->memory)
		l->memory = m.limit;
	if (!l->swap_text)
		l->swap = m.swap_limit;
	return 0;
}

static int make_group(struct limit *l, struct err *err)
{
	_cleanup_free_ char *name = mem_printf("gasflame-limit-%d", getpid());
	int r = limitgroup_make(name, &l->cgroup, err);

	l->made = !r;
	r = r ?: limitgroup_limit(&l->cgroup, l->memory, l->swap, err);
	return r ?: limitgroup_guard(&l->cgroup, err);
}

/* Starts the program in the cgroup; it waits before its exec. */
static int start_program(struct limit *l, char **command, struct err *err)
{
	int r = make_group(l, err);

	if (r)
		return r;
	r = recording_command(&l->recording, command, err);
	return r ?: limitgroup_enter(&l->cgroup, l->recording.launch.pid, err);
}

/* --- after --- */

static void say_report(struct limit *l)
{
	struct profile *p = l->recording.profile;
	_cleanup_(buf_done) struct buf out = { 0 };

	oomtext_put(p, 0, &out);
	if (out.n && out.data[out.n - 1] == '\n')
		out.data[out.n - 1] = 0;
	if (out.n)
		log_lines(out.data);
}

/* Reports how it ended, in one sentence. */
static void say_end(struct limit *l, int code)
{
	struct profile *p = l->recording.profile;
	uint64_t kills = 0, peak = 0;
	char limit[32], most[32], after[32];
	struct limitgroup_memory now;

	if (limitgroup_read(&l->cgroup, &now) >= 0) {
		kills = now.oom_kills - MIN(l->before.oom_kills, now.oom_kills);
		peak = now.peak;
	}
	str_bytes(limit, l->memory);
	if (!kills && l->made)
		log_info("The program ended with status %d; the limit of %s killed nothing.", code, limit);
	else if (kills && !l->made)
		log_info("The limit of %s of the cgroup %s was reached: the kernel killed in it.", limit,
			 l->cgroup.path);
	if (!kills || !l->made)
		return;
	if (code == 137)
		log_info("The program was killed at its limit of %s: the exit status is 137 (128 + SIGKILL).",
			 limit);
	else
		log_info("At the limit of %s the kernel killed a process of it; the program ended with "
			 "status %d.",
			 limit, code);
	/* On a busy machine even its exec takes time. */
	if (p && profile_counter(p, KEY_LIMIT_KILLED_NS) < l->began_ns + EARLY_NS)
		log_warn("it was killed %s after its start, with at most %s in use: the limit is smaller "
			 "than what it needs to start; raise --memory",
			 str_duration(after, profile_counter(p, KEY_LIMIT_KILLED_NS)), str_bytes(most, peak));
}

static void end(struct limit *l)
{
	oomwatch_free(l->watch);
	/* A program that still waits before its exec gives up now, and leaves the group. */
	recording_done(&l->recording);
	if (l->made && l->cgroup.path && limitgroup_remove(&l->cgroup) < 0)
		log_info("%zu processes are still in the cgroup %s: it is removed when they have ended.",
			 limitgroup_processes(&l->cgroup), l->cgroup.path);
	limitgroup_done(&l->cgroup);
}

static int record(struct limit *l, bool program, struct err *err)
{
	int code;

	limitgroup_read(&l->cgroup, &l->before);
	l->recording.session.look = look;
	l->recording.finish = finish;
	l->recording.session.look_context = l->recording.context = l;
	code = recording_run(&l->recording, err);
	/* The program was killed before we could attach, which is the result. */
	if (code == EXIT_ERROR && program) {
		launch_done(&l->recording.launch);
		launch_poll(&l->recording.launch);
		if (launch_exit_code(&l->recording.launch) == 137)
			code = EXIT_OK;
	} else {
		say_report(l);
	}
	code = recording_wait(&l->recording, code);
	/* The program's own, however well it was recorded: the quality line says that. */
	if (program && code == EXIT_QUALITY)
		code = launch_exit_code(&l->recording.launch);
	say_end(l, code);
	return code;
}

static int check_arguments(struct limit *l, const char *group_of, char **command, int operands)
{
	if (operands || (command && !*command) || (!command && !group_of))
		log_error("say which program to limit: gasflame limit --memory 8G -- ./node --args");
	else if (command && !l->memory && !group_of)
		log_error("say how much memory it may have: --memory 8G, or --cgroup-of TARGET for as much "
			  "as that one has");
	else if (!command && (l->memory || l->swap_text))
		log_error("the limit of a running program is not changed: --cgroup-of TARGET alone watches "
			  "it at the limit that it has; a command after -- is run with another one");
	else if (l->swap_text && str_parse_size(l->swap_text, &l->swap) < 0)
		log_error("--swap takes a size: 0, 512M, 2G (not %s)", l->swap_text);
	else
		return EXIT_OK;
	return EXIT_USAGE;
}

static int limit_main(const struct command *c, int argc, char **argv)
{
	const char *what = NULL, *group_of = NULL;
	uint64_t heap_interval = 0, duration_ns = 0;
	struct limit l = { .recording = RECORDING_INIT, .swap = LIMITGROUP_UNLIMITED, .cgroup = { .guard = -1 } };
	struct option_list symbols = { 0 };
	struct err err = { 0 };
	const struct option_spec options[] = {
		{ 'm', "memory", OPTION_SIZE, &l.memory, "BYTES", "the limit: 512M, 8G" },
		{ 0, "swap", OPTION_STRING, &l.swap_text, "BYTES",
		  "so much of it may be swapped out beyond the limit; 0: nothing; by default as much as the "
		  "machine has" },
		{ 0, "cgroup-of", OPTION_STRING, &group_of, "TARGET",
		  "with a command: the limits that TARGET has, where none are given; without: watch TARGET "
		  "itself in the cgroup and at the limit that it has" },
		{ 'e', "event", OPTION_STRING, &what, "WHAT",
		  "what to record, as in gasflame record; by default heap,fault, of a running TARGET fault" },
		{ 'd', "duration", OPTION_DURATION, &duration_ns, "TIME",
		  "end the recording after this time; 0: when the program ends" },
		{ 'o', "output", OPTION_STRING, &l.recording.output, "FILE",
		  "where to; the default is profiling/<target>/limit-<date>.gasflame" },
		{ 0, "heap-sample", OPTION_SIZE, &heap_interval, "BYTES",
		  "mean distance of sampled allocations; 0: a 16,384th of the limit, from 4K to 512K; 1: "
		  "each one" },
		{ 0, "symbols", OPTION_LIST, &symbols, "PATH",
		  COMMAND_SYMBOLS },
		{ 0 },
	};
	char **command = recording_split(&argc, argv);
	int first = options_parse(c, options, argc, argv), code;
	struct recording *r = &l.recording;
	struct limitgroup theirs = { .guard = -1 };
	const char *tracefs;
	char *events;
	bool seen;

	if (first < 0)
		return -first - 1;
	code = check_arguments(&l, group_of, command, argc - first);
	if (code)
		return code;
	/* The stack of a kill is that of the allocation which was one too many. The rest is known without. */
	seen = !tracefs_root(&tracefs, NULL);
	if (!seen)
		log_warn("the process that asks for the last page will not be known: that needs tracefs (mount -t tracefs tracefs "
			 "/sys/kernel/tracing)");
	events = mem_printf("%s%s", what ? what : command ? "heap,fault" : "fault", seen ? ",oom:mark_victim" : "");
	r->session.what = events;
	r->session.event_rate = 20000;
	r->session.hz = 999;
	r->session.max_overhead = SESSION_MAX_OVERHEAD;
	r->session.duration_ns = duration_ns;
	r->session.heap_optional = !what;
	r->session.heap_ours = true;
	r->symbols.paths = symbols.list.v;
	r->name = "limit";
	code = group_of ? take_limits(&l, group_of, &theirs, &err) : 0;
	r->session.heap_steady = true;
	r->session.heap_interval =
		heap_interval ? heap_interval : MAX(SAMPLE_LEAST, MIN(SAMPLE_MOST, l.memory / SAMPLES));
	if (!code && command) {
		code = start_program(&l, command, &err);
	} else if (!code) {
		l.cgroup = theirs;
		theirs = (struct limitgroup){ .guard = -1 };
		code = recording_find(r, &(struct option_list){ 0 }, (char **)&group_of, 1, &err);
	}
	code = code < 0 ? command_failed(&err) : record(&l, command != NULL, &err);
	end(&l);
	limitgroup_done(&theirs);
	vec_done(&symbols.list);
	free(events);
	return code;
}

const struct command command_limit = {
	.name = "limit",
	.summary = "run a program in a memory limit, and see what filled it",
	.usage = "[options] --memory BYTES -- COMMAND [ARGUMENT...]",
	.describe = "Starts a program in a cgroup of its own (version 1 or 2) that has a limit of memory, "
		    "and records the way to it: ten times a second what is in use, anonymous, of files and "
		    "of the kernel, and the heap and the page faults by stack. If the kernel kills at the "
		    "limit, the report says what was alive in the heap and whose it is, how large the cache "
		    "was, who asked for the last page, and what the kernel's log has about it.\n\n"
		    "The exit status is the program's: 137 when it was killed. The cgroup is removed at the "
		    "end, also after Ctrl-C; if gasflame itself is killed, a small child of it waits for the "
		    "program's end and removes it. It needs root, or a cgroup that was delegated to the user.",
	.example = "gasflame limit --memory 8G --swap 0 -- ./node --datadir /data\n"
		   "gasflame limit --cgroup-of reth",
	.run = limit_main,
	.keeps_rights = true,
};
