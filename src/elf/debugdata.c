/*
 * debugdata.c - MiniDebugInfo: a small ELF file with a .symtab, packed with xz.
 */
#include <errno.h>
#include <lzma.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/symtab.h"

static const uint64_t decoder_memory = 64 << 20; /* xz -9 needs 65 MiB, and no packager uses it */
static const size_t size_limit = 256 << 20;

int debugdata_unpack(const struct elf *elf, uint8_t **ret, size_t *ret_n)
{
	const struct elf_section *s = elf_section(elf, ".gnu_debugdata");
	lzma_stream z = LZMA_STREAM_INIT;
	_cleanup_free_ uint8_t *out = NULL;
	size_t capacity = 0, limit;
	lzma_ret r = LZMA_OK;

	if (!s || !s->data)
		return -ENODATA;
	/* Symbol tables pack about 1 : 6; a section that claims far more is a decompression bomb. */
	limit = MIN(s->file_size * 64 + (1 << 20), size_limit);
	if (lzma_stream_decoder(&z, decoder_memory, 0) != LZMA_OK)
		return -ENOMEM;
	z.next_in = s->data;
	z.avail_in = s->file_size;
	while (r == LZMA_OK) {
		if (!z.avail_out) {
			size_t grown = MIN(capacity ? capacity * 2 : 1 << 20, limit);

			if (grown == capacity)
				break;
			out = mem_resize(out, grown, 1);
			z.next_out = out + capacity;
			z.avail_out = grown - capacity;
			capacity = grown;
		}
		r = lzma_code(&z, LZMA_FINISH);
	}
	*ret_n = z.total_out;
	lzma_end(&z);
	if (r != LZMA_STREAM_END)
		return -EBADMSG;
	*ret = out;
	out = NULL;
	return 0;
}
