/*
 * watchtext.h - what `watch` found, for people, for programs and for a channel.
 */
#pragma once

#include <stdint.h>

struct buf;
struct watch;
struct watch_options;

/* What both sides are called: "v2.5.1", or a time. */
struct watchtext_names {
	const char *before, *after;
	uint64_t limit; /* of single nodes: so many findings of each; 0 = all */
};

void watchtext_put(const struct watch *w, const struct watch_options *o, const struct watchtext_names *names, struct buf *out);
void watchtext_put_markdown(const struct watch *w, const struct watch_options *o, const struct watchtext_names *names, struct buf *out);
/* All rows, tested or not. */
void watchtext_put_json(const struct watch *w, const struct watch_options *o, const struct watchtext_names *names, struct buf *out);
