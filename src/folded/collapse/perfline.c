#include "folded/collapse/perfline.h"

#include <string.h>

#include "base/buf.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t skip_digits(const char *s, size_t n, size_t at)
{
	while (at < n && is_digit(s[at]))
		at++;
	return at;
}

static size_t skip_spaces(const char *s, size_t n, size_t at)
{
	while (at < n && perfline_space(s[at]))
		at++;
	return at;
}

static bool has(struct perfline_text t, const char *word)
{
	return memmem(t.s, t.n, word, strlen(word));
}

static bool ends_in(struct perfline_text t, const char *word)
{
	size_t n = strlen(word);

	return t.n >= n && !memcmp(t.s + t.n - n, word, n);
}

/* --- the beginning of a sample --- */

/* "\s+(\d+)[/]*(\d+)*\s+" at a place. */
static bool take_ids(const char *s, size_t n, size_t at, struct perfline_header *h)
{
	size_t first = skip_spaces(s, n, at), first_end, second, second_end;

	if (first == at)
		return false;
	first_end = second = skip_digits(s, n, first);
	if (first_end == first)
		return false;
	while (second < n && s[second] == '/')
		second++;
	second_end = skip_digits(s, n, second);
	if (second_end == n || !perfline_space(s[second_end]))
		return false;
	h->pid = (struct perfline_text){ s + first, first_end - first };
	h->tid = (struct perfline_text){ s + second, second_end - second };
	/* Perl takes "0" for nothing. */
	if (!h->tid.n || (h->tid.n == 1 && *h->tid.s == '0')) {
		h->tid = h->pid;
		h->pid = (struct perfline_text){ 0 };
	}
	return true;
}

/* ":\s*(\d+)*\s+(\S+):\s*$": the event is the last word, if a colon ends it. */
static void take_event(const char *s, size_t n, struct perfline_header *h)
{
	size_t start, number, end;
	uint64_t period = 0;

	while (n && perfline_space(s[n - 1]))
		n--;
	if (!n || s[n - 1] != ':')
		return;
	for (start = n - 1; start && !perfline_space(s[start - 1]);)
		start--;
	for (end = start; end && perfline_space(s[end - 1]);)
		end--;
	if (start == n - 1 || end == start)
		return;
	for (number = end; number && is_digit(s[number - 1]);)
		number--;
	for (size_t i = number; i < end; i++)
		if (__builtin_mul_overflow(period, 10, &period) || __builtin_add_overflow(period, s[i] - '0', &period))
			period = UINT64_MAX;
	if (number < end)
		while (number && perfline_space(s[number - 1]))
			number--;
	if (!number || s[number - 1] != ':')
		return;
	h->event = (struct perfline_text){ s + start, n - 1 - start };
	h->period = period ? period : 1;
}

/* "^(\S.+?)\s+(\d+)[/]*(\d+)*\s+": the shortest name of two characters or more that ids follow. */
bool perfline_header(const char *s, size_t n, struct perfline_header *ret)
{
	if (!n || perfline_space(s[0]))
		return false;
	for (size_t at = 2; at < n; at++) {
		if (!perfline_space(s[at]))
			continue;
		*ret = (struct perfline_header){ .period = 1 };
		if (!take_ids(s, n, at, ret))
			continue;
		ret->comm = (struct perfline_text){ s, at };
		take_event(s, n, ret);
		return true;
	}
	return false;
}

/* --- a frame --- */

/* "\+0x[\da-f]+$" */
size_t perfline_without_offset(const char *s, size_t n)
{
	size_t at = n;

	while (at && (is_digit(s[at - 1]) || (s[at - 1] >= 'a' && s[at - 1] <= 'f')))
		at--;
	return at < n && at >= 3 && !memcmp(s + at - 3, "+0x", 3) ? at - 3 : n;
}

/*
 * "^\s*(\w+)\s*(.+) \((.*)\)": the module is between the last parenthesis that closes and the last " (" before it. Spaces, and
 * even the end of the address, belong to the function's name where it would have none without them.
 */
bool perfline_frame(const char *s, size_t n, struct perfline_frame *ret)
{
	const char *close = memrchr(s, ')', n);
	size_t pc = skip_spaces(s, n, 0), end = pc, name, open;

	if (!close)
		return false;
	for (open = close - s; open >= 1 && !(s[open] == '(' && s[open - 1] == ' '); open--)
		;
	if (!open || s + open >= close)
		return false;
	open--; /* the space */
	while (end < n && perfline_word(s[end]))
		end++;
	name = skip_spaces(s, n, end);
	if (name >= open)
		name = open - 1;
	if (end > name)
		end = name;
	if (!open || end <= pc || name < pc)
		return false;
	*ret = (struct perfline_frame){ { s + pc, end - pc },
					{ s + name, perfline_without_offset(s + name, open - name) },
					{ s + open + 2, close - s - open - 2 } };
	return true;
}

bool perfline_frame_hidden(const struct perfline_frame *f)
{
	return f->function.n && *f->function.s == '(';
}

/* "\.\(.*\)\.": a method of Go, "net/http.(*Client).Do". */
static bool is_go_method(struct perfline_text t)
{
	const char *open = memmem(t.s, t.n, ".(", 2), *close = NULL;

	for (size_t i = t.n; i >= 2 && !close; i--)
		if (t.s[i - 2] == ')' && t.s[i - 1] == '.')
			close = t.s + i - 2;
	return open && close && close >= open + 2;
}

/* "\((?!anonymous namespace\)).*": where arguments begin. */
static size_t without_arguments(struct perfline_text t)
{
	static const char unnamed[] = "(anonymous namespace)";

	for (size_t i = 0; i < t.n; i++)
		if (t.s[i] == '(' && (t.n - i < strlen(unnamed) || memcmp(t.s + i, unnamed, strlen(unnamed))))
			return i;
	return t.n;
}

/* Appends a name without what makes pictures unreadable. */
static void put_tidied(struct buf *b, struct perfline_text t, bool java)
{
	size_t n = is_go_method(t) ? t.n : without_arguments(t), at = b->n;

	for (size_t i = 0; i < n; i++)
		if (t.s[i] == ';')
			buf_putc(b, ':');
		else if (t.s[i] != '"' && t.s[i] != '\'')
			buf_putc(b, t.s[i]);
	if (java && b->n > at && b->data[at] == 'L' && memchr(b->data + at, '/', b->n - at)) {
		memmove(b->data + at, b->data + at + 1, b->n - at - 1);
		b->n--;
	}
}

static struct perfline_text base_name(struct perfline_text path)
{
	const char *slash = memrchr(path.s, '/', path.n);

	return slash ? (struct perfline_text){ slash + 1, path.s + path.n - slash - 1 } : path;
}

/* "/tmp/perf-\d+\.map" */
static bool is_jit(struct perfline_text module)
{
	static const char start[] = "/tmp/perf-";
	const char *s = module.s, *end = s + module.n;

	while ((s = memmem(s, end - s, start, strlen(start)))) {
		size_t digits;

		s += strlen(start);
		digits = skip_digits(s, end - s, 0);

		if (digits && (size_t)(end - s) >= digits + 4 && !memcmp(s + digits, ".map", 4))
			return true;
	}
	return false;
}

static bool is_kernel(struct perfline_text module)
{
	return ((module.n && *module.s == '[') || ends_in(module, "vmlinux")) && !has(module, "unknown");
}

static void put_unnamed(struct buf *b, const struct perfline_frame *f, bool known, const struct perfline_options *o, bool java)
{
	struct perfline_text module = base_name(f->module);
	struct buf name = { 0 };

	buf_putc(&name, '[');
	if (known)
		buf_add(&name, module.s, module.n);
	else
		buf_puts(&name, "unknown");
	if (o->addresses) {
		buf_puts(&name, " <");
		buf_add(&name, f->pc.s, f->pc.n);
		buf_putc(&name, '>');
	}
	buf_putc(&name, ']');
	put_tidied(b, (struct perfline_text){ name.data, name.n }, java);
	buf_done(&name);
}

static void put_mark(struct buf *b, size_t at, const char *mark)
{
	if (b->n == at || !has((struct perfline_text){ b->data + at, b->n - at }, mark))
		buf_puts(b, mark);
}

bool perfline_take_name(struct perfline_frame *f, const struct perfline_options *o, bool first, bool java, struct buf *b,
			bool *ret_unknown)
{
	static const char unknown[] = "[unknown]";
	struct perfline_text *rest = &f->function, name = *rest;
	const char *arrow = memmem(name.s, name.n, "->", 2);
	size_t at = b->n;

	/* Empty names at the end are none. */
	while (name.n >= 2 && !memcmp(name.s + name.n - 2, "->", 2))
		name.n -= 2;
	if (!name.n)
		return false;
	if (arrow && arrow + 2 <= name.s + name.n) {
		rest->n = name.s + name.n - arrow - 2;
		name.n = arrow - name.s;
		rest->s = arrow + 2;
	} else {
		rest->s += rest->n;
		rest->n = 0;
	}
	if (name.n == strlen(unknown) && !memcmp(name.s, unknown, name.n)) {
		bool known = f->module.n != strlen(unknown) || memcmp(f->module.s, unknown, f->module.n);

		put_unnamed(b, f, known, o, java);
		if (ret_unknown && !known)
			*ret_unknown = true;
	} else {
		put_tidied(b, name, java);
	}
	if (!first)
		put_mark(b, at, "_[i]");
	else if (o->kernel && is_kernel(f->module))
		buf_puts(b, "_[k]");
	else if (o->jit && is_jit(f->module))
		put_mark(b, at, "_[j]");
	return true;
}
