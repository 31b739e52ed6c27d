/*
 * heapstrip.c - jemalloc's own frames, which every stack of its dumps begins with: taken off once they have
 * names.
 */
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "import/jemalloc/heapdumps.h"
#include "profile/profile.h"

static bool allocator_name(const char *name)
{
	static const char *const exact[] = {
		"malloc",
		"calloc",
		"realloc",
		"posix_memalign",
		"aligned_alloc",
		"memalign",
		"valloc",
		"pvalloc",
		"mallocx",
		"rallocx",
		"xallocx",
		"reallocarray",
		"prof_alloc_prep",
		"prof_backtrace",
		"prof_backtrace_impl",
		"prof_tctx_create",
		"imalloc",
		"imalloc_body",
		"imalloc_sample",
		"imalloc_no_sample",
		"imalloc_init_check",
		"do_rallocx",
		"irallocx_prof",
		"irallocx_prof_sample",
		"fallback_alloc",
		"handleOOM",
		"newImpl",
		NULL,
	};

	for (size_t i = 0; exact[i]; i++)
		if (!strcmp(name, exact[i]))
			return true;
	return str_starts(name, "je_") || str_starts(name, "_rjem_") || str_starts(name, "operator new");
}

static bool allocator_frame(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];

	if (f->module < p->modules.n &&
	    str_starts(str_base_name(profile_str(p, p->modules.v[f->module].path)), "libjemalloc"))
		return true;
	/* Functions inlined into it do not matter. */
	return f->line_count &&
	       allocator_name(profile_str(
		       p, p->functions.v[p->lines.v[f->first_line + f->line_count - 1].function].name));
}

void heapdumps_strip(struct profile *p)
{
	_cleanup_free_ uint8_t *own = mem_alloc(p->frames.n + 1);

	for (size_t i = 0; i < p->frames.n; i++)
		own[i] = allocator_frame(p, i);
	for (size_t i = 0; i < p->samples.n; i++) {
		uint32_t *stack = &p->samples.v[i].stack;

		/* A stack of nothing else keeps its last one. */
		while (*stack && own[p->stacks.v[*stack].frame] && p->stacks.v[*stack].parent)
			*stack = p->stacks.v[*stack].parent;
	}
}
