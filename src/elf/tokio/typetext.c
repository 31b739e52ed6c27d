#include "elf/tokio/typetext.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

enum { MAX_DEPTH = 24 }; /* of wrappers */

static bool starts(struct typetext t, const char *prefix)
{
	size_t n = strlen(prefix);

	return t.n >= n && !memcmp(t.s, prefix, n);
}

static struct typetext from(struct typetext t, size_t at)
{
	return (struct typetext){ t.s + at, t.n - at };
}

static bool opens(char c)
{
	return c == '<' || c == '(' || c == '[' || c == '{';
}

/* The arrow of a function's type closes nothing. */
static bool closes(struct typetext t, size_t i)
{
	char c = t.s[i];

	return c == ')' || c == ']' || c == '}' || (c == '>' && !(i && t.s[i - 1] == '-'));
}

/* The length of the type that text begins with: up to a comma, or a bracket that closes one before it. */
static size_t type_length(struct typetext t)
{
	size_t depth = 0;

	for (size_t i = 0; i < t.n; i++) {
		if (opens(t.s[i]))
			depth++;
		else if (closes(t, i) && !depth--)
			return i;
		else if (t.s[i] == ',' && !depth)
			return i;
	}
	return t.n;
}

/* The length of what is in brackets at the start of text, with them. */
static size_t brackets(struct typetext t)
{
	size_t depth = 0;

	for (size_t i = 0; i < t.n; i++) {
		depth += opens(t.s[i]);
		if (closes(t, i) && !--depth)
			return i + 1;
	}
	return t.n;
}

static struct typetext trim(struct typetext t)
{
	while (t.n && t.s[0] == ' ')
		t = from(t, 1);
	while (t.n && t.s[t.n - 1] == ' ')
		t.n--;
	return t;
}

/* A letter or two in place of a type, as the older mangling has them: "T", "F1". */
static bool is_letter(struct typetext t)
{
	return !t.n || (t.n <= 2 && isupper((unsigned char)t.s[0]));
}

/* Takes the first two types of a list. */
static void read_list(struct typetext list, struct typetext *first, struct typetext *second)
{
	size_t n = type_length(list);

	*first = trim((struct typetext){ list.s, n });
	*second = (struct typetext){ 0 };
	if (n < list.n && list.s[n] == ',') {
		list = from(list, n + 1);
		*second = trim((struct typetext){ list.s, type_length(list) });
	}
}

bool typetext_task(const char *symbol, struct typetext *ret_future, struct typetext *ret_scheduler)
{
	static const char *const generic[] = { "core::Cell<", "core::CoreStage<", "core::Stage<", "core::Core<", "harness::Harness<" };
	static const char *const raw = "raw::";
	const char *at = symbol;

	while ((at = strstr(at, "tokio::runtime::task::"))) {
		const char *list = NULL;

		at += strlen("tokio::runtime::task::");
		for (size_t i = 0; i < ARRAY_LEN(generic) && !list; i++)
			if (!strncmp(at, generic[i], strlen(generic[i])))
				list = at + strlen(generic[i]);
		/* raw::poll::<F, S>, and not raw::schedule::<S> */
		if (!strncmp(at, raw, strlen(raw)) && strncmp(at, "raw::schedule", 13) != 0) {
			const char *name = at + strlen(raw);

			name += strspn(name, "abcdefghijklmnopqrstuvwxyz_");
			list = !strncmp(name, "::<", 3) ? name + 3 : NULL;
		}
		if (!list)
			continue;
		read_list((struct typetext){ list, strlen(list) }, ret_future, ret_scheduler);
		if (!is_letter(*ret_future))
			return true;
	}
	return false;
}

struct typetext typetext_polled(const char *function)
{
	struct typetext t = { function, strlen(function) }, inside;
	static const char trait[] = " as core::future::future::Future";
	size_t n;

	if (!starts(t, "<"))
		return (struct typetext){ 0 };
	n = brackets(t);
	inside = (struct typetext){ t.s + 1, n > 1 ? n - 2 : 0 };
	n = strlen(trait);
	if (inside.n < n || memcmp(inside.s + inside.n - n, trait, n) != 0)
		return (struct typetext){ 0 };
	inside.n -= n;
	return inside;
}

/* --- the short form --- */

/* Crates whose generic types are about how a future runs, not about what it does. */
static bool is_wrapper(struct typetext t)
{
	static const char *const crates[] = { "core::", "alloc::", "std::", "tokio::", "tokio_util::", "tokio_metrics::", "futures",
					      "tracing", "pin_project", "opentelemetry::" };

	for (size_t i = 0; i < ARRAY_LEN(crates); i++)
		if (starts(t, crates[i]))
			return true;
	return false;
}

/* The first argument is what boxes and adaptors hold, but for a task-local's. */
struct typetext typetext_peel(struct typetext t)
{
	t = trim(t);
	for (int i = 0; i < MAX_DEPTH; i++) {
		struct typetext path = t, first, second;
		size_t n = 0;

		while (n < t.n && !opens(t.s[n]))
			n++;
		path.n = n;
		/* A function's arguments are not what it holds: what follows them tells. */
		if (!n || n == t.n || t.s[n] != '<' || t.s[n - 1] == ':' || n + brackets(from(t, n)) < t.n || !is_wrapper(path))
			break;
		read_list(from(t, n + 1), &first, &second);
		if (path.n > 15 && !memcmp(path.s + path.n - 15, "TaskLocalFuture", 15))
			first = second;
		if (is_letter(first) || !memmem(first.s, first.n, "::", 2))
			break;
		t = first;
	}
	return t;
}

/* Puts the last word of a type's path; of a closure, its function's. */
static void put_word(struct buf *out, struct typetext t)
{
	struct typetext word = { 0 };

	t = trim(t);
	while (t.n && (t.s[0] == '&' || starts(t, "dyn ") || starts(t, "mut ")))
		t = from(t, t.s[0] == '&' ? 1 : 4);
	if (starts(t, "<"))
		t = from(t, 1);
	for (size_t i = 0, start = 0; i <= t.n; i++) {
		bool end = i == t.n || t.s[i] == '<' || t.s[i] == ' ' || t.s[i] == '>' || t.s[i] == '+';

		if (end || t.s[i] == ':') {
			if (i > start && t.s[start] != '{')
				word = (struct typetext){ t.s + start, i - start };
			start = i + 1;
		}
		if (i < t.n && t.s[i] == '<') {
			i += brackets(from(t, i)) - 1;
			start = i + 1;
		} else if (end) {
			break;
		}
	}
	if (word.n)
		buf_add(out, word.s, word.n);
	else
		buf_puts(out, "_");
}

/* An argument that is as the one before it, such as a closure and its result, is put once. */
static void put_arguments(struct buf *out, struct typetext list)
{
	struct buf last = { 0 };
	bool first = true;

	buf_putc(out, '<');
	while (list.n) {
		size_t n = type_length(list);
		struct buf word = { 0 };

		put_word(&word, (struct typetext){ list.s, n });
		if (first || strcmp(word.data, last.data) != 0) {
			if (!first)
				buf_puts(out, ", ");
			buf_puts(out, word.data);
		}
		first = false;
		buf_done(&last);
		last = word;
		if (n >= list.n || list.s[n] != ',')
			break;
		list = from(list, n + 1);
	}
	buf_done(&last);
	buf_putc(out, '>');
}

/* Finds T in "T as Trait", "impl T" and "impl Trait for T"; the trait, where T is a type of the language ("str"). */
static struct typetext qualified(struct typetext t)
{
	size_t depth = 0;

	if (starts(t, "impl "))
		t = from(t, 5);
	for (size_t i = 0; i < t.n; i++) {
		depth += opens(t.s[i]);
		depth -= depth && closes(t, i);
		if (depth)
			continue;
		if (starts(from(t, i), " as "))
			return (struct typetext){ t.s, i };
		if (starts(from(t, i), " for ")) {
			struct typetext type = from(t, i + 5);

			return memmem(type.s, type.n, "::", 2) ? type : (struct typetext){ t.s, i };
		}
	}
	return t;
}

/* Puts a path, its arguments in short. */
static void put_path(struct buf *out, struct typetext t, bool arguments)
{
	for (size_t i = 0; i < t.n; i++) {
		size_t n;

		if (t.s[i] != '<' || !i) {
			buf_putc(out, t.s[i]);
			continue;
		}
		n = brackets(from(t, i));
		if (out->n >= 2 && t.s[i - 1] == ':') /* f::<T> */
			out->n -= 2;
		if (arguments)
			put_arguments(out, (struct typetext){ t.s + i + 1, n > 1 ? n - 2 : 0 });
		i += n - 1;
	}
}

char *typetext_short(struct typetext t, bool arguments)
{
	struct buf out = { 0 };
	const char *impl;
	size_t n = 0;

	t = trim(t);
	/* "a::<impl b::T>::f" is b::T::f. */
	impl = memmem(t.s, t.n, "::<impl ", 8);
	if (impl && !memchr(t.s, '<', impl - t.s))
		t = from(t, impl + 2 - t.s);
	if (starts(t, "<")) {
		n = brackets(t);
		put_path(&out, qualified((struct typetext){ t.s + 1, n > 1 ? n - 2 : 0 }), arguments);
	}
	put_path(&out, from(t, n), arguments);
	buf_puts(&out, "");
	return out.data;
}
