/*
 * serve.c - reads captures for the server of src/serve, until Ctrl-C.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/filters.h"
#include "cmd/reading/analyzed.h"
#include "cmd/reading/input.h"
#include "cmd/reading/subsystemio.h"
#include "serve/server.h"
#include "serve/site.h"

enum { DEFAULT_MAX_BYTES = 32 << 20 };

struct serve {
	struct analyzed_options load;
	uint64_t port, max_bytes;
};

static void serve_done(struct serve *s)
{
	vec_done(&s->load.symbols.list);
	vec_done(&s->load.patterns.list);
	vec_done(&s->load.subsystems.list);
}

#ifdef GASFLAME_SERVE
struct served {
	struct site_capture capture;
	struct analyzed *load;
};

static void release(struct site_capture *c)
{
	struct served *s = (struct served *)c;

	analyzed_free(s->load);
	free(s);
}

static int read_capture(void *context, const char *path, struct site_capture **ret, struct err *err)
{
	const struct serve *serve = context;
	struct served *s = mem_alloc(sizeof(*s));
	int r = analyzed_load(path, &serve->load, &s->load, err);

	if (r) {
		free(s);
		return r;
	}
	s->capture = (struct site_capture){ s->load->job, release };
	*ret = &s->capture;
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

static int serve_until_signal(struct serve *serve, char **paths, int n, struct err *err)
{
	const struct site_options options = { .paths = (const char *const *)paths, .n = n,
					      .read = read_capture, .check = input_check, .context = serve,
					      .max_bytes = serve->max_bytes };
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
		printf("%s%s\n", server_url(server), n == 1 ? "0/" : "");
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
#else
static int serve_until_signal(struct serve *serve, char **paths, int n, struct err *err)
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
		SYMBOL_OPTIONS(&s.load),
		{ 0 },
	};
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv);

	if (first < 0)
		return -first - 1;
	if (serve_until_signal(&s, command_operands.v, command_operands.n, &err)) {
		log_error("%s", err.text);
		return EXIT_ERROR;
	}
	return EXIT_OK;
}

const struct command command_serve = {
	.name = "serve",
	.summary = "show recordings in a browser, with the data on demand",
	.usage = "[options] [FILE...]",
	.describe =
		"Serves the page that report writes, for captures that are too large for one file, or for "
		"several of them; folded stacks, too. What the page shows first is limited by --max-size; stacks that were left "
		"out are fetched when they are zoomed into. A capture that is replaced on disk is read again "
		"when its page is opened again. " COMMAND_NEWEST "\n"
		"\n"
		"The URL on the standard output holds a secret token: anyone who knows it can read these captures, "
		"from this machine only (127.0.0.1). For another machine's captures use a tunnel: "
		"ssh -L 8080:127.0.0.1:8080, and --port 8080 there. Ctrl-C ends it.",
	.example = "gasflame serve slow.gasflame\n"
		   "gasflame serve --port 8080 profiling/op-reth-seq/*.gasflame",
	.run = serve_run,
	.newest = 1,
	.listens = true,
};
