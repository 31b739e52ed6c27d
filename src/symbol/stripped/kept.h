/*
 * kept.h - the functions of a module that a capture kept, to compare other builds with when the file is gone.
 */
#pragma once

#include <stdint.h>

struct functions;
struct profile;

/* ret is empty before; the caller calls functions_done(). */
void kept_functions(const struct profile *p, uint32_t module, struct functions *ret);
