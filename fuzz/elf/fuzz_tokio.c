/*
 * fuzz_tokio.c - task types of a program: tables, code, names. Input that is no ELF file is a symbol and an answer of the child.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/symbols.h"
#include "elf/tokio/tokio.h"
#include "elf/tokio/tokiopack.h"
#include "elf/tokio/typetext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_text(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *symbol = mem_strndup((const char *)data, size);
	struct typetext whole = { symbol, strlen(symbol) }, future, scheduler, inside = typetext_peel(whole);
	struct tokio_program p;

	if (typetext_task(symbol, &future, &scheduler) && (future.s < symbol || future.n > whole.n))
		abort();
	if (typetext_polled(symbol).n > whole.n || inside.n > whole.n)
		abort();
	free(typetext_short(inside, false));
	free(typetext_short(inside, true));
	if (tokio_unpack((const char *)data, size, &p))
		tokio_done(&p);
}

static void check(const struct tokio_program *p)
{
	struct tokio_program again;
	struct buf b = { 0 };

	for (size_t i = 0; i < p->count; i++) {
		const struct tokio_vtable *v = &p->vtables[i];

		if (!v->name || strlen(v->name) >= TOKIO_NAME || v->spawn_count > TOKIO_SPAWNS || v->kind >= TOKIO_KINDS)
			abort();
	}
	tokio_pack(p, &b);
	if (!tokio_unpack(b.data, b.n, &again) || again.count != p->count)
		abort();
	tokio_done(&again);
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols_files files = { .scratch_fd = -1, .no_dwarf = true };
	struct tokio_program p;

	if (elf_open_memory(data, size, &files.main, NULL) < 0) {
		read_text(data, size);
		return 0;
	}
	if (!tokio_find(&files, &p, NULL)) {
		check(&p);
		tokio_done(&p);
	}
	elf_free(files.main);
	return 0;
}
