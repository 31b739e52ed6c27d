/*
 * marker.c - the marker collector: spans of samply's marker files (reth --log.samply) as marks.
 *
 * Files are found by their mapping, or open in the process, without an option and with BPF or without; read once a second,
 * and to their end when the recording ends. Of more than SPANS a second the longest are kept. A span that inserts a block
 * is a block, which --log or --rpc names, unless a probed function says when blocks were; its line comes late, so blocks
 * wait for theirs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/blocks/blockmarks.h"
#include "collect/blocks/spanjoin.h"
#include "collect/collector.h"
#include "target/log/markerfile.h"
#include "target/log/markerfind.h"
#include "collect/process/processes.h"
#include "profile/blockspans.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/proc.h"

enum {
	SPANS = 2000,            /* a second */
	FILES = 4096,
	NAMES = 65536,
	LOOK_TICKS = 5,          /* between two looks at the descriptors: a node has thousands */
	TICK_BYTES = 8 << 20,    /* read in one tick, of all files */
	STOP_BYTES = 256 << 20,  /* at the end */
};

struct file {
	struct markerfile f;
	uint64_t device, inode;
	pid_t pid, tid;
	int64_t clock_ns; /* to be added to its times */
};

struct found {
	uint64_t start_ns, end_ns;
	uint32_t file, name;
	bool block;
};

struct markers {
	VEC(struct file) files;
	struct strtab names;       /* of spans */
	VEC(struct found) found;   /* since the last tick */
	uint32_t at;               /* the file that is read */
	uint64_t end_ns;           /* of the recording; UINT64_MAX: it goes on */
	uint64_t allowed;          /* marks that may still be made */
	uint64_t allowed_since_ns;
	unsigned ticks;
	bool late;                 /* files that are found now are new */
	uint64_t spans, outside, short_ones;
};

static struct markers *own(const struct session *s)
{
	return s->state[COLLECTOR_marker];
}

/* --- files --- */

static void add_file(void *context, pid_t pid, pid_t tid, int fd)
{
	struct session *s = context;
	struct markers *a = own(s);
	struct file f = { .pid = pid, .tid = tid };
	struct stat st;

	if (fstat(fd, &st) || a->files.n == FILES) {
		close(fd);
		return;
	}
	for (size_t i = 0; i < a->files.n; i++)
		if (a->files.v[i].device == st.st_dev && a->files.v[i].inode == st.st_ino) {
			close(fd);
			return;
		}
	f.device = st.st_dev;
	f.inode = st.st_ino;
	f.clock_ns = markerfind_clock(pid);
	markerfile_init(&f.f, fd, !a->late);
	vec_push(&a->files, f);
	if (a->files.n == 1)
		log_debug("process %d writes marker files for samply: their spans become marks", pid);
	if (s->mark)
		blockmarks_expect_late_spans(s->mark);
}

static void got_mapping(void *context, pid_t pid, const char *path)
{
	markerfind_mapped(pid, path, add_file, context);
}

static void look(struct session *s)
{
	struct proc_ids ids = { 0 };

	processes_mains(s->processes, &ids);
	for (size_t i = 0; i < ids.list.n; i++)
		markerfind_open(ids.list.v[i], add_file, s);
	vec_done(&ids.list);
}

/* --- spans --- */

static int compare_worth(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	uint64_t nx = x->end_ns - x->start_ns, ny = y->end_ns - y->start_ns;

	if (x->block != y->block)
		return x->block ? -1 : 1;
	if (nx != ny)
		return nx > ny ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int compare_end(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->start_ns < y->start_ns) - (x->start_ns > y->start_ns); /* what is within comes first */
}

static void keep_worthy(struct markers *a)
{
	if (a->found.n <= a->allowed)
		return;
	vec_sort(&a->found, compare_worth);
	a->short_ones += a->found.n - a->allowed;
	a->found.n = a->allowed;
}

static void got_span(void *context, const struct marker_span *m)
{
	struct session *s = context;
	struct markers *a = own(s);
	struct found f = { .file = a->at };

	if (__builtin_add_overflow(m->start_ns, a->files.v[a->at].clock_ns, &f.start_ns) ||
	    __builtin_add_overflow(m->end_ns, a->files.v[a->at].clock_ns, &f.end_ns))
		return;
	if (f.end_ns < s->start_mono_ns)
		return; /* of the past */
	/* A line is written when its span has ended: one that ends later than now is wrong. */
	if (f.start_ns < s->start_mono_ns || f.end_ns > a->end_ns || f.end_ns > clock_mono_ns()) {
		a->outside++;
		return;
	}
	f.name = strtab_add(&a->names, a->names.n < NAMES ? m->name : "(other)");
	f.block = blockspans_rank(m->name) == BLOCKSPANS_INSERTS;
	vec_push(&a->found, f);
	if (a->found.n >= 2 * a->allowed + SPANS)
		keep_worthy(a);
}

static void add_mark(struct session *s, const struct found *f)
{
	const struct file *file = &own(s)->files.v[f->file];
	struct profile *p = s->profile;
	uint32_t name = profile_string(p, strtab_get(&own(s)->names, f->name));
	uint32_t thread = file->tid ? processes_thread(s->processes, file->pid, file->tid, "", f->end_ns) : PROFILE_NONE;
	struct profile_mark m = { .thread = thread, .name = name, .kind = name, .start_ns = f->start_ns - s->start_mono_ns,
				  .end_ns = f->end_ns - s->start_mono_ns };

	if (f->block && s->mark && blockmarks_wants_late_spans(s->mark)) {
		blockmarks_add_span(s->mark, &(struct span){ .pid = file->pid, .tid = file->tid, .start_ns = f->start_ns,
							     .end_ns = f->end_ns }, name, thread);
		return;
	}
	if (f->block && !s->mark)
		m.kind = profile_string(p, "block");
	profile_add_mark(p, &m);
}

/* Reads all files in turn, and makes marks of what they say. */
static void read_files(struct session *s, size_t most, uint64_t now)
{
	struct markers *a = own(s);
	uint64_t earned = (now - a->allowed_since_ns) / 1000 * SPANS / 1000000;

	a->allowed += earned;
	a->allowed_since_ns = now;
	for (a->at = 0; a->at < a->files.n; a->at++) {
		size_t n = markerfile_read(&a->files.v[a->at].f, MAX(most / 8, (size_t)1 << 16), got_span, s);

		most -= MIN(most, n);
		if (!most)
			break;
	}
	keep_worthy(a);
	vec_sort(&a->found, compare_end);
	for (size_t i = 0; i < a->found.n; i++)
		add_mark(s, &a->found.v[i]);
	a->allowed -= a->found.n;
	a->spans += a->found.n;
	vec_clear(&a->found);
}

/* --- its life --- */

static bool beside(const struct session_options *o)
{
	return o->listen;
}

static int start(struct session *s, struct err *err)
{
	struct markers *a = own(s);

	strtab_init(&a->names);
	a->end_ns = UINT64_MAX;
	a->allowed = SPANS;
	a->allowed_since_ns = s->start_mono_ns;
	processes_watch_maps(s->processes, "/marker-", got_mapping, s);
	for (size_t i = 0; i < s->options->pid_count && !s->options->program; i++)
		markerfind_open(s->options->pids[i], add_file, s);
	a->late = true;
	return 0;
}

static void tick(struct session *s, uint64_t now)
{
	if (++own(s)->ticks % LOOK_TICKS == 0)
		look(s);
	read_files(s, TICK_BYTES, now);
}

static void count(struct profile *p, const char *key, uint64_t n)
{
	if (n)
		profile_count_set(p, key, n);
}

static void stop(struct session *s)
{
	struct markers *a = own(s);
	uint64_t lines = 0, bad = 0;

	processes_watch_maps(s->processes, NULL, NULL, NULL);
	look(s);
	a->end_ns = s->start_mono_ns + s->profile->duration_ns;
	read_files(s, STOP_BYTES, clock_mono_ns());
	for (size_t i = 0; i < a->files.n; i++) {
		lines += a->files.v[i].f.lines;
		bad += a->files.v[i].f.bad;
		markerfile_done(&a->files.v[i].f);
	}
	count(s->profile, KEY_MARKS_MARKER_FILES, a->files.n);
	count(s->profile, KEY_MARKS_MARKER_LINES, lines);
	count(s->profile, KEY_MARKS_MARKER_SPANS, a->spans);
	count(s->profile, KEY_MARKS_MARKER_MALFORMED, bad);
	count(s->profile, KEY_MARKS_MARKER_SHORT, a->short_ones);
	count(s->profile, KEY_MARKS_MARKER_OUTSIDE, a->outside);
	if (a->short_ones)
		log_info("Of the spans in the target's marker files the longest %d a second are kept; %llu were left out.", SPANS,
			 (unsigned long long)a->short_ones);
	vec_done(&a->files);
	vec_done(&a->found);
	strtab_done(&a->names);
}

const struct collector collector_marker = {
	.name = "marker",
	.describe = "spans of samply's marker files (reth --log.samply), which are found by themselves, as marks",
	.flags = COLLECTOR_READS,
	.state_size = sizeof(struct markers),
	.beside = beside,
	.start = start,
	.tick = tick,
	.stop = stop,
};
