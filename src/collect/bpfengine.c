#include "collect/bpfengine.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "collect/collector.h"
#include "collect/follow.h"
#include "collect/kernel/ownprograms.h"
#include "collect/kernel/smallbtf.h"
#include "collect/load/loader.h"
#include "collect/process/processes.h"
#include "collect/shared.h"
#include "collect/perf/sideband.h"
#include "collect/unwind/codemap.h"
#include "collect/unwind/unwindmaps.h"
#include "collect/unwind/userstack.h"
#include "elf/unwind/unwind.h"
#include "profile/profile.h"
#include "target/host.h"
#include "target/proc.h"

#include "gasflame.skel.h"

struct bpfengine {
	struct session *session;
	struct gasflame_bpf *skeleton;
	struct unwindmaps *tables;
	struct codemap *files;
	struct sideband *sideband;
	struct ring_buffer *ring;
	struct map stacks; /* hash of a stack to the profile's stack */
	struct shared_large *large; /* room to make one entry in */
	uint64_t versions; /* of mappings, given out (shared_process.version) */
	int stats_fd;
	uint64_t read_bytes; /* of the ring, since this drain began */
	uint64_t full; /* processes that found no room */
	uint64_t records[COLLECTOR_COUNT]; /* handled so far */
	bool warned_many;
	bool unmapped; /* stacks were cut where nothing was known to be mapped, or had no table yet */
};

enum {
	SAY_MAX = 4096,
	OTHERS_MS = 2,        /* how long records gather that are of no process of ours */
	OTHERS_SLOW_MS = 50,  /* the same for a recorder of low pace */
	NAMES_SLOW_MS = 200,  /* and names of our threads for that one */
};

/* libbpf's words are for those who ask for them. */
static int say(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	char *line, *rest;
	int size;

	if (level == LIBBPF_DEBUG)
		return 0;
	size = vasprintf(&text, fmt, ap);
	if (size < 0) {
		text = NULL;
		return 0;
	}
	/* The verifier's log may be megabytes; its end has the reason. */
	rest = size > SAY_MAX ? text + size - SAY_MAX : text;
	while ((line = strsep(&rest, "\n")))
		if (*line)
			log_debug("%s", line);
	return 0;
}

bool bpfengine_sum(const struct bpf_map *map, uint32_t key, void *ret, size_t size)
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ uint64_t *each = mem_alloc(MAX(cpus, 1) * size);
	size_t words = size / sizeof(*each);
	uint64_t *sum = ret;

	memset(sum, 0, size);
	if (cpus < 1 || bpf_map_lookup_elem(bpf_map__fd(map), &key, each))
		return false;
	for (size_t i = 0; i < cpus * words; i++)
		sum[i % words] += each[i];
	return true;
}

void bpfengine_empty(struct session *s, int map, size_t key_size, size_t value_size, bpfengine_entry_fn *fn)
{
	enum { BATCH = 4096 };
	_cleanup_free_ char *keys = mem_resize(NULL, BATCH, key_size), *values = mem_resize(NULL, BATCH, value_size);
	uint32_t at = 0, count;
	bool first = true;
	int r;

	do {
		count = BATCH;
		r = bpf_map_lookup_and_delete_batch(map, first ? NULL : &at, &at, keys, values, &count, NULL);
		if (r && errno != ENOENT)
			break;
		first = false;
		for (uint32_t i = 0; i < count; i++)
			fn(s, keys + i * key_size, values + i * value_size);
	} while (!r);
}

uint32_t bpfengine_stack(struct bpfengine *e, uint64_t hash)
{
	uint64_t *stack = map_get(&e->stacks, hash);

	return stack ? *stack : PROFILE_NONE;
}

uint64_t bpfengine_rule(void *context, uint32_t module, uint64_t address)
{
	return unwindmaps_rule(((struct bpfengine *)context)->tables, module, address);
}

bool bpfengine_building(const struct bpfengine *e, uint32_t module)
{
	return unwindmaps_building(e->tables, module);
}

bool bpfengine_place(const struct bpfengine *e, const struct shared_young_mapping *m, struct shared_mapping *ret)
{
	return codemap_place(e->files, m, ret);
}

void bpfengine_learn(struct bpfengine *e, const struct shared_young *y)
{
	codemap_learn(e->files, y);
}

bool bpfengine_finds_young(void)
{
	struct host host;
	struct utsname u;

	host_probe(&host);
	return (host.major > 5 || (host.major == 5 && host.minor >= 17)) && !uname(&u) && !strstr(u.version, "PREEMPT_RT");
}

/* Frames come with the first record of a stack, whoever sends it. */
static void learn_stack(struct bpfengine *e, const struct shared_record *r, size_t size)
{
	if (size < sizeof(*r) || !r->has_frames ||
	    size < sizeof(*r) + 8UL * (r->user_count + r->kernel_count))
		return;
	*map_put(&e->stacks, r->stack, 0) = collector_stack(e->session, r, (const uint64_t *)(r + 1));
	if (r->reason == REASON_NO_MAPPING) {
		processes_dirty(e->session->processes, r->pid);
		codemap_learn_process(e->files, r->pid);
	}
	if (r->reason == REASON_NO_MAPPING || r->reason == REASON_NO_TABLE_YET)
		e->unmapped = true;
}

/* Takes one record; an error ends the drain (bpfengine_consume()). */
static int got_record(void *context, void *data, size_t size)
{
	struct bpfengine *e = context;
	uint32_t kind, owner;

	e->read_bytes += size + BPF_RINGBUF_HDR_SZ;
	if (size < sizeof(kind))
		return 0;
	memcpy(&kind, data, sizeof(kind));
	if (kind & RECORD_FRAMES)
		learn_stack(e, data, size);
	owner = RECORD_OWNER(kind);
	if (owner && owner <= COLLECTOR_COUNT)
		e->records[owner - 1]++;
	if (owner && owner <= COLLECTOR_COUNT && e->session->record[owner - 1])
		e->session->record[owner - 1](e->session, data, size);
	else if (kind == RECORD_EXIT && size >= sizeof(struct shared_exit))
		follow_exit(e->session->follow, data);
	return e->read_bytes < bpf_map__max_entries(e->skeleton->maps.ring) ? 0 : -EAGAIN;
}

/* Reads the ring. Where records come faster than they are taken it is never empty, and libbpf would not
 * return: once as much was read as it can hold, all records that were there at the beginning have been
 * read, and the rest is for the next time. */
void bpfengine_consume(struct bpfengine *e)
{
	e->read_bytes = 0;
	ring_buffer__consume(e->ring);
}

/* names: NULL-terminated; NULL = none. */
static bool listed(const char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

/* Is a program of any collector that was chosen? */
static bool wanted(const struct bpfengine *e, const char *program)
{
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (e->session->chosen[i] && listed(collector_table[i]->programs, program))
			return true;
	return !strcmp(program, "on_fork") || !strcmp(program, "on_exec") || !strcmp(program, "on_free") ||
	       (!strcmp(program, "on_exit") && e->session->options->follow);
}

/* Is a map only of collectors that were not chosen? Some take 12 MB. */
static bool spared(const struct bpfengine *e, const char *map)
{
	bool owned = false;

	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		if (!listed(collector_table[i]->maps, map))
			continue;
		if (e->session->chosen[i])
			return false;
		owned = true;
	}
	return owned;
}

/* Before 6.1 programs of perf events may only use hash maps that are made in advance, with all their memory: fewer
 * processes then. */
static void fit_maps(struct gasflame_bpf *skeleton)
{
	struct host host;

	host_probe(&host);
	if (host.major > 6 || (host.major == 6 && host.minor >= 1))
		return;
	bpf_map__set_map_flags(skeleton->maps.processes, 0);
	bpf_map__set_max_entries(skeleton->maps.processes, 2048);
	bpf_map__set_map_flags(skeleton->maps.large, 0);
	bpf_map__set_max_entries(skeleton->maps.large, 32);
	bpf_map__set_map_flags(skeleton->maps.young, 0);
	bpf_map__set_max_entries(skeleton->maps.young, 2048);
	bpf_map__set_map_flags(skeleton->maps.code_files, 0);
	bpf_map__set_max_entries(skeleton->maps.code_files, 4096);
}

/* The small part of the kernel's BTF by which the programs are relocated, and what they attach to. */
struct types {
	int fd;
	struct smallbtf_target *targets;
	size_t target_count;
};

static void types_done(struct types *t)
{
	fd_close(&t->fd);
	free(t->targets);
}

/* Opens the programs, to be relocated by a small part of the kernel's BTF. Where that cannot be had libbpf takes all of it,
 * which takes longer. */
static int open_programs(struct bpfengine *e, struct types *t, struct err *err)
{
	char path[32];
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = path);
	struct err why = { 0 };

	t->fd = memfd_create("gasflame-types", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->fd);
	e->skeleton = gasflame_bpf__open_opts(t->fd < 0 ? NULL : &options);
	if (e->skeleton)
		t->targets = loader_targets(e->skeleton->obj, &t->target_count);
	if (e->skeleton && t->fd >= 0 &&
	    smallbtf_write(t->fd, bpf_object__btf(e->skeleton->obj), t->targets, t->target_count, &why) < 0) {
		log_debug("%s", why.text);
		gasflame_bpf__destroy(e->skeleton);
		e->skeleton = gasflame_bpf__open();
	}
	return e->skeleton ? 0 : err_errno(err, errno, "cannot read our own BPF programs");
}

static void choose_programs(struct bpfengine *e)
{
	struct bpf_program *program;
	struct bpf_map *map;

	bpf_object__for_each_program(program, e->skeleton->obj)
		bpf_program__set_autoload(program, wanted(e, bpf_program__name(program)));
	bpf_object__for_each_map(map, e->skeleton->obj)
		bpf_map__set_autocreate(map, !spared(e, bpf_map__name(map)));
	fit_maps(e->skeleton);
	/* A mapped ring counts as ours, page by page as it is used. Who is to take little memory is no fast recorder. */
	if (e->session->options->pace_ns)
		bpf_map__set_max_entries(e->skeleton->maps.ring, 2 << 20);
	e->skeleton->rodata->page_shift = __builtin_ctzl(sysconf(_SC_PAGESIZE));
	e->skeleton->rodata->pc_mask = userstack_pc_mask();
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (e->session->chosen[i] && collector_table[i]->prepare)
			collector_table[i]->prepare(e->session, e->skeleton);
}

/* Says why the kernel did not take the programs, if it did not. */
static int judge_load(const struct bpfengine *e, int load, struct err *err)
{
	struct host host;

	if (load == -EPERM) {
		host_probe(&host);
		return err_set(err, EPERM, "the kernel does not permit BPF: %s", host_remedy(&host));
	}
	if (load < 0)
		return err_set(err, ENOTSUP, "the kernel does not load our BPF programs (gasflame -v shows its words): %s",
			       strerror(-load)); /* not as EINVAL: the command line is right */
	/* libbpf asks the kernel first whether maps can be mapped, and takes any error for a no. */
	if (!e->skeleton->bss)
		return err_set(err, ENOTSUP, "the kernel does not let us map the data of our BPF programs: "
			       "memory or the limit of locked memory may be used up (ulimit -l)");
	return 0;
}

static void add_words(void *context, const struct unwind_table *table)
{
	*(uint64_t *)context += unwindmaps_words(table);
}

/* Makes all that needs the maps, but not the programs. */
static int open_maps(struct bpfengine *e, struct err *err)
{
	const struct unwindmaps_fds fds = { .chunks = bpf_map__fd(e->skeleton->maps.chunks),
					    .rules = bpf_map__fd(e->skeleton->maps.rules),
					    .modules = bpf_map__fd(e->skeleton->maps.modules),
					    .rule_cache = bpf_map__fd(e->skeleton->maps.rule_cache),
					    .seen = bpf_map__fd(e->skeleton->maps.seen) };
	uint64_t words = 0;
	int r;

	processes_each_table(e->session->processes, add_words, &words);
	r = unwindmaps_new(&fds, words, &e->tables, err);
	if (r < 0)
		return r;
	e->files = codemap_new(bpf_map__fd(e->skeleton->maps.code_files), bpf_map__fd(e->skeleton->maps.young));
	r = sideband_open(&e->sideband, err);
	if (r < 0)
		return r;
	e->ring = ring_buffer__new(bpf_map__fd(e->skeleton->maps.ring), got_record, e, NULL);
	if (!e->ring)
		return err_errno(err, errno, "cannot map the BPF ring buffer");
	return 0;
}

/* Undoes open_all(), wherever that ended. */
static void close_all(struct bpfengine *e)
{
	ring_buffer__free(e->ring);
	sideband_close(e->sideband);
	unwindmaps_free(e->tables);
	codemap_free(e->files);
	gasflame_bpf__destroy(e->skeleton);
	e->ring = NULL;
	e->sideband = NULL;
	e->tables = NULL;
	e->files = NULL;
	e->skeleton = NULL;
}

/* at_once: see load/loader.h; the maps are filled while the kernel verifies the programs. *ret_refused: it did not like one. */
static int open_all(struct bpfengine *e, bool at_once, bool *ret_refused, struct err *err)
{
	struct loader *l = at_once ? loader_begin() : NULL;
	_cleanup_(types_done) struct types types = { .fd = -1 };
	int r = open_programs(e, &types, err), load = -ECANCELED;

	if (r >= 0) {
		loader_set_targets(l, types.targets, types.target_count);
		choose_programs(e);
		load = gasflame_bpf__load(e->skeleton);
		r = judge_load(e, load, err);
	}
	if (r >= 0)
		r = open_maps(e, err);
	*ret_refused = !loader_end(l) || (load < 0 && load != -ECANCELED);
	return r;
}

int bpfengine_open(struct session *s, struct bpfengine **ret, struct err *err)
{
	struct bpfengine *e = mem_alloc(sizeof(*e));
	bool refused;
	int r;

	e->session = s;
	e->stats_fd = -1;
	e->large = mem_alloc(sizeof(*e->large));
	libbpf_set_print(say);
	r = open_all(e, true, &refused, err);
	if (refused) {
		/* One after the other, so that libbpf passes on what the verifier says. */
		close_all(e);
		loader_off();
		r = open_all(e, false, &refused, err);
	}
	if (r < 0) {
		bpfengine_close(e);
		return r;
	}
	/* The kernel's own account of what our programs cost; without it the quality line says less. */
	e->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	*ret = e;
	return 0;
}

void bpfengine_close(struct bpfengine *e)
{
	if (!e)
		return;
	close_all(e);
	fd_close(&e->stats_fd);
	map_done(&e->stacks);
	free(e->large);
	free(e);
}

void bpfengine_show_programs(struct bpfengine *e, struct kernelmap *k)
{
	ownprograms_add(k, e->skeleton->obj);
}

struct gasflame_bpf *bpfengine_skeleton(struct bpfengine *e)
{
	return e->skeleton;
}

int bpfengine_follow(struct bpfengine *e, struct err *err)
{
	struct bpf_program *const programs[] = { e->skeleton->progs.on_fork, e->skeleton->progs.on_exec,
						 e->skeleton->progs.on_free, e->skeleton->progs.on_exit };
	struct bpf_link **const links[] = { &e->skeleton->links.on_fork, &e->skeleton->links.on_exec,
					    &e->skeleton->links.on_free, &e->skeleton->links.on_exit };

	for (size_t i = 0; i < ARRAY_LEN(programs) - !e->session->options->follow; i++) {
		*links[i] = bpf_program__attach(programs[i]);
		if (!*links[i])
			return err_errno(err, errno, "cannot attach to the kernel's %s tracepoint",
					 bpf_program__section_name(programs[i]) + strlen("raw_tp/"));
	}
	return 0;
}

static void read_ring(struct bpfengine *e)
{
	bpfengine_consume(e);
	processes_refresh(e->session->processes);
	if (!e->unmapped)
		return;
	e->unmapped = false;
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (e->session->running[i] && collector_table[i]->mapped && !collector_table[i]->mapped(e->session))
			e->unmapped = true;
}

/* False: there was nothing that cannot wait. */
static bool read_sideband(struct bpfengine *e, uint32_t *ret_ours)
{
	processes_begin_reading(e->session->processes);
	*ret_ours = sideband_drain(e->sideband, e->session->processes);
	return processes_end_reading(e->session->processes);
}

/* Lets records gather, so that a machine that starts many programs, and a server that renames a thread for each query, do not keep us busy.
 * A recorder of low pace waits longer, longest for names; but not where the ring fills. */
static void nap(const struct bpfengine *e, bool names)
{
	bool fills = e->read_bytes > bpf_map__max_entries(e->skeleton->maps.ring) / 4;
	unsigned ms = !e->session->options->pace_ns ? OTHERS_MS : names && !fills ? NAMES_SLOW_MS : OTHERS_SLOW_MS;
	struct timespec time = { .tv_nsec = ms * 1000000L };

	nanosleep(&time, NULL);
}

int bpfengine_poll(struct bpfengine *e, int timeout_ms)
{
	struct pollfd p[] = { { .fd = sideband_epoll(e->sideband), .events = POLLIN },
			      { .fd = processes_event(e->session->processes), .events = POLLIN } };
	uint64_t until = clock_mono_ns() + timeout_ms * 1000000ULL, now;
	bool low = e->session->options->pace_ns;
	uint32_t ours;

	do {
		now = clock_mono_ns();
		timeout_ms = now < until ? (until - now + 999999) / 1000000 : 0;
		if (poll(p, ARRAY_LEN(p), processes_timeout(e->session->processes, timeout_ms)) < 0)
			return -errno;
		processes_refresh(e->session->processes);
		if (!(p[0].revents & POLLIN))
			continue;
		if (read_sideband(e, &ours) || (ours && !low))
			processes_refresh(e->session->processes);
		else
			nap(e, ours);
	} while (clock_mono_ns() < until);
	/* What came during a nap: the ring may have samples of a thread that was started then. */
	if (read_sideband(e, &ours))
		processes_refresh(e->session->processes);
	read_ring(e);
	return 0;
}

void bpfengine_drain(struct bpfengine *e)
{
	uint32_t ours;

	read_sideband(e, &ours);
	read_ring(e);
}

bool bpfengine_programs(struct bpfengine *e, void (*fn)(void *context, const struct bpfengine_program *p), void *context)
{
	struct bpf_program *prog;
	bool any = e->stats_fd >= 0;

	bpf_object__for_each_program(prog, e->skeleton->obj) {
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof(info);

		if (bpf_program__fd(prog) < 0 || bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			continue;
		/* They may be on for all, though we may not switch them on. */
		any |= info.run_cnt != 0;
		fn(context, &(struct bpfengine_program){ .name = bpf_program__name(prog),
							 .section = bpf_program__section_name(prog),
							 .ns = info.run_time_ns, .runs = info.run_cnt });
	}
	return any;
}

uint64_t bpfengine_records(const struct bpfengine *e, enum collector_id owner)
{
	return e->records[owner];
}

uint64_t bpfengine_missed(struct bpfengine *e)
{
	struct bpf_program *prog;
	uint64_t missed = 0;

	bpf_object__for_each_program(prog, e->skeleton->obj) {
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof(info);

		if (bpf_program__fd(prog) >= 0 && !bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			missed += info.recursion_misses;
	}
	return missed;
}

uint64_t bpfengine_full(struct bpfengine *e)
{
	return e->full + __atomic_load_n(&e->skeleton->bss->processes_full, __ATOMIC_RELAXED);
}

/* --- what processes.c finds goes into the maps --- */

static void sink_announce(void *context, uint32_t module)
{
	unwindmaps_announce(((struct bpfengine *)context)->tables, module);
}

static void sink_table(void *context, uint32_t module, const struct unwind_table *table)
{
	struct bpfengine *e = context;
	struct err err = { 0 };

	if (!table)
		unwindmaps_none(e->tables, module);
	else if (unwindmaps_load(e->tables, module, table, &err) < 0)
		log_warn("%s: stacks through some files will be cut off", err.text);
}

/* The pid may be another's by now, and that be recorded, too: its entry stays. */
static void sink_gone(void *context, pid_t pid, uint64_t born)
{
	struct bpfengine *e = context;
	struct shared_process there;
	uint32_t key = pid;

	if (bpf_map_lookup_elem(bpf_map__fd(e->skeleton->maps.processes), &key, &there))
		return;
	if (there.born && born && there.born != born)
		return;
	bpf_map_delete_elem(bpf_map__fd(e->skeleton->maps.processes), &key);
	bpf_map_delete_elem(bpf_map__fd(e->skeleton->maps.large), &key);
	bpf_map_delete_elem(bpf_map__fd(e->skeleton->maps.young), &key);
}

static void put_process(struct bpfengine *e, uint32_t pid, const struct shared_process *p)
{
	__atomic_fetch_or(&e->skeleton->bss->process_bits[pid / 64 % (SHARED_PROCESS_BITS / 64)], 1ULL << pid % 64,
			  __ATOMIC_RELEASE);
	if (!bpf_map_update_elem(bpf_map__fd(e->skeleton->maps.processes), &pid, p, BPF_ANY))
		return;
	if (!e->full++)
		log_warn("there is room for %u processes: process %u, and others that come beyond them, are not recorded",
			 bpf_map__max_entries(e->skeleton->maps.processes), pid);
}

static void sink_mappings(void *context, pid_t pid, uint64_t born, const struct shared_mapping *list, uint32_t count)
{
	struct bpfengine *e = context;
	struct shared_process few = { .count = count, .since_ns = processes_joined_ns(e->session->processes, pid), .born = born,
				      .version = ++e->versions };
	uint32_t key = pid;

	if (count > SHARED_FEW_MAPPINGS) {
		few.count = 0;
		few.large = 1;
		e->large->count = MIN(count, SHARED_MANY_MAPPINGS);
		memcpy(e->large->mappings, list, e->large->count * sizeof(*list));
		if (count > SHARED_MANY_MAPPINGS && !e->warned_many)
			log_warn("process %d has %u executable mappings; the highest %u are not unwound",
				 (int)pid, count, count - SHARED_MANY_MAPPINGS);
		e->warned_many |= count > SHARED_MANY_MAPPINGS;
		if (bpf_map_update_elem(bpf_map__fd(e->skeleton->maps.large), &key, e->large, BPF_ANY))
			log_warn("too many processes with many mappings: stacks of process %d are cut off", (int)pid);
	} else if (count) {
		memcpy(few.mappings, list, count * sizeof(*list));
	}
	put_process(e, key, &few);
	/* If it died meanwhile, the kernel's removal came before: what was put there must not wait for a stranger. */
	if (proc_started(pid) != born)
		sink_gone(e, pid, born);
}

static void sink_file(void *context, uint32_t module, const struct shared_code_key *file, const struct worker_layout *layout)
{
	codemap_add(((struct bpfengine *)context)->files, module, file, layout);
}

const struct processes_sink bpfengine_sink = {
	.announce = sink_announce,
	.table = sink_table,
	.mappings = sink_mappings,
	.gone = sink_gone,
	.file = sink_file,
};
