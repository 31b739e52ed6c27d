/*
 * file.h - an ELF file, mapped and bounds-checked. 64-bit little-endian only.
 *
 * Every field comes from a file that may be hostile: all data handed out lies
 * within the file, is sorted where it says so, and is never trusted further.
 * The mapping is private and read-only; a file that shrinks meanwhile raises
 * SIGBUS, which is why the unprivileged child (worker.h) does the reading.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct elf_section {
	const char *name; /* "" if it has none; points into the file */
	uint32_t type, link, info;
	uint64_t flags, address, size, entry_size;
	/* Within the file; NULL for SHT_NOBITS, when it does not fit the file, and when it is larger than what the
	 * disk holds of the file (budget.h). */
	const uint8_t *data;
	uint64_t file_size;  /* bytes at data (compressed size where SHF_COMPRESSED is set) */
};

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, address, file_size, memory_size;
};

struct elf {
	const uint8_t *data;
	size_t size;
	uint64_t real_bytes; /* bytes of size that are not holes */
	uint64_t unpacked_bytes; /* of all sections together, so far */
	uint16_t type, machine; /* ET_*, EM_* */
	uint64_t entry;
	struct elf_section *sections;
	size_t section_count;
	struct elf_segment *segments;
	size_t segment_count;
	bool mapped; /* data is a mapping of ours */
	void *loaded; /* decompressed sections, freed with the rest */
	int scratch;  /* descriptor + 1 of elf_use_scratch(), 0 = none */
};

/* Maps the file behind fd, which the caller keeps. */
int elf_open(int fd, struct elf **ret, struct err *err);
/* Reads an image in memory (vdso, .gnu_debugdata, fuzzers); data must outlive the elf. */
int elf_open_memory(const void *data, size_t size, struct elf **ret, struct err *err);
void elf_free(struct elf *elf);
void elf_freep(struct elf **elf);

/* Large sections are unpacked to the end of this file from now on, not into memory; -1 = memory. The caller
 * keeps fd open until elf_section_bytes() is called no more. */
void elf_use_scratch(struct elf *elf, int fd);

/* Returns whether an honest file could hold a part of so many bytes. */
bool elf_plausible(const struct elf *elf, uint64_t bytes);

const struct elf_section *elf_section(const struct elf *elf, const char *name);
/* The bytes of a section, decompressed if it is compressed (SHF_COMPRESSED or .zdebug_*; kept until
 * elf_free). Sections over limit bytes fail with -EFBIG. */
int elf_section_bytes(struct elf *elf, const struct elf_section *s, uint64_t limit,
		      const uint8_t **ret, size_t *ret_n, struct err *err);

/* Returns whether the section is compressed, and the size it claims to unpack to. False also where that
 * claim is absurd. */
bool elf_section_packed(const struct elf_section *s, uint64_t *ret_size);
/* Unpacks the section into memory of exactly that size (a mapped file, where it should not be anonymous). */
int elf_section_unpack(const struct elf_section *s, uint8_t *out, size_t n, struct err *err);
/* Unpacks the section to the end of fd, from the next multiple of 4096 on. */
int elf_section_append(const struct elf_section *s, int fd, struct err *err);

/* Stores the GNU build ID and returns its size (at most 20 bytes are stored), 0 if there is none. */
size_t elf_build_id(const struct elf *elf, uint8_t out[20]);
/* Finds the address at which an executable LOAD segment maps a file offset. False if none does. */
bool elf_offset_to_address(const struct elf *elf, uint64_t offset, uint64_t *ret_address);
/* Returns the code bytes at an address, NULL if the file maps no code there; *n becomes the number of
 * bytes. */
const uint8_t *elf_code_at(const struct elf *elf, uint64_t address, uint64_t *n);
/* Finds the file offset of the code at an address; false if the file maps no code there. */
bool elf_address_to_offset(const struct elf *elf, uint64_t address, uint64_t *ret_offset);
