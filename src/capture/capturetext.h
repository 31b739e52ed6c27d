/*
 * capturetext.h - how a capture spells kinds, sources of names and build-ids. For src/capture only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

const char *capturetext_kind(enum profile_module_kind kind);
bool capturetext_parse_kind(const char *text, enum profile_module_kind *ret);
/* enum profile_named */
const char *capturetext_named(uint32_t named);
bool capturetext_parse_named(const char *text, uint32_t *ret);

/* out has room for 2n + 1. */
void capturetext_hex(char *out, const uint8_t *bytes, size_t n);
/* false: not hex, odd, or more than size bytes. */
bool capturetext_parse_hex(const char *text, uint8_t *ret, size_t size, uint8_t *ret_n);
