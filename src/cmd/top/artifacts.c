#include "cmd/top/artifacts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/newfile.h"
#include "cmd/recording/output.h"
#include "elf/worker/worker.h"
#include "profile/profile.h"
#include "symbol/instructions.h"
#include "tui/detail/code.h"
#include "tui/look.h"

static const uint64_t patience_ns = 5000000000; /* the user pressed a key and waits */

static void got_instruction(void *context, uint64_t address, uint32_t size, const char *text)
{
	struct code_text *t = context;

	vec_push(&t->list, (struct code_instruction){ address, size, mem_strdup(text) });
}

void artifacts_code(const struct profile *p, uint32_t module, uint64_t address, const char *const *paths,
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

enum { FILES_MAX = 8, MOST_IN_A_SECOND = 1000 };

/* All or none; -EEXIST where one of the names is taken. */
static int write_all(const char *stem, const struct look_file *files, size_t n, struct err *err)
{
	struct newfile made[FILES_MAX];
	struct owner owner = output_owner();
	size_t opened = 0, kept = 0;
	int r = n > FILES_MAX ? -E2BIG : 0;

	while (!r && opened < n) {
		_cleanup_free_ char *path = mem_printf("%s%s", stem, files[opened].extension);
		struct newfile *f = &made[opened];

		r = newfile_open(f, path, NEWFILE_ONCE | NEWFILE_FOLDERS, 0666, &owner, err);
		if (!r && (r = fd_write_all(f->fd, files[opened].data.data, files[opened].data.n)))
			err_errno(err, -r, "cannot write %s", path);
		opened++;
	}
	while (!r && kept < n) {
		r = newfile_keep(&made[kept], err);
		kept += !r;
	}
	for (size_t i = 0; r && i < kept; i++)
		folder_remove(made[i].folder, made[i].name, made[i].device, made[i].inode);
	for (size_t i = 0; i < opened; i++)
		newfile_done(&made[i]);
	return r;
}

int artifacts_write(const char *label, const char *what, const struct look_file *files, size_t n, char **ret_stem,
		    struct err *err)
{
	_cleanup_free_ char *plain = output_stem(label, what), *stem = NULL;
	int r = -EEXIST;

	/* "-2" and so on where a file of that second is there. */
	for (int i = 1; r == -EEXIST && i <= MOST_IN_A_SECOND; i++) {
		free(stem);
		stem = i == 1 ? mem_strdup(plain) : mem_printf("%s-%d", plain, i);
		r = write_all(stem, files, n, err);
	}
	if (r < 0)
		return r;
	*ret_stem = stem;
	stem = NULL;
	return 0;
}
