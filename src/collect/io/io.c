/*
 * io.c - the io collector: reads, writes and syncs by function and file, and what the disks did.
 *
 * Events: "read" and "write" (bytes that were moved, as calls returned them), "sync"
 * (nanoseconds in fsync and its like) and "io-error" (calls that failed); a sample stands for
 * count calls, those that failed among them, and its leaf is a note, the file. A call that
 * moves bytes from one descriptor to another (sendfile, splice) is in both. Figures
 * by operation and by device are counters and histograms.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/io/files.h"
#include "collect/kernel/smallbtf.h"
#include "collect/process/processes.h"
#include "collect/io/sharedio.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/host.h"

#include "gasflame.skel.h"

#define NAME(name) #name,
static const char *const op_names[IO_OPS] = { "", SHARED_IO_OPS(NAME) };
#undef NAME

struct io {
	struct bpf_link *links[8];
	struct files *files;
	uint32_t read_event, write_event, sync_event, error_event;
	uint32_t lost; /* stack of the profile that stands for those that were lost */
	struct map threads; /* pid and tid to the profile's thread */
	VEC(struct profile_sample) pending; /* of the last second, added up further */
	struct map pending_index;           /* from a hash of what they are to the latest of them */
};

static struct io *own(const struct session *s)
{
	return s->state[COLLECTOR_io];
}

static bool attach(struct io *io, struct bpf_program *program)
{
	size_t i = 0;

	while (io->links[i])
		i++;
	io->links[i] = bpf_program__attach(program);
	return io->links[i] != NULL;
}

/* Files are read by plain loads where the kernel has the cast for it, and a thread's memory is taken when it makes its
 * first call; before 6.1 that is not safe in a tracepoint, and there is room for fewer. */
static void prepare(struct session *s, struct gasflame_bpf *skeleton)
{
	static const char *const names[] = { "list_head", "file" };
	uint32_t types[2] = { 0 };
	struct host host;
	unsigned version;
	bool typed;

	host_probe(&host);
	version = host.major * 1000 + host.minor;
	if (version >= 6003)
		smallbtf_numbers(names, types, ARRAY_LEN(names));
	typed = types[0] && types[1];
	skeleton->rodata->type_of_list = types[0];
	skeleton->rodata->type_of_file = types[1];
	bpf_program__set_autoload(typed ? skeleton->progs.on_sys_enter_old : skeleton->progs.on_sys_enter, false);
	if (version >= 6001)
		return;
	bpf_map__set_map_flags(skeleton->maps.io_threads, 0);
	bpf_map__set_max_entries(skeleton->maps.io_threads, 4096);
}

static int attach_calls(struct io *io, struct gasflame_bpf *skeleton, struct err *err)
{
	struct bpf_program *enter = bpf_program__autoload(skeleton->progs.on_sys_enter) ? skeleton->progs.on_sys_enter :
											  skeleton->progs.on_sys_enter_old;
	struct bpf_program *const programs[] = { skeleton->progs.on_io_exec, skeleton->progs.on_io_exit, enter,
						 skeleton->progs.on_sys_exit };

	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (!attach(io, programs[i]))
			return err_errno(err, errno, "cannot attach to the kernel's %s tracepoint",
					 bpf_program__section_name(programs[i]) + strlen("raw_tp/"));
	return 0;
}

/* How many arguments a tracepoint of this kernel has; 0: there is no such. */
static unsigned tracepoint_arguments(const char *name)
{
	_cleanup_free_ char *type_name = mem_printf("btf_trace_%s", name);
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t;
	unsigned n = 0;
	int id;

	if (!btf)
		return 0;
	id = btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, id) : NULL; /* typedef of a pointer to a function */
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	if (t && btf_is_func_proto(t) && btf_vlen(t) > 0)
		n = btf_vlen(t) - 1; /* the first is the tracepoint's own */
	btf__free(btf);
	return n;
}

/*
 * Completions: (ring, request, completion), or before (ring, request, user data, result, …); older ones do not
 * say which request is completed. Submissions: (request), or by their older name (request, may it block);
 * still older ones begin with the ring.
 */
static bool attach_uring(struct io *io, struct gasflame_bpf *skeleton)
{
	unsigned n = tracepoint_arguments("io_uring_complete");
	struct bpf_program *complete = n == 3 ? skeleton->progs.on_uring_complete :
				       n >= 5 ? skeleton->progs.on_uring_complete_old : NULL;
	struct bpf_program *submit = tracepoint_arguments("io_uring_submit_req") ? skeleton->progs.on_uring_submit :
				     tracepoint_arguments("io_uring_submit_sqe") == 2 ?
										   skeleton->progs.on_uring_submit_old :
										   NULL;

	return complete && submit && attach(io, complete) && attach(io, submit);
}

static int start(struct session *s, struct err *err)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	struct profile *p = s->profile;
	struct io *io = own(s);

	io->files = files_new(p);
	io->read_event = profile_add_event(p, "read", "bytes", "bytes read, as the calls returned them", 0);
	io->write_event = profile_add_event(p, "write", "bytes", "bytes written, as the calls returned them", 0);
	io->sync_event = profile_add_event(p, "sync", "ns", "time in fsync, fdatasync, msync and their like", 0);
	io->error_event = profile_add_event(p, "io-error", "count", "reads, writes and syncs that failed", 0);
	io->lost = profile_stack(p, 0, profile_truncation_frame(p, "stack lost"));
	skeleton->bss->io_start_ns = s->start_mono_ns;
	if (s->options->program && s->options->pid_count)
		skeleton->bss->io_waiting_pid = s->options->pids[0];
	if (!attach_uring(io, skeleton))
		profile_count_set(p, KEY_IO_URING_NOT_RECORDED, 1);
	if (!attach(io, skeleton->progs.on_block_complete) || !attach(io, skeleton->progs.on_block_issue))
		profile_count_set(p, KEY_BLOCK_NOT_RECORDED, 1);
	return attach_calls(io, skeleton, err);
}

/* The kernel adds up a few kinds of calls at a time; where there are more, the rest is added up here. */
static void add_sample(struct io *io, const struct profile_sample *sample)
{
	uint64_t key = map_hash(map_pair(sample->thread, sample->stack)) ^ map_hash(map_pair(sample->event, 1));
	uint64_t *at = map_put(&io->pending_index, key, PROFILE_NONE);
	struct profile_sample *there = *at == PROFILE_NONE ? NULL : &io->pending.v[*at];

	if (there && there->thread == sample->thread && there->stack == sample->stack &&
	    there->event == sample->event && there->time_ns == sample->time_ns &&
	    there->count <= UINT32_MAX - sample->count) {
		there->value += sample->value;
		there->count += sample->count;
		return;
	}
	*at = io->pending.n;
	vec_push(&io->pending, *sample);
}

static void flush(struct session *s)
{
	for (size_t i = 0; i < own(s)->pending.n; i++)
		profile_add_sample(s->profile, &own(s)->pending.v[i]);
	vec_clear(&own(s)->pending);
	map_clear(&own(s)->pending_index);
}

static void tick(struct session *s, uint64_t now_mono_ns)
{
	flush(s);
}

/* The last sums of a thread come after it has ended, when its number is nobody's, or another's. */
static uint32_t thread_of(struct session *s, const struct shared_io *r)
{
	uint64_t key = map_pair(r->pid, r->tid), *known = map_get(&own(s)->threads, key);
	uint64_t time_ns = collector_time_ns(s, r->time_ns);
	uint32_t thread;

	if (known && (!s->profile->threads.v[*known].end_ns || time_ns <= s->profile->threads.v[*known].end_ns))
		return *known;
	thread = processes_thread(s->processes, r->pid, r->tid, "", r->time_ns);
	*map_put(&own(s)->threads, key, 0) = thread;
	return thread;
}

static struct profile_sample sample_of(struct session *s, const struct shared_io *r)
{
	struct io *io = own(s);
	uint32_t stack = bpfengine_stack(s->engine, r->stack);

	return (struct profile_sample){
		.time_ns = collector_time_ns(s, r->time_ns),
		.thread = thread_of(s, r),
		.stack = profile_stack(s->profile, stack == PROFILE_NONE ? io->lost : stack,
				       files_frame(io->files, r->file, r->op)),
		.event = r->way == IO_READ ? io->read_event :
			 r->way == IO_WRITE ? io->write_event : io->sync_event,
		.value = r->way == IO_SYNC ? r->ns : r->bytes,
		.count = r->count,
	};
}

static void add_io(struct session *s, const struct shared_io *r)
{
	struct profile_sample sample = sample_of(s, r);
	struct io *io = own(s);

	add_sample(io, &sample);
	if (!r->errors)
		return;
	sample.event = io->error_event;
	sample.value = sample.count = r->errors;
	add_sample(io, &sample);
}

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_io *r = data;

	if (r->kind == RECORD_IO && size >= sizeof(*r))
		add_io(s, r);
	else if (r->kind == RECORD_FILE)
		files_learn(own(s)->files, data, size);
}

/* Adds what a thread has not sent, and the call that it is in. A sync counts for the time so far. */
static void finish_thread(struct session *s, const struct shared_io_thread *t, uint32_t epoch, uint64_t now)
{
	struct shared_io rest;

	for (int i = 0; i < SHARED_IO_PLACES; i++)
		if (t->places[i].sum.count)
			add_io(s, &t->places[i].sum);
	if (!t->op || t->epoch != epoch)
		return;
	profile_count(s->profile, KEY_IO_CALLS_UNDER_WAY, 1);
	if (t->to >= SHARED_IO_PLACES || t->places[t->to].sum.way != IO_SYNC || now <= t->since_ns)
		return;
	rest = t->places[t->to].sum;
	rest.count = 1;
	rest.errors = 0;
	rest.time_ns = t->since_ns;
	rest.ns = now - t->since_ns;
	add_io(s, &rest);
}

static void finish_threads(struct session *s, struct gasflame_bpf *skeleton, uint64_t now)
{
	int fd = bpf_map__fd(skeleton->maps.io_threads);
	struct shared_io_thread t;
	uint32_t tid, *previous = NULL;

	while (!bpf_map_get_next_key(fd, previous, &tid)) {
		if (!bpf_map_lookup_elem(fd, &tid, &t))
			finish_thread(s, &t, skeleton->bss->io_epoch, now);
		previous = &tid;
	}
}

/* Adds the calls that were not sent, and those that are still being summed. */
static void peek(struct session *s, uint64_t now)
{
	int fd = bpf_map__fd(bpfengine_skeleton(s->engine)->maps.io_threads);
	struct shared_io_thread t;
	uint32_t tid, *previous = NULL;

	for (size_t i = 0; i < own(s)->pending.n; i++)
		profile_add_sample(s->profile, &own(s)->pending.v[i]);
	for (; !bpf_map_get_next_key(fd, previous, &tid); previous = &tid) {
		if (bpf_map_lookup_elem(fd, &tid, &t))
			continue;
		for (int i = 0; i < SHARED_IO_PLACES; i++) {
			struct profile_sample sample;

			if (!t.places[i].sum.count)
				continue;
			sample = sample_of(s, &t.places[i].sum);
			profile_add_sample(s->profile, &sample);
		}
	}
}

static void count(struct profile *p, const char *key, uint64_t n)
{
	if (n)
		profile_count(p, key, n);
}

static void count_of(struct profile *p, const char *family, const char *which, uint64_t n)
{
	if (n)
		profile_count_of(p, family, which, n);
}

static void add_latency(struct profile *p, const char *family, const char *which, const uint64_t *counts)
{
	_cleanup_free_ char *key = key_of(family, which);
	struct profile_histogram *h = NULL;

	for (int i = 0; i < 64; i++) {
		if (!counts[i])
			continue;
		if (!h)
			h = profile_histogram(p, key);
		h->counts[i] += counts[i];
	}
}

/* The exact figures of each operation, which do not depend on what came through the ring. Returns how many calls and
 * requests had a stack. */
static uint64_t note_stats(struct profile *p, const struct bpf_map *map)
{
	struct shared_io_stats stats;
	uint64_t calls = 0;

	for (uint32_t op = 1; op < IO_OPS; op++) {
		if (!bpfengine_sum(map, op, &stats, sizeof(stats)))
			continue;
		count_of(p, KEY_IO_CALLS_OF, op_names[op], stats.calls);
		count_of(p, KEY_IO_ERRORS_OF, op_names[op], stats.errors);
		count_of(p, KEY_IO_BYTES_OF, op_names[op], stats.bytes);
		count_of(p, KEY_IO_NS_OF, op_names[op], stats.ns);
		add_latency(p, KEY_IO_LATENCY_OF, op_names[op], stats.latency);
		if (op != IO_OP_io_uring_enter && op != IO_OP_io_submit)
			calls += stats.calls;
	}
	return calls;
}

static void note_counts(struct profile *p, const struct bpf_map *map, uint64_t calls)
{
	struct shared_io_counts c;

	if (!bpfengine_sum(map, 0, &c, sizeof(c)))
		return;
	profile_count(p, KEY_IO_STACKS_WALKED, c.walked);
	profile_count(p, KEY_IO_STACKS_REMEMBERED, calls > c.walked ? calls - c.walked : 0);
	count(p, KEY_IO_CALLS_ERROR, (uint64_t)sqrt((double)c.variance));
	profile_count(p, KEY_IO_LOST_CALLS, c.lost_calls);
	profile_count(p, KEY_IO_LOST_BYTES, c.lost_bytes);
	count(p, KEY_IO_LOST_STACKS, c.lost_stacks);
	count(p, KEY_IO_LOST_FILE_NAMES, c.lost_files);
	count(p, KEY_IO_CALLS_OF_THREADS_WITHOUT_ROOM, c.threads_full);
	count(p, KEY_IO_32_BIT_CALLS_NOT_RECORDED, c.compat);
	count(p, KEY_IO_URING_REQUESTS_WITHOUT_ROOM, c.requests_full);
	count(p, KEY_IO_URING_MULTISHOT_NOT_RECORDED, c.unknown_requests);
}

static void note_device(struct profile *p, const struct shared_device *d)
{
	static const char *const kinds[REQUEST_KINDS] = { "read", "write", "flush", "other" };
	char name[sizeof(d->name) + 16];

	for (int k = 0; k < REQUEST_KINDS; k++) {
		if (!d->kinds[k].requests)
			continue;
		snprintf(name, sizeof(name), "%.*s.%s", (int)sizeof(d->name), d->name, kinds[k]);
		count_of(p, KEY_BLOCK_REQUESTS_OF, name, d->kinds[k].requests);
		count_of(p, KEY_BLOCK_BYTES_OF, name, d->kinds[k].bytes);
		count_of(p, KEY_BLOCK_NS_OF, name, d->kinds[k].ns);
		count_of(p, KEY_BLOCK_OWN_REQUESTS_OF, name, d->kinds[k].own_requests);
		count_of(p, KEY_BLOCK_OWN_BYTES_OF, name, d->kinds[k].own_bytes);
		count_of(p, KEY_BLOCK_ERRORS_OF, name, d->kinds[k].errors);
		add_latency(p, KEY_BLOCK_LATENCY_OF, name, d->kinds[k].latency);
	}
}

static void note_devices(struct profile *p, int fd)
{
	struct shared_device d;
	uint32_t key, *previous = NULL;

	while (!bpf_map_get_next_key(fd, previous, &key)) {
		if (!bpf_map_lookup_elem(fd, &key, &d))
			note_device(p, &d);
		previous = &key;
	}
}

static void tally(struct session *s, struct profile *to)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	uint64_t calls = note_stats(to, skeleton->maps.io_stats);

	note_counts(to, skeleton->maps.io_counts, calls);
	note_devices(to, bpf_map__fd(skeleton->maps.block_devices));
	count(to, KEY_BLOCK_REQUESTS_WITHOUT_ROOM, skeleton->bss->block_unknown);
}

static void stop(struct session *s)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	uint64_t now = clock_mono_ns();

	for (size_t i = 0; i < ARRAY_LEN(own(s)->links); i++)
		bpf_link__destroy(own(s)->links[i]);
	bpfengine_drain(s->engine);
	finish_threads(s, skeleton, now);
	flush(s);
	tally(s, s->profile);
	files_free(own(s)->files);
	map_done(&own(s)->threads);
	vec_done(&own(s)->pending);
	map_done(&own(s)->pending_index);
}

static void pause_io(struct session *s, bool pause)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);

	if (!pause)
		skeleton->bss->io_epoch++;
	skeleton->bss->io_paused = pause;
}

static void thin(struct session *s, unsigned step)
{
	bpfengine_skeleton(s->engine)->bss->io_thin = step;
}

static uint64_t looked_at(struct session *s)
{
	struct shared_io_counts c;

	return bpfengine_sum(bpfengine_skeleton(s->engine)->maps.io_counts, 0, &c, sizeof(c)) ? c.walked : 0;
}

static uint64_t recorded(const struct session *s)
{
	struct shared_io_stats stats;
	uint64_t calls = 0;

	for (uint32_t op = 1; op < IO_OPS; op++)
		if (bpfengine_sum(bpfengine_skeleton(s->engine)->maps.io_stats, op, &stats, sizeof(stats)))
			calls += stats.calls;
	return calls;
}

static const char *const io_programs[] = { "on_sys_enter", "on_sys_enter_old", "on_sys_exit", "on_io_exec", "on_io_exit",
					   "on_uring_submit", "on_uring_submit_old", "on_uring_complete",
					   "on_uring_complete_old", "on_block_issue", "on_block_complete", NULL };
static const char *const io_maps[] = { "io_threads", "uring_requests", "block_requests", "block_devices", NULL };

const struct collector collector_io = {
	.name = "io",
	.describe = "bytes read and written by stack and file, time in fsync, requests to disks",
	.state_size = sizeof(struct io),
	.programs = io_programs,
	.maps = io_maps,
	.prepare = prepare,
	.start = start,
	.record = record,
	.pause = pause_io,
	.thin = thin,
	.thin_steps = 6,
	.looked_at = looked_at,
	.recorded = recorded,
	.tick = tick,
	.peek = peek,
	.tally = tally,
	.stop = stop,
};
