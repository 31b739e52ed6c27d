/*
 * symbolmodules.h - the modules of a capture: how many of their frames have names, and what to do about the rest.
 */
#pragma once

#include <stdint.h>

struct buf;
struct json;
struct profile;

void symbolmodules_print(const struct profile *p, struct buf *out);
/* Into an open object. */
void symbolmodules_json(const struct profile *p, struct json *j);
