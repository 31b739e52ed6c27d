/*
 * heapstats.c - `heap stats`: the memory of the jemalloc of a running process, by size class, and how much of
 * it is used.
 *
 * As for `heap dump`, a thread of the process answers at its next allocations.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/recording/targets.h"
#include "cmd/stop.h"
#include "collect/heap/implant.h"
#include "collect/heap/jestats.h"
#include "elf/worker/worker.h"
#include "export/section/classtext.h"
#include "profile/profile.h"

enum { DEFAULT_ROWS = 20 };

struct stats {
	uint64_t limit, wait_ns;
	bool json;
	pid_t pid;
	struct profile *profile;
};

/* Puts hooks in, asks, takes them out again. */
static int ask(struct stats *s, struct err *err)
{
	struct worker *w = worker_new();
	struct implant *i = NULL;
	struct err after = { 0 }, why = { 0 };
	int r = implant_open(s->pid, w, &i, err), left;

	if (!r)
		r = implant_hook(i, w, err);
	worker_free(w);
	if (!r)
		r = err_set(err, ENOTSUP,
			    "process %d calls no allocator through a slot that we know: jemalloc cannot be asked from outside; "
			    "`gasflame mem --metrics URL` reads what a node offers itself", s->pid);
	if (r > 0)
		r = jestats_note(s->profile, i, 0, s->wait_ns, &after);
	if (after.text[0])
		err_set(err, -r, "%s (process %d)%s", after.text, s->pid,
			r == -ENOTSUP || r == -ENOENT ? ": `gasflame record -e heap,mem` estimates from samples" : "");
	left = i ? implant_unhook(i, &why) : 0;
	if (left)
		log_warn("%d slots of process %d could not be put back: `gasflame heap detach %d` tries again (%s)", left, s->pid,
			 s->pid, why.text);
	implant_close(i);
	return r;
}

/* Each series has one point. */
static void put_totals(const struct stats *s, struct buf *out)
{
	const struct profile *p = s->profile;
	char bytes[32];

	buf_printf(out, "jemalloc of process %d\n", s->pid);
	for (size_t i = 0; i < p->points.n; i++)
		buf_printf(out, "  %10s  %s\n", str_bytes(bytes, p->points.v[i].value),
			   profile_str(p, p->series.v[p->points.v[i].series].name) + strlen("jemalloc."));
}

static void put_json(const struct stats *s, struct buf *out)
{
	const struct profile *p = s->profile;
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_int(&j, "pid", s->pid);
	for (size_t i = 0; i < p->points.n; i++) {
		const char *name = profile_str(p, p->series.v[p->points.v[i].series].name) + strlen("jemalloc.");
		_cleanup_free_ char *key = mem_printf("%s_bytes", name);

		json_break(&j, 0);
		json_put_int(&j, key, p->points.v[i].value);
	}
	classtext_json(p, &j);
	json_end_line(&j);
}

static int show(const struct stats *s, struct err *err)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	int r;

	if (s->json) {
		put_json(s, &out);
	} else {
		put_totals(s, &out);
		classtext_table(s->profile, s->limit, log_colour(STDOUT_FILENO), &out);
	}
	r = fd_write_all(STDOUT_FILENO, out.data, out.n);
	return r ? err_errno(err, -r, "cannot write to the standard output") : 0;
}

static int heap_stats(const struct command *c, int argc, char **argv)
{
	struct stats s = { .limit = DEFAULT_ROWS, .wait_ns = 10000000000 };
	struct option_list pids = { 0 };
	const struct option_spec options[] = {
		{ 'p', "pid", OPTION_LIST, &pids, "PID", "the process" },
		{ 'n', "limit", OPTION_UINT, &s.limit, "ROWS", "classes in the table, 0 shows all" },
		{ 0, "wait", OPTION_DURATION, &s.wait_ns, "TIME", "how long the process may take to allocate something" },
		{ 0, "json", OPTION_FLAG, &s.json, .help = "JSON, with all classes" },
		{ 0 },
	};
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	for (int i = first; i < argc; i++)
		vec_push(&pids.list, argv[i]);
	if (pids.list.n != 1) {
		log_error("say which process: gasflame heap stats TARGET");
		vec_done(&pids.list);
		return EXIT_USAGE;
	}
	stop_catch(true, implant_interrupt); /* a signal must find the way to the end, where hooks are taken out */
	s.profile = profile_new();
	r = targets_find_one(pids.list.v[0], &s.pid, NULL, &err);
	r = r ?: ask(&s, &err);
	r = r ?: show(&s, &err);
	if (r)
		log_error("%s", err.text);
	profile_free(s.profile);
	vec_done(&pids.list);
	return r ? EXIT_ERROR : EXIT_OK;
}

const struct command command_heap_stats = {
	.name = "heap stats",
	.summary = "what the jemalloc of a running process holds, by size class",
	.usage = "[options] TARGET",
	.describe = "Asks jemalloc in a running process for its statistics: objects, the slabs that hold them, and what of "
		    "those is used. Small objects share slabs, and one that stays keeps its whole slab: classes that are "
		    "used little are fragmented. Like -e heap it puts hooks into the process for a moment; a thread of it "
		    "answers at its next allocations. `gasflame record -e heap` asks for the same at its end.",
	.example = "gasflame heap stats reth\ngasflame heap stats --json -p 4242",
	.run = heap_stats,
	.keeps_rights = true,
};
