/*
 * detach.c - `detach TARGET`: puts back what a recorder with -e heap or -e task changed in a process and, being killed,
 * could not put back itself.
 */
#include "cmd/detach.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/recording/targets.h"
#include "collect/heap/implant.h"
#include "collect/task/taskimplant.h"

/* Slots of one kind of hooks: how many there were, and how many are left. */
struct detached {
	int before, left;
};

/* 0 and no slot: there are no hooks of this kind. */
static int detach_heap(pid_t pid, struct detached *d, struct err *err)
{
	struct implant *i = NULL;
	int r = implant_open(pid, NULL, &i, err);

	if (r)
		return r == -ENOENT ? 0 : r;
	d->before += implant_hooked(i);
	d->left += implant_unhook(i, err);
	implant_close(i);
	return 1;
}

static int detach_tasks(pid_t pid, struct detached *d, struct err *err)
{
	struct taskimplant *t = NULL;
	int r = taskimplant_find(pid, &t, err);

	if (r)
		return r == -ENOENT ? 0 : r;
	d->before += taskimplant_hooked(t);
	d->left += taskimplant_unhook(t, err);
	taskimplant_close(t);
	return 1;
}

/* Both are tried, whatever becomes of the first. */
static int detach(const struct command *c, pid_t pid)
{
	int (*const kinds[])(pid_t, struct detached *, struct err *) = { detach_heap, detach_tasks };
	struct detached d = { 0 };
	struct err said = { 0 };
	bool found = false, failed = false;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct err err = { 0 };
		int left = d.left, r = kinds[i](pid, &d, &err);

		found |= r > 0;
		failed |= r < 0 || d.left > left;
		/* A process that has ended has ended for both. */
		if (r < 0 && strcmp(err.text, said.text) != 0)
			log_error("%s", err.text);
		else if (r >= 0 && d.left > left)
			log_error("%d of %d slots of process %d could not be put back: `gasflame %s %d` tries again (%s)", d.left - left,
				  MAX(d.left, d.before), pid, c->name, pid, err.text);
		said = err;
	}
	if (failed)
		return EXIT_ERROR;
	if (found)
		log_info("process %d: %d of %d slots put back", pid, d.before, d.before);
	else
		log_info("process %d has no hooks of gasflame: there is nothing to put back", pid);
	return EXIT_OK;
}

int detach_run(const struct command *c, int argc, char **argv)
{
	const struct option_spec options[] = { { 0 } };
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv);
	pid_t pid = 0;

	if (first < 0)
		return -first - 1;
	if (argc - first != 1) {
		log_error("say which process: gasflame %s TARGET", c->name);
		return EXIT_USAGE;
	}
	if (targets_find_one(argv[first], &pid, NULL, &err)) {
		log_error("%s", err.text);
		return EXIT_ERROR;
	}
	return detach(c, pid);
}

const struct command command_detach = {
	.name = "detach",
	.summary = "takes the hooks of -e heap and -e task out of a process",
	.usage = "TARGET",
	.describe = "Puts back the slots that a recorder with -e heap or -e task changed and, being killed, could not put back "
		    "itself. The hooks work until then, and cost next to nothing. The next recording does the same.\n"
		    "\n"
		    "TARGET is " COMMAND_TARGETS ".",
	.example = "gasflame detach reth",
	.run = detach_run,
	.keeps_rights = true,
};
