/*
 * promises.h - what doctor says of each collector: by BPF, by perf events, by reading, or not. A session asks the same (collect/promise.h).
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct host;
struct json;

enum { PROMISES = 10 };

struct promises {
	struct {
		const char *name, *how;
		struct err why; /* what is missing; "": nothing */
	} list[PROMISES];
	size_t n; /* 0: built without collectors */
};

void promises_make(struct promises *ret, const struct host *h);
void promises_print(const struct promises *p);
void promises_json(const struct promises *p, struct json *j);
