#include "import/frames.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

/* Where the keys of each kind begin in the trie. */
enum { OF_MODULES = 1, OF_FRAMES, OF_THREADS, OF_PROCESSES, KINDS };

void frames_init(struct frames *f, struct profile *p)
{
	*f = (struct frames){ .p = p };
}

void frames_done(struct frames *f)
{
	map_done(&f->links);
	map_done(&f->ids);
}

/* The node of a key that is one number longer. */
static uint32_t link_to(struct frames *f, uint32_t node, uint32_t number)
{
	return *map_put(&f->links, map_pair(node, number), KINDS + f->links.n);
}

/* What was made for a key; PROFILE_NONE: nothing yet, to be set. */
static uint64_t *made_for(struct frames *f, uint32_t node)
{
	return map_put(&f->ids, node, PROFILE_NONE);
}

/* --- modules --- */

/* "vmlinux", "vmlinux-6.1.0-13-amd64", "vmlinux.debug"; "vmlinux-to-elf" is a program. */
static bool is_vmlinux(const char *base)
{
	const char *rest = base + strlen("vmlinux");

	return str_starts(base, "vmlinux") && (!*rest || *rest == '.' || (*rest == '-' && isdigit((unsigned char)rest[1])));
}

bool frames_is_kernel(const char *path)
{
	return str_starts(path, "[kernel") || str_starts(path, "[guest.kernel") || is_vmlinux(str_base_name(path)) || str_ends(path, ".ko") ||
	       str_ends(path, ".ko.xz") || str_ends(path, ".ko.zst") || str_ends(path, ".ko.gz");
}

/* Modules of the kernel have names in brackets; perf's "[kernel.kallsyms]_text" is the kernel itself. */
static const char *kernel_path(const char *path, char out[64])
{
	const char *base = str_base_name(path), *dot = strstr(base, ".ko");

	if (!dot)
		return "[kernel]";
	snprintf(out, 64, "[%.*s]", (int)MIN(dot - base, 60), base);
	return out;
}

uint32_t frames_module(struct frames *f, const char *path, const uint8_t *build_id, size_t build_id_size)
{
	struct profile_module m = { .process = PROFILE_NONE, .kind = MODULE_FILE };
	char kernel[64];
	uint32_t node;
	uint64_t *id;

	if (!path || !*path)
		return PROFILE_NONE;
	if (frames_is_kernel(path)) {
		m.kind = MODULE_KERNEL;
		path = kernel_path(path, kernel);
	} else if (!strcmp(path, "[vdso]")) {
		m.kind = MODULE_VDSO;
	}
	m.path = profile_string(f->p, path);
	m.build_id_size = build_id ? MIN(build_id_size, sizeof(m.build_id)) : 0;
	if (m.build_id_size)
		memcpy(m.build_id, build_id, m.build_id_size);
	node = link_to(f, link_to(f, OF_MODULES, m.path), m.build_id_size);
	for (size_t i = 0; i < m.build_id_size; i++)
		node = link_to(f, node, m.build_id[i]);
	id = made_for(f, node);
	if (*id == PROFILE_NONE)
		*id = profile_add_module(f->p, &m);
	return *id;
}

/* --- frames and stacks --- */

uint32_t frames_named(struct frames *f, uint32_t module, enum profile_frame_kind kind, uint64_t address,
		      const struct frames_call *calls, size_t n)
{
	VEC(struct profile_line) lines = { 0 };
	struct profile *p = f->p;
	uint32_t node = link_to(f, link_to(f, OF_FRAMES, module), kind);
	uint64_t *id;

	node = link_to(f, link_to(f, node, address), address >> 32);
	for (size_t i = 0; i < n; i++) {
		const char *name = calls[i].name && *calls[i].name ? calls[i].name : "[unknown]";
		struct profile_function function = { .name = profile_string(p, name), .module = module,
						     .linkage = calls[i].linkage ? profile_string(p, calls[i].linkage) : 0,
						     .file = calls[i].file ? profile_string(p, calls[i].file) : 0 };

		vec_push(&lines, (struct profile_line){ profile_function(p, &function), calls[i].line, .inlined = i + 1 < n });
		node = link_to(f, link_to(f, node, lines.v[i].function), lines.v[i].line);
	}
	id = made_for(f, node);
	if (*id == PROFILE_NONE) {
		*id = p->frames.n;
		vec_push(&p->frames, (struct profile_frame){ .module = module, .kind = kind, .address = address });
		if (n)
			profile_set_lines(p, *id, lines.v, n);
	}
	vec_done(&lines);
	return *id;
}

uint32_t frames_stack(struct frames *f, const uint32_t *leaf_first, size_t n)
{
	uint32_t stack = 0;

	while (n-- > 0)
		stack = profile_stack(f->p, stack, leaf_first[n]);
	return stack;
}

uint32_t frames_stack_outer(struct frames *f, const uint32_t *outermost_first, size_t n)
{
	uint32_t stack = 0;

	for (size_t i = 0; i < n; i++)
		stack = profile_stack(f->p, stack, outermost_first[i]);
	return stack;
}

/* --- threads --- */

uint32_t frames_thread(struct frames *f, uint32_t pid, uint32_t tid, const char *name)
{
	struct profile *p = f->p;
	uint32_t string = profile_string(p, name);
	uint64_t *id = made_for(f, link_to(f, OF_PROCESSES, pid));
	uint32_t process, node;

	if (*id == PROFILE_NONE)
		*id = profile_add_process(p, &(struct profile_process){ .pid = pid, .name = string });
	process = *id;
	node = link_to(f, link_to(f, OF_THREADS, pid), tid);
	if (!tid)
		node = link_to(f, node, string);
	id = made_for(f, node);
	if (*id == PROFILE_NONE)
		*id = profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = tid, .name = string });
	else if (!p->threads.v[*id].name)
		p->threads.v[*id].name = string;
	if (!p->processes.v[process].name || (pid && tid == pid && string))
		p->processes.v[process].name = string;
	return *id;
}

uint64_t frames_seconds_ns(const char *text, const char **end)
{
	enum { DIGITS = 9 };
	uint64_t ns = 0;
	int digits = 0;

	*end = text;
	for (; isdigit((unsigned char)*text); text++) {
		if (ns >= UINT64_MAX / 20000000000ULL)
			return 0;
		ns = ns * 10 + (*text - '0');
	}
	if (*text == '.')
		for (text++; isdigit((unsigned char)*text); text++)
			if (digits < DIGITS) {
				ns = ns * 10 + (*text - '0');
				digits++;
			}
	for (; digits < DIGITS; digits++)
		ns *= 10;
	*end = text;
	return ns;
}
