#include "elf/unpack.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/file.h"

/* Nobody has that much; a file that claims more is lying. */
static const uint64_t limit_bytes = 8ULL << 30;

static bool is_debug(const struct elf_section *s)
{
	return !strncmp(s->name, ".debug_", 7) || !strncmp(s->name, ".zdebug_", 8);
}

/* Does a look-up of names or lines ever read it? */
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

/* Layout: header, one note segment, the sections each at a multiple of 16, their names, their headers. */
struct layout {
	uint64_t names, names_size, headers, total;
};

static uint64_t align_up(uint64_t n)
{
	return (n + 15) & ~15ULL;
}

static struct layout plan(const struct elf *elf)
{
	struct layout l = { .names_size = 1 };
	uint64_t at = align_up(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));

	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];

		l.names_size += strlen(s->name) + 1;
		if (wanted(s) && at <= limit_bytes)
			at = align_up(at + plain_size(s));
	}
	l.names = at;
	l.headers = align_up(at + l.names_size);
	/* One more header, for the names that are written anew. */
	l.total = l.headers + (elf->section_count + 1) * sizeof(Elf64_Shdr);
	return l;
}

bool unpack_measure(const struct elf *elf, uint64_t *ret_bytes)
{
	bool packed = false;
	uint64_t size;

	for (size_t i = 0; i < elf->section_count && !packed; i++)
		packed = is_debug(&elf->sections[i]) && elf_section_packed(&elf->sections[i], &size);
	*ret_bytes = plan(elf).total;
	return packed;
}

static int write_sections(const struct elf *elf, const struct layout *l, uint8_t *out, Elf64_Phdr *note,
			  struct err *err)
{
	uint64_t at = align_up(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)), name = 1;

	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];
		uint64_t size = wanted(s) ? plain_size(s) : 0, claimed;
		bool z = !strncmp(s->name, ".zdebug_", 8);
		Elf64_Shdr sh = { .sh_type = wanted(s) || !i ? s->type : SHT_NOBITS, .sh_name = name,
				  .sh_flags = s->flags & ~(uint64_t)SHF_COMPRESSED, .sh_addr = s->address,
				  .sh_offset = at, .sh_size = wanted(s) ? size : s->size, .sh_link = s->link,
				  .sh_info = s->info, .sh_addralign = 1, .sh_entsize = s->entry_size };

		/* .zdebug_x becomes .debug_x */
		out[l->names + name] = '.';
		memcpy(out + l->names + name + z, s->name + 2 * z, strlen(s->name + 2 * z) + 1);
		name += strlen(s->name) + 1;
		if (wanted(s)) {
			if (elf_section_packed(s, &claimed)) {
				int r = elf_section_unpack(s, out + at, size, err);

				if (r < 0)
					return r;
			} else if (s->flags & SHF_COMPRESSED || z) {
				return err_set(err, EBADMSG, "compressed section %s is cut off", s->name);
			} else {
				memcpy(out + at, s->data, size);
			}
			if (s->type == SHT_NOTE)
				*note = (Elf64_Phdr){ .p_type = PT_NOTE, .p_flags = PF_R, .p_offset = at,
						      .p_vaddr = s->address, .p_filesz = size,
						      .p_memsz = size, .p_align = 4 };
			at = align_up(at + size);
		}
		memcpy(out + l->headers + i * sizeof(sh), &sh, sizeof(sh));
	}
	return 0;
}

int unpack_write(const struct elf *elf, int fd, struct err *err)
{
	struct layout l = plan(elf);
	Elf64_Phdr note = { .p_type = PT_NULL };
	Elf64_Shdr names = { .sh_type = SHT_STRTAB, .sh_offset = l.names, .sh_size = l.names_size };
	Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = elf->type, .e_machine = elf->machine, .e_version = EV_CURRENT,
			  .e_entry = elf->entry, .e_phoff = sizeof(eh), .e_shoff = l.headers,
			  .e_ehsize = sizeof(eh), .e_phentsize = sizeof(note), .e_phnum = 1,
			  .e_shentsize = sizeof(names), .e_shnum = elf->section_count + 1,
			  .e_shstrndx = elf->section_count };
	uint8_t *out;
	int r;

	if (l.total > limit_bytes || elf->section_count + 1 >= SHN_LORESERVE)
		return err_set(err, EFBIG, "its debug information would take %llu bytes",
			       (unsigned long long)l.total);
	if (ftruncate(fd, l.total))
		return err_errno(err, errno, "cannot make room for its debug information");
	out = mmap(NULL, l.total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (out == MAP_FAILED)
		return err_errno(err, errno, "cannot map the copy of its debug information");
	r = write_sections(elf, &l, out, &note, err);
	memcpy(out + l.headers + elf->section_count * sizeof(names), &names, sizeof(names));
	memcpy(out, &eh, sizeof(eh));
	memcpy(out + sizeof(eh), &note, sizeof(note));
	munmap(out, l.total);
	return r;
}
