#include "symbol/instructions.h"

#include <errno.h>

#include "base/err.h"
#include "profile/profile.h"
#include "symbol/find.h"
#include "symbol/stillrunning.h"

int instructions_read(const struct profile *p, uint32_t module, uint64_t address, struct worker *w,
		      const char *const *paths, worker_instruction_fn *got, void *context, struct err *err)
{
	const struct profile_module *m = module < p->modules.n ? &p->modules.v[module] : NULL;
	struct find_index index = { 0 };
	struct find f;
	int r;

	if (!m || m->kind != MODULE_FILE)
		return err_set(err, ENOTSUP, "the code of %s is in no file that could be read",
			       m && m->kind == MODULE_KERNEL ? "the kernel" : "this");
	find_index_build(&index, w, paths);
	f = (struct find){ .worker = w, .index = &index, .pid = stillrunning_pid_of_module(p, module),
			   .path = profile_str(p, m->path), .build_id = m->build_id,
			   .build_id_size = m->build_id_size, .recorded_wall_ns = p->start_wall_ns,
			   .no_dwarf = true, .main = -1, .debug = -1, .alt = -1 };
	find_files(&f);
	if (f.main < 0)
		r = err_set(err, ENOENT, "%s is not there as it was recorded%s%s", f.path, *f.why ? ": " : "",
			    f.why);
	else
		r = worker_disassemble(w, f.main, f.debug, address, got, context, err);
	find_done(&f);
	find_index_done(&index);
	return r;
}
