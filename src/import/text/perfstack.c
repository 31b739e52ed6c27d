#include "import/text/perfstack.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "folded/collapse/perfline.h"
#include "folded/namehash.h"

enum {
	MEMO_FRAMES = 1 << 14,
	MEMO_BYTES = 2048, /* longer frames are not remembered */
};

struct perfstack_memo {
	uint64_t hash;
	char *text;
	uint32_t n, capacity, frame;
};

/* What a line says. */
struct place {
	struct perfline_text name, module;
	uint64_t address;
	bool inlined, offset; /* offset: the name has one */
};

void perfstack_init(struct perfstack *s, struct frames *f)
{
	*s = (struct perfstack){ .f = f, .memos = mem_alloc(MEMO_FRAMES * sizeof(*s->memos)) };
}

static void clear_calls(struct perfstack *s)
{
	for (size_t i = 0; i < s->calls.n; i++) {
		free(s->calls.v[i].name);
		free(s->calls.v[i].file);
	}
	vec_clear(&s->calls);
}

void perfstack_done(struct perfstack *s)
{
	clear_calls(s);
	vec_done(&s->calls);
	vec_done(&s->list);
	for (size_t i = 0; s->memos && i < MEMO_FRAMES; i++)
		free(s->memos[i].text);
	free(s->memos);
	s->memos = NULL;
}

/* --- a line --- */

static bool is(struct perfline_text t, const char *word)
{
	return t.n == strlen(word) && !memcmp(t.s, word, t.n);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Nothing but hexadecimal digits, 16 at most. */
static bool take_hex(struct perfline_text t, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < t.n; i++) {
		int digit = hex_digit(t.s[i]);

		if (digit < 0)
			return false;
		*ret = *ret << 4 | digit;
	}
	return t.n && t.n <= 16;
}

/* A module as it is, without "+0x12", its own address of the code, and with " (deleted)" where perf's line ends in it. */
static void tidy_module(struct place *p)
{
	size_t n = perfline_without_offset(p->module.s, p->module.n);

	if (n < p->module.n)
		take_hex((struct perfline_text){ p->module.s + n + 3, p->module.n - n - 3 }, &p->address);
	p->module.n = n;
	if (!is(p->module, "deleted)"))
		return;
	/* The name ends in " (/usr/bin/x". */
	for (size_t i = p->name.n; i >= 2; i--)
		if (p->name.s[i - 2] == ' ' && p->name.s[i - 1] == '(') {
			p->module = (struct perfline_text){ p->name.s + i, p->name.n - i };
			p->name.n = perfline_without_offset(p->name.s, i - 2);
			return;
		}
}

/* "\t  7f12 name", "\t   name (module)", "\t   name": without a module, or without an address. */
static bool take_bare(struct perfline_text line, struct place *ret)
{
	size_t at = 0, end;

	while (at < line.n && perfline_space(line.s[at]))
		at++;
	while (line.n > at && perfline_space(line.s[line.n - 1]))
		line.n--;
	for (end = at; end < line.n && !perfline_space(line.s[end]);)
		end++;
	if (take_hex((struct perfline_text){ line.s + at, end - at }, &ret->address)) {
		while (end < line.n && perfline_space(line.s[end]))
			end++;
		at = end;
	} else if (*line.s != '\t') {
		return false;
	} else {
		ret->address = 0;
	}
	for (end = line.n; end > at + 2 && line.s[line.n - 1] == ')'; end--)
		if (line.s[end - 2] == ' ' && line.s[end - 1] == '(') {
			ret->module = (struct perfline_text){ line.s + end, line.n - 1 - end };
			line.n = end - 2;
			break;
		}
	ret->name = (struct perfline_text){ line.s + at, perfline_without_offset(line.s + at, line.n - at) };
	return ret->name.n || ret->address;
}

static bool take_place(struct perfline_text line, struct place *ret)
{
	struct perfline_frame f;

	*ret = (struct place){ .module = { "", 0 } };
	if (!perfline_frame(line.s, line.n, &f) || !take_hex(f.pc, &ret->address)) {
		if (!take_bare(line, ret))
			return false;
	} else {
		ret->name = f.function;
		ret->module = f.module;
		ret->offset = f.function.s[f.function.n] == '+';
	}
	tidy_module(ret);
	ret->inlined = is(ret->module, "inlined");
	return true;
}

/* "  file.c:12" */
static bool is_source(struct perfline_text line)
{
	struct place p;

	return line.n > 2 && line.s[0] == ' ' && line.s[1] == ' ' && !perfline_space(line.s[2]) && !take_place(line, &p);
}

/* --- a frame --- */

static void add_call(struct perfstack *s, const char *name, size_t n)
{
	vec_push(&s->calls, (struct perfstack_call){ .name = mem_strndup(name, n) });
}

/* The names of a line: of "a->b" b is the innermost. An operator of C++ is no arrow, nor is "fn(A) -> B" of Rust. */
static void add_names(struct perfstack *s, struct perfline_text name)
{
	static const char operator[] = "operator";
	size_t end = name.n, word = strlen(operator);

	for (size_t i = name.n; i >= 2; i--) {
		const char *arrow = name.s + i - 2;

		if (memcmp(arrow, "->", 2) || arrow == name.s || arrow[-1] == ' ' ||
		    ((size_t)(arrow - name.s) >= word && !memcmp(arrow - word, operator, word)))
			continue;
		if (end > i)
			add_call(s, name.s + i, end - i);
		end = i - 2;
	}
	if (end)
		add_call(s, name.s, end);
}

/* The place in the source belongs to the innermost of the calls from one on, which are of one line. */
static void set_source(struct perfstack *s, size_t from, struct perfline_text line)
{
	const char *colon = line.n ? memrchr(line.s, ':', line.n) : NULL;
	uint64_t number = 0;

	if (!colon || from >= s->calls.n || s->calls.v[from].file || memchr(line.s, '[', line.n))
		return;
	for (const char *c = colon + 1; c < line.s + line.n && number <= UINT32_MAX; c++) {
		if (*c < '0' || *c > '9')
			break;
		number = number * 10 + (*c - '0');
	}
	while (line.s < colon && perfline_space(*line.s))
		line.s++;
	if (line.s == colon || !number || number > UINT32_MAX || (colon - line.s == 2 && !memcmp(line.s, "??", 2)))
		return;
	s->calls.v[from].file = mem_strndup(line.s, colon - line.s);
	s->calls.v[from].line = number;
}

/* The kernel's modules are in brackets; so are some regions of a process. */
static bool is_kernel_name(const char *module)
{
	static const char *const regions[] = { "[vdso]", "[vsyscall]", "[heap]", "[stack]", "[anon]", "[uprobes]", "[unknown]", "[vvar]",
					       "[gasflame]" };

	if (*module != '[' || !str_ends(module, "]"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(regions); i++)
		if (!strcmp(module, regions[i]))
			return false;
	return !str_starts(module, "[heap") && !str_starts(module, "[stack") && !str_starts(module, "[anon");
}

static uint32_t module_of(struct perfstack *s, struct perfline_text t, bool *ret_kernel)
{
	_cleanup_free_ char *path = mem_strndup(t.s, t.n), *file = NULL;

	*ret_kernel = frames_is_kernel(path) || is_kernel_name(path);
	if (!*path || !strcmp(path, "[unknown]") || !strcmp(path, "inlined"))
		return PROFILE_NONE;
	if (*ret_kernel && !frames_is_kernel(path))
		file = mem_printf("%.*s.ko", (int)strlen(path) - 2, path + 1); /* "[ext4]" */
	return frames_module(s->f, file ? file : path, NULL, 0);
}

/* "[truncated: reason]" and notes are ours. */
static uint32_t make_frame(struct perfstack *s, const struct place *p)
{
	static const char cut[] = "[truncated: ";
	VEC(struct frames_call) calls = { 0 };
	const char *name = s->calls.n ? s->calls.v[0].name : "";
	bool kernel, unnamed;
	uint32_t module, frame;

	if (s->calls.n == 1 && is(p->module, "note"))
		return profile_named_frame(s->f->p, PROFILE_NONE, FRAME_NOTE, name);
	module = module_of(s, p->module, &kernel);
	kernel |= frames_kernel_address(p->address);
	if (s->calls.n == 1 && module == PROFILE_NONE && str_starts(name, cut) && str_ends(name, "]")) {
		_cleanup_free_ char *reason = mem_strndup(name + strlen(cut), strlen(name) - strlen(cut) - 1);

		return profile_truncation_frame(s->f->p, reason);
	}
	for (size_t i = 0; i < s->calls.n; i++)
		vec_push(&calls, (struct frames_call){ s->calls.v[i].name, s->calls.v[i].file, s->calls.v[i].line });
	if (!calls.n)
		vec_push(&calls, (struct frames_call){ 0 });
	unnamed = s->calls.n == 1 && !p->offset && !strcmp(calls.v[0].name, "[unknown]");
	frame = frames_named(s->f, module, kernel ? FRAME_KERNEL : FRAME_USER, p->address, calls.v,
			     unnamed && s->in_modules && module != PROFILE_NONE && p->address ? 0 : calls.n);
	vec_done(&calls);
	return frame;
}

/* --- frames by their text --- */

static struct perfline_text line_at(const char *s, const char *end)
{
	const char *newline = memchr(s, '\n', end - s);

	return (struct perfline_text){ s, (newline ? newline : end) - s };
}

static bool is_inlined_line(struct perfline_text line)
{
	static const char end[] = "(inlined)";

	return line.n > strlen(end) && !memcmp(line.s + line.n - strlen(end), end, strlen(end));
}

/* Where the frame ends that begins at s: after its inlined calls, itself, and their places in the source. */
static const char *frame_end(const char *s, const char *end)
{
	bool whole = false;

	while (s < end) {
		struct perfline_text line = line_at(s, end);

		/* Most frames begin with a tab: only others may be a place. */
		if (whole && (*s == '\t' || !is_source(line)))
			break;
		whole |= !is_inlined_line(line) && (*s == '\t' || !is_source(line));
		s = MIN(line.s + line.n + 1, end);
	}
	return s;
}

/* False: there is no frame in these lines. */
static bool read_frame(struct perfstack *s, const char *text, const char *end, uint32_t *ret)
{
	struct place p = { 0 }, last = { 0 };
	size_t from = 0;
	bool found = false;

	clear_calls(s);
	while (text < end) {
		struct perfline_text line = line_at(text, end);

		text += line.n + 1;
		if (*line.s != '\t' && is_source(line)) {
			set_source(s, from, line);
		} else if (!line.n || !take_place(line, &p)) {
			s->unknown_lines++;
		} else if (p.name.n && *p.name.s == '(' && p.name.s[p.name.n - 1] == ')' && !memchr(p.name.s, ':', p.name.n)) {
			continue; /* the name of a process, in old versions of perf */
		} else {
			from = s->calls.n;
			add_names(s, p.name);
			last = p;
			found = true;
		}
	}
	if (found)
		*ret = make_frame(s, &last);
	return found;
}

static void remember(struct perfstack_memo *m, uint64_t hash, const char *text, size_t n, uint32_t frame)
{
	if (m->capacity < n) {
		m->capacity = MIN(n * 2, (size_t)MEMO_BYTES);
		m->text = mem_resize(m->text, m->capacity, 1);
	}
	memcpy(m->text, text, n);
	m->hash = hash;
	m->n = n;
	m->frame = frame;
}

static void add_frame(struct perfstack *s, const char *text, const char *end)
{
	size_t n = end - text;
	uint64_t hash = namehash(text, n);
	struct perfstack_memo *m = &s->memos[hash >> 32 & (MEMO_FRAMES - 1)];
	uint32_t frame;

	if (m->n == n && m->hash == hash && !memcmp(m->text, text, n)) {
		vec_push(&s->list, m->frame);
		return;
	}
	if (!read_frame(s, text, end, &frame))
		return;
	vec_push(&s->list, frame);
	if (n <= MEMO_BYTES)
		remember(m, hash, text, n, frame);
}

uint32_t perfstack_make(struct perfstack *s, const char *text, size_t n)
{
	const char *end = text + n;

	vec_clear(&s->list);
	while (text < end) {
		const char *next = frame_end(text, end);

		add_frame(s, text, next);
		text = next;
	}
	return frames_stack(s->f, s->list.v, s->list.n);
}
