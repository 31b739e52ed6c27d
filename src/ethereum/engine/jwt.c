#include "ethereum/engine/jwt.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec/base64.h"
#include "base/codec/sha256.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/json.h"

enum { FILE_MAX = 4096 };

static void put_part(struct buf *token, const struct buf *text)
{
	if (token->n)
		buf_putc(token, '.');
	base64_put(token, text->data, text->n, true);
}

void jwt_put(struct buf *out, const uint8_t secret[JWT_SECRET_BYTES], uint64_t issued_seconds)
{
	_cleanup_(buf_done) struct buf token = { 0 }, head = { 0 }, claims = { 0 };
	struct json h = json_begin(&head), c = json_begin(&claims);
	uint8_t sum[SHA256_BYTES];

	json_open_object(&h, NULL);
	json_put_string(&h, "alg", "HS256");
	json_put_string(&h, "typ", "JWT");
	json_end(&h);
	json_open_object(&c, NULL);
	json_put_uint(&c, "iat", issued_seconds);
	json_end(&c);
	put_part(&token, &head);
	put_part(&token, &claims);
	hmac_sha256(secret, JWT_SECRET_BYTES, token.data, token.n, sum);
	buf_add(out, token.data, token.n);
	buf_putc(out, '.');
	base64_put(out, sum, sizeof(sum), true);
}

/* --- the secret --- */

int jwt_parse_secret(const char *text, size_t n, uint8_t ret[JWT_SECRET_BYTES])
{
	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	while (n && isspace((unsigned char)*text))
		text++, n--;
	if (n >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2, n -= 2;
	if (n != 2 * JWT_SECRET_BYTES)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		int c = tolower((unsigned char)text[i]);

		if (!isxdigit(c))
			return -EINVAL;
		c = isdigit(c) ? c - '0' : c - 'a' + 10;
		ret[i / 2] = i % 2 ? ret[i / 2] | c : c << 4;
	}
	return 0;
}

int jwt_read_secret(const char *path, uint8_t ret[JWT_SECRET_BYTES], struct err *err)
{
	char *text = NULL;
	size_t n = 0;
	int e = fd_read_path(path, FILE_MAX, &text, &n);

	if (e)
		return err_errno(err, -e, "cannot read the secret %s", path);
	e = jwt_parse_secret(text, n, ret);
	/* The secret is a password: none of it stays in freed memory. */
	explicit_bzero(text, n);
	free(text);
	if (e)
		return err_set(err, EBADMSG, "%s is no secret of an Engine API: that is one line of 64 hexadecimal digits", path);
	return 0;
}
