#include "fleet/sink/windowfigures.h"

#include <math.h>
#include <string.h>

#include "analyze/quality.h"
#include "analyze/select.h"
#include "analyze/wait/account.h"
#include "base/mem.h"
#include "export/export.h"
#include "fleet/sink/sink.h"
#include "profile/keys.h"
#include "profile/profile.h"

const double windowfigures_le[WINDOWFIGURES_BUCKETS] = { 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 12, INFINITY };

static const double second = 1e9;

static const struct {
	const char *key, *name;
} parts[WINDOWFIGURES_PARTS] = {
	{ KEY_MEM_PART_HEAP, "heap" },
	{ KEY_MEM_PART_ANONYMOUS, "anonymous" },
	{ KEY_MEM_PART_FILES, "files" },
	{ KEY_MEM_PART_SHARED, "shared" },
	{ KEY_MEM_PART_STACKS, "stacks" },
	{ KEY_MEM_PART_DATA, "data" },
	{ KEY_MEM_PART_OTHER, "other" },
};

const char *windowfigures_state(size_t i)
{
	return i < CAUSE_COUNT ? cause_key(i) : "missing";
}

const char *windowfigures_part(size_t i)
{
	return parts[i].name;
}

void windowfigures_init(struct windowfigures *f)
{
	double *all = (double *)f;

	for (size_t i = 0; i < sizeof(*f) / sizeof(*all); i++)
		all[i] = NAN;
}

static void add(double *to, double value)
{
	*to = isnan(*to) ? value : *to + value;
}

/* Time that was counted twice is none that is missing: a counter does not go back. */
static void add_account(struct windowfigures *f, const struct account_row *total)
{
	for (size_t i = 0; i < CAUSE_COUNT; i++)
		add(&f->state[i], total->ns[i] / second);
	add(&f->state[CAUSE_COUNT], total->missing_ns > 0 ? total->missing_ns / second : 0);
}

static uint64_t cpu_of(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->threads.n; i++)
		sum += p->threads.v[i].cpu_ns;
	return sum ? sum : profile_counter(p, KEY_TARGET_CPU_NS);
}

/* The last value of a series; false: it has none. */
static bool last_of(const struct profile *p, const char *key, double *ret)
{
	uint64_t at = 0;
	bool found = false;

	for (uint32_t k = 0; k < p->series.n; k++) {
		if (strcmp(profile_str(p, p->series.v[k].name), key))
			continue;
		for (size_t i = 0; i < p->points.n; i++)
			if (p->points.v[i].series == k && (!found || p->points.v[i].time_ns >= at)) {
				at = p->points.v[i].time_ns;
				*ret = p->points.v[i].value;
				found = true;
			}
	}
	return found;
}

static void set_memory(struct windowfigures *f, const struct profile *p)
{
	const struct {
		const char *key;
		double *to;
	} all[] = {
		{ KEY_MEM_RSS, &f->resident }, { KEY_CGROUP_MEMORY_USAGE, &f->used }, { KEY_CGROUP_MEMORY_LIMIT, &f->limit },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		last_of(p, all[i].key, all[i].to);
	for (size_t i = 0; i < WINDOWFIGURES_PARTS; i++)
		last_of(p, parts[i].key, &f->part[i]);
}

static void add_block(struct windowfigures *f, const struct profile *p, const struct profile_mark *m)
{
	/* Of many blocks in one mark, each has its part of the time. */
	double count = block_group_count(profile_str(p, m->name)), seconds = (m->end_ns - m->start_ns) / second;
	size_t bucket = 0;

	while (seconds / count > windowfigures_le[bucket])
		bucket++;
	if (isnan(f->block_sum))
		memset(f->block_le, 0, sizeof(f->block_le));
	f->block_le[bucket] += count;
	add(&f->block_sum, seconds);
	add(&f->blocks, count);
	if (m->block.known & BLOCK_GAS)
		add(&f->gas, m->block.gas);
	if (m->block.known & BLOCK_TRANSACTIONS)
		add(&f->transactions, m->block.transactions);
}

static void add_samples(struct windowfigures *f, const struct export_job *job)
{
	const struct profile *p = job->profile;
	double samples = 0;

	for (size_t i = 0; i < p->samples.n; i++)
		samples += p->samples.v[i].count ? p->samples.v[i].count : 1;
	add(&f->samples, samples);
	add(&f->lost, profile_counter(p, KEY_SAMPLES_LOST) + profile_counter(p, KEY_WAITS_LOST));
	if (job->quality && job->quality->samples)
		f->complete = quality_complete_percent(job->quality) / 100;
}

void windowfigures_add(struct windowfigures *f, const struct sink_window *w)
{
	const struct profile *p = w->job->profile;

	if (w->job->account)
		add_account(f, &w->job->account->total);
	add(&f->recorded, w->duration_ns / second);
	add(&f->cpu, cpu_of(p) / second);
	set_memory(f, p);
	for (size_t i = 0; i < p->marks.n; i++)
		if (!strcmp(profile_str(p, p->marks.v[i].kind), "block") && p->marks.v[i].end_ns > p->marks.v[i].start_ns)
			add_block(f, p, &p->marks.v[i]);
	add_samples(f, w->job);
	f->end = (w->start_wall_ns + w->duration_ns) / second;
}
