#include "elf/probe/usdt.h"

#include <elf.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "elf/file.h"

enum { NOTE_TYPE = 3, REGS = 21, ARM64_REGS = 31, MOST_REGS = ARM64_REGS };

/* Indexed by their place in struct pt_regs. On arm64 x0 to x30 stand there in their order. */
static const char *const registers[REGS] = { "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8",
					     "rax", "rcx", "rdx", "rsi", "rdi", NULL, NULL, NULL, NULL, "rsp", NULL };

static const struct {
	const char *name;
	enum usdt_what what;
	unsigned arguments;
} kinds[] = {
	{ "span_begin", USDT_BEGIN, 2 }, { "span_end", USDT_END, 2 }, { "mark", USDT_MARK, 2 },
	{ "block_end", USDT_BLOCK_END, 3 },
};

/* Parses the "x19" of an argument of n bytes. */
static bool read_x(const char *s, size_t n, uint32_t *ret)
{
	if (n < 2 || n > 3 || *s != 'x' || strspn(s + 1, "0123456789") < n - 1)
		return false;
	*ret = n == 2 ? s[1] - '0' : (s[1] - '0') * 10 + (s[2] - '0');
	return *ret < ARM64_REGS;
}

/* Parses "8@%rbx", "-8@%rbx", or without the % in Intel syntax, or "8@x19"; returns its length, 0 = no argument. */
static size_t read_argument(uint16_t machine, const char *s, uint32_t *ret)
{
	size_t skip = *s == '-', n;

	if (strncmp(s + skip, "8@", 2))
		return 0;
	skip += 2;
	skip += s[skip] == '%';
	n = strcspn(s + skip, " ");
	if (machine == EM_AARCH64)
		return read_x(s + skip, n, ret) ? skip + n : 0;
	for (uint32_t i = 0; i < REGS; i++)
		if (registers[i] && strlen(registers[i]) == n && !strncmp(registers[i], s + skip, n)) {
			*ret = i;
			return skip + n;
		}
	return 0;
}

static bool read_arguments(uint16_t machine, const char *s, unsigned wanted, struct usdt_place *p)
{
	for (unsigned i = 0; i < USDT_ARGUMENTS; i++)
		p->arguments[i] = UINT32_MAX;
	for (unsigned i = 0; i < wanted; i++) {
		size_t n;

		s += strspn(s, " ");
		n = read_argument(machine, s, &p->arguments[i]);
		if (!n)
			return false;
		s += n;
	}
	return !*s;
}

/* What the header puts there: a nop; on arm64 a branch to the next instruction. */
static bool is_nop(const struct elf *elf, uint64_t address)
{
	bool arm64 = elf->machine == EM_AARCH64;
	uint64_t wanted = arm64 ? 4 : 1, n = wanted;
	const uint8_t *code = elf_code_at(elf, address, &n);

	return code && n == wanted && !memcmp(code, arm64 ? "\x01\x00\x00\x14" : "\x90", n);
}

static void add_place(const struct elf *elf, uint64_t address, const char *name, const char *arguments,
		      struct usdt_info *ret)
{
	struct usdt_place p = { 0 };
	unsigned wanted = 0;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].name, name)) {
			p.what = kinds[i].what;
			wanted = kinds[i].arguments;
		}
	/* Anything else would be single-stepped, and the header writes nothing else. */
	if (!p.what || !read_arguments(elf->machine, arguments, wanted, &p) || !is_nop(elf, address) ||
	    !elf_address_to_offset(elf, address, &p.offset)) {
		ret->odd++;
		return;
	}
	for (uint32_t i = 0; i < ret->count; i++)
		if (ret->list[i].offset == p.offset)
			return;
	if (ret->count == USDT_PLACES)
		ret->beyond++;
	else
		ret->list[ret->count++] = p;
}

static void read_descriptor(const struct elf *elf, const uint8_t *data, size_t n, uint64_t base, struct usdt_info *ret)
{
	struct reader r = reader_of(data, n);
	uint64_t address = reader_u64(&r), was = reader_u64(&r);
	const char *provider, *name, *arguments;

	reader_u64(&r); /* the semaphore: the header has none */
	provider = reader_string(&r);
	name = reader_string(&r);
	arguments = reader_string(&r);
	if (r.failed || strcmp(provider, "gasflame"))
		return;
	/* A tool that moves a program after linking (prelink) also moves the base, but not the note. */
	add_place(elf, base && was ? address + (base - was) : address, name, arguments, ret);
}

void usdt_read(const struct elf *elf, const uint8_t *data, size_t n, uint64_t base, struct usdt_info *ret)
{
	struct reader r = reader_of(data, n);

	while (reader_more(&r)) {
		uint32_t name_size = reader_u32(&r), size = reader_u32(&r), type = reader_u32(&r);
		const uint8_t *name = reader_bytes(&r, name_size), *descriptor;

		reader_skip(&r, -name_size & 3);
		descriptor = reader_bytes(&r, size);
		if (r.failed || !name || !descriptor)
			return;
		if (type == NOTE_TYPE && name_size == 8 && !memcmp(name, "stapsdt", 8))
			read_descriptor(elf, descriptor, size, base, ret);
		if (reader_more(&r))
			reader_skip(&r, -size & 3);
	}
}

void usdt_find(struct elf *elf, struct usdt_info *ret)
{
	const struct elf_section *notes = elf_section(elf, ".note.stapsdt"), *base = elf_section(elf, ".stapsdt.base");

	*ret = (struct usdt_info){ 0 };
	if ((elf->machine == EM_X86_64 || elf->machine == EM_AARCH64) && notes && notes->data && !(notes->flags & SHF_COMPRESSED))
		usdt_read(elf, notes->data, notes->file_size, base ? base->address : 0, ret);
}

bool usdt_check(const struct usdt_info *info)
{
	if (info->count > USDT_PLACES)
		return false;
	for (uint32_t i = 0; i < info->count; i++) {
		if (info->list[i].what < USDT_BEGIN || info->list[i].what > USDT_BLOCK_END)
			return false;
		for (unsigned k = 0; k < USDT_ARGUMENTS; k++)
			if (info->list[i].arguments[k] >= MOST_REGS && info->list[i].arguments[k] != UINT32_MAX)
				return false;
	}
	return true;
}
