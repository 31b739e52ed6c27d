#include "analyze/tree/threadrole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/tree/ownfunction.h"
#include "base/map.h"
#include "base/text/str.h"
#include "profile/profile.h"

enum { COMM_BYTES = 15, MOST_PERCENT = 67 };

static const char closure[] = "{{closure}}";

/* What is between the kernel and the function of a thread: the C library, and the language's library. */
static bool starts_threads(const char *name, const char *module)
{
	static const char *const parts[] = { "std::thread::", "std::sys::", "std::panic", "core::ops::function::", "alloc::boxed::",
					     "__rust_", "std::__", "std::_Bind", "std::execute_native", "_start", "clone3",
					     "__clone", "start_thread", "__libc_start", "std::rt::", "core::panic" };
	const char *path = name + strspn(name, "<&*([");

	if (!strcmp(name, "main") || !*name)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (str_starts(path, parts[i]))
			return true;
	return str_starts(str_base_name(module), "libc.so") || str_starts(str_base_name(module), "libpthread");
}

static bool is_closure(const char *name)
{
	return str_ends(name, closure) || strstr(name, "{closure#") || strstr(name, "{lambda");
}

/* The function of a stack's thread, and the closure that calls it; PROFILE_NONE = there is none. */
struct root {
	uint32_t function, closure;
};

struct roles {
	const struct profile *p;
	struct map of_stack; /* a stack to its root, as a pair */
};

/* From the outermost frame inwards; frames are walked the other way, so the last answer counts. */
static struct root find_root(const struct profile *p, uint32_t stack)
{
	VEC(uint32_t) frames = { 0 };
	struct root r = { PROFILE_NONE, PROFILE_NONE };
	bool done = false;

	for (; stack; stack = p->stacks.v[stack].parent)
		vec_push(&frames, p->stacks.v[stack].frame);
	for (size_t i = frames.n; i-- > 0 && !done;) {
		const struct profile_frame *f = &p->frames.v[frames.v[i]];
		const char *module = f->module < p->modules.n ? profile_str(p, p->modules.v[f->module].path) : "";

		done = f->kind != FRAME_USER || !f->line_count;
		for (uint32_t k = f->line_count; k-- > 0 && !done;) {
			uint32_t function = p->lines.v[f->first_line + k].function;
			const char *name = profile_str(p, p->functions.v[function].name);

			if (starts_threads(name, module))
				continue;
			if (!ownfunction_is_library(name, module) && is_closure(name)) {
				r.closure = r.closure == PROFILE_NONE ? function : r.closure;
				continue;
			}
			/* A thread is not known by what a library does: all workers of a runtime poll. */
			if (!ownfunction_is_library(name, module))
				r.function = function;
			done = true;
		}
	}
	vec_done(&frames);
	return r;
}

static struct root root_of(struct roles *t, uint32_t stack)
{
	uint64_t *known = map_put(&t->of_stack, stack, UINT64_MAX - 1);

	if (*known == UINT64_MAX - 1) {
		struct root r = find_root(t->p, stack);

		*known = map_pair(r.function, r.closure);
	}
	return (struct root){ *known >> 32, (uint32_t)*known };
}

/* --- votes --- */

struct vote {
	uint32_t thread, function;
	bool closure;
	uint64_t weight;
};

struct winner {
	uint64_t all, of_function, of_closure;
	uint32_t function, closure;
};

static void count_votes(struct roles *t, const uint8_t *asked, struct winner *winners)
{
	struct map index = { 0 };
	VEC(struct vote) votes = { 0 };

	for (size_t i = 0; i < t->p->samples.n; i++) {
		const struct profile_sample *s = &t->p->samples.v[i];
		struct root r;

		if (!asked[s->thread] || !s->stack || profile_stack_truncated(t->p, s->stack, NULL))
			continue;
		r = root_of(t, s->stack);
		for (int k = 0; k < 2; k++) {
			uint32_t function = k ? r.closure : r.function;
			uint64_t *id;

			if (function == PROFILE_NONE)
				continue;
			id = map_put(&index, map_pair(s->thread, function * 2 + k), votes.n);
			if (*id == votes.n)
				vec_push(&votes, (struct vote){ s->thread, function, k, 0 });
			votes.v[*id].weight++;
		}
		winners[s->thread].all += r.function != PROFILE_NONE || r.closure != PROFILE_NONE;
	}
	for (size_t i = 0; i < votes.n; i++) {
		const struct vote *v = &votes.v[i];
		struct winner *w = &winners[v->thread];

		if (v->closure && v->weight > w->of_closure) {
			w->of_closure = v->weight;
			w->closure = v->function;
		} else if (!v->closure && v->weight > w->of_function) {
			w->of_function = v->weight;
			w->function = v->function;
		}
	}
	vec_done(&votes);
	map_done(&index);
}

/* --- names --- */

/* "handle_merkleization" of "<a::B<C> as d::E>::handle_merkleization::{{closure}}": into out. */
static char *short_name(const char *name, char *out, size_t size)
{
	const char *end = name + strlen(name), *paren = strchr(name, '('), *start;
	int depth = 0;

	if (paren && paren > name && !strchr(name, '{'))
		end = paren;
	while (end - name > 2 && end[-1] == '}') {
		const char *brace = end - 1;

		for (int open = 0; brace > name; brace--) {
			open += *brace == '}' ? 1 : *brace == '{' ? -1 : 0;
			if (!open)
				break;
		}
		if (brace - name < 3 || strncmp(brace - 2, "::", 2))
			break;
		end = brace - 2;
	}
	for (start = end; start > name; start--) {
		if (start[-1] == '>' && (start - 1 == name || start[-2] != '-'))
			depth++;
		else if (start[-1] == '<' && depth)
			depth--;
		else if (start[-1] == ':' && !depth)
			break;
	}
	snprintf(out, size, "%.*s", (int)(end - start), start);
	return out;
}

/* The function that stands for a thread, PROFILE_NONE = not known. */
static uint32_t role_of(const struct winner *w)
{
	if (!w->all)
		return PROFILE_NONE;
	if (w->of_function * 100 >= w->all * MOST_PERCENT)
		return w->function;
	return w->of_closure ? w->closure : PROFILE_NONE;
}

/* Whether another thread of the same process and name has another role. */
struct crowd {
	uint32_t role;
	bool differs;
};

void threadrole_tell_apart(struct profile *p)
{
	_cleanup_free_ uint8_t *asked = mem_alloc(p->threads.n + 1);
	_cleanup_free_ struct winner *winners = mem_alloc((p->threads.n + 1) * sizeof(*winners));
	_cleanup_free_ struct crowd *crowds = mem_alloc((p->threads.n + 1) * sizeof(*crowds));
	struct roles t = { .p = p };
	struct map index = { 0 };
	size_t cut = 0;

	for (size_t i = 0; i < p->threads.n; i++) {
		asked[i] = p->threads.v[i].tid && strlen(profile_str(p, p->threads.v[i].name)) == COMM_BYTES;
		cut += asked[i];
	}
	if (cut > 1)
		count_votes(&t, asked, winners);
	for (int pass = 0; pass < 2 && cut > 1; pass++)
		for (size_t i = 0; i < p->threads.n; i++) {
			uint32_t role = asked[i] ? role_of(&winners[i]) : PROFILE_NONE;
			struct profile_thread *x = &p->threads.v[i];
			struct crowd *c;
			char name[80];

			if (role == PROFILE_NONE)
				continue;
			c = &crowds[*map_put(&index, map_pair(x->process, x->comm ? x->comm : x->name), i)];
			if (!pass) {
				c->differs |= c->role && c->role != role + 1;
				c->role = role + 1;
			} else if (c->differs) {
				_cleanup_free_ char *full = mem_printf("%s (%s)", profile_str(p, x->name),
						short_name(profile_str(p, p->functions.v[role].name), name, sizeof(name)));

				x->comm = x->name;
				x->name = profile_string(p, full);
			}
		}
	map_done(&index);
	map_done(&t.of_stack);
}
