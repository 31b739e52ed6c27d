#include "base/text/plain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

int32_t plain_decode(const char *text, size_t *ret_n)
{
	static const int32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	static const struct { unsigned char below, length; } first[] = {
		{ 0x80, 1 }, { 0xc2, 0 }, { 0xe0, 2 }, { 0xf0, 3 }, { 0xf5, 4 }, { 0xff, 0 },
	};
	const unsigned char *s = (const unsigned char *)text;
	size_t k = 0, n;
	int32_t c;

	while (s[0] >= first[k].below && first[k].below < 0xff)
		k++;
	n = first[k].length;
	c = n < 2 ? s[0] : s[0] & (0x7f >> n);
	*ret_n = 1;
	if (!n)
		return -1;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return -1;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return -1;
	*ret_n = n;
	return c;
}

bool plain_harmful(int32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ||     /* control characters and invalid UTF-8 */
	       c == 0x61c || (c >= 0x200b && c <= 0x200f) || /* no width, or a change of direction */
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c & 0xfffe) == 0xfffe;                    /* not allowed in XML */
}

/* Returns the bytes up to the next character that must be checked. */
static size_t ascii_run(const char *s)
{
	size_t n = 0;

	while (s[n] >= 0x20 && s[n] < 0x7f)
		n++;
	return n;
}

void plain_add(struct buf *b, const char *s)
{
	while (*s) {
		size_t n = ascii_run(s);

		buf_add(b, s, n);
		s += n;
		if (!*s)
			break;
		if (plain_harmful(plain_decode(s, &n)))
			buf_puts(b, replacement);
		else
			buf_add(b, s, n);
		s += n;
	}
}

void plain_add_word(struct buf *b, const char *s)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
	_cleanup_(buf_done) struct buf word = { 0 };

	plain_add(&word, s);
	buf_puts(&word, "");
	if (word.n && !word.data[strspn(word.data, safe)]) {
		buf_add(b, word.data, word.n);
		return;
	}
	buf_putc(b, '\'');
	for (const char *c = word.data; *c; c++)
		buf_puts(b, *c == '\'' ? "'\\''" : (char[]){ *c, 0 });
	buf_putc(b, '\'');
}

char *plain_in_place(char *s)
{
	char *to = s;

	for (const char *from = s; *from;) {
		size_t n;

		if (plain_harmful(plain_decode(from, &n))) {
			*to++ = '?';
		} else {
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	*to = 0;
	return s;
}

/* The colours that we use ourselves; bytes of the sequence at s, or 0. */
static size_t colour_at(const char *s)
{
	static const char *const ours[] = { "\033[0m",    "\033[1m",  "\033[2m",  "\033[31m", "\033[32m",
					    "\033[33m",   "\033[34m", "\033[1;31m", "\033[1;33m" };

	for (size_t i = 0; *s == '\033' && i < ARRAY_LEN(ours); i++)
		if (str_starts(s, ours[i]))
			return strlen(ours[i]);
	return 0;
}

void plain_add_lines(struct buf *b, const char *s)
{
	while (*s) {
		size_t n = ascii_run(s);

		if (!n)
			n = *s == '\n' || *s == '\t' ? 1 : colour_at(s);
		if (!n && plain_harmful(plain_decode(s, &n)))
			buf_puts(b, replacement);
		else
			buf_add(b, s, n);
		s += n;
	}
}

int plain_put(const char *data, size_t n)
{
	_cleanup_(buf_done) struct buf lines = { 0 };

	if (isatty(STDOUT_FILENO) && n) {
		_cleanup_free_ char *text = mem_strndup(data, n);

		plain_add_lines(&lines, text);
		data = lines.data;
		n = lines.n;
	}
	errno = 0;
	if (fwrite(data, 1, n, stdout) < n)
		return errno ? -errno : -EIO;
	return 0;
}

void plain_put_path(const char *path)
{
	_cleanup_(buf_done) struct buf line = { 0 };

	if (isatty(STDOUT_FILENO))
		plain_add(&line, path);
	else
		buf_puts(&line, path);
	buf_putc(&line, '\n');
	plain_put(line.data, line.n);
}
