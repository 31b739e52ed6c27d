/*
 * blobkind.h - what gasflame must know of a blob to put it into a process and to find it again (blobhead.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blobkind {
	const char *name;    /* of its memfds: BLOB_NAMES and a word */
	const char *records; /* for a person: what a gasflame records that has it */
	uint64_t magic;
	uint32_t version;
	const unsigned char *image;
	size_t image_bytes;
	/* Offsets from the image on: whole pages, but for the code that maps the rest (blobsetup.h). */
	uint64_t fixed_at, local_at, shared_at, setup_at;
	size_t fixed_bytes;  /* of the struct in the fixed part */
	size_t shared_bytes; /* whole pages */
	/* The table of slots in the fixed part. */
	size_t slots_at, slots_max;
	bool (*is_hook)(uint64_t offset); /* does a hook begin there in the image? */
	const char *refused; /* why setup returned 1, after "process N"; NULL: it never does */
};
