#include "base/text/taskname.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

/* Types within types, and bytes of a name: names are strangers' bytes, and a reader that calls itself needs an end. */
enum { DEEPEST = 24, LONGEST = 8192 };

struct piece {
	const char *s;
	size_t n;
};

static struct piece piece_of(const char *name)
{
	return (struct piece){ name, strnlen(name, LONGEST) };
}

static bool begins(struct piece p, const char *prefix)
{
	size_t n = strlen(prefix);

	return p.n >= n && !memcmp(p.s, prefix, n);
}

static bool begins_with_any(struct piece p, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (begins(p, list[i]))
			return true;
	return false;
}

/* Crates whose types and functions are never a program's unit of work. */
static const char *const libraries[] = {
	"std::", "core::", "alloc::", "tokio::", "tokio_util::", "tokio_stream::", "tracing", "futures::", "futures_",
	"futures_lite::", "async_task::", "async_executor::", "async_std::", "async_global_executor::", "async_compat::", "async_io::",
	"blocking::", "smol::", "pollster::", "pin_project", "rayon::", "rayon_core::", "crossbeam", "threadpool::",
	"scoped_threadpool::", "rusty_pool::", "scheduled_thread_pool::", "parking_lot", "lock_api::", "once_cell::", "hashbrown::",
	"indexmap::", "smallvec::", "bytes::", "mio::", "either::", "scopeguard::", "backtrace::", "opentelemetry::", "arc_swap::",
	"dashmap::", "flume::", "async_channel::", "memchr::", "__rust_", "rust_", "__rustc", "_rjem_", "_rj", "je_", "mi_", "boost::",
	"__gnu_cxx::", "__cxxabiv1::",
};

/* Of these crates, parts that a unit is called through. All of the others are called for their own sake. */
static const char *const passages[] = {
	"core::ops::", "core::pin::", "core::future::", "core::panic", "core::task::", "core::option::", "core::ptr::mut_ptr",
	"core::cell::", "core::iter::", "core::array::", "core::slice::", "alloc::boxed::", "alloc::sync::Arc", "std::panic", "std::thread", "std::sys",
	"std::rt::", "std::future", "std::__invoke", "std::invoke", "std::thread::", "std::_Bind", "std::__future_base", "std::_Function",
	"std::function", "std::packaged_task", "std::__async", "std::tuple", "std::call_once", "std::once",
	"tokio::runtime::", "tokio::task::", "tokio::future::", "tokio::time::timeout", "tokio::loom::", "tokio::util::", "tokio::macros", "tokio_util::",
	"tracing::instrument", "tracing_futures::", "futures::", "futures_util::", "futures_executor::", "futures_task::", "futures_lite::",
	"async_task::", "async_executor::", "async_std::", "async_global_executor::", "async_compat::", "blocking::", "smol::",
	"pollster::", "pin_project", "rayon::", "rayon_core::", "crossbeam", "threadpool::", "scoped_threadpool::", "rusty_pool::",
	"scheduled_thread_pool::", "either::", "scopeguard::", "opentelemetry::", "__rust_", "rust_", "boost::", "__gnu_cxx::",
};

/* Traits whose functions run the whole of a type: the type is the unit, not its function. */
static const char *const runs_whole[] = { "core::future::", "core::ops::function::", "core::ops::async_function::", "futures_core::", "std::future::" };

/* Where the bracket at s closes: at its end, or at the end of the text. "->" closes nothing. */
static size_t bracket(struct piece p)
{
	int depth = 0;

	for (size_t i = 0; i < p.n; i++) {
		if (strchr("<([{", p.s[i]) && p.s[i])
			depth++;
		else if (p.s[i] && strchr(")]}>", p.s[i]) && !(p.s[i] == '>' && i && p.s[i - 1] == '-') && --depth <= 0)
			return i + 1;
	}
	return p.n;
}

/* The distance to a text outside of all brackets; the length = there is none. */
static size_t outside(struct piece p, const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i + n <= p.n; i++) {
		if (!memcmp(p.s + i, text, n))
			return i;
		if (p.s[i] && strchr("<([{", p.s[i]))
			i += bracket((struct piece){ p.s + i, p.n - i }) - 1;
	}
	return p.n;
}

static struct piece without(struct piece p, size_t first)
{
	return (struct piece){ p.s + first, p.n - first };
}

/* "&mut dyn a::B" is a::B. */
static struct piece bare(struct piece p)
{
	static const char *const words[] = { "&", "*", "mut ", "const ", "dyn ", "impl ", " ", "(", "[" };
	size_t i = 0;

	while (p.n && i < ARRAY_LEN(words)) {
		if (begins(p, words[i])) {
			p = without(p, strlen(words[i]));
			i = 0;
		} else {
			i++;
		}
	}
	return p;
}

/* --- the parts of a name --- */

/* A function, or a type, taken apart. */
struct parts {
	struct piece type;  /* T of "<T as Trait>::f" and "m::<impl Trait for T>::f"; empty = the path says all */
	struct piece trait; /* the same; empty = none */
	struct piece path;  /* what follows the type, or all of it */
};

static struct parts take_apart(struct piece p)
{
	struct parts r = { .path = p };
	size_t module = outside(p, "::<impl "), end, at;
	struct piece inside;

	if (module < p.n)
		p = without(p, module + 2);
	else if (!begins(p, "<"))
		return r;
	end = bracket(p);
	inside = (struct piece){ p.s + 1, end - 1 - (end > 1 && p.s[end - 1] == '>') };
	r.path = without(p, end);
	if (begins(inside, "impl ")) {
		inside = without(inside, 5);
		at = outside(inside, " for ");
		r.type = at < inside.n ? without(inside, at + 5) : inside;
		r.trait = at < inside.n ? (struct piece){ inside.s, at } : (struct piece){ 0 };
	} else {
		at = outside(inside, " as ");
		r.type = (struct piece){ inside.s, at };
		r.trait = at < inside.n ? without(inside, at + 4) : (struct piece){ 0 };
	}
	r.type = bare(r.type);
	return r;
}

/* A letter, or two, in place of a type: "F", "T1". */
static bool is_letter(struct piece p)
{
	return p.n <= 2 && p.n && isupper((unsigned char)*p.s);
}

/* The piece that says whose code it is. */
static struct piece owner_of(const struct parts *r)
{
	if (!r->type.n)
		return r->path;
	return is_letter(r->type) && r->trait.n ? bare(r->trait) : r->type;
}

/* "void std::__invoke<...>(...)": a name of C++ may begin with the type that it returns. */
static struct piece without_result(struct piece p)
{
	size_t arguments = outside(p, "("), space;

	if (arguments == p.n || begins(p, "<"))
		return p;
	while ((space = outside((struct piece){ p.s, MIN(arguments, p.n) }, " ")) < MIN(arguments, p.n)) {
		if (begins(p, "operator"))
			break;
		p = without(p, space + 1);
		arguments -= space + 1;
	}
	return bare(p);
}

static bool has_closure(struct piece p)
{
	return memmem(p.s, p.n, "{closure", 8) || memmem(p.s, p.n, "{{closure", 9) || memmem(p.s, p.n, "{lambda", 7) ||
	       memmem(p.s, p.n, "{async_", 7) || memmem(p.s, p.n, "'lambda", 7);
}

static bool ends_in_closure(struct piece p)
{
	size_t last = 0;

	for (size_t at; (at = outside(without(p, last), "::")) < p.n - last;)
		last += at + 2;
	return has_closure(without(p, last));
}

enum taskname_rank taskname_rank(const char *function)
{
	struct piece p = without_result(piece_of(function));
	struct parts r = take_apart(p);
	struct piece owner = owner_of(&r);

	if (!owner.n || begins_with_any(owner, libraries, ARRAY_LEN(libraries))) {
		if (!owner.n || begins_with_any(owner, passages, ARRAY_LEN(passages)) ||
		    (r.trait.n && begins_with_any(r.trait, runs_whole, ARRAY_LEN(runs_whole))))
			return TASKNAME_NOTHING;
		return TASKNAME_LIBRARY;
	}
	if (r.trait.n && begins_with_any(r.trait, runs_whole, ARRAY_LEN(runs_whole)))
		return TASKNAME_UNIT;
	return ends_in_closure(p) ? TASKNAME_UNIT : TASKNAME_FUNCTION;
}

/* --- names --- */

/* Does this segment of a path say nothing: "::{{closure}}", "::{closure#0}", "::<...>"? */
static bool is_silent(struct piece segment)
{
	static const char *const silent[] = { "{{closure}}", "{closure#0}", "{{vtable.shim}}", "{async_block#0}", "{async_fn_env#0}",
					      "{closure_env#0}", "{async_block_env#0}", "{async_closure#0}" };

	for (size_t i = 0; i < ARRAY_LEN(silent); i++)
		if (segment.n == strlen(silent[i]) && begins(segment, silent[i]))
			return true;
	return begins(segment, "<");
}

/* Appends the path without arguments of types and without closures that have no number. */
static void put_path(char *out, size_t *n, struct piece p)
{
	while (p.n) {
		size_t end = outside(p, "::"), kept;
		struct piece segment = { p.s, end };
		const char *arguments = memchr(segment.s, '<', segment.n);

		p = end < p.n ? without(p, end + 2) : (struct piece){ 0 };
		if (!segment.n || is_silent(segment))
			continue;
		kept = arguments && *segment.s != '{' && *segment.s != '(' ? (size_t)(arguments - segment.s) : segment.n;
		if (*n) {
			memcpy(out + *n, "::", 2);
			*n += 2;
		}
		/* "f(int)", "f{{vtable.shim}}" */
		for (size_t i = 1; i < kept && *segment.s != '{' && *segment.s != '('; i++)
			if (segment.s[i] == '(' || segment.s[i] == '{')
				kept = i;
		memcpy(out + *n, segment.s, kept);
		*n += kept;
	}
	out[*n] = 0;
}

static char *name_of_parts(const struct parts *r)
{
	size_t room = r->type.n + r->path.n + r->trait.n + 16, n = 0;
	char *out = mem_alloc(room);

	if (r->type.n) {
		struct parts inner = take_apart(r->type);

		/* "<<a::B as c::D>::f::{closure#0} as core::future::future::Future>::poll" */
		if (inner.type.n)
			put_path(out, &n, inner.type);
		put_path(out, &n, inner.path);
		if (!begins_with_any(r->trait, runs_whole, ARRAY_LEN(runs_whole)) || !r->trait.n)
			put_path(out, &n, r->path);
	} else {
		put_path(out, &n, r->path);
	}
	return out;
}

char *taskname_of_function(const char *function)
{
	struct piece p = without_result(piece_of(function));
	struct parts r = take_apart(p);

	if (taskname_rank(function) == TASKNAME_NOTHING)
		return NULL;
	return name_of_parts(&r);
}

/* --- types --- */

/* The first type that is no wrapper; closures: that is one, or part of one. NULL = there is none. */
static char *search_type(struct piece p, bool closures, int depth)
{
	struct parts r;
	struct piece owner;

	p = bare(p);
	if (depth > DEEPEST || !p.n || is_letter(p))
		return NULL;
	r = take_apart(p);
	owner = owner_of(&r);
	/* A name without a path is of the language ("u64") or an associated type ("Output = ()"). */
	if (!begins_with_any(owner, libraries, ARRAY_LEN(libraries))) {
		if (outside(owner, "::") < owner.n && outside(p, " = ") == p.n && (!closures || ends_in_closure(p) ||
										 (r.type.n && ends_in_closure(r.type))))
			return name_of_parts(&r);
		return NULL;
	}
	for (size_t open = 0; open < p.n; open++) {
		struct piece list = without(p, open);
		size_t end, at;

		if (*list.s != '<' && *list.s != '(')
			continue;
		end = bracket(list);
		open += end - 1;
		list = (struct piece){ list.s + 1, end > 1 ? end - 2 : 0 };
		for (; list.n; list = at < list.n ? without(list, at + 1) : (struct piece){ 0 }) {
			char *found;

			at = outside(list, ",");
			found = search_type((struct piece){ list.s, at }, closures, depth + 1);
			if (found)
				return found;
		}
	}
	return NULL;
}

char *taskname_of_type(const char *type)
{
	struct piece p = piece_of(type);
	struct piece owner;
	struct parts r;
	char *found;

	p = bare(p);
	r = take_apart(p);
	owner = owner_of(&r);
	if (p.n && !is_letter(p) && !begins_with_any(owner, libraries, ARRAY_LEN(libraries)))
		return name_of_parts(&r);
	found = search_type(p, true, 0);
	return found ? found : search_type(p, false, 0);
}

char *taskname_of_arguments(const char *function)
{
	struct piece p = piece_of(function);

	if (!strchr(function, '<'))
		return NULL;
	return search_type(p, true, 0) ?: search_type(p, false, 0);
}
