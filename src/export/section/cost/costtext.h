/* costtext.h - what a recording cost, as a table and the sentences on what was thinned. */
#pragma once

#include <stdbool.h>

struct buf;
struct profile;

/* Lines that end in a newline; nothing where the capture does not say. */
void costtext_put(const struct profile *p, bool colour, struct buf *out);
