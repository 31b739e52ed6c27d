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

int looking_write(const char *label, const char *what, const char *extension, const struct buf *data,
		  char **ret_path, struct err *err)
{
	_cleanup_free_ char *capture = output_default_path(label, what), *path = NULL;
	_cleanup_fd_ int fd = -1;
	int r;

	/* "-2" and so on where a file of that second is there. */
	for (int i = 1; fd < 0; i++) {
		int n = strlen(capture) - strlen(".gasflame");

		free(path);
		path = i == 1 ? mem_printf("%.*s%s", n, capture, extension) :
				mem_printf("%.*s-%d%s", n, capture, i, extension);
		r = output_make_folders(path, err);
		if (r < 0)
			return r;
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (fd < 0 && errno != EEXIST)
			return err_errno(err, errno, "cannot write %s", path);
	}
	r = fd_write_all(fd, data->data, data->n);
	if (r < 0) {
		unlink(path);
		return err_errno(err, -r, "cannot write %s", path);
	}
	output_give(path);
	*ret_path = path;
	path = NULL;
	return 0;
}
