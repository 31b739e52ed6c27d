/*
 * capturetext.h - how a capture spells kinds and build-ids. For src/profile only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

const char *capturetext_kind(enum profile_module_kind kind);
bool capturetext_parse_kind(const char *text, enum profile_module_kind *ret);

/* out has room for 2n + 1. */
void capturetext_hex(char *out, const uint8_t *bytes, size_t n);
/* false: not hex, odd, or more than size bytes. */
bool capturetext_parse_hex(const char *text, uint8_t *ret, size_t size, uint8_t *ret_n);
