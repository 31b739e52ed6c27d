#include "cmd/recording/flight.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/flight/keep.h"
#include "cmd/recording/flightwriter.h"
#include "cmd/recording/output.h"
#include "cmd/recording/recorder.h"
#include "cmd/recording/recording.h"
#include "collect/session.h"
#include "elf/worker/worker.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/trace/tracefs.h"

enum { LAST = 5 /* looks over which shares of time are taken, about a second apart */ };
static const uint64_t second_ns = 1000000000, oom_patience_ns = 3000000000;
static const char victim_event[] = "oom:mark_victim";

/* Sums over all threads at a look. */
struct sums {
	uint64_t time_ns, run_ns, queue_ns, cpu_ns;
};

struct flight {
	struct recording *r;
	const struct flight_options *o;
	struct rules *rules;
	struct session *session;
	struct keep keep;
	struct flightwriter *writer;
	struct rule_facts facts;
	char *slow_block;      /* facts.block_name */
	struct sums last[LAST + 1]; /* newest first */
	size_t last_count;
	uint64_t cpu_ns;       /* of samples, so far */
	uint64_t looked_ns, ruled_ns;
	uint64_t oom_kills;    /* of the cgroups, so far */
	uint64_t oom_ns;       /* when one was seen that is not written yet, 0 = none */
	bool had_process;      /* and --follow waits for the next */
	bool told_short, told_tables;
	int signals;           /* of write_wanted: those that are done with */
};

static volatile sig_atomic_t write_wanted; /* SIGUSR1 came so often */

static void on_user(int signal)
{
	if (signal == SIGUSR1)
		write_wanted++;
}

/* --- what there is to be seen --- */

static uint32_t find_series(const struct profile *p, const char *key)
{
	for (size_t i = 0; i < p->series.n; i++)
		if (!strcmp(profile_str(p, p->series.v[i].name), key))
			return i;
	return PROFILE_NONE;
}

static void see_blocks(struct flight *f)
{
	const struct profile *p = f->r->profile;

	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		if (strcmp(profile_str(p, m->kind), "block"))
			continue;
		f->facts.last_block_ns = MAX(f->facts.last_block_ns, m->end_ns);
		if (m->end_ns - m->start_ns <= f->facts.block_ns)
			continue;
		f->facts.block_ns = m->end_ns - m->start_ns;
		free(f->slow_block);
		f->facts.block_name = f->slow_block = mem_strdup(profile_str(p, m->name));
	}
}

static void see_memory(struct flight *f)
{
	const struct profile *p = f->r->profile;
	uint32_t rss = find_series(p, KEY_MEM_RSS), limit = find_series(p, KEY_CGROUP_MEMORY_LIMIT);

	if (!f->facts.limit_bytes)
		f->facts.limit_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_point *x = &p->points.v[i];

		if (x->series == rss) {
			f->facts.rss_bytes = MAX(x->value, 0);
			f->facts.memory_known = true;
		} else if (x->series == limit && x->value > 0) {
			f->facts.limit_bytes = x->value;
		}
	}
}

/* A kill may be on behalf of another group; those of the target are in its threads, or counted by its cgroup. */
static void see_samples(struct flight *f)
{
	const struct profile *p = f->r->profile;
	uint32_t cpu = profile_find_event(p, "cpu", "ns"), victim = profile_find_event(p, victim_event, NULL);

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		if (s->event == cpu)
			f->cpu_ns += s->value;
		else if (s->event == victim && p->processes.v[p->threads.v[s->thread].process].pid && !f->oom_ns)
			f->oom_ns = MAX(s->time_ns, 1);
	}
}

static uint64_t count_oom_kills(const struct profile *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->counters.n; i++)
		if (key_rest(KEY_CGROUP_MEMORY_OOM_KILLS_OF, profile_str(p, p->counters.v[i].name)))
			n += p->counters.v[i].value;
	return n;
}

static void see_kills(struct flight *f, uint64_t now_ns)
{
	uint64_t kills = count_oom_kills(f->r->profile);

	if (kills > f->oom_kills && !f->oom_ns)
		f->oom_ns = MAX(now_ns, 1);
	f->oom_kills = kills;
}

static bool any_alive(const struct profile *p)
{
	for (size_t i = 0; i < p->processes.n; i++)
		if (p->processes.v[i].pid && !p->processes.v[i].end_ns)
			return true;
	return false;
}

/* Moves new rows out of the profile, and looks at them on the way. */
static void take_rows(struct flight *f)
{
	see_blocks(f);
	see_memory(f);
	see_samples(f);
	keep_take(&f->keep);
}

static void note_sums(struct flight *f)
{
	const struct profile *p = f->r->profile;
	struct sums s = { .time_ns = f->keep.now.time_ns, .cpu_ns = f->cpu_ns };

	for (size_t i = 0; i < p->threads.n; i++) {
		s.run_ns += p->threads.v[i].run_ns;
		s.queue_ns += p->threads.v[i].queue_ns;
	}
	memmove(f->last + 1, f->last, LAST * sizeof(*f->last));
	f->last[0] = s;
	f->last_count = MIN(f->last_count + 1, ARRAY_LEN(f->last));
}

/* Brings the window up to this moment. */
static void look_closely(struct flight *f)
{
	struct profile *tally = profile_new();

	take_rows(f);
	session_peek(f->session);
	session_tally(f->session, tally);
	profile_count_set(tally, KEY_SELF_CPU_NS, clock_process_cpu_ns());
	keep_look(&f->keep, tally);
	keep_limit(&f->keep);
	profile_free(tally);
	note_sums(f);
	f->looked_ns = f->keep.now.time_ns;
}

/* --- incidents --- */

static void keep_file(void *incident, uint32_t module, int fd)
{
	struct flightwriter_incident *i = incident;

	vec_push(&i->files, (struct flightwriter_file){ module, fd });
}

/* The mark stays in what is kept: later captures show earlier incidents. */
static void add_incident(struct flight *f, const char *reason, uint64_t time_ns)
{
	struct flightwriter_incident i = { .reason = mem_strdup(reason), .time_ns = time_ns };
	struct profile *p = f->r->profile;

	look_closely(f);
	keep_snap(&f->keep, &i.snap);
	session_files(f->session, keep_file, &i);
	flightwriter_add(f->writer, &i);
	profile_add_mark(p, &(struct profile_mark){ .start_ns = time_ns, .end_ns = time_ns, .name = profile_string(p, reason),
						    .kind = profile_string(p, "incident"), .thread = PROFILE_NONE });
	flightwriter_poll(f->writer);
}

static void look_at_shares(struct flight *f)
{
	const struct sums *a = &f->last[f->last_count - 1], *b = &f->last[0];
	uint64_t run = b->run_ns - MIN(a->run_ns, b->run_ns), queue = b->queue_ns - MIN(a->queue_ns, b->queue_ns);

	f->facts.queue_known = f->last_count > LAST && session_records(f->session, "wait");
	f->facts.cpu_known = f->last_count > LAST && b->time_ns > a->time_ns;
	f->facts.queue_percent = str_percent(queue, queue + run);
	f->facts.cpu_percent = str_percent(b->cpu_ns - a->cpu_ns, b->time_ns - a->time_ns);
}

static void look_at_rules(struct flight *f, uint64_t now_ns)
{
	_cleanup_free_ char *reason = NULL;

	f->facts.now_ns = now_ns;
	if (f->last_count)
		look_at_shares(f);
	if (rules_look(f->rules, &f->facts, &reason))
		add_incident(f, reason, now_ns);
	f->facts.block_ns = 0;
}

/* The kill of a child, say: that of the target is told by its end. */
static void look_at_kills(struct flight *f, uint64_t now_ns)
{
	see_kills(f, now_ns);
	if (!f->oom_ns || now_ns < f->oom_ns + oom_patience_ns)
		return;
	add_incident(f, "OOM kill", f->oom_ns);
	f->oom_ns = 0;
}

static const char *end_reason(struct flight *f, uint64_t now_ns)
{
	see_kills(f, now_ns);
	return f->oom_ns ? "OOM kill: the target ended" : "the target ended";
}

/* With --follow the recording goes on when the target has ended. */
static void look_for_end(struct flight *f, uint64_t now_ns)
{
	bool alive = any_alive(f->r->profile);

	if (f->had_process && !alive && f->r->session.follow) {
		add_incident(f, end_reason(f, now_ns), now_ns);
		f->oom_ns = 0;
	}
	f->had_process = alive;
}

/* --- hooks of the session --- */

static bool wants_each_second(const struct flight *f)
{
	return rules_have(f->rules, RULE_QUEUE) || rules_have(f->rules, RULE_CPU);
}

/* Once each. */
static void say_short(struct flight *f)
{
	uint64_t tables = keep_table_bytes(&f->keep);
	char size[32], span[32], asked[32];

	if (!f->told_short && f->keep.dropped_pieces) {
		f->told_short = true;
		log_warn("--keep-size %s is not enough for %s, even as sums: now %s are kept", str_bytes(size, f->keep.max_bytes),
			 str_duration(asked, f->o->keep_ns), str_duration(span, keep_span_ns(&f->keep)));
	}
	if (!f->told_tables && f->keep.max_bytes && tables > f->keep.max_bytes / 2) {
		f->told_tables = true;
		log_warn("tables of stacks and threads, which only grow, have %s, over half of --keep-size: start the recorder anew at a "
			 "good moment", str_bytes(size, tables));
	}
}

static int tick(void *context, struct profile *p)
{
	struct flight *f = context;

	take_rows(f);
	if (f->r->launch.pid > 0 && launch_poll(&f->r->launch))
		session_check_soon();
	return 0;
}

/* Ten times a second; most of it about once a second. */
static void look(void *context, uint64_t now_ns)
{
	struct flight *f = context;

	flightwriter_poll(f->writer);
	for (; f->signals != write_wanted; f->signals++)
		add_incident(f, "SIGUSR1", now_ns);
	if (now_ns < f->ruled_ns + second_ns)
		return;
	f->ruled_ns = now_ns;
	if (wants_each_second(f) || now_ns >= f->looked_ns + f->keep.step_ns)
		look_closely(f);
	else
		take_rows(f);
	look_at_rules(f, now_ns);
	look_at_kills(f, now_ns);
	look_for_end(f, now_ns);
	say_short(f);
}

static void progress(void *context, const char *how)
{
	struct flight *f = context;
	uint64_t written = flightwriter_written(f->writer);
	char span[32], size[32], kept[64] = "";

	str_duration(span, f->o->keep_ns);
	if (f->keep.dropped_pieces || keep_span_ns(&f->keep) < f->o->keep_ns)
		snprintf(kept, sizeof(kept), " (so far %.0f s)", keep_span_ns(&f->keep) / 1e9);
	log_progress("keeping the last %s%s: %s, %llu capture%s written%s%s", span, kept,
		     str_bytes(size, keep_row_bytes(&f->keep) + keep_table_bytes(&f->keep)), (unsigned long long)written,
		     written == 1 ? "" : "s", flightwriter_waiting(f->writer) ? ", writing" : "", how);
}

/* Writing captures must not thin what is recorded. */
static uint64_t aside(void *context)
{
	struct flight *f = context;

	return f->writer ? flightwriter_cpu_ns(f->writer) : 0;
}

/* --- from beginning to end --- */

static void on_hurry(int signal)
{
	flightwriter_hurry();
}

static char *last_reason(struct flight *f, uint64_t now_ns)
{
	struct recording *r = f->r;
	const char *gone = end_reason(f, now_ns);

	if (r->end == SESSION_END_TIME)
		return mem_strdup("end of the recording");
	if (r->end != SESSION_END_GONE)
		return mem_strdup("stopped");
	if (r->launch.pid > 0 && launch_poll(&r->launch) && WIFSIGNALED(r->launch.status))
		return mem_printf("%s: signal %d (%s)", gone, WTERMSIG(r->launch.status), strsignal(WTERMSIG(r->launch.status)));
	return mem_strdup(gone);
}

/* What is left when it ends is an incident, too. */
static void write_last(struct flight *f)
{
	struct profile *p = f->r->profile;
	struct flightwriter_incident i = { .last = true };

	session_finish(f->session, keep_file, &i);
	i.kernel = session_take_symbols(f->session);
	recorder_hurry(false);
	recorder_drop_more_rights(f->r->path);
	profile_count_set(p, KEY_SELF_CPU_NS, clock_process_cpu_ns());
	take_rows(f);
	keep_look(&f->keep, NULL);
	i.time_ns = p->duration_ns;
	i.reason = last_reason(f, i.time_ns);
	keep_snap(&f->keep, &i.snap);
	flightwriter_add(f->writer, &i);
}

static int record(struct flight *f, struct err *err)
{
	struct recording *r = f->r;
	char span[32], size[32];
	int e = recording_start(r, f->session, on_user, err), code;

	if (e < 0)
		return e;
	log_info("Recording %s (%s%s), keeping the last %s in memory, %s at most.", r->who.target, r->session.what,
		 session_has_bpf(f->session) ? "" : ", without BPF", str_duration(span, f->o->keep_ns), str_bytes(size, f->o->max_bytes));
	if (r->launch.pid <= 0)
		log_info("kill -USR1 %d writes them; so does each rule of --when, and the end.", (int)getpid());
	r->end = session_loop(f->session);
	write_last(f);
	log_progress_end();
	recording_ended(r);
	recording_say_end(r);
	signal(SIGINT, on_hurry);
	code = flightwriter_finish(f->writer);
	signal(SIGINT, SIG_DFL);
	if (code == EXIT_OK && r->end == SESSION_END_GONE && r->launch.pid <= 0)
		code = EXIT_GONE;
	return code;
}

int flight_run(struct recording *r, struct flight_options *o, struct err *err)
{
	struct flight f = { .r = r, .o = o, .rules = &o->rules, .had_process = true };
	_cleanup_free_ char *what = r->name ? mem_strdup(r->name) : recording_what(&r->session);
	int code = EXIT_OK, e;

	r->session.windows = true;
	r->session.tick = tick;
	r->session.look = look;
	r->session.progress = progress;
	r->session.aside = aside;
	r->session.tick_context = r->session.look_context = r->session.progress_context = r->session.aside_context = &f;
	write_wanted = 0;
	signal(SIGPIPE, SIG_IGN); /* whoever reads the lines may go, and what is kept must not go with him */
	e = recording_open(r, &f.session, err);
	if (e >= 0)
		e = output_try_one(r->output, r->who.label, what, &r->path, err);
	if (e >= 0) {
		f.writer = flightwriter_new(&(struct flightwriter_options){ .symbols = &r->symbols, .output = r->output,
			.label = r->who.label, .what = what, .captures = o->captures, .json = o->json, .keep_ns = o->keep_ns });
		keep_init(&f.keep, r->profile, o->keep_ns, o->max_bytes);
		e = code = record(&f, err);
		flightwriter_free(f.writer);
		keep_done(&f.keep);
	}
	session_close(f.session);
	free(f.slow_block);
	return e < 0 ? command_failed(err) : code;
}

/* --- the options --- */

/* Is it one of those of -e? */
static bool lists(const char *what, const char *name)
{
	size_t n = strlen(name);

	for (; *what; what += strcspn(what, ","), what += *what == ',')
		if (str_starts(what, name) && (!what[n] || what[n] == ','))
			return true;
	return false;
}

static int refuse_collectors(const char *what, struct err *err)
{
	static const struct {
		const char *name, *why;
	} no[] = {
		{ "heap", "what is alive has no beginning within the window" },
		{ "alloc", "its figures are known of the whole recording only" },
		{ "hw", "its figures are known of the whole recording only" },
		{ "goroutine", "its figures are known of the whole recording only" },
		{ "task", "its figures are known of the whole recording only" },
	};

	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (lists(what, no[i].name))
			return err_set(err, EINVAL, "--keep cannot record %s: %s; it can cpu, wait, io, fault, mem, and events", no[i].name,
				       no[i].why);
	return 0;
}

int flight_check(const struct flight_options *o, const struct recording *r, bool blocks, char **ret_what, struct err *err)
{
	const char *tracefs;
	char *what = mem_strdup(r->session.what);
	int e = refuse_collectors(what, err);

	for (size_t i = 0; i < o->rules.list.n && e >= 0; i++) {
		const struct rule *x = &o->rules.list.v[i];
		const char *needs = rule_needs(x->kind);
		char *more;

		if (!needs && !blocks)
			e = err_set(err, EINVAL, "the rule \"%s\" needs somebody who tells of blocks: --log, --rpc or --mark-function", x->text);
		if (!needs || lists(what, needs))
			continue;
		more = mem_printf("%s%s%s", what, *what ? "," : "", needs);
		free(what);
		what = more;
	}
	/* The stack of a kill is that of the allocation which was one too many. */
	if (e >= 0 && r->session.backend != SESSION_PERF && (r->session.what_default || !geteuid()) && !lists(what, victim_event) &&
	    !tracefs_root(&tracefs, NULL)) {
		char *more = mem_printf("%s,%s", what, victim_event);

		free(what);
		what = more;
	}
	*ret_what = what;
	return e;
}
