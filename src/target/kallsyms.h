/*
 * kallsyms.h - the running kernel's functions, modules and BPF programs included.
 *
 * The kernel makes the text of /proc/kallsyms while it is read, which takes 40 ms of
 * CPU time and more: a recorder reads it once, on its first kernel stack, and hands
 * the list on to whoever names the frames at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kallsyms;

/* Pure parser; takes over text (malloc'ed, NUL-terminated) and writes into it. */
struct kallsyms *kallsyms_parse(char *text);
int kallsyms_read(struct kallsyms **ret); /* of /proc/kallsyms */
void kallsyms_free(struct kallsyms *k);

/* All addresses are zero: kernel.kptr_restrict, or no right to see them. */
bool kallsyms_hidden(const struct kallsyms *k);
/* Are the same modules loaded as when it was read? BPF programs come and go unnoticed. */
bool kallsyms_current(const struct kallsyms *k);
/* The function around address; *ret_module is "" for the kernel itself. NULL if there is none. */
const char *kallsyms_find(const struct kallsyms *k, uint64_t address, const char **ret_module);

/* The functions by number, sorted by address; several may have the same. */
size_t kallsyms_count(const struct kallsyms *k);
/* The first of those with the highest address that is not above this one; SIZE_MAX: all are above it. */
size_t kallsyms_at(const struct kallsyms *k, uint64_t address);
const char *kallsyms_name(const struct kallsyms *k, size_t i, uint64_t *ret_address);
