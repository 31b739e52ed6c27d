#include "fleet/agent/board.h"

#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/text/plain.h"

struct board *board_new(void)
{
	void *p = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void board_free(struct board *b)
{
	if (b)
		munmap(b, sizeof(*b));
}

/* How many of n bytes are whole characters: a text is cut between two of them. */
static size_t whole_characters(const char *text, size_t n)
{
	size_t last = n, length;

	while (last && n - last < 4 && ((unsigned char)text[last - 1] & 0xc0) == 0x80)
		last--;
	if (!last || (unsigned char)text[last - 1] < 0xc0)
		return n;
	length = (unsigned char)text[last - 1] >= 0xf0 ? 4 : (unsigned char)text[last - 1] >= 0xe0 ? 3 : 2;
	return last - 1 + length > n ? last - 1 : n;
}

const char *board_text(const char *field, size_t field_size, char *out, size_t size)
{
	size_t n;

	if (!size)
		return "";
	/* Its owner may write to it meanwhile: what counts is the copy. */
	n = MIN(field_size, size - 1);
	memcpy(out, field, n);
	out[n] = 0;
	n = strlen(out);
	out[n == size - 1 ? whole_characters(out, n) : n] = 0;
	return plain_in_place(out);
}

void board_set(char *field, size_t field_size, const char *text)
{
	size_t n = strlen(text);

	if (!field_size)
		return;
	if (n >= field_size)
		n = whole_characters(text, field_size - 1);
	memcpy(field, text, n);
	memset(field + n, 0, field_size - n);
}
