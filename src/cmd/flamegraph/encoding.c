#include "cmd/flamegraph/encoding.h"

#include <errno.h>
#include <iconv.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"

static const size_t input_limit = 4ULL << 30;

bool encoding_is_utf8(const char *encoding)
{
	return !encoding || !strcasecmp(encoding, "utf-8") || !strcasecmp(encoding, "utf8");
}

bool encoding_known(const char *encoding)
{
	iconv_t c;

	if (encoding_is_utf8(encoding))
		return true;
	c = iconv_open("UTF-8", encoding);
	if (c == (iconv_t)-1)
		return false;
	iconv_close(c);
	return true;
}

/* from to to; skip: how many bytes of the input a character that cannot be converted has. */
static int convert(const char *to, const char *from, char *data, size_t n, struct buf *out)
{
	iconv_t c = iconv_open(to, from);
	bool utf8 = encoding_is_utf8(from);
	char piece[4096];

	if (c == (iconv_t)-1)
		return -errno;
	while (n) {
		char *end = piece;
		size_t room = sizeof(piece), r = iconv(c, &data, &n, &end, &room);

		buf_add(out, piece, end - piece);
		if (r != (size_t)-1 || errno == E2BIG)
			continue;
		buf_putc(out, '?');
		do {
			data++;
			n--;
		} while (n && utf8 && (*data & 0xc0) == 0x80);
	}
	iconv_close(c);
	return 0;
}

int encoding_output(struct buf *b, const char *encoding, struct err *err)
{
	struct buf out = { 0 };
	int r = convert(encoding, "UTF-8", b->data, b->n, &out);

	buf_done(b);
	*b = out;
	return r ? err_errno(err, -r, "cannot write in the encoding %s", encoding) : 0;
}

int encoding_input(int *fd, const char *encoding, struct err *err)
{
	_cleanup_fd_ int to = memfd_create("gasflame-text", MFD_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct buf out = { 0 };
	size_t n;
	int r = to < 0 ? -errno : fd_read_file(*fd, input_limit, &text, &n);

	if (!r)
		r = convert("UTF-8", encoding, text, n, &out);
	if (!r)
		r = fd_write_all(to, out.data, out.n);
	buf_done(&out);
	if (!r && lseek(to, 0, SEEK_SET) < 0)
		r = -errno;
	if (r)
		return err_errno(err, -r, "cannot read it as %s", encoding);
	fd_close(fd);
	*fd = to;
	to = -1;
	return 0;
}
