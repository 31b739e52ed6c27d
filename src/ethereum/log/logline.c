#include "ethereum/log/logline.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

enum {
	WITHIN = 4,      /* JSON in a string of JSON, so often */
	LEVELS = 6,      /* objects in objects */
	KEY_BYTES = 128, /* of the longest key, with those of the objects around it */
};

struct input {
	const char *s;
	size_t i, n;
};

struct members {
	struct buf message, fields;
	bool has_message;
	bool wrapped; /* the message is a whole line: the other members are about its way here */
	unsigned within;
};

static void add_line(struct buf *out, const char *s, size_t n, unsigned within);

/* --- text --- */

/* Returns the length of the escape sequence at s: ESC [ parameters letter. A truncated one extends to the
 * end. */
static size_t escape_length(const char *s, size_t n)
{
	size_t i = 2;

	if (n < 2 || s[1] != '[')
		return 1;
	while (i < n && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x40)
		i++;
	return i < n ? i + 1 : n;
}

/* Appends text without colours and spaces at its end; control characters become spaces. */
static void add_text(struct buf *out, const char *s, size_t n)
{
	size_t before = out->n;

	for (size_t i = 0; i < n;) {
		if (s[i] == '\033') {
			i += escape_length(s + i, n - i);
			continue;
		}
		buf_putc(out, (unsigned char)s[i] < ' ' ? ' ' : s[i]);
		i++;
	}
	while (out->n > before && out->data[out->n - 1] == ' ')
		out->n--;
}

static void add_space(struct buf *out)
{
	if (out->n && out->data[out->n - 1] != ' ')
		buf_putc(out, ' ');
}

static int hex_digit(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* Appends the character of four hexadecimal digits as UTF-8; halves of a pair are "?". Returns how many bytes
 * were read: 0, if they are not four digits. */
static size_t add_unicode(struct buf *out, const char *s, size_t n)
{
	unsigned c = 0;

	if (n < 4)
		return 0;
	for (int i = 0; i < 4; i++) {
		if (hex_digit(s[i]) < 0)
			return 0;
		c = c * 16 + hex_digit(s[i]);
	}
	if (!c) {
		buf_putc(out, ' ');
	} else if (c < 0x80) {
		buf_putc(out, (char)c);
	} else if (c < 0x800) {
		buf_putc(out, (char)(0xc0 | c >> 6));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	} else if (c >= 0xd800 && c < 0xe000) {
		buf_putc(out, '?');
	} else {
		buf_putc(out, (char)(0xe0 | c >> 12));
		buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	}
	return 4;
}

/* Appends the string whose opening quote was read, without its escapes. False: it has no end. */
static bool take_string(struct input *in, struct buf *out)
{
	while (in->i < in->n && in->s[in->i] != '"') {
		char c = in->s[in->i++];

		if (c != '\\' || in->i == in->n) {
			buf_putc(out, c ? c : ' ');
			continue;
		}
		c = in->s[in->i++];
		if (c == 'u') {
			size_t used = add_unicode(out, in->s + in->i, in->n - in->i);

			in->i += used;
			if (used)
				continue;
		}
		buf_putc(out, strchr("nrtbf", c) ? ' ' : c);
	}
	if (in->i == in->n)
		return false;
	in->i++;
	return true;
}

/* --- JSON --- */

static char next_char(struct input *in)
{
	while (in->i < in->n && isspace((unsigned char)in->s[in->i]))
		in->i++;
	return in->i < in->n ? in->s[in->i] : 0;
}

/* Skips an array with all that is in it. False: it has no end. */
static bool skip_array(struct input *in)
{
	size_t open = 0;

	for (; in->i < in->n; in->i++) {
		char c = in->s[in->i];

		if (c == '"') {
			for (in->i++; in->i < in->n && in->s[in->i] != '"'; in->i++)
				in->i += in->s[in->i] == '\\';
		} else if (c == '[' || c == '{') {
			open++;
		} else if ((c == ']' || c == '}') && !--open) {
			in->i++;
			return true;
		}
	}
	in->i = in->n;
	return false;
}

/* The journal writes a message with colours as an array of its bytes. */
static bool take_bytes(struct input *in, struct buf *out)
{
	in->i++;
	while (isdigit((unsigned char)next_char(in))) {
		unsigned byte = 0;

		while (in->i < in->n && isdigit((unsigned char)in->s[in->i]))
			byte = (byte * 10 + (in->s[in->i++] - '0')) % 1000;
		buf_putc(out, byte ? (char)byte : ' ');
		if (next_char(in) == ',')
			in->i++;
	}
	if (next_char(in) != ']')
		return false;
	in->i++;
	return true;
}

/* The names of a message. The first are those of containers and clouds, which wrap a whole line. */
static bool is_message(const char *key, bool *ret_wrapped)
{
	static const char *const names[] = {
		"log",     "line", "textPayload", "message",         "msg",
		"MESSAGE", "@m",   "@message",    "RenderedMessage",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(key, names[i])) {
			*ret_wrapped = i < 3;
			return true;
		}
	return false;
}

/* The journal's own members have names in capitals; those of the program have F_ before them. */
static bool is_journals(const char *key)
{
	if (!strncmp(key, "F_", 2))
		return false;
	for (; *key; key++)
		if (islower((unsigned char)*key))
			return false;
	return true;
}

/* Objects that only hold the members: of Rust's tracing, and of a cloud's. */
static bool is_holder(const char *key)
{
	return !strcmp(key, "fields") || !strcmp(key, "jsonPayload");
}

static void add_field(struct members *m, const char *key, const struct buf *value)
{
	bool journal = !strncmp(key, "F_", 2), quoted = !value->n;

	if (is_journals(key))
		return;
	buf_putc(&m->fields, ' ');
	for (const char *c = key + (journal ? 2 : 0); *c; c++)
		buf_putc(&m->fields, (char)(!isalnum((unsigned char)*c) && !strchr("._/@-", *c) ? '_'
					    : journal ? tolower((unsigned char)*c)
						      : *c));
	buf_putc(&m->fields, '=');
	for (size_t i = 0; i < value->n; i++)
		quoted |= isspace((unsigned char)value->data[i]);
	if (quoted)
		buf_putc(&m->fields, '"');
	for (size_t i = 0; i < value->n; i++)
		if (value->data[i] == '\033')
			i += escape_length(value->data + i, value->n - i) - 1;
		else
			buf_putc(&m->fields, (char)(value->data[i] == '"'                 ? '\''
						    : (unsigned char)value->data[i] < ' ' ? ' '
											  : value->data[i]));
	if (quoted)
		buf_putc(&m->fields, '"');
}

static bool take_object(struct input *in, struct members *m, const char *path, unsigned level);

/* The value of a member that is neither an object nor an array; false: it is cut. */
static bool take_value(struct input *in, struct buf *value)
{
	if (next_char(in) == '"') {
		in->i++;
		return take_string(in, value);
	}
	while (in->i < in->n && !strchr(",}] \t", in->s[in->i]))
		buf_putc(value, in->s[in->i++]);
	return value->n && in->i < in->n;
}

static bool take_member(struct input *in, struct members *m, const char *key, const char *path,
			unsigned level)
{
	_cleanup_(buf_done) struct buf value = { 0 };
	char inner[KEY_BYTES];
	bool wrapped = false, whole;
	bool message = level <= 1 && !*path && !m->has_message && is_message(key, &wrapped);
	char c = next_char(in);

	if (c == '{') {
		if (level >= LEVELS)
			return skip_array(in);
		snprintf(inner, sizeof(inner), "%s%s%s", path, is_holder(key) ? "" : key,
			 is_holder(key) ? "" : ".");
		in->i++;
		return take_object(in, m, inner, level + 1);
	}
	if (c == '[' && !message)
		return skip_array(in);
	whole = c == '[' ? take_bytes(in, &value) : take_value(in, &value);
	if (message) {
		add_line(&m->message, value.data ? value.data : "", value.n, m->within + 1);
		m->has_message = true;
		m->wrapped = wrapped;
	} else if (whole) {
		snprintf(inner, sizeof(inner), "%s%s", path, key);
		add_field(m, inner, &value);
	}
	return whole;
}

/* The members of an object whose brace was read. False: it is cut, or no JSON. */
static bool take_object(struct input *in, struct members *m, const char *path, unsigned level)
{
	while (next_char(in) == '"') {
		_cleanup_(buf_done) struct buf key = { 0 };

		in->i++;
		if (!take_string(in, &key) || next_char(in) != ':')
			return false;
		in->i++;
		buf_putc(&key, 0);
		if (!take_member(in, m, key.data, path, level))
			return false;
		if (next_char(in) == ',')
			in->i++;
	}
	if (next_char(in) != '}')
		return false;
	in->i++;
	return true;
}

/* --- the line --- */

/* Finds where an object begins: a brace before a quote, which may be escaped. n: there is none. */
static size_t find_object(const char *s, size_t n, bool *ret_escaped)
{
	for (size_t i = 0; i < n; i++) {
		const char *brace = memchr(s + i, '{', n - i);
		size_t next;

		if (!brace)
			return n;
		i = brace - s;
		for (next = i + 1; next < n && isspace((unsigned char)s[next]); next++)
			;
		*ret_escaped = next + 1 < n && s[next] == '\\' && s[next + 1] == '"';
		if (*ret_escaped || (next < n && s[next] == '"'))
			return i;
	}
	return n;
}

static void add_object(struct buf *out, struct input *in, unsigned within)
{
	struct members m = { .within = within };

	in->i++;
	take_object(in, &m, "", 0);
	if (m.message.n)
		buf_add(out, m.message.data, m.message.n);
	if (m.fields.n && !m.wrapped) {
		buf_add(out, m.fields.data, m.fields.n);
		buf_putc(out, ' '); /* the last value is whole */
	}
	buf_done(&m.message);
	buf_done(&m.fields);
}

static void add_line(struct buf *out, const char *s, size_t n, unsigned within)
{
	bool escaped = false;
	size_t at = within < WITHIN ? find_object(s, n, &escaped) : n;
	struct input in = { s, at, n };

	add_text(out, s, at);
	if (at == n)
		return;
	add_space(out);
	if (escaped) {
		_cleanup_(buf_done) struct buf text = { 0 };

		take_string(&in, &text);
		add_line(out, text.data, text.n, within + 1);
	} else {
		add_object(out, &in, within);
	}
	if (in.i < n) {
		add_space(out);
		add_line(out, s + in.i, n - in.i, within + 1);
	}
}

void logline_uncoloured(struct buf *out, const char *line, size_t n)
{
	add_text(out, line, n);
	buf_puts(out, "");
	out->data[out->n] = 0;
}

void logline_plain(struct buf *out, const char *line, size_t n)
{
	add_line(out, line, n, 0);
	buf_puts(out, "");
	out->data[out->n] = 0;
}
