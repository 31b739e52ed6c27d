#include "collect/unwind/codemap.h"

#include <bpf/bpf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/shared.h"
#include "elf/worker/worker.h"

struct known {
	struct shared_code_key key;
	struct shared_code_file file; /* module 0: not told */
};

struct codemap {
	int files_fd, young_fd;
	VEC(struct known) modules; /* by module */
	struct map by_name;        /* all of a key but the device, mixed, to the last such module */
};

struct codemap *codemap_new(int files_fd, int young_fd)
{
	struct codemap *c = mem_alloc(sizeof(*c));

	c->files_fd = files_fd;
	c->young_fd = young_fd;
	return c;
}

void codemap_free(struct codemap *c)
{
	if (!c)
		return;
	vec_done(&c->modules);
	map_done(&c->by_name);
	free(c);
}

/* Everything but the device. */
static uint64_t name_of(const struct shared_code_key *k)
{
	return map_hash(map_hash(k->inode) ^ k->size) ^ map_hash((uint64_t)k->changed_s << 30 ^ k->changed_ns);
}

static bool same_but_device(const struct shared_code_key *a, const struct shared_code_key *b)
{
	return a->inode == b->inode && a->size == b->size && a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}

/* Remembers it for other names of the same file. */
static void remember(struct codemap *c, const struct shared_code_key *key, const struct shared_code_file *file)
{
	while (c->modules.n <= file->module)
		vec_push(&c->modules, (struct known){ 0 });
	c->modules.v[file->module] = (struct known){ *key, *file };
	if (key->inode)
		*map_put(&c->by_name, name_of(key), 0) = file->module;
}

void codemap_add(struct codemap *c, uint32_t module, const struct shared_code_key *file, const struct worker_layout *layout)
{
	struct shared_code_file out = { .module = module, .part_count = layout->part_count };

	if (layout->part_count > SHARED_CODE_PARTS)
		return;
	for (uint32_t i = 0; i < layout->part_count; i++) {
		out.parts[i].offset = layout->parts[i].offset;
		out.parts[i].size = layout->parts[i].size;
		out.parts[i].address = layout->parts[i].address;
	}
	remember(c, file, &out);
	if (bpf_map_update_elem(c->files_fd, file, &out, BPF_ANY))
		log_debug("module %u: no room in the map of files", module);
}

bool codemap_place(const struct codemap *c, const struct shared_young_mapping *m, struct shared_mapping *ret)
{
	struct shared_code_file f;

	if (!m->m.end || m->m.end <= m->m.start)
		return false;
	*ret = m->m;
	if (ret->module)
		return ret->module < SHARED_MAX_MODULES;
	if (bpf_map_lookup_elem(c->files_fd, &m->file, &f))
		return false;
	for (uint32_t i = 0; i < MIN(f.part_count, SHARED_CODE_PARTS); i++)
		if (m->offset >= f.parts[i].offset && m->offset - f.parts[i].offset < f.parts[i].size) {
			ret->bias = m->m.start - (f.parts[i].address + (m->offset - f.parts[i].offset));
			ret->module = f.module;
			return true;
		}
	return false;
}

void codemap_learn(struct codemap *c, const struct shared_young *y)
{
	for (uint32_t i = 0; i < SHARED_YOUNG_MAPPINGS; i++) {
		const struct shared_young_mapping *m = &y->mappings[i];
		uint64_t *module = m->m.end && !m->m.module && m->file.inode ? map_get(&c->by_name, name_of(&m->file)) : NULL;
		const struct known *k = module ? &c->modules.v[*module] : NULL;

		/* A name that is known stays what it is. */
		if (k && same_but_device(&m->file, &k->key))
			bpf_map_update_elem(c->files_fd, &m->file, &k->file, BPF_NOEXIST);
	}
}

void codemap_learn_process(struct codemap *c, pid_t pid)
{
	struct shared_young y;
	uint32_t key = pid;

	if (!bpf_map_lookup_elem(c->young_fd, &key, &y))
		codemap_learn(c, &y);
}
