/*
 * agent.c - `agent`: records the targets of a configuration for as long as it runs, and delivers what it recorded.
 *
 * This process finds targets and starts the others: a recorder for each target (windowrecorder.h), and one that delivers (deliver.h). They meet in the
 * spool and on the board, and each may die: it is started again, and what is in the spool is delivered.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cmd/agent/costs.h"
#include "cmd/agent/deliver.h"
#include "cmd/agent/instances.h"
#include "cmd/cmd.h"
#include "fleet/agent/agentconf.h"
#include "fleet/agent/board.h"
#include "fleet/agent/spool.h"
#include "fleet/sink/sink.h"
#include "net/http.h"
#include "target/kallsyms.h"
#include "target/resolve.h"

static const uint64_t second_ns = 1000000000, costs_pace_ns = 10000000000, stop_patience_ns = 20000000000;

struct agent {
	const char *path;
	struct agentconf conf;
	struct board *board;
	struct instances instances;
	struct costs costs;
	struct kallsyms *kernel;
	pid_t sender;
	uint64_t sender_next_ns, look_next_ns, costs_next_ns;
	unsigned sender_failures;
	sigset_t signals;
};

/* --- the process that delivers --- */

static void log_sender(void *context, const char *text)
{
	fprintf(stderr, "delivery: %s\n", text);
}

static void start_sender(struct agent *a)
{
	pid_t agent = getpid(), pid = fork();
	sigset_t none;

	if (pid < 0) {
		a->sender_next_ns = clock_mono_ns() + second_ns;
		return;
	}
	if (pid) {
		a->sender = a->board->sender_pid = pid;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != agent)
		_exit(EXIT_ERROR);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	log_set_sink(log_sender, NULL);
	_exit(deliver_run(&a->conf, a->board));
}

static void sender_ended(struct agent *a, int status)
{
	uint64_t pause_s = MIN(1ULL << MIN(a->sender_failures, 8), 300);
	bool fine = WIFEXITED(status) && !WEXITSTATUS(status); /* after a reload */

	a->sender = a->board->sender_pid = 0;
	a->sender_failures = fine ? 0 : a->sender_failures + 1;
	a->sender_next_ns = clock_mono_ns() + (fine ? 0 : pause_s * second_ns);
	if (!fine)
		log_warn("the process that delivers has ended (%s %d); it is started again in %llu s, and windows wait in the spool",
			 WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			 (unsigned long long)pause_s);
}

/* --- the configuration --- */

/* Folders that are written to are made by whoever may make them. */
static int prepare(const struct agentconf *conf, struct err *err)
{
	int r = spool_make(conf->spool, err);

	for (size_t i = 0; i < conf->sinks.n && !r; i++) {
		const struct sink_options *o = &conf->sinks.v[i].options;
		struct sink *s = NULL;

		if (str_starts(o->url, AGENTCONF_FILES)) {
			_cleanup_free_ char *inside = mem_printf("%s/x", o->url + strlen(AGENTCONF_FILES));
			const char *name;
			int folder = folder_make(inside, NULL, &name, err);

			r = folder < 0 ? folder : 0;
			if (folder >= 0)
				close(folder);
		}
		if (!r)
			r = sink_open(o, &s, err);
		sink_close(s);
		if (r)
			return err_prefix(err, "[sink %s]", conf->sinks.v[i].name);
	}
	return r;
}

static void tell(struct agent *a)
{
	struct board *b = a->board;

	b->budget_percent = a->conf.budget_percent;
	b->budget_bytes = a->conf.memory_bytes;
	b->window_ns = a->conf.window_ns;
	b->spool_limit_bytes = a->conf.spool_bytes;
}

/* A configuration that is wrong changes nothing. */
static void reload(struct agent *a)
{
	struct agentconf conf;
	struct err err = { 0 };
	int r = agentconf_read(a->path, &conf, &err);

	if (!r)
		r = prepare(&conf, &err);
	if (!r && strcmp(conf.spool, a->conf.spool))
		r = err_set(&err, EINVAL, "another spool needs a restart");
	if (r) {
		log_error("%s; the agent goes on as before", err.text);
		board_set(a->board->note, sizeof(a->board->note), err.text);
		agentconf_done(&conf);
		return;
	}
	instances_configure(&a->instances, &a->conf, &conf);
	agentconf_done(&a->conf);
	a->conf = conf;
	tell(a);
	a->board->reloaded_wall_ns = clock_wall_ns();
	board_set(a->board->note, sizeof(a->board->note), "");
	a->look_next_ns = 0;
	if (a->sender)
		kill(a->sender, SIGTERM); /* another one has the new sinks */
	log_info("read %s again: %zu targets, %zu sinks", a->path, a->conf.targets.n, a->conf.sinks.n);
}

/* --- the loop --- */

static void reap(struct agent *a)
{
	struct rusage used;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		costs_ended(&a->costs, (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * second_ns +
					       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000ULL);
		if (pid == a->sender)
			sender_ended(a, status);
		else if (instances_ended(&a->instances, pid, status))
			a->look_next_ns = 0;
	}
}

/* Waits for a signal; 0: the time is over. */
static int wait_for_signal(struct agent *a, uint64_t until_ns)
{
	uint64_t now = clock_mono_ns(), left = until_ns > now ? until_ns - now : 0;
	struct timespec t = { .tv_sec = left / second_ns, .tv_nsec = left % second_ns };
	int signal = sigtimedwait(&a->signals, NULL, &t);

	return signal > 0 ? signal : 0;
}

static void run(struct agent *a)
{
	for (;;) {
		uint64_t now = clock_mono_ns(), next;
		int signal;

		reap(a);
		if (!a->sender && now >= a->sender_next_ns)
			start_sender(a);
		if (now >= a->look_next_ns)
			a->look_next_ns = instances_look(&a->instances, &a->conf);
		if (now >= a->costs_next_ns) {
			costs_look(&a->costs, &a->instances, &a->conf, a->board, a->sender);
			a->costs_next_ns = now + costs_pace_ns;
		}
		next = MIN(a->look_next_ns, a->costs_next_ns);
		signal = wait_for_signal(a, a->sender ? next : MIN(next, a->sender_next_ns));
		if (signal == SIGTERM || signal == SIGINT)
			return;
		if (signal == SIGHUP)
			reload(a);
	}
}

/* Recorders write their last windows, then those are delivered as far as that goes. */
static void stop(struct agent *a)
{
	uint64_t until = clock_mono_ns() + stop_patience_ns;

	log_info("stopping: the last windows are written; what is not delivered waits in %s", a->conf.spool);
	instances_stop(&a->instances);
	for (reap(a); instances_left(&a->instances) && clock_mono_ns() < until; reap(a))
		wait_for_signal(a, MIN(until, clock_mono_ns() + second_ns));
	if (a->sender)
		kill(a->sender, SIGTERM);
	until = clock_mono_ns() + stop_patience_ns;
	for (reap(a); a->sender && clock_mono_ns() < until; reap(a))
		wait_for_signal(a, MIN(until, clock_mono_ns() + second_ns));
	for (size_t i = 0; i < a->instances.list.n; i++)
		if (a->instances.list.v[i].pid)
			kill(a->instances.list.v[i].pid, SIGKILL);
	if (a->sender)
		kill(a->sender, SIGKILL);
}

static unsigned first_level(void *context, const struct instance *x)
{
	struct agent *a = context;

	return costs_first_level(&a->costs, &a->instances, &a->conf, x);
}

static void block_signals(struct agent *a)
{
	static const int wanted[] = { SIGCHLD, SIGHUP, SIGTERM, SIGINT };

	sigemptyset(&a->signals);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		sigaddset(&a->signals, wanted[i]);
	sigprocmask(SIG_BLOCK, &a->signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
}

static int start(struct agent *a, struct err *err)
{
	int r = prepare(&a->conf, err);

	if (r)
		return r;
	a->board = board_new();
	if (!a->board)
		return err_set(err, ENOMEM, "no memory");
	a->board->started_wall_ns = clock_wall_ns();
	a->board->begun_mono_ns = clock_mono_ns();
	a->board->pid = getpid();
	board_set(a->board->config, sizeof(a->board->config), a->path);
	tell(a);
	a->instances.board = a->board;
	if (kallsyms_read(&a->kernel) < 0)
		a->kernel = NULL;
	a->instances.kernel = a->kernel;
	a->instances.first_level = first_level;
	a->instances.context = a;
	instances_configure(&a->instances, NULL, &a->conf);
	return 0;
}

/* --- the command --- */

/* What the configuration means on this machine. */
static int check(const struct agentconf *conf)
{
	struct err err = { 0 };
	int r = prepare(conf, &err);

	if (r)
		return command_failed(&err);
	for (size_t i = 0; i < conf->targets.n; i++) {
		const struct agentconf_target *t = &conf->targets.v[i];
		_cleanup_(buf_done) struct buf b = { 0 };
		struct target_found found;

		if (t->wildcard) {
			log_info("target %s: each that matches, %s at %llu Hz", t->pattern, t->what, (unsigned long long)t->hz);
		} else if (target_find(t->pattern, &found, &err) < 0) {
			log_info("target %s: not there now, and waited for: %s", t->pattern, err.text);
		} else {
			target_describe(t->pattern, &found, &b);
			log_info("target %s: %s", t->pattern, b.data);
			target_found_done(&found);
		}
	}
	for (size_t i = 0; i < conf->sinks.n; i++)
		log_info("sink %s: its address is understood", conf->sinks.v[i].name);
	return EXIT_OK;
}

/* What a running agent says of itself. */
static int status(const struct agentconf *conf, bool json)
{
	const struct http_limits limits = { .bytes = 4 << 20, .total_ms = 5000 };
	_cleanup_free_ char *url = NULL, *text = NULL;
	struct err err = { 0 };
	size_t n;

	if (!conf->listen) {
		log_error("the agent has no page: listen is off in its configuration");
		return EXIT_ERROR;
	}
	url = mem_printf("http://%s/status%s", conf->listen, json ? ".json" : "");
	if (http_get_text(url, &limits, &text, &n, &err) < 0) {
		log_error("no agent answers at %s: %s", conf->listen, err.text);
		return EXIT_ERROR;
	}
	fwrite(text, 1, n, stdout);
	return EXIT_OK;
}

static int agent(const struct command *c, int argc, char **argv)
{
	bool checks = false, asks = false, json = false;
	const struct option_spec options[] = {
		{ 0, "check", OPTION_FLAG, &checks, .help = "read the configuration, say what it means here, and end" },
		{ 0, "status", OPTION_FLAG, &asks, .help = "ask the agent that runs with this configuration how it is" },
		{ 0, "json", OPTION_FLAG, &json, .help = "--status: as JSON" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), r;
	struct agent a = { 0 };
	struct err err = { 0 };

	if (first < 0)
		return -first - 1;
	if (argc - first != 1 || (json && !asks) || (checks && asks)) {
		log_error("agent wants one file, its configuration (gasflame agent --help)");
		return EXIT_USAGE;
	}
	a.path = argv[first];
	r = agentconf_read(a.path, &a.conf, &err);
	if (!r && (checks || asks)) {
		r = checks ? check(&a.conf) : status(&a.conf, json);
		agentconf_done(&a.conf);
		return r;
	}
	block_signals(&a);
	if (!r)
		r = start(&a, &err);
	if (!r) {
		log_info("recording %zu target%s in windows of %.0f s, for %zu sink%s; budget %g %% of a CPU, %llu MB", a.conf.targets.n,
			 a.conf.targets.n == 1 ? "" : "s", a.conf.window_ns / 1e9, a.conf.sinks.n, a.conf.sinks.n == 1 ? "" : "s",
			 a.conf.budget_percent, (unsigned long long)a.conf.memory_bytes >> 20);
		if (a.conf.listen)
			log_info("status: http://%s/", a.conf.listen);
		run(&a);
		stop(&a);
	}
	instances_done(&a.instances);
	kallsyms_free(a.kernel);
	board_free(a.board);
	agentconf_done(&a.conf);
	return r ? command_failed(&err) : EXIT_OK;
}

const struct command command_agent = {
	.name = "agent",
	.summary = "record all the time, within a budget, for a store of many machines",
	.usage = "[options] CONFIGURATION",
	.describe =
		"Records the targets of a configuration file for as long as it runs, and delivers each window of 10 to 60 s to the sinks of that file: "
		"ClickHouse, OTLP, Pyroscope, Prometheus, S3, a folder. Targets and containers may come and go, and so may servers: what cannot be delivered "
		"waits in a spool on disk, which is bounded. It keeps its budget of CPU time and memory: where that is not enough, waits are left out first, "
		"then the rate falls, and the status page says so. SIGHUP reads the configuration again; SIGTERM writes the last windows and ends.\n"
		"\n"
		"The file has sections: [agent] with spool, spool-size, window, budget, memory, listen and names; [target NAME] for each target, where NAME is what "
		"`record` takes, with * and ? for several, and name, events, frequency, release, label, log, log-client and rpc; [sink NAME] with url and what it needs. "
		"docs/manual/fleet.md has all of them.\n"
		"\n"
		"The status page is on loopback: / for people, /status.json, /metrics for Prometheus.",
	.example = "gasflame agent --check /etc/gasflame/agent.conf\ngasflame agent /etc/gasflame/agent.conf\n"
		   "gasflame agent --status /etc/gasflame/agent.conf",
	.run = agent,
	.keeps_rights = true,
};
