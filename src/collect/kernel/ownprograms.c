#include "collect/kernel/ownprograms.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/mem.h"
#include "collect/kernel/kernelmap.h"

/* A program is a handful of functions: its own, and those that it calls. */
enum { FUNCTIONS = 32 };

/* What a program consists of: where each of its functions lies, how long it is, and its type in the BTF. */
struct parts {
	uint64_t start[FUNCTIONS];
	uint32_t bytes[FUNCTIONS];
	struct bpf_func_info function[FUNCTIONS];
	uint32_t count, named;
};

static int ask(int fd, struct parts *p)
{
	struct bpf_prog_info info = {
		.nr_jited_ksyms = FUNCTIONS, .jited_ksyms = (uintptr_t)p->start,
		.nr_jited_func_lens = FUNCTIONS, .jited_func_lens = (uintptr_t)p->bytes,
		.nr_func_info = FUNCTIONS, .func_info = (uintptr_t)p->function,
		.func_info_rec_size = sizeof(p->function[0]),
	};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -1;
	p->count = MIN(MIN(info.nr_jited_ksyms, info.nr_jited_func_lens), FUNCTIONS);
	p->named = info.func_info_rec_size == sizeof(p->function[0]) ? MIN(info.nr_func_info, FUNCTIONS) : 0;
	return 0;
}

static const char *name_of(const struct btf *btf, const struct parts *p, uint32_t i)
{
	const struct btf_type *t = btf && i < p->named ? btf__type_by_id(btf, p->function[i].type_id) : NULL;

	return t ? btf__name_by_offset(btf, t->name_off) : NULL;
}

void ownprograms_add(struct kernelmap *k, const struct bpf_object *o)
{
	const struct btf *btf = bpf_object__btf(o);
	struct bpf_program *program;

	bpf_object__for_each_program(program, o) {
		struct parts parts = { 0 };

		if (bpf_program__fd(program) < 0 || ask(bpf_program__fd(program), &parts) < 0)
			continue;
		for (uint32_t i = 0; i < parts.count; i++) {
			const char *name = i ? name_of(btf, &parts, i) : bpf_program__name(program);

			if (parts.start[i])
				kernelmap_add_own(k, parts.start[i], parts.bytes[i], name ? name : bpf_program__name(program));
		}
	}
}
