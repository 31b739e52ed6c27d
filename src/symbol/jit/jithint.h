/*
 * jithint.h - what a user can do so that the code of a run time gets names.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct jitfiles_process;
struct profile;

/* A run time, as it is known by its files. */
struct jithint {
	const char *runtime; /* "Java" */
	const char *names;   /* what to do for names; NULL: it writes no map */
};
/* Returns the run time that a mapped file belongs to, by its path, or NULL. */
const struct jithint *jithint_of_file(const char *path);
/* Writes the sentence for a process of which addresses have no names. x may be NULL. */
void jithint_put(const struct profile *p, uint32_t process, const struct jitfiles_process *x, char *out, size_t size);
