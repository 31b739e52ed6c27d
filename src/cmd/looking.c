#include "cmd/looking.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cmd/output.h"
#include "elf/worker.h"
#include "profile/profile.h"
#include "symbol/instructions.h"
#include "tui/code.h"
#include "tui/look.h"

static const uint64_t patience_ns = 5000000000; /* somebody pressed a key and waits */

static void got_instruction(void *context, uint64_t address, uint32_t size, const char *text)
{
	struct code_text *t = context;

	vec_push(&t->list, (struct code_instruction){ address, size, mem_strdup(text) });
}

void looking_code(const struct profile *p, uint32_t module, uint64_t address, const char *const *paths,
		  struct code_text *ret)
{
	struct worker *w = worker_new();
	struct err err = { 0 };

	worker_set_timeout(w, patience_ns);
	ret->module = module;
	if (instructions_read(p, module, address, w, paths, got_instruction, ret, &err) < 0) {
		code_text_done(ret);
		snprintf(ret->why, sizeof(ret->why), "No instructions as text: %.200s", err.text);
	}
	worker_free(w);
}

/* -EEXIST, without a word: there is one of that name. */
static int write_file(const char *path, const struct buf *data, struct err *err)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	int r;

	if (fd < 0)
		return errno == EEXIST ? -EEXIST : err_errno(err, errno, "cannot write %s", path);
	r = fd_write_all(fd, data->data, data->n);
	if (r < 0) {
		unlink(path);
		return err_errno(err, -r, "cannot write %s", path);
	}
	output_give(path);
	return 0;
}

/* All or none. */
static int write_all(const char *stem, const struct look_file *files, size_t n, struct err *err)
{
	size_t i = 0;
	int r = 0;

	for (; !r && i < n; i++) {
		_cleanup_free_ char *path = mem_printf("%s%s", stem, files[i].extension);

		r = write_file(path, &files[i].data, err);
	}
	for (i = r ? i - 1 : 0; i; i--) {
		_cleanup_free_ char *path = mem_printf("%s%s", stem, files[i - 1].extension);

		unlink(path);
	}
	return r;
}

int looking_write(const char *label, const char *what, const struct look_file *files, size_t n, char **ret_stem,
		  struct err *err)
{
	_cleanup_free_ char *capture = output_default_path(label, what), *stem = NULL;
	int length = strlen(capture) - strlen(".gasflame"), r = output_make_folders(capture, err);

	if (r < 0)
		return r;
	/* "-2" and so on where a file of that second is there. */
	for (int i = 1; i == 1 || r == -EEXIST; i++) {
		free(stem);
		stem = i == 1 ? mem_strndup(capture, length) : mem_printf("%.*s-%d", length, capture, i);
		r = write_all(stem, files, n, err);
	}
	if (r < 0)
		return r;
	*ret_stem = stem;
	stem = NULL;
	return 0;
}
