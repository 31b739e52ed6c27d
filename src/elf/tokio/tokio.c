#include "elf/tokio/tokio.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "elf/file.h"
#include "elf/symbols.h"
#include "elf/symtab.h"
#include "elf/tokio/tokioint.h"

/* Bytes of code that are decoded in one file: the functions of all tables, and those that spawn. */
#define MAX_STEPS (256ULL << 20)

static void fill(struct tokio_file *f, const struct tables *tables, struct tokio_program *ret)
{
	ret->count = tables->n;
	ret->vtables = mem_alloc(tables->n * sizeof(*ret->vtables));
	for (size_t i = 0; i < tables->n; i++) {
		const struct table *t = &tables->v[i];

		ret->vtables[i] = (struct tokio_vtable){ .address = t->address, .poll = t->functions[SLOT_POLL],
							 .schedule = t->functions[SLOT_SCHEDULE],
							 .dealloc = t->functions[SLOT_DEALLOC], .id_offset = t->id };
	}
	spawn_find(f, ret->vtables, ret->count);
	name_types(f, tables->v, ret->vtables, ret->count);
}

int tokio_find(const struct symbols_files *files, struct tokio_program *ret, struct err *err)
{
	struct tokio_file f = { .elf = files->main, .steps = MAX_STEPS };
	struct tables tables = { 0 };
	int r;

	*ret = (struct tokio_program){ 0 };
	if (!image_version(files->main, ret->version))
		return err_set(err, ENOENT, "there is no tokio in it");
	f.symtab = symtab_new(files);
	functions_read(files->main, &f.functions);
	f.sparse = functions_bytes(&f.functions) < f.functions.text_bytes / 2;
	image_pointers(files->main, &f.pointers);
	r = shape_find(&f, ret->version, &tables, &ret->left_out, err);
	if (!r)
		fill(&f, &tables, ret);
	vec_done(&tables);
	vec_done(&f.pointers);
	functions_done(&f.functions);
	symtab_free(f.symtab);
	return r;
}

void tokio_done(struct tokio_program *p)
{
	for (size_t i = 0; i < p->count; i++) {
		free(p->vtables[i].name);
		free(p->vtables[i].spawns);
	}
	free(p->vtables);
	*p = (struct tokio_program){ 0 };
}
