/*
 * symbols.c - `gasflame symbols`: what names there are, from where, and how to get the rest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/cache.h"
#include "base/file/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/reading/input.h"
#include "cmd/reading/reading.h"
#include "cmd/symbols/symbolfile.h"
#include "cmd/symbols/symbolmodules.h"
#include "elf/worker/worker.h"
#include "profile/profile.h"
#include "target/open.h"
#include "target/proc.h"

enum { MOST_MODULES = 256 }; /* of a process */

struct symbols_choice {
	struct option_list symbols;
	bool json, fetch, no_cache;
};

struct answer {
	struct symbolfile_search search;
	struct find_index index;
	bool as_json;
	struct json json; /* into out */
	struct buf out;
	size_t files;
};

static void add_file(struct answer *a, const struct symbolfile *f)
{
	if (a->as_json) {
		json_open_row(&a->json, 1);
		symbolfile_json(f, &a->json);
		json_close(&a->json);
		return;
	}
	if (a->files++)
		buf_putc(&a->out, '\n');
	symbolfile_print(f, &a->out);
}

static int look_at(struct answer *a, int fd, pid_t pid, const char *path, struct err *err)
{
	struct symbolfile f;
	int r = symbolfile_look(&a->search, fd, pid, path, &f, err);

	if (r)
		return r;
	add_file(a, &f);
	symbolfile_done(&f);
	return 0;
}

static int look_at_file(struct answer *a, const char *path, struct err *err)
{
	_cleanup_free_ char *whole = realpath(path, NULL);
	_cleanup_fd_ int fd = -1;
	struct err why = { 0 };
	int r = target_open_host(path, &fd, &why);

	if (r)
		return err_set(err, -r, "%s; name a program, a library, a debug file, a capture or a pid", why.text);
	return look_at(a, fd, 0, whole ? whole : path, err);
}

/* The program first, as it is in the maps. */
static int look_at_process(struct answer *a, pid_t pid, struct err *err)
{
	struct proc_maps maps = { 0 };
	int r = proc_maps_read(pid, true, &maps), seen = 0;

	if (r == -ESRCH || r == -ENOENT)
		return err_set(err, ESRCH, "there is no process %d; gasflame ps lists what there is (a file of that name: ./%d)",
			       pid, pid);
	if (r)
		return err_errno(err, -r, "cannot read the mappings of process %d: run as root or as its user", pid);
	for (size_t i = 0; i < maps.list.n && seen < MOST_MODULES; i++) {
		const struct proc_mapping *m = &maps.list.v[i];
		_cleanup_fd_ int fd = -1;
		struct err why = { 0 };
		bool again = !m->inode;

		for (size_t k = 0; k < i && !again; k++)
			again = maps.list.v[k].inode == m->inode && !strcmp(maps.list.v[k].path, m->path);
		if (again)
			continue;
		r = target_open_mapping(pid, m, &fd, &why);
		r = r ? r : look_at(a, fd, pid, m->path, &why);
		if (r)
			log_warn("%s", why.text);
		else
			seen++;
	}
	proc_maps_done(&maps);
	return seen ? 0 : err_set(err, ENOENT, "nothing that process %d has mapped can be read: run as root or as its user", pid);
}

static int look_at_capture(struct answer *a, const char *path, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	int r = input_read(path, &p, err);

	if (r)
		return r;
	if (a->as_json) {
		json_open_row(&a->json, 1);
		json_put_string(&a->json, "capture", path);
		symbolmodules_json(p, &a->json);
		json_close(&a->json);
	} else {
		symbolmodules_print(p, &a->out);
	}
	return 0;
}

static bool is_pid(const char *word, uint64_t *ret)
{
	return word[0] && !word[strspn(word, "0123456789")] && !str_parse_uint(word, 1, INT32_MAX, ret);
}

/* What strangers wrote is read without rights. A process is looked at with those that we have: its files are read by the
 * child. So there is no way to do both at once. */
static int begin(const struct command *c, const struct option_spec *options, char **words, int n)
{
	uint64_t pid;
	int pids = 0;

	for (int i = 0; i < n; i++)
		pids += is_pid(words[i], &pid);
	if (pids && pids < n) {
		log_error("a process is looked at with rights that files are read without: ask for files and pids one after the "
			  "other (a file whose name is a number: ./NUMBER)");
		return EXIT_USAGE;
	}
	return pids ? 0 : reading_begin(c, options, words, n);
}

static int look(struct answer *a, const char *word, struct err *err)
{
	uint64_t pid;

	if (is_pid(word, &pid))
		return look_at_process(a, pid, err);
	if (input_is_capture(word))
		return look_at_capture(a, word, err);
	return look_at_file(a, word, err);
}

static int answer(const struct symbols_choice *choice, char **words, int n)
{
	struct answer a = { .as_json = choice->json };
	struct err err = { 0 };
	int failed = 0;

	a.search = (struct symbolfile_search){ .worker = worker_new(), .cache = choice->no_cache ? NULL : cache_open(),
					       .index = &a.index, .fetch = choice->fetch };
	find_index_build(&a.index, a.search.worker, choice->symbols.list.v);
	if (a.as_json) {
		a.json = json_begin(&a.out);
		json_open_object(&a.json, NULL);
		json_open_array(&a.json, "files");
	}
	for (int i = 0; i < n; i++)
		if (look(&a, words[i], &err)) {
			log_error("%s", err.text);
			failed++;
		}
	if (a.as_json) {
		json_close(&a.json);
		json_end(&a.json);
	}
	for (size_t i = 0; i < a.index.problems.n; i++)
		log_warn("%s", a.index.problems.v[i]);
	if (a.out.n)
		plain_put(a.out.data, a.out.n);
	buf_done(&a.out);
	find_index_done(&a.index);
	cache_close(a.search.cache);
	worker_free(a.search.worker);
	return failed ? EXIT_ERROR : EXIT_OK;
}

static int symbols_run(const struct command *c, int argc, char **argv)
{
	struct symbols_choice choice = { 0 };
	const struct option_spec options[] = {
		{ 0, "fetch", OPTION_FLAG, &choice.fetch,
		  .help = "ask the servers of DEBUGINFOD_URLS for debug files that are not on this machine; they are kept in "
			  "the cache, where record and report with --debuginfod find them" },
		{ 0, "symbols", OPTION_LIST, &choice.symbols, "PATH",
		  "look here, too: a debug file, a folder of them, the root of an image, or another build of the same sources" },
		{ 0, "json", OPTION_FLAG, &choice.json, .help = "as JSON" },
		{ 0, "no-cache", OPTION_FLAG, &choice.no_cache, .help = "neither use nor keep cached debug files" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (!command_operands.n) {
		log_error("name a FILE, a PID or a CAPTURE: gasflame symbols /usr/bin/reth");
		vec_done(&choice.symbols.list);
		return EXIT_USAGE;
	}
	if (choice.fetch && choice.no_cache) {
		log_error("--fetch keeps what it gets in the cache: leave out --no-cache");
		vec_done(&choice.symbols.list);
		return EXIT_USAGE;
	}
	r = begin(c, options, command_operands.v, command_operands.n);
	if (!r)
		r = answer(&choice, command_operands.v, command_operands.n);
	vec_done(&choice.symbols.list);
	return r;
}

const struct command command_symbols = {
	.name = "symbols",
	.summary = "what names a file, a process or a capture has, and from where",
	.usage = "[options] FILE|PID|CAPTURE...",
	.describe =
		"Of a FILE: its build-id, symbol tables, debug information, how many functions its unwind information knows "
		"and how much of the code that is, the debug files that were found, and each place that was looked at. Of a "
		"PID: the same for each file whose code it has mapped. Of a CAPTURE: its modules, those with most samples "
		"first, with the share of their frames that have names, and what to do about the rest.\n\n"
		"A program without symbols is recorded all the same. Its functions are shown by their start "
		"(reth+0x24bb400) until symbols are there: gasflame report --symbols names them in captures that exist "
		"already.",
	.example = "gasflame symbols /usr/bin/reth\n"
		   "gasflame symbols --fetch 4242\n"
		   "gasflame symbols slow.gasflame",
	.run = symbols_run,
	.keeps_rights = true,
};
