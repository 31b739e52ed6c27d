#include "cmd/agent/costs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/agent/instances.h"
#include "cmd/agent/levels.h"
#include "fleet/agent/agentconf.h"
#include "fleet/agent/board.h"
#include "target/proc.h"

static const uint64_t second_ns = 1000000000;
static const uint64_t settle_ns = 8000000000;      /* the start of a recorder */
static const uint64_t calm_ns = 200000000000;       /* after so long it costs what it will cost */
static const uint64_t memory_pace_ns = 60000000000; /* a look at memory walks over the page tables */
static const uint64_t patience_ns = 600000000000, most_patience_ns = 86400000000000;
static const uint64_t short_ns = 500000000;         /* in which switches can be counted */
static const double smooth = 0.3;                   /* of a new rate */
enum { FAR = 2 };                                   /* so many times the budget by one recorder is far too much */

/* --- what the kernel says --- */

/* CPU time of a process and its children that have ended. */
static uint64_t cpu_of(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[64], *s;
	unsigned long user, system;
	long children_user, children_system;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_path(path, 4096, &text, &n) < 0)
		return 0;
	s = strrchr(text, ')');
	if (!s || sscanf(s + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &user, &system, &children_user,
			 &children_system) != 4)
		return 0;
	return (user + system + children_user + children_system) * (second_ns / sysconf(_SC_CLK_TCK));
}

/* Calls each for a process and for its children that run: a recorder has one that reads files. */
static void each_process(pid_t pid, void (*each)(void *context, pid_t pid), void *context)
{
	_cleanup_free_ char *text = NULL;
	char path[96];
	size_t n;

	if (pid <= 0)
		return;
	each(context, pid);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	if (fd_read_path(path, 4096, &text, &n) < 0)
		return;
	for (char *s = text, *end; *s; s = end) {
		long child = strtol(s, &end, 10);

		if (end == s)
			break;
		each(context, child);
		end += strspn(end, " \n");
	}
}

static void add_cpu(void *context, pid_t pid)
{
	*(uint64_t *)context += cpu_of(pid);
}

static void add_memory(void *context, pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[64], *s;
	uint64_t kb;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	if (fd_read_path(path, 8192, &text, &n) < 0)
		return;
	s = strstr(text, "\nPss:");
	if (s && sscanf(s, "\nPss: %" SCNu64, &kb) == 1)
		*(uint64_t *)context += kb << 10;
}

static uint64_t anon_of(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[64], *s;
	uint64_t kb = 0;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (fd_read_path(path, 8192, &text, &n) < 0)
		return 0;
	s = strstr(text, "\nRssAnon:");
	if (s)
		sscanf(s, "\nRssAnon: %" SCNu64, &kb);
	return kb << 10;
}

/* Context switches of all CPUs since the boot; 0: not known. */
static uint64_t switches_read(void)
{
	_cleanup_free_ char *text = NULL;
	uint64_t count = 0;
	const char *s;
	size_t n;

	if (fd_read_path("/proc/stat", 1 << 20, &text, &n) < 0)
		return 0;
	s = strstr(text, "\nctxt ");
	if (s)
		sscanf(s, "\nctxt %" SCNu64, &count);
	return count;
}

/* --- looks --- */

static double mix(double before, double now)
{
	return before < 0 ? now : before + smooth * (now - before);
}

static void look_at_switches(struct costs *c, uint64_t now)
{
	uint64_t count = switches_read();

	if (c->switches_ns && count >= c->switches && now > c->switches_ns)
		c->switches_hz = mix(c->switches_hz ? c->switches_hz : -1, 1e9 * (count - c->switches) / (now - c->switches_ns));
	c->switches = count;
	c->switches_ns = now;
}

/* At the very start nothing was counted before. */
static void count_switches(struct costs *c)
{
	struct timespec pause = { .tv_nsec = short_ns };

	if (c->switches_ns)
		return;
	look_at_switches(c, clock_mono_ns());
	nanosleep(&pause, NULL);
	look_at_switches(c, clock_mono_ns());
}

unsigned costs_first_level(struct costs *c, const struct instances *all, const struct agentconf *conf, const struct instance *x)
{
	double left = conf->budget_percent / 100 - c->others_rate;

	count_switches(c);
	for (size_t i = 0; i < all->list.n; i++) {
		const struct instance *other = &all->list.v[i];

		if (other->pid)
			left -= other->rate >= 0 ? other->rate : other->level ? 0 : levels_wait_rate(c->switches_hz);
	}
	return levels_first(x->conf, left, c->switches_hz);
}

void costs_ended(struct costs *c, uint64_t cpu_ns)
{
	c->ended_ns += cpu_ns;
}

/* Its rate is taken over a window at least, as writing one is most of the work, and not of the first ones; sooner only where it is far too much. */
static void look_at_recorder(struct instance *x, const struct agentconf *conf, uint64_t now)
{
	uint64_t cost = x->row->bpf_ns;
	double rate;
	bool far;

	if (!x->pid) {
		x->rate = -1;
		x->from_mono_ns = 0;
		return;
	}
	each_process(x->pid, add_cpu, &cost);
	x->cost_ns = cost;
	x->row->anon_bytes = anon_of(x->pid);
	if (!x->from_mono_ns || x->from_mono_ns < x->started_ns + settle_ns || cost < x->from_ns) {
		x->from_mono_ns = now;
		x->from_ns = cost;
		return;
	}
	rate = (double)(cost - x->from_ns) / (now - x->from_mono_ns);
	far = x->rate < 0 && 100 * rate > FAR * conf->budget_percent;
	if (now < x->from_mono_ns + conf->window_ns && !far)
		return;
	/* The first windows name most of the code that there is. */
	if (far || now > x->started_ns + calm_ns)
		x->rate = mix(x->rate, rate);
	x->from_mono_ns = now;
	x->from_ns = cost;
}

static void look_at_memory(struct costs *c, struct instances *all, struct board *board, pid_t sender, uint64_t now)
{
	uint64_t bytes = 0;

	if (c->memory_ns && now < c->memory_ns + memory_pace_ns)
		return;
	c->memory_ns = now;
	add_memory(&bytes, getpid());
	add_memory(&bytes, sender);
	for (size_t i = 0; i < all->list.n; i++)
		each_process(all->list.v[i].pid, add_memory, &bytes);
	board->resident_bytes = bytes;
}

/* A recorder that has grown beyond its share begins anew with empty tables. */
static void keep_memory(struct instances *all, const struct agentconf *conf, const struct board *board)
{
	struct instance *largest = NULL;

	if (board->resident_bytes <= conf->memory_bytes)
		return;
	for (size_t i = 0; i < all->list.n; i++) {
		struct instance *x = &all->list.v[i];

		if (x->pid && x->rate >= 0 && (!largest || x->row->anon_bytes > largest->row->anon_bytes))
			largest = x;
	}
	if (!largest)
		return;
	log_info("%s: its recorder begins anew, as the agent has more than %" PRIu64 " MB", largest->title, conf->memory_bytes >> 20);
	instances_again(largest);
}

/* Until a recorder with waits was measured it takes what these take at least: three of them on a machine that began to compile cost 4 % for the
 * minutes of a measurement. */
static double rate_of(const struct costs *c, const struct instance *x)
{
	bool waits = x->pid && x->conf && levels_first(x->conf, -1, 0) && !x->level;

	return x->rate < 0 && waits ? levels_wait_rate(c->switches_hz) : x->rate;
}

static void decide(struct costs *c, struct instances *all, const struct agentconf *conf, uint64_t now)
{
	double *rates = mem_alloc((all->list.n + 1) * sizeof(*rates)), allowed = conf->budget_percent / 100 - c->others_rate;
	unsigned *levels = mem_alloc((all->list.n + 1) * sizeof(*levels));
	struct instance *x;
	double rate;
	int step, which;

	if (!c->patience_ns)
		c->patience_ns = patience_ns;
	for (size_t i = 0; i < all->list.n; i++) {
		rates[i] = rate_of(c, &all->list.v[i]);
		levels[i] = all->list.v[i].level;
	}
	which = levels_decide(rates, levels, all->list.n, allowed, c->switches_hz, now > c->changed_ns + c->patience_ns, &step);
	rate = which < 0 ? 0 : rates[which];
	free(rates);
	free(levels);
	if (which < 0)
		return;
	/* What was taken back too early is tried again later, after twice as long. */
	if (step > 0 && c->changed_ns && now < c->changed_ns + c->patience_ns / 2)
		c->patience_ns = MIN(2 * c->patience_ns, most_patience_ns);
	x = &all->list.v[which];
	x->level += step;
	c->changed_ns = now;
	log_info("%s: its recorder takes %.2f %% of a CPU, all are allowed %.2f %%: %s", x->title, 100 * rate, 100 * MAX(allowed, 0),
		 step > 0 ? "it records less from now on" : "it records more again");
	instances_again(x);
}

/* Percent of one CPU since the oldest look that is remembered. */
static double recent_percent(struct costs *c, uint64_t now, uint64_t cost_ns)
{
	size_t oldest = c->looks < COSTS_PAST ? 0 : c->looks % COSTS_PAST;
	uint64_t since_ns = c->looks ? now - c->past[oldest].mono_ns : 0;
	uint64_t used_ns = c->looks && cost_ns > c->past[oldest].cost_ns ? cost_ns - c->past[oldest].cost_ns : 0;

	c->past[c->looks % COSTS_PAST].mono_ns = now;
	c->past[c->looks++ % COSTS_PAST].cost_ns = cost_ns;
	return since_ns ? 100.0 * used_ns / since_ns : 0;
}

void costs_look(struct costs *c, struct instances *all, const struct agentconf *conf, struct board *board, pid_t sender)
{
	uint64_t now = clock_mono_ns(), others = cpu_of(sender) + clock_process_cpu_ns(), sum = 0;

	for (size_t i = 0; i < all->list.n; i++) {
		struct instance *x = &all->list.v[i];

		look_at_recorder(x, conf, now);
		sum += x->pid ? x->cost_ns : 0;
		sum += x->row->past_bpf_ns + (x->pid ? 0 : x->row->bpf_ns);
	}
	if (c->looked_ns && others >= c->others_ns)
		c->others_rate = mix(c->looked_ns ? c->others_rate : -1, (double)(others - c->others_ns) / (now - c->looked_ns));
	c->others_ns = others;
	c->looked_ns = now;
	look_at_switches(c, now);
	board->cpu_ns = clock_process_cpu_ns();
	board->all_cpu_ns = sum + others + c->ended_ns;
	board->all_mono_ns = now;
	board->recent_percent = recent_percent(c, now, board->all_cpu_ns);
	look_at_memory(c, all, board, sender, now);
	keep_memory(all, conf, board);
	decide(c, all, conf, now);
}
