#include "elf/file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "elf/budget.h"
#include "elf/sectionfile.h"

/* A section that was unpacked: into memory, or into the scratch file and mapped. */
struct loaded {
	struct loaded *next;
	const struct elf_section *section;
	size_t size;
	const uint8_t *data;
	bool mapped;
};

enum {
	SCRATCH_FROM = 1 << 20, /* smaller sections are not worth a mapping */
	RATIO_FROM = 16 << 20,  /* larger sections must have the compression ratio of debug information */
};

static bool within(const struct elf *elf, uint64_t offset, uint64_t size)
{
	return offset <= elf->size && size <= elf->size - offset;
}

bool elf_plausible(const struct elf *elf, uint64_t bytes)
{
	return bytes <= elf->real_bytes + BUDGET_HOLE_BYTES;
}

/* How many bytes of a string table can begin a string: all up to its last NUL. */
static uint64_t string_bytes(const struct elf_section *table)
{
	const uint8_t *nul = NULL;

	if (table->data && table->file_size)
		nul = memrchr(table->data, 0, table->file_size);
	return nul ? nul - table->data + 1 : 0;
}

static int read_sections(struct elf *elf, const Elf64_Ehdr *eh, struct err *err)
{
	uint64_t count = eh->e_shnum, names = eh->e_shstrndx, good;
	Elf64_Shdr sh;

	if (!eh->e_shoff)
		return 0;
	if (eh->e_shentsize != sizeof(sh) || !within(elf, eh->e_shoff, sizeof(sh)))
		return err_set(err, ENOEXEC, "its section table lies outside the file");
	memcpy(&sh, elf->data + eh->e_shoff, sizeof(sh));
	if (!count)
		count = sh.sh_size; /* more than 65,279 sections */
	if (names == SHN_XINDEX)
		names = sh.sh_link;
	if (count > elf->size / sizeof(sh) || !within(elf, eh->e_shoff, count * sizeof(sh)))
		return err_set(err, ENOEXEC, "its section table is cut off");
	if (count > BUDGET_SECTIONS)
		return err_set(err, ENOEXEC, "it has %llu sections, more than any program", (unsigned long long)count);
	elf->sections = mem_alloc(count * sizeof(*elf->sections));
	elf->section_count = count;
	for (uint64_t i = 0; i < count; i++) {
		struct elf_section *s = &elf->sections[i];

		memcpy(&sh, elf->data + eh->e_shoff + i * sizeof(sh), sizeof(sh));
		*s = (struct elf_section){ .name = "", .type = sh.sh_type, .link = sh.sh_link,
					   .info = sh.sh_info, .flags = sh.sh_flags,
					   .address = sh.sh_addr, .size = sh.sh_size,
					   .entry_size = sh.sh_entsize };
		if (sh.sh_type != SHT_NOBITS && within(elf, sh.sh_offset, sh.sh_size) &&
		    elf_plausible(elf, sh.sh_size)) {
			s->data = elf->data + sh.sh_offset;
			s->file_size = sh.sh_size;
		}
	}
	good = names < count ? string_bytes(&elf->sections[names]) : 0;
	for (uint64_t i = 0; i < count; i++) {
		memcpy(&sh, elf->data + eh->e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_name < good)
			elf->sections[i].name = (const char *)elf->sections[names].data + sh.sh_name;
	}
	return 0;
}

static int read_segments(struct elf *elf, const Elf64_Ehdr *eh, struct err *err)
{
	uint64_t count = eh->e_phnum;

	if (!eh->e_phoff || !count)
		return 0;
	if (count == PN_XNUM && elf->section_count)
		count = elf->sections[0].info;
	if (eh->e_phentsize != sizeof(Elf64_Phdr) || !within(elf, eh->e_phoff, count * sizeof(Elf64_Phdr)))
		return err_set(err, ENOEXEC, "its program headers lie outside the file");
	if (count > BUDGET_SEGMENTS)
		return err_set(err, ENOEXEC, "it has %llu program headers, more than any program", (unsigned long long)count);
	elf->segments = mem_alloc(count * sizeof(*elf->segments));
	elf->segment_count = count;
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, elf->data + eh->e_phoff + i * sizeof(ph), sizeof(ph));
		elf->segments[i] = (struct elf_segment){ .type = ph.p_type, .flags = ph.p_flags,
							 .offset = ph.p_offset, .address = ph.p_vaddr,
							 .file_size = ph.p_filesz,
							 .memory_size = ph.p_memsz };
	}
	return 0;
}

/* real: bytes of size that are not holes. */
static int open_image(const void *data, size_t size, uint64_t real, struct elf **ret, struct err *err)
{
	_cleanup_(elf_freep) struct elf *elf = mem_alloc(sizeof(*elf));
	Elf64_Ehdr eh;
	int r;

	elf->data = data;
	elf->size = size;
	elf->real_bytes = real;
	if (size < sizeof(eh))
		return err_set(err, ENOEXEC, "not an ELF file: it has only %zu bytes", size);
	memcpy(&eh, data, sizeof(eh));
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return err_set(err, ENOEXEC, "not an ELF file");
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(err, ENOEXEC, "not a 64-bit little-endian ELF file");
	elf->type = eh.e_type;
	elf->machine = eh.e_machine;
	elf->entry = eh.e_entry;
	r = read_sections(elf, &eh, err);
	if (r < 0)
		return r;
	r = read_segments(elf, &eh, err);
	if (r < 0)
		return r;
	*ret = elf;
	elf = NULL;
	return 0;
}

int elf_open_memory(const void *data, size_t size, struct elf **ret, struct err *err)
{
	return open_image(data, size, size, ret, err);
}

int elf_open(int fd, struct elf **ret, struct err *err)
{
	struct stat st;
	uint64_t real;
	void *data;
	int r;

	if (fstat(fd, &st))
		return err_errno(err, errno, "cannot look at the file");
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "not a regular file");
	if (!st.st_size)
		return err_set(err, ENOEXEC, "not an ELF file: it is empty");
	real = budget_real_bytes(fd, st.st_size);
	if (real > BUDGET_FILE_BYTES)
		return err_set(err, EFBIG, "it is larger than %llu GiB", BUDGET_FILE_BYTES >> 30);
	/* Shared: the kernel puts the breakpoints of others' uprobes into private mappings of a file, and not only into
	 * those that are executed. */
	data = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return err_errno(err, errno, "cannot map the file");
	r = open_image(data, st.st_size, real, ret, err);
	if (r < 0)
		munmap(data, st.st_size);
	else
		(*ret)->mapped = true;
	return r;
}

void elf_free(struct elf *elf)
{
	if (!elf)
		return;
	for (struct loaded *l = elf->loaded, *next; l; l = next) {
		next = l->next;
		if (l->mapped)
			munmap((void *)l->data, l->size);
		else
			free((void *)l->data);
		free(l);
	}
	if (elf->mapped)
		munmap((void *)elf->data, elf->size);
	free(elf->sections);
	free(elf->segments);
	free(elf);
}

void elf_freep(struct elf **elf)
{
	elf_free(*elf);
}

const struct elf_section *elf_section(const struct elf *elf, const char *name)
{
	for (size_t i = 0; i < elf->section_count; i++)
		if (!strcmp(elf->sections[i].name, name))
			return &elf->sections[i];
	return NULL;
}

size_t elf_build_id(const struct elf *elf, uint8_t out[20])
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		struct reader r;

		if (s->type != PT_NOTE || !within(elf, s->offset, s->file_size))
			continue;
		r = reader_of(elf->data + s->offset, MIN(s->file_size, (uint64_t)BUDGET_NOTES_BYTES));
		while (reader_more(&r)) {
			uint32_t name_size = reader_u32(&r), size = reader_u32(&r), type = reader_u32(&r);
			const uint8_t *name = reader_bytes(&r, (name_size + 3ULL) & ~3ULL);
			const uint8_t *bytes = reader_bytes(&r, (size + 3ULL) & ~3ULL);

			if (name && bytes && type == NT_GNU_BUILD_ID && name_size == 4 &&
			    !memcmp(name, "GNU", 4) && size) {
				memset(out, 0, 20);
				memcpy(out, bytes, MIN(size, 20));
				return MIN(size, 20);
			}
		}
	}
	return 0;
}

bool elf_offset_to_address(const struct elf *elf, uint64_t offset, uint64_t *ret_address)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		/* The kernel maps whole pages: a mapping may begin before the segment does. */
		uint64_t start = s->offset & ~0xfffULL;

		if (s->type == PT_LOAD && s->flags & PF_X && offset >= start &&
		    offset - start < s->file_size + (s->offset - start)) {
			*ret_address = s->address - s->offset + offset;
			return true;
		}
	}
	return false;
}

const uint8_t *elf_code_at(const struct elf *elf, uint64_t address, uint64_t *n)
{
	/* A debug file has the segments of its program, but not their bytes. */
	for (size_t i = 0; i < elf->section_count; i++)
		if (elf->sections[i].type == SHT_NOBITS && elf->sections[i].flags & SHF_EXECINSTR &&
		    address >= elf->sections[i].address &&
		    address - elf->sections[i].address < elf->sections[i].size)
			return NULL;
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t at = address - s->address;

		if (s->type != PT_LOAD || !(s->flags & PF_X) || address < s->address || at >= s->file_size ||
		    s->offset > elf->size || at >= elf->size - s->offset)
			continue;
		*n = MIN(*n, s->file_size - at);
		*n = MIN(*n, elf->size - s->offset - at);
		return elf->data + s->offset + at;
	}
	return NULL;
}

bool elf_address_to_offset(const struct elf *elf, uint64_t address, uint64_t *ret_offset)
{
	uint64_t n = 1;
	const uint8_t *code = elf_code_at(elf, address, &n);

	if (!code || !n)
		return false;
	*ret_offset = code - elf->data;
	return true;
}

/* Inflates into out, which has exactly the promised size. */
static bool inflate_into(uint8_t *out, size_t out_n, const uint8_t *in, size_t in_n)
{
	z_stream z = { .next_in = (Bytef *)in, .next_out = out };
	int r = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return false;
	while (r == Z_OK) {
		/* zlib counts in 32 bits; hand it slices. */
		z.avail_in = MIN(in_n - (z.next_in - in), 1u << 30);
		z.avail_out = MIN(out_n - (z.next_out - out), 1u << 30);
		r = inflate(&z, Z_NO_FLUSH);
	}
	r = r == Z_STREAM_END && (size_t)(z.next_out - out) == out_n;
	inflateEnd(&z);
	return r;
}

/* Finds the packed bytes of a compressed section. False if it is not compressed, or is cut off. */
static bool packed_bytes(const struct elf_section *s, uint32_t *ret_type, const uint8_t **ret, size_t *ret_n,
			 uint64_t *ret_size)
{
	const uint8_t *in = s->data;
	Elf64_Chdr ch;

	if (!in)
		return false;
	if (s->flags & SHF_COMPRESSED) {
		if (s->file_size < sizeof(ch))
			return false;
		memcpy(&ch, in, sizeof(ch));
		*ret_type = ch.ch_type;
		*ret_size = ch.ch_size;
		*ret = in + sizeof(ch);
		*ret_n = s->file_size - sizeof(ch);
		return true;
	}
	if (strncmp(s->name, ".zdebug_", 8) || s->file_size < 12 || memcmp(in, "ZLIB", 4))
		return false;
	*ret_type = ELFCOMPRESS_ZLIB;
	*ret_size = 0;
	for (int i = 4; i < 12; i++)
		*ret_size = *ret_size << 8 | in[i];
	*ret = in + 12;
	*ret_n = s->file_size - 12;
	return true;
}

bool elf_section_packed(const struct elf_section *s, uint64_t *ret_size)
{
	const uint8_t *in;
	uint32_t type;
	size_t in_n;

	/* Debug information packs about 1 : 5. Deflate can do 1 : 1032 and the others more, but a large
	 * section with such a ratio is made to fill our memory. */
	return packed_bytes(s, &type, &in, &in_n, ret_size) &&
	       *ret_size / (*ret_size > RATIO_FROM ? BUDGET_PACKED_RATIO : 2048) <= in_n;
}

int elf_section_unpack(const struct elf_section *s, uint8_t *out, size_t out_n, struct err *err)
{
	const uint8_t *in;
	uint32_t type;
	uint64_t size;
	size_t in_n;
	bool ok = false;

	if (!packed_bytes(s, &type, &in, &in_n, &size) || size != out_n)
		return err_set(err, EBADMSG, "compressed section %s is cut off", s->name);
	if (type == ELFCOMPRESS_ZLIB)
		ok = inflate_into(out, size, in, in_n);
	else if (type == 2 /* ELFCOMPRESS_ZSTD, newer than Debian 12's elf.h */)
		ok = ZSTD_decompress(out, size, in, in_n) == size;
	return ok ? 0 : err_set(err, EBADMSG, "section %s does not decompress", s->name);
}

int elf_section_append(const struct elf_section *s, int fd, struct err *err)
{
	const uint8_t *in, *mapped;
	uint32_t type;
	uint64_t size;
	size_t in_n;
	int r;

	if (!packed_bytes(s, &type, &in, &in_n, &size))
		return err_set(err, EBADMSG, "compressed section %s is cut off", s->name);
	if (!size)
		return 0;
	r = sectionfile_unpack(fd, type, in, in_n, size, &mapped, err);
	if (r < 0)
		return err_prefix(err, "section %s", s->name);
	munmap((void *)mapped, size);
	return 0;
}

void elf_use_scratch(struct elf *elf, int fd)
{
	elf->scratch = fd + 1;
}

/* Unpacks a section of size bytes. */
static int load(struct elf *elf, const struct elf_section *s, uint64_t size, struct loaded *l,
		struct err *err)
{
	const uint8_t *in;
	uint64_t claimed;
	uint32_t type;
	uint8_t *data;
	size_t in_n;
	int r;

	if (elf->scratch > 0 && size >= SCRATCH_FROM && packed_bytes(s, &type, &in, &in_n, &claimed) &&
	    !sectionfile_unpack(elf->scratch - 1, type, in, in_n, size, &l->data, NULL)) {
		l->mapped = true;
		return 0;
	}
	data = malloc(MAX(size, 1));
	if (!data)
		return err_set(err, ENOMEM, "no memory for section %s", s->name);
	r = elf_section_unpack(s, data, size, err);
	if (r < 0) {
		free(data);
		return r;
	}
	l->data = data;
	return 0;
}

int elf_section_bytes(struct elf *elf, const struct elf_section *s, uint64_t limit,
		      const uint8_t **ret, size_t *ret_n, struct err *err)
{
	struct loaded *l;
	uint64_t size;
	int r;

	if (!s->data)
		return err_set(err, ENODATA, "section %s has no data in this file", s->name);
	if (!(s->flags & SHF_COMPRESSED) && strncmp(s->name, ".zdebug_", 8)) {
		if (s->file_size > limit)
			return err_set(err, EFBIG, "section %s is too large", s->name);
		*ret = s->data;
		*ret_n = s->file_size;
		return 0;
	}
	for (l = elf->loaded; l; l = l->next)
		if (l->section == s) {
			*ret = l->data;
			*ret_n = l->size;
			return 0;
		}
	if (!elf_section_packed(s, &size))
		return err_set(err, EBADMSG, "compressed section %s is cut off", s->name);
	if (size > limit)
		return err_set(err, EFBIG, "section %s claims %llu bytes", s->name, (unsigned long long)size);
	if (size > BUDGET_UNPACKED_BYTES - MIN(elf->unpacked_bytes, BUDGET_UNPACKED_BYTES))
		return err_set(err, EFBIG, "its sections claim more than %llu GiB", BUDGET_UNPACKED_BYTES >> 30);
	elf->unpacked_bytes += size;
	l = mem_alloc(sizeof(*l));
	r = load(elf, s, size, l, err);
	if (r < 0) {
		free(l);
		return r;
	}
	l->section = s;
	l->size = size;
	l->next = elf->loaded;
	elf->loaded = l;
	*ret = l->data;
	*ret_n = size;
	return 0;
}
