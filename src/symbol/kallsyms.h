/*
 * kallsyms.h - the running kernel's symbols, modules and BPF programs included.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kallsyms;

/* Pure parser; takes over text (malloc'ed, NUL-terminated) and writes into it. */
struct kallsyms *kallsyms_parse(char *text);
int kallsyms_read(struct kallsyms **ret); /* of /proc/kallsyms */
void kallsyms_free(struct kallsyms *k);

/* All addresses are zero: kernel.kptr_restrict, or no right to see them. */
bool kallsyms_hidden(const struct kallsyms *k);
/* The function around address; *ret_module is "" for the kernel itself. NULL if there is none. */
const char *kallsyms_find(const struct kallsyms *k, uint64_t address, const char **ret_module);
