/* json.h - what the parts of JSON reports have in common. */
#pragma once

#include <stdint.h>

#include "analyze/tree/ident.h"

struct buf;

/* "key":"value" */
void jsonfield_string(struct buf *b, const char *key, const char *value);
void jsonfield_number(struct buf *b, const char *key, uint64_t value);
/* "user", "kernel", "unnamed"; of what is no function "thread", "note", "cause", "truncated", "all" */
const char *jsonfield_kind(enum ident_kind kind);
