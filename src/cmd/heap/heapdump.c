/*
 * heapdump.c - `heap dump` and `heap detach`: jemalloc's own profiler in a process that runs, and our hooks
 * out of it.
 *
 * Orders to jemalloc are given by a thread of the target at its next allocation (collect/heap/implant.h): a thread
 * that is stop_wanted somewhere may hold the very lock that a dump needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/file/newfile.h"
#include "base/text/plain.h"
#include "cmd/cmd.h"
#include "cmd/detach.h"
#include "cmd/filters.h"
#include "cmd/heap/heap.h"
#include "cmd/recording/output.h"
#include "cmd/recording/targets.h"
#include "cmd/stop.h"
#include "collect/heap/implant.h"
#include "elf/worker/worker.h"
#include "import/jemalloc/heapdumps.h"
#include "import/jemalloc/heappprof.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"
#include "target/open.h"

static const uint64_t limit_bytes = 2ULL << 30;

struct dumping {
	const char *url, *output, *keep, *active;
	bool reset, no_dump, collect;
	struct symbolize_options names;
	uint64_t every_ns, duration_ns, wait_ns;
	pid_t pid;
	char *label;
	struct implant *implant;
	uint64_t control;     /* mallctl of the jemalloc that profiles */
	struct heapdumps dumps;
};

/* --- the target --- */

static int ask(struct dumping *d, uint64_t control, const struct implant_control *c, struct err *err)
{
	return implant_control(d->implant, control, c, d->wait_ns, err);
}

/* The jemalloc that profiles, or why there is none. */
static int find_profiler(struct dumping *d, struct err *err)
{
	bool jemalloc = false, compiled = false, on = false;
	uint64_t control;
	int r;

	for (unsigned k = 0; (control = implant_control_at(d->implant, k)) && !on; k++) {
		bool has = false;

		jemalloc = true;
		r = ask(d, control,
			&(struct implant_control){
				.name = "config.prof", .old = &has, .old_size = sizeof(has) },
			err);
		if (implant_gave_up(r))
			return r;
		compiled |= !r && has;
		if (r || !has)
			continue;
		r = ask(d, control,
			&(struct implant_control){ .name = "opt.prof", .old = &on, .old_size = sizeof(on) },
			err);
		if (implant_gave_up(r))
			return r;
		d->control = control;
	}
	if (on)
		return 0;
	return err_set(err, ENOTSUP, "%s of process %d%s; `gasflame record -e heap` needs none of it",
		       !jemalloc  ? "there is no jemalloc with symbols among the allocators"
		       : compiled ? "profiling is off in the jemalloc"
				  : "profiling is not compiled into the jemalloc",
		       d->pid,
		       compiled ? ": start it with MALLOC_CONF=prof:true (_RJEM_MALLOC_CONF where its functions have the prefix "
				  "_rjem_, the other has no effect: gasflame doctor TARGET says which), or by `gasflame run --jemalloc-prof`"
		       : jemalloc ? " (gasflame doctor TARGET says which build has it)"
				  : "");
}

static int attach(struct dumping *d, struct err *err)
{
	struct worker *w = worker_new();
	int r = implant_open(d->pid, w, &d->implant, err);

	if (!r)
		r = implant_hook(d->implant, w, err);
	worker_free(w);
	if (!r)
		return err_set(
			err, ENOTSUP,
			"process %d calls no allocator through a slot that we know: jemalloc cannot be "
			"asked from outside; let it write dumps by itself "
			"(MALLOC_CONF=prof:true,lg_prof_interval:30)",
			d->pid);
	return r < 0 ? r : find_profiler(d, err);
}

/* The number of restored slots is reported only on request. */
static void detach(struct dumping *d)
{
	struct err why = { 0 };
	int left = d->implant ? implant_unhook(d->implant, &why) : 0;

	if (left)
		log_warn(
			"%d slots of process %d could not be put back: `gasflame heap detach %d` tries again (%s)",
			left, d->pid, d->pid, why.text);
	implant_close(d->implant);
	d->implant = NULL;
}

/* --- one dump --- */

/* No other process knows the name before the file is there. The target does: read_dump() trusts nothing. */
static int write_dump(struct dumping *d, const char **ret_folder, char *name, size_t size, struct err *err)
{
	static const char *const folders[] = { "/tmp", "/dev/shm", "/var/tmp", "." };
	uint64_t random;
	int r = -EIO;

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return err_errno(err, errno, "there is no random number");
		_cleanup_free_ char *path = NULL;

		*ret_folder = folders[i];
		snprintf(name, size, "gasflame-%016llx.heap", (unsigned long long)random);
		path = mem_printf("%s/%s", folders[i], name);
		r = ask(d, d->control, &(struct implant_control){ .name = "prof.dump", .text = path }, err);
		if (!r || implant_gave_up(r))
			return r;
	}
	return err_set(err, -r,
		       "process %d can write to none of its folders /tmp, /dev/shm and /var/tmp, nor to "
		       "the one it is in: jemalloc made no dump",
		       d->pid);
}

/* The folder is looked up once, below the target's root; only the file that was read is removed from it. */
static int read_dump(struct dumping *d, const char *path, const char *name, char **ret, size_t *ret_n, struct err *err)
{
	_cleanup_fd_ int folder = target_open_folder(d->pid, path, err), fd = -1;
	struct stat st;
	int r = folder < 0 ? folder : target_open_made(d->pid, folder, name, &fd, err);

	if (r)
		return r;
	r = fd_read_file(fd, limit_bytes, ret, ret_n);
	if (!fstat(fd, &st))
		folder_remove(folder, name, st.st_dev, st.st_ino);
	return r < 0 ? err_errno(err, -r, "cannot read the dump of process %d", d->pid) : 0;
}

static int get_dump(struct dumping *d, char **ret, size_t *ret_n, struct err *err)
{
	const char *folder = NULL;
	char name[64] = "";
	int r;

	if (d->url)
		return heap_fetch(d->url, d->wait_ns, ret, ret_n, err);
	r = write_dump(d, &folder, name, sizeof(name), err);
	return r ?: read_dump(d, folder, name, ret, ret_n, err);
}

static int keep_dump(const struct dumping *d, const char *name, const char *text, size_t n, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("%s/%s", d->keep, name);
	struct owner owner = output_owner();

	return newfile_write(path, NEWFILE_FOLDERS, 0600, &owner, text, n, err);
}

static int add_dump(struct dumping *d, struct err *err)
{
	_cleanup_free_ char *text = NULL, *name = NULL;
	size_t n = 0, i = d->dumps.list.n;
	int r = get_dump(d, &text, &n, err);

	if (r)
		return r;
	name = mem_printf("%s.%d.%zu.m%zu.heap", d->label, d->pid, i, i);
	r = heapdumps_add_text(&d->dumps, name, text, n, clock_wall_ns(), err);
	if (!r && d->keep)
		r = keep_dump(d, name, text, n, err);
	log_progress("%zu dumps", d->dumps.list.n);
	return r;
}

static void sleep_until(uint64_t mono_ns)
{
	while (!stop_wanted) {
		uint64_t now = clock_mono_ns();

		if (now >= mono_ns)
			return;
		usleep(MIN((mono_ns - now) / 1000 + 1, 100000));
	}
}

static int dump_all(struct dumping *d, struct err *err)
{
	uint64_t start = clock_mono_ns(), next = start;
	int r = add_dump(d, err);

	while (!r && d->every_ns && !stop_wanted) {
		next += d->every_ns;
		if (d->duration_ns && next > start + d->duration_ns)
			break;
		sleep_until(next);
		if (stop_wanted)
			break;
		r = add_dump(d, err);
		if (r == -EINTR) { /* the requested end */
			r = 0;
			break;
		}
		if (r == -ESRCH || (r && !d->url && kill(d->pid, 0) < 0)) {
			log_warn("process %d has ended", d->pid);
			r = 0;
			break;
		}
	}
	log_progress_end();
	return r;
}

/* Where jemalloc writes dumps by itself: the option is a pointer into the process. */
static int read_prefix(struct dumping *d, char *out, size_t size, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/mem", d->pid);
	_cleanup_fd_ int memory = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t address = 0;
	ssize_t n;
	int r = ask(d, d->control,
		    &(struct implant_control){
			    .name = "opt.prof_prefix", .old = &address, .old_size = sizeof(address) },
		    err);

	if (implant_gave_up(r))
		return r;
	n = r || !address || memory < 0 ? -1 : pread(memory, out, size - 1, address);
	if (n <= 0)
		return err_set(err, EIO, "jemalloc of process %d does not say where it writes its dumps",
			       d->pid);
	out[n] = 0;
	return 0;
}

static int collect(struct dumping *d, struct err *err)
{
	char prefix[1024];
	int r = read_prefix(d, prefix, sizeof(prefix), err);

	if (r)
		return r;
	sleep_until(clock_mono_ns() + d->duration_ns);
	return heap_collect(&d->dumps, d->pid, prefix, err);
}

/* --- orders --- */

static int set_active(struct dumping *d, bool on, struct err *err)
{
	int r = ask(d, d->control,
		    &(struct implant_control){ .name = "prof.active", .new = &on, .new_size = sizeof(on) },
		    err);

	if (r && !implant_gave_up(r))
		return err_set(err, -r, "jemalloc of process %d refuses to switch its profiling: %s", d->pid,
			       strerror(-r));
	if (!r)
		log_info("profiling of process %d is %s", d->pid, on ? "on" : "off");
	return r;
}

static int reset(struct dumping *d, struct err *err)
{
	int r = ask(d, d->control, &(struct implant_control){ .name = "prof.reset" }, err);

	if (r && !implant_gave_up(r))
		return err_set(err, -r, "jemalloc of process %d refuses to forget its profile: %s", d->pid,
			       strerror(-r));
	if (!r)
		log_info("process %d has forgotten what it had sampled", d->pid);
	return r;
}

static int save(struct dumping *d, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_free_ char *path = NULL;
	int r = heap_make(&d->dumps, (struct heapdumps_options){ .pid = d->pid, .symbols = d->names.paths },
			  &d->names, &p, err);

	if (!r)
		r = output_save(d->output, d->label, "dumps", p, &path, err);
	if (r)
		return r;
	log_info("%zu dump%s; gasflame report %s", d->dumps.list.n, d->dumps.list.n == 1 ? "" : "s", path);
	plain_put_path(path);
	return 0;
}

static int work(struct dumping *d, struct err *err)
{
	int r = d->url ? 0 : attach(d, err), e = 0;

	if (!r && d->active && !strcmp(d->active, "on"))
		r = set_active(d, true, err);
	if (!r && !d->no_dump)
		r = d->collect ? collect(d, err) : dump_all(d, err);
	if (!r && d->reset)
		r = reset(d, err);
	if (!r && d->active && !strcmp(d->active, "off"))
		r = set_active(d, false, err);
	detach(d);
	/* Dumps made before an error are kept. */
	if (d->dumps.list.n)
		e = save(d, r ? NULL : err);
	return r ?: e;
}

static int check(const struct dumping *d, int targets)
{
	if (targets != !d->url) {
		log_error(targets ? "one target at a time, and none with --url"
				  : "say whose heap to dump: a pid, a name, or --url (gasflame heap dump "
				    "--help)");
		return -EINVAL;
	}
	if (d->url && (d->active || d->reset || d->no_dump)) {
		log_error("--active, --reset and --no-dump are for a process, not for --url");
		return -EINVAL;
	}
	if (d->duration_ns && !d->every_ns && !d->collect) {
		log_error("-d is for how long to repeat: say how often with --every");
		return -EINVAL;
	}
	if (d->collect && (d->every_ns || d->url || d->keep || d->no_dump)) {
		log_error("--collect takes the dumps that are there: no --every, --keep, --no-dump or "
			  "--url with it");
		return -EINVAL;
	}
	if (d->no_dump && (d->every_ns || d->output || d->keep)) {
		log_error("--no-dump leaves nothing for --every, -o and --keep");
		return -EINVAL;
	}
	return 0;
}

static int heap_dump(const struct command *c, int argc, char **argv)
{
	static const char *const switches[] = { "on", "off", NULL };
	struct dumping d = { .wait_ns = 10000000000, .label = NULL };
	struct option_list symbols = { 0 };
	const struct option_spec options[] = {
		{ 0, "every", OPTION_DURATION, &d.every_ns, "TIME",
		  "again and again, this often, until Ctrl-C or -d" },
		{ 'd', "duration", OPTION_DURATION, &d.duration_ns, "TIME", "for how long, with --every" },
		{ 'o', "output", OPTION_STRING, &d.output, "FILE",
		  "the recording; by default profiling/<target>/dumps-<time>.gasflame" },
		{ 0, "keep", OPTION_STRING, &d.keep, "DIR",
		  "keep the dumps themselves, too, in this folder" },
		{ 0, "collect", OPTION_FLAG, &d.collect,
		  .help = "ask for none, but take those that jemalloc wrote by itself "
			  "(lg_prof_interval), from the process's own root; with -d after that time" },
		{ 0, "active", OPTION_CHOICE, &d.active, "SWITCH",
		  "switch sampling on before the first dump, or off after the last", .choices = switches },
		{ 0, "reset", OPTION_FLAG, &d.reset,
		  .help = "after the last dump let it forget all that was sampled" },
		{ 0, "no-dump", OPTION_FLAG, &d.no_dump, .help = "only --active or --reset" },
		{ 0, "wait", OPTION_DURATION, &d.wait_ns, "TIME",
		  "how long the process may take to allocate anything, or the node of --url to end another's dump" },
		{ 0, "url", OPTION_STRING, &d.url, "URL",
		  "where a node offers its heap dump; of an address without a path /debug/pprof/heap and /debug/pprof/allocs are tried" },
		{ 0, "symbols", OPTION_LIST, &symbols, "PATH",
		  COMMAND_SYMBOLS },
		CACHE_OPTIONS(&d.names),
		{ 0 },
	};
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (check(&d, argc - first))
		return EXIT_USAGE;
	d.names.paths = symbols.list.v;
	if (d.url)
		d.label = mem_strdup("url");
	r = d.url ? 0 : targets_find_one(argv[first], &d.pid, &d.label, &err);
	stop_catch(true, implant_interrupt); /* a signal must find the way to detach() */
	if (!r)
		r = work(&d, &err);
	if (r)
		log_error("%s", err.text);
	heapdumps_done(&d.dumps);
	free(d.label);
	vec_done(&symbols.list);
	return r ? EXIT_ERROR : EXIT_OK;
}

const struct command command_heap_dump = {
	.name = "heap dump",
	.summary = "heap dumps of a running process whose jemalloc has profiling on",
	.usage = "[options] TARGET",
	.describe = "Asks jemalloc in a running process for heap dumps, at once or every so often, and "
		    "makes one recording of them. The process must have been started with profiling on "
		    "(MALLOC_CONF=prof:true); whether it samples may be switched with --active. A thread "
		    "of the process makes the dump at its next allocation; the file appears in a folder "
		    "of the process's own root, from where it is collected and removed.\n"
		    "\n"
		    "--url reads dumps from a node that offers them over HTTP instead: nothing is put "
		    "into the process then. reth and op-reth offer them on the metrics port, ethrex on the HTTP RPC port, "
		    "geth and erigon on --pprof; a refusal is explained.",
	.example = "gasflame heap dump --every 10s -d 2m reth\n"
		   "gasflame heap dump --active on --no-dump reth\n"
		   "gasflame heap dump --url http://127.0.0.1:9001/debug/pprof/heap",
	.run = heap_dump,
	.keeps_rights = true,
};

const struct command command_heap_detach = {
	.name = "heap detach",
	.summary = "takes the hooks of -e heap out of a process; as detach",
	.usage = "TARGET",
	.describe = "Puts back the slots that a recorder of the heap changed and, being killed, could "
		    "not put back itself. The hooks work until then, and cost next to nothing. Those of -e task are taken out, "
		    "too: it is the same as gasflame detach.",
	.example = "gasflame heap detach reth",
	.run = detach_run,
	.keeps_rights = true,
};
