#include "elf/probe/goplaces.h"

#include <elf.h>
#include <string.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/go/gotab.h"
#include "elf/symtab.h"

/* goready(), which calls ready(), is inlined by newer compilers. */
static const char *const functions[GOPLACES_COUNT] = {
	[GOPLACES_PARK] = "runtime.gopark",
	[GOPLACES_READY] = "runtime.ready",
	[GOPLACES_RUN] = "runtime.execute",
};

/* --- functions --- */

struct looking {
	uint64_t address[GOPLACES_COUNT];
	unsigned found;
};

static bool see(void *context, const char *name, uint64_t address, uint64_t size)
{
	struct looking *l = context;

	if (!address || strncmp(name, "runtime.", 8) != 0)
		return true;
	for (int i = 0; i < GOPLACES_COUNT; i++)
		if (!l->address[i] && !strcmp(name, functions[i])) {
			l->address[i] = address;
			l->found++;
		}
	return l->found < GOPLACES_COUNT;
}

/* Looks into the symbols and, where they were stripped, into the runtime's own table. Returns false if there is none of
 * these, and no other sign that it is a program of Go. */
static bool look(struct elf *elf, struct looking *l)
{
	bool is_go = elf_section(elf, ".gopclntab") || elf_section(elf, ".go.buildinfo");
	struct gotab_function f;
	struct gotab *t;

	if (is_go)
		symtab_each_function(elf, ".symtab", see, l);
	if (l->found == GOPLACES_COUNT)
		return true;
	if (gotab_open(elf, &t, NULL) < 0)
		return is_go;
	for (size_t i = 0; i < gotab_count(t); i++)
		if (gotab_get(t, i, &f) && !see(l, f.name, f.entry, f.end - f.entry))
			break;
	gotab_free(t);
	return true;
}

static bool begins(const uint8_t *code, uint64_t n, uint64_t at, const char *bytes, uint64_t count)
{
	return at <= n && n - at >= count && !memcmp(code + at, bytes, count);
}

/* Returns how far into the function its conditional jump is; 0: it does not begin as expected. *ret_old: the goroutine
 * is read from thread-local storage, as before 1.17. */
static uint64_t find_jump(const uint8_t *code, uint64_t n, bool *ret_old)
{
	uint64_t at = 0;

	*ret_old = begins(code, n, 0, "\x64\x48\x8b\x0c\x25", 5);
	/* With a large frame: lea r12, [rsp - N]; cmp r12, [r14 + 0x10] */
	if (begins(code, n, 0, "\x4c\x8d\x64\x24", 4))
		at = 5;
	else if (begins(code, n, 0, "\x4c\x8d\xa4\x24", 4))
		at = 8;
	if (!begins(code, n, at, at ? "\x4d\x3b\x66\x10" : "\x49\x3b\x66\x10", 4))
		return 0;
	at += 4;
	return begins(code, n, at, "\x76", 1) || begins(code, n, at, "\x0f\x86", 2) ? at : 0;
}

static bool is_word(const uint8_t *code, uint64_t n, uint64_t at, uint32_t mask, uint32_t wanted)
{
	uint32_t w;

	if (at > n || n - at < sizeof(w))
		return false;
	memcpy(&w, code + at, sizeof(w));
	return (w & mask) == wanted;
}

/* The same for arm64, where arguments are in registers from 1.18 on. */
static uint64_t find_jump_arm64(const uint8_t *code, uint64_t n, bool *ret_old)
{
	bool large;
	uint64_t at;

	*ret_old = is_word(code, n, 0, UINT32_MAX, 0xf9400b81); /* ldr x1, [x28, #16] */
	if (!is_word(code, n, 0, UINT32_MAX, 0xf9400b90)) /* ldr x16, [x28, #16] */
		return 0;
	/* With a large frame: sub x17, sp, #n; cmp x17, x16. Else: cmp sp, x16 */
	large = is_word(code, n, 4, 0xff8003ff, 0xd10003f1);
	at = large ? 8 : 4;
	if (!is_word(code, n, at, UINT32_MAX, large ? 0xeb10023f : 0xeb3063ff))
		return 0;
	return is_word(code, n, at + 4, 0xff00001f, 0x54000009) ? at + 4 : 0; /* b.ls */
}

static void find_places(struct elf *elf, struct goplaces *g)
{
	struct looking l = { 0 };

	if (!look(elf, &l)) {
		g->trouble = GOPLACES_NO_GO;
		return;
	}
	if (l.found < GOPLACES_COUNT) {
		g->trouble = GOPLACES_NO_NAMES;
		return;
	}
	for (int i = 0; i < GOPLACES_COUNT; i++) {
		uint64_t n = 32, jump = 0;
		const uint8_t *code = elf_code_at(elf, l.address[i], &n);
		bool old = false;

		if (code)
			jump = elf->machine == EM_AARCH64 ? find_jump_arm64(code, n, &old) : find_jump(code, n, &old);
		if (!jump || !elf_address_to_offset(elf, l.address[i] + jump, &g->offset[i])) {
			g->trouble = old ? GOPLACES_OLD : GOPLACES_OTHER;
			return;
		}
	}
}

/* --- reasons --- */

/* A string of Go, as it lies in the file. */
struct gostring {
	uint64_t address, size;
};

/* Returns the bytes of the file that are mapped at an address; NULL if they are not all there. */
static const uint8_t *bytes_at(const struct elf *elf, uint64_t address, uint64_t n)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t into = address - s->address;

		if (s->type == PT_LOAD && address >= s->address && into <= s->file_size && n <= s->file_size - into &&
		    s->offset <= elf->size && into <= elf->size - s->offset && n <= elf->size - s->offset - into)
			return elf->data + s->offset + into;
	}
	return NULL;
}

static bool is_text(const struct elf *elf, const struct gostring *s, const char *text)
{
	const uint8_t *at;

	if (s->size != strlen(text))
		return false;
	at = bytes_at(elf, s->address, s->size);
	return at && !memcmp(at, text, s->size);
}

static bool copy_reason(const struct elf *elf, const struct gostring *s, char out[GOPLACES_REASON])
{
	const uint8_t *at = s->size && s->size < GOPLACES_REASON ? bytes_at(elf, s->address, s->size) : NULL;

	for (uint64_t i = 0; at && i < s->size; i++)
		if (at[i] < ' ' || at[i] > '~')
			return false;
	if (at)
		memcpy(out, at, s->size);
	return at != NULL;
}

/* The table has an empty string first, then "GC assist marking" and "IO wait", in every version so far. */
static void read_reasons(const struct elf *elf, const uint8_t *table, uint64_t n, struct goplaces *g)
{
	uint32_t count = 1;

	for (; count < GOPLACES_REASONS && n - count * sizeof(struct gostring) >= sizeof(struct gostring); count++) {
		struct gostring s;

		memcpy(&s, table + count * sizeof(s), sizeof(s));
		if (!copy_reason(elf, &s, g->reasons[count]))
			break;
	}
	g->reason_count = count;
}

static void find_reasons(const struct elf *elf, struct goplaces *g)
{
	for (size_t i = 0; i < elf->segment_count && !g->reason_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		const uint8_t *data = s->type == PT_LOAD && !(s->flags & PF_X) ? bytes_at(elf, s->address, s->file_size) : NULL;
		uint64_t n = data && elf_plausible(elf, s->file_size) ? s->file_size : 0;

		for (uint64_t at = 0; n - at >= 3 * sizeof(struct gostring) && n >= at; at += 8) {
			struct gostring first[3];

			memcpy(first, data + at, sizeof(first));
			if (first[0].size || first[1].size != 17 || first[2].size != 7 ||
			    !is_text(elf, &first[1], "GC assist marking") || !is_text(elf, &first[2], "IO wait"))
				continue;
			read_reasons(elf, data + at, n - at, g);
			break;
		}
	}
}

void goplaces_find(struct elf *elf, struct goplaces *ret)
{
	*ret = (struct goplaces){ 0 };
	if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64) {
		ret->trouble = GOPLACES_OTHER;
		return;
	}
	find_places(elf, ret);
	if (!ret->trouble)
		find_reasons(elf, ret);
}

/* --- the parent's side --- */

bool goplaces_check(struct goplaces *g)
{
	if (g->trouble >= GOPLACES_TROUBLES || g->reason_count > GOPLACES_REASONS)
		return false;
	for (uint32_t i = 0; i < GOPLACES_REASONS; i++) {
		g->reasons[i][GOPLACES_REASON - 1] = 0;
		for (char *c = g->reasons[i]; *c; c++)
			if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
				*c = '?';
	}
	return true;
}

const char *goplaces_trouble_text(uint32_t trouble)
{
	static const char *const texts[GOPLACES_TROUBLES] = {
		[GOPLACES_NO_GO] = "it is no Go program",
		[GOPLACES_NO_NAMES] = "its runtime's functions cannot be found by name",
		[GOPLACES_OLD] = "it was built by Go before 1.17, or before 1.18 for arm64",
		[GOPLACES_OTHER] = "the runtime's functions do not begin in a way that is known here",
	};

	return trouble && trouble < GOPLACES_TROUBLES ? texts[trouble] : "";
}
