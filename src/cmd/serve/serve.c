/*
 * serve.c - reads captures for the server of src/serve, until Ctrl-C.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/diff/diff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cmd/captures/captures.h"
#include "cmd/cmd.h"
#include "cmd/filters.h"
#include "cmd/reading/analyzed.h"
#include "cmd/reading/input.h"
#include "cmd/reading/storeargs.h"
#include "cmd/reading/subsystemio.h"
#include "cmd/serve/fleet.h"
#include "fleet/storeurl.h"
#include "serve/server.h"
#include "serve/site.h"

enum { DEFAULT_MAX_BYTES = 32 << 20, MOST_FILES = 10000 };

struct serve {
	struct analyzed_options load;
	struct store_choice store;
	uint64_t port, max_bytes;
};

static void serve_done(struct serve *s)
{
	vec_done(&s->load.symbols.list);
	vec_done(&s->load.patterns.list);
	vec_done(&s->load.subsystems.list);
	store_choice_done(&s->store);
}

#ifdef GASFLAME_SERVE
/* Nodes of the tree in a first picture: boxes of a thousandth of its width and more. */
enum { FIRST_NODES = 20000 };

struct served {
	struct site_capture capture;
	struct analyzed *load;
};

struct compared {
	struct site_diff shown;
	struct diff diff;
};

static void release(struct site_capture *c)
{
	struct served *s = (struct served *)c;

	analyzed_free(s->load);
	free(s);
}

static int keep_served(struct served *s, int r, struct site_capture **ret)
{
	if (r) {
		analyzed_free(s->load);
		free(s);
		return r;
	}
	s->capture = (struct site_capture){ s->load->job, release };
	*ret = &s->capture;
	return 0;
}

static int read_capture(void *context, const char *path, struct site_capture **ret, struct err *err)
{
	const struct serve *serve = context;
	struct served *s = mem_alloc(sizeof(*s));

	return keep_served(s, analyzed_load(path, &serve->load, &s->load, err), ret);
}

static int read_first(void *context, const char *path, struct site_capture **ret, struct err *err)
{
	const struct serve *serve = context;
	struct analyzed_options o = serve->load;
	struct served *s = mem_alloc(sizeof(*s));
	int r;

	o.coarse = FIRST_NODES;
	r = analyzed_read(path, &o, &s->load, err);
	if (!r)
		r = analyzed_outline(s->load, err);
	/* What its quality warns of is said when all of it is read. */
	if (!r) {
		vec_done_each(&s->load->quality.warnings, e, free(*e));
		vec_push(&s->load->quality.warnings, mem_strdup("A first picture, without times and light stacks: the rest is being read"));
	}
	return keep_served(s, r, ret);
}

static void release_diff(struct site_diff *d)
{
	struct compared *c = (struct compared *)d;

	diff_done(&c->diff);
	free(c);
}

/* The noise of a difference is that of its moments, which a page of one recording does not need. */
static int select_moments(const struct site_capture *c, struct selection *ret, struct err *err)
{
	struct select_options o = c->job.selection->options;

	o.moments = true;
	return selection_make(c->job.profile, &o, ret, err);
}

static int compare(void *context, const struct site_capture *before, const struct site_capture *after, struct site_diff **ret,
		   struct err *err)
{
	struct compared *c = mem_alloc(sizeof(*c));
	struct selection a = { 0 }, b = { 0 };
	int r = select_moments(before, &a, err);

	if (!r)
		r = select_moments(after, &b, err);
	if (!r)
		r = diff_make(&c->diff, &(struct diff_side){ before->job.profile, &a }, &(struct diff_side){ after->job.profile, &b },
			      &(struct diff_options){ 0 }, err);
	selection_done(&a);
	selection_done(&b);
	if (r) {
		free(c);
		return r;
	}
	c->shown = (struct site_diff){ &c->diff, release_diff };
	*ret = &c->shown;
	return 0;
}

/* --- which files --- */

struct files {
	VEC(char *) list;
	struct fleet *fleet; /* a store as a whole; NULL = none */
};

static void files_done(struct files *f)
{
	vec_done_each(&f->list, e, free(*e));
	fleet_free(f->fleet);
}

static int add_file(void *context, const struct captures_entry *e)
{
	struct files *f = context;

	if (f->list.n < MOST_FILES)
		vec_push(&f->list, mem_strdup(e->path));
	return 0;
}

/* A store without a target is that of the page of nodes. */
static int add_store(struct files *f, const char *path, struct err *err)
{
	struct storeurl url;
	int r = storeurl_parse(input_address(path), clock_wall_ns(), &url, err);
	bool named = !r && storeurl_names(&url);

	storeurl_done(&url);
	if (r)
		return r;
	if (named) {
		vec_push(&f->list, mem_strdup(path));
		return 0;
	}
	if (f->fleet)
		return err_set(err, EINVAL, "serve shows the nodes of one store: name one, with all of its servers, separated by commas");
	return fleet_new(input_address(path), &f->fleet, err);
}

/* A folder means the captures in it and below it. */
static int find_files(char **paths, int n, struct files *ret, struct err *err)
{
	for (int i = 0; i < n; i++) {
		size_t before = ret->list.n;
		struct stat st;
		int r;

		if (input_is_store(paths[i])) {
			r = add_store(ret, paths[i], err);
			if (r)
				return r;
			continue;
		}
		if (stat(paths[i], &st) || !S_ISDIR(st.st_mode)) {
			vec_push(&ret->list, mem_strdup(paths[i]));
			continue;
		}
		r = captures_walk(paths[i], CAPTURES_FOLLOW, add_file, NULL, ret, err);
		if (r)
			return r;
		if (ret->list.n == before)
			return err_set(err, ENOENT, "there is no capture in %s, nor below it", paths[i]);
	}
	return 0;
}

/* Unreadable files are reported now, not in the browser. */
static int check_captures(char **paths, int n, struct err *err)
{
	for (int i = 0; i < n; i++) {
		const char *kind;
		int r = input_check(paths[i], &kind, err);

		if (!strcmp(paths[i], "-"))
			return err_set(err, EINVAL, "serve reads a file whenever its page is opened, not the "
						    "standard input: write that to a file first");
		if (r == -ENOENT)
			return err_set(err, ENOENT, "there is no file %s: `gasflame ls` lists the captures",
				       paths[i]);
		if (r)
			return r;
	}
	return 0;
}

static int serve_until_signal(struct serve *serve, const struct files *files, struct err *err)
{
	char **paths = files->list.v;
	size_t n = files->list.n;
	struct site_fleet fleet = files->fleet ? fleet_for_site(files->fleet) : (struct site_fleet){ 0 };
	const struct site_options options = { .paths = (const char *const *)paths, .n = n, .max_bytes = serve->max_bytes,
					      .reader = { read_capture, read_first, compare, input_check, serve },
					      .fleet = files->fleet ? &fleet : NULL };
	_cleanup_(buf_done) struct buf times = { 0 };
	struct server *server = NULL;
	struct site *site;
	sigset_t ends;
	int signal_number, r;

	r = check_captures(paths, n, err);
	if (r)
		return r;
	/* Blocked before the server's thread is there, which takes this over. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	site = site_new(&options);
	r = server_start(site, serve->port, &server, err);
	if (!r) {
		if (files->fleet)
			fleet_put_times(files->fleet, &times);
		printf("%s%s%s\n", server_url(server), files->fleet ? "fleet/" : n == 1 ? "0/" : "", times.n ? times.data : "");
		if (fflush(stdout))
			r = err_errno(err, errno, "cannot write to the standard output");
	}
	if (!r) {
		log_info("open this in a browser of this machine; Ctrl-C ends it");
		sigwait(&ends, &signal_number);
		/* A second Ctrl-C ends the program without waiting for requests in progress. */
		pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
	}
	server_stop(server);
	site_free(site);
	return r;
}

static int serve_operands(struct serve *serve, struct err *err)
{
	_cleanup_(files_done) struct files files = { 0 };
	int r = find_files(command_operands.v, command_operands.n, &files, err);

	return r ?: serve_until_signal(serve, &files, err);
}
#else
static int serve_operands(struct serve *serve, struct err *err)
{
	return err_set(err, ENOSYS, "this gasflame was built without the server: build it with "
				    "-Dserve=enabled (Debian: libmicrohttpd-dev), or let `gasflame report` write "
				    "the page as a file");
}
#endif

static int serve_run(const struct command *c, int argc, char **argv)
{
	_cleanup_(serve_done) struct serve s = { .max_bytes = DEFAULT_MAX_BYTES, .load.sums = true };
	const struct option_spec options[] = {
		{ 0, "port", OPTION_UINT, &s.port, "PORT", "of 127.0.0.1; by default any that is free",
		  .max = 65535 },
		{ 0, "max-size", OPTION_SIZE, &s.max_bytes, "SIZE",
		  "how much data the page gets at once; the lightest stacks above it come when they are "
		  "zoomed into" },
		{ 0, "patterns", OPTION_LIST, &s.load.patterns, "FILE",
		  "more patterns for the causes of waits, before the built-in ones" },
		SUBSYSTEMS_OPTION(&s.load.subsystems),
		STORE_OPTIONS(&s.store),
		STORE_TIMES(&s.store),
		SYMBOL_OPTIONS(&s.load),
		{ 0 },
	};
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv);

	if (first < 0)
		return -first - 1;
	if (serve_operands(&s, &err)) {
		log_error("%s", err.text);
		return EXIT_ERROR;
	}
	return EXIT_OK;
}

const struct command command_serve = {
	.name = "serve",
	.summary = "show recordings in a browser, with the data on demand",
	.usage = "[options] [FILE|FOLDER...]",
	.describe =
		"Serves the page that report writes, for captures that are too large for one file, or for "
		"several of them; folded stacks, too. A folder means the captures in it and below it. Of several there is a list, on "
		"which two can be compared. Of a long capture the page has a first picture at once, with the heaviest stacks, and "
		"opens itself again when all of it is read. What the page shows is limited by --max-size; stacks that were left "
		"out are fetched when they are zoomed into. A capture that is replaced on disk is read again "
		"when its page is opened again. " COMMAND_NEWEST "\n"
		"\n"
		"With --store it serves a page of the nodes of a store (gasflame store --help): nodes and times as a heat map of a figure: time of blocks, CPU, "
		"the share of a cause or of a function, memory. A click opens that node and that time, as a capture would be; two can be compared. "
		"With a --target, and maybe --from and --to, it is the page of that one. The store is asked by this process, and the browser never sees its "
		"address.\n"
		"\n"
		"The URL on the standard output holds a secret token: anyone who knows it can read these captures, "
		"from this machine only (127.0.0.1). For another machine's captures use a tunnel: "
		"ssh -L 8080:127.0.0.1:8080, and --port 8080 there. Ctrl-C ends it.",
	.example = "gasflame serve slow.gasflame\n"
		   "gasflame serve --store clickhouse://127.0.0.1:8123/gasflame\n"
		   "gasflame serve --store clickhouse://127.0.0.1:8123/gasflame --target reth-1 --from -1h\n"
		   "gasflame serve profiling/\n"
		   "gasflame serve --port 8080 profiling/op-reth-seq/*.gasflame",
	.run = serve_run,
	.newest = 1,
	.listens = true,
};
