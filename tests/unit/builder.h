/*
 * builder.h - stacks of made-up profiles, written as folded stacks are: "main;run;malloc", outermost first.
 *
 * A prefix says what a frame is: "k:" of the kernel ("k:[preempted]" has no module), "l:" of the C library, "i:" inlined
 * into the frame before it, "n:" a note, "!" the reason why the stack is cut. "?" is an address without a symbol. "\\;"
 * is a semicolon in a name.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "profile/profile.h"

struct builder_modules {
	uint32_t program, libc, kernel, stripped;
};

static inline uint32_t builder_module(struct profile *p, const char *path, enum profile_module_kind kind)
{
	return profile_add_module(p, &(struct profile_module){ .path = profile_string(p, path), .kind = kind,
							       .process = PROFILE_NONE });
}

static inline uint32_t builder_thread(struct profile *p, uint32_t process, uint32_t tid, const char *name)
{
	return profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = tid,
							       .name = profile_string(p, name) });
}

/* The next name of a stack, in place; NULL: there is none. */
static inline char *builder_next(char **rest)
{
	char *name = *rest, *to = name, *from = name;

	if (!name)
		return NULL;
	for (; *from && *from != ';'; *to++ = *from++)
		from += from[0] == '\\' && from[1] == ';';
	*rest = *from ? from + 1 : NULL;
	*to = 0;
	return name;
}

static inline bool builder_has(const char *name, char prefix)
{
	return name[0] == prefix && name[1] == ':';
}

static inline uint32_t builder_frame(struct profile *p, const struct builder_modules *m, const char *name)
{
	if (name[0] == '!')
		return profile_truncation_frame(p, name + 1);
	if (!strcmp(name, "?"))
		return profile_frame(p, m->stripped, FRAME_USER, 0x1230);
	if (builder_has(name, 'n'))
		return profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, name + 2);
	if (builder_has(name, 'k'))
		return profile_named_frame(p, name[2] == '[' ? PROFILE_NONE : m->kernel, FRAME_KERNEL, name + 2);
	if (builder_has(name, 'l'))
		return profile_named_frame(p, m->libc, FRAME_USER, name + 2);
	return profile_named_frame(p, m->program, FRAME_USER, name);
}

/* One frame of several calls, outermost first; all but the first have a prefix. */
static inline uint32_t builder_inlined(struct profile *p, uint32_t module, char *const *names, uint32_t count)
{
	uint32_t frame = profile_frame(p, module, FRAME_USER, 0x10000 + p->frames.n);
	struct profile_line lines[8];

	for (uint32_t i = 0; i < count; i++) {
		struct profile_function f = { .name = profile_string(p, names[i] + (i ? 2 : 0)), .module = module };

		lines[count - 1 - i] = (struct profile_line){ .function = profile_function(p, &f), .inlined = i > 0 };
	}
	profile_set_lines(p, frame, lines, count);
	return frame;
}

/* Frames below the stack parent; 0: a stack of its own. */
__attribute__((format(printf, 4, 5)))
static inline uint32_t builder_stack(struct profile *p, const struct builder_modules *m, uint32_t parent,
				     const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	char *rest, *name, *names[8];
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		abort();
	va_end(args);
	rest = *text ? text : NULL;
	name = builder_next(&rest);
	while (name) {
		uint32_t count = 0;

		do
			names[count++] = name;
		while ((name = builder_next(&rest)) && count < 8 && builder_has(name, 'i'));
		parent = profile_stack(p, parent, count > 1 ? builder_inlined(p, m->program, names, count) :
							      builder_frame(p, m, names[0]));
	}
	return parent;
}
