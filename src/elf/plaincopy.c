#include "elf/plaincopy.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "elf/budget.h"
#include "elf/file.h"

/* No machine has that much memory; a file that claims more is lying. */
static const uint64_t limit_bytes = BUDGET_UNPACKED_BYTES;

static bool is_debug(const struct elf_section *s)
{
	return !strncmp(s->name, ".debug_", 7) || !strncmp(s->name, ".zdebug_", 8);
}

/* Returns whether a lookup of names or lines ever reads the section. */
static bool wanted(const struct elf_section *s)
{
	static const char *const plain[] = { ".symtab", ".strtab", ".dynsym", ".dynstr", ".shstrtab",
					     ".gnu_debugdata", ".gnu_debugaltlink", ".gnu_debuglink",
					     ".note.gnu.build-id", ".symtab_shndx" };
	static const char *const unread[] = { "loc", "loclists", "pubnames", "pubtypes", "gnu_pubnames",
					      "gnu_pubtypes", "macro", "macinfo", "frame", "names" };

	if (!s->data)
		return false;
	if (!is_debug(s)) {
		for (size_t i = 0; i < ARRAY_LEN(plain); i++)
			if (!strcmp(s->name, plain[i]))
				return true;
		return false;
	}
	for (size_t i = 0; i < ARRAY_LEN(unread); i++)
		if (!strcmp(strchr(s->name, '_') + 1, unread[i]))
			return false;
	return true;
}

static uint64_t plain_size(const struct elf_section *s)
{
	uint64_t size;

	return elf_section_packed(s, &size) ? size : s->file_size;
}

/* Layout: header, one note segment, the sections each from a new page on, their names, their headers. */
enum { PAGE = 4096 };

struct layout {
	uint64_t first, names, names_size, headers, total;
};

static uint64_t align_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static struct layout plan(const struct elf *elf)
{
	struct layout l = { .first = PAGE, .names_size = 1 };
	uint64_t at = l.first;

	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];

		l.names_size += strlen(s->name) + 1;
		/* A file's sizes could wrap around; past the limit it is refused anyway. */
		if (wanted(s) && at <= limit_bytes)
			at = align_up(at + MIN(plain_size(s), limit_bytes + 1));
	}
	l.names = at;
	l.headers = align_up(at + l.names_size);
	/* Plus one header, for the section names that are written anew. */
	l.total = l.headers + (elf->section_count + 1) * sizeof(Elf64_Shdr);
	return l;
}

bool plaincopy_measure(const struct elf *elf, uint64_t *ret_bytes)
{
	bool packed = false;
	uint64_t size;

	for (size_t i = 0; i < elf->section_count && !packed; i++)
		packed = is_debug(&elf->sections[i]) && elf_section_packed(&elf->sections[i], &size);
	*ret_bytes = plan(elf).total;
	return packed;
}

static int put(int fd, const void *data, uint64_t n, uint64_t at, struct err *err)
{
	const char *p = data;

	while (n) {
		ssize_t w = pwrite(fd, p, n, at);

		if (w <= 0)
			return err_errno(err, w ? errno : EIO, "cannot write its debug information");
		p += w;
		at += w;
		n -= w;
	}
	return 0;
}

/* Appends a section's bytes at offset at, which is the end of the file. */
static int put_section(const struct elf_section *s, int fd, uint64_t at, struct err *err)
{
	uint64_t size;

	if (ftruncate(fd, at))
		return err_errno(err, errno, "cannot make room for the copy of its debug information");
	if (elf_section_packed(s, &size))
		return elf_section_append(s, fd, err);
	if (s->flags & SHF_COMPRESSED || !strncmp(s->name, ".zdebug_", 8))
		return err_set(err, EBADMSG, "compressed section %s is cut off", s->name);
	return put(fd, s->data, s->file_size, at, err);
}

static Elf64_Shdr header_of(const struct elf_section *s, bool first, uint64_t at)
{
	/* The first header is no section, but may hold the section count, which is written anew. */
	if (first)
		return (Elf64_Shdr){ 0 };
	return (Elf64_Shdr){ .sh_type = wanted(s) ? s->type : SHT_NOBITS,
			     .sh_flags = s->flags & ~(uint64_t)SHF_COMPRESSED, .sh_addr = s->address,
			     .sh_offset = at, .sh_size = wanted(s) ? plain_size(s) : s->size,
			     .sh_link = s->link, .sh_info = s->info, .sh_addralign = 1,
			     .sh_entsize = s->entry_size };
}

/* headers[] and names are filled on the way. */
static int write_sections(const struct elf *elf, uint64_t at, int fd, Elf64_Shdr *headers, struct buf *names,
			  Elf64_Phdr *note, struct err *err)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];
		bool z = !strncmp(s->name, ".zdebug_", 8);
		int r;

		headers[i] = header_of(s, !i, at);
		headers[i].sh_name = names->n;
		buf_puts(names, z ? "." : "");
		buf_add(names, s->name + 2 * z, strlen(s->name + 2 * z) + 1);
		if (!i || !wanted(s))
			continue;
		r = put_section(s, fd, at, err);
		if (r < 0)
			return r;
		if (s->type == SHT_NOTE)
			*note = (Elf64_Phdr){ .p_type = PT_NOTE, .p_flags = PF_R, .p_offset = at,
					      .p_vaddr = s->address, .p_filesz = s->file_size,
					      .p_memsz = s->file_size, .p_align = 4 };
		at = align_up(at + plain_size(s));
	}
	return 0;
}

int plaincopy_write(const struct elf *elf, int fd, struct err *err)
{
	struct layout l = plan(elf);
	Elf64_Phdr note = { .p_type = PT_NULL };
	Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = elf->type, .e_machine = elf->machine, .e_version = EV_CURRENT,
			  .e_entry = elf->entry, .e_phoff = sizeof(eh), .e_shoff = l.headers,
			  .e_ehsize = sizeof(eh), .e_phentsize = sizeof(note), .e_phnum = 1,
			  .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = elf->section_count + 1,
			  .e_shstrndx = elf->section_count };
	_cleanup_free_ Elf64_Shdr *headers = NULL;
	struct buf names = { 0 };
	int r;

	if (l.total > limit_bytes || !elf->section_count || elf->section_count + 1 >= SHN_LORESERVE)
		return err_set(err, EFBIG, "its debug information would take %llu bytes",
			       (unsigned long long)l.total);
	headers = mem_alloc((elf->section_count + 1) * sizeof(*headers));
	buf_add(&names, "", 1);
	r = write_sections(elf, l.first, fd, headers, &names, &note, err);
	headers[elf->section_count] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = l.names,
						    .sh_size = names.n };
	if (!r)
		r = put(fd, names.data, names.n, l.names, err);
	if (!r)
		r = put(fd, headers, (elf->section_count + 1) * sizeof(*headers), l.headers, err);
	if (!r)
		r = put(fd, &note, sizeof(note), sizeof(eh), err);
	if (!r)
		r = put(fd, &eh, sizeof(eh), 0, err);
	buf_done(&names);
	return r;
}
