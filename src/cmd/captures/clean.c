#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "capture/capturenew.h"
#include "cmd/captures/captures.h"
#include "cmd/cmd.h"

struct clean {
	uint64_t before_ns; /* captures last written before this go */
	bool dry_run, json;
	struct buf list;    /* JSON: an array of the removed files */
	struct json removed;
	size_t files, captures;
	uint64_t bytes;
	bool failed;
};

/* A file beside a capture belongs to it only if it has the same owner: in a folder that several people
 * write to, anyone could name a capture after another user's file. */
static bool belongs_to(const struct captures_entry *e, const char *name, const struct stat *st)
{
	if (!strcmp(name, e->name))
		return st->st_dev == e->device && st->st_ino == e->inode;
	return st->st_uid == e->owner;
}

static void remove_one(struct clean *c, const struct captures_entry *e, const char *name, const char *path)
{
	int folder = e->folder;
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	if (!belongs_to(e, name, &st)) {
		log_warn("%s is not of the owner of %s: left alone", path, e->path);
		return;
	}
	if (!c->dry_run && unlinkat(folder, name, 0)) {
		log_error("cannot remove %s: %s", path, strerror(errno));
		c->failed = true;
		return;
	}
	c->bytes += st.st_size;
	c->files++;
	if (c->json) {
		json_open_row(&c->removed, 1);
		json_put_string(&c->removed, "file", path);
		json_put_uint(&c->removed, "bytes", st.st_size);
		json_close(&c->removed);
	} else {
		_cleanup_(buf_done) struct buf line = { 0 };
		char size[32];

		plain_add(&line, path);
		printf("%s %s (%s)\n", c->dry_run ? "would remove" : "removed", line.data,
		       str_bytes(size, st.st_size));
	}
}

/* The file whose name is the first n bytes of the capture's name, and the ending. */
static void remove_beside(struct clean *c, const struct captures_entry *e, size_t n, const char *ending)
{
	_cleanup_free_ char *name = mem_printf("%.*s%s", (int)n, e->name, ending);
	_cleanup_free_ char *path = mem_printf("%.*s%s", (int)(strlen(e->path) - strlen(e->name)), e->path, name);

	remove_one(c, e, name, path);
}

/* The capture, its journals, and what report wrote beside it. */
static int clean_capture(void *context, const struct captures_entry *e)
{
	static const char *const reports[] = { ".svg", ".html" };
	struct clean *c = context;
	size_t stem = strlen(e->name);

	if (e->mtime_ns >= c->before_ns)
		return 0;
	if (captures_in_use(e)) {
		log_warn("%s is being recorded: left alone", e->path);
		return 0;
	}
	c->captures++;
	remove_one(c, e, e->name, e->path);
	for (size_t i = 0; i < CAPTURENEW_JOURNALS; i++)
		remove_beside(c, e, stem, capturenew_journals[i]);
	if (!str_ends(e->name, ".gasflame"))
		return 0;
	stem -= strlen(".gasflame");
	for (size_t i = 0; i < ARRAY_LEN(reports) && stem; i++)
		remove_beside(c, e, stem, reports[i]);
	return 0;
}

/* Only folders that held captures, and only when nothing is left in them: rmdir sees to that. */
static void clean_folder(void *context, int parent, const char *name, const char *path)
{
	struct clean *c = context;

	if (!c->dry_run && !unlinkat(parent, name, AT_REMOVEDIR))
		log_debug("removed the empty folder %s", path);
}

static void clean_tell_json(struct clean *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct json j = json_begin(&b);

	json_end(&c->removed);
	json_open_object(&j, NULL);
	json_put_bool(&j, "dry_run", c->dry_run);
	json_put_uints(&j, { "captures", c->captures }, { "files", c->files }, { "bytes", c->bytes });
	json_put_raw(&j, "removed", c->list.data, c->list.n);
	json_end_line(&j);
	plain_put(b.data, b.n);
}

static void clean_tell(struct clean *c)
{
	char size[32];

	if (c->json)
		clean_tell_json(c);
	else
		log_info("%s %zu capture%s, %s", c->dry_run ? "would remove" : "removed", c->captures,
			 c->captures == 1 ? "" : "s", str_bytes(size, c->bytes));
}

static int clean_run(const struct command *command, int argc, char **argv)
{
	static char *const usual[] = { CAPTURES_FOLDER };
	struct clean c = { .before_ns = UINT64_MAX };
	uint64_t older_ns = 0;
	bool all = false, by_default;
	const struct option_spec options[] = {
		{ 0, "older-than", OPTION_DURATION, &older_ns, "TIME",
		  "remove captures that were last written longer ago than this" },
		{ 0, "all", OPTION_FLAG, &all, .help = "remove every capture" },
		{ 'n', "dry-run", OPTION_FLAG, &c.dry_run, .help = "only print what would be removed" },
		{ 0, "json", OPTION_FLAG, &c.json, .help = "tell it as JSON" },
		{ 0 },
	};
	int first = options_parse(command, options, argc, argv);

	if (first < 0)
		return -first - 1;
	if (all == (older_ns > 0)) {
		log_error("clean wants either --older-than TIME (such as 7d) or --all");
		return EXIT_USAGE;
	}
	if (!all)
		c.before_ns = clock_wall_ns() > older_ns ? clock_wall_ns() - older_ns : 0;
	c.removed = json_begin(&c.list);
	json_open_array(&c.removed, NULL);
	by_default = first == argc;
	for (int i = by_default ? 0 : first; i < (by_default ? 1 : argc); i++) {
		struct err err = { 0 };
		int r = captures_walk(by_default ? usual[i] : argv[i], 0, clean_capture, clean_folder, &c,
				      &err);

		if (r && !(r == -ENOENT && by_default)) {
			log_error("%s", err.text);
			c.failed = true;
		}
	}
	clean_tell(&c);
	buf_done(&c.list);
	return c.failed ? EXIT_ERROR : EXIT_OK;
}

const struct command command_clean = {
	.name = "clean",
	.summary = "remove old captures",
	.usage = "--older-than TIME | --all [options] [FOLDER...]",
	.describe = "Removes captures below " CAPTURES_FOLDER
		    "/, or below the folders that are named, with the .svg and .html files of the same name "
		    "beside them that have the same owner, and the folders that are empty then. Nothing else is touched: a capture "
		    "is known by its content, symbolic links are not followed, and a capture that is being "
		    "recorded stays.",
	.example = "gasflame clean --older-than 7d --dry-run\ngasflame clean --older-than 7d",
	.run = clean_run,
	.removes = true,
	.reads_by_default = (const char *const[]){ CAPTURES_FOLDER, NULL },
};
