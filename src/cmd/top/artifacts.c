#include "cmd/top/artifacts.h"

#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "cmd/reading/broker.h"
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

int artifacts_write(const char *label, const char *what, const struct look_file *files, size_t n, char **ret_stem,
		    struct err *err)
{
	struct output_file out[OUTPUT_FILES_MAX];

	if (n > OUTPUT_FILES_MAX)
		return err_set(err, E2BIG, "too many files for one picture");
	for (size_t i = 0; i < n; i++)
		out[i] = (struct output_file){ files[i].extension, files[i].data.data, files[i].data.n };
	return label ? output_write_new(label, what, out, n, ret_stem, err) : broker_write_new(what, out, n, ret_stem, err);
}
