#include "import/text/printed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/lines.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/import.h"
#include "profile/keys.h"
#include "profile/profile.h"

struct piece {
	const char *s;
	size_t n;
};

/* The profile is whole, or it is freed where r is an error. */
static int end(struct printed *s, const struct import_input *in, int r, struct profile **ret, struct err *err)
{
	struct profile *p = s->p;

	if (!r && !p->samples.n)
		r = err_set(err, EINVAL, "there is no stack with a count in it");
	frames_done(&s->frames);
	vec_done(&s->list);
	vec_done(&s->totals);
	if (r) {
		profile_free(p);
		return r;
	}
	p->target = profile_string(p, in->name);
	p->finished = true;
	if (s->unknown_lines)
		profile_count(p, KEY_IMPORT_LINES_IGNORED, s->unknown_lines);
	*ret = p;
	return 0;
}

int printed_read(struct printed *s, const struct import_input *in, printed_line_fn *take, void *context, struct profile **ret,
		 struct err *err)
{
	struct lines t = lines_of(in->stream);
	char *line;
	size_t n;
	int r;

	*s = (struct printed){ .p = profile_new() };
	frames_init(&s->frames, s->p);
	while ((r = lines_next(&t, &line, &n, err)) > 0 && !(r = take(context, line, n, t.number, err)))
		;
	lines_done(&t);
	return end(s, in, r, ret, err);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct piece trim(struct piece t)
{
	while (t.n && is_space(*t.s)) {
		t.s++;
		t.n--;
	}
	while (t.n && is_space(t.s[t.n - 1]))
		t.n--;
	return t;
}

bool printed_number(const char *s, size_t n, uint64_t *ret)
{
	struct piece t = trim((struct piece){ s, n });

	*ret = 0;
	for (size_t i = 0; i < t.n; i++) {
		if (t.s[i] < '0' || t.s[i] > '9')
			return false;
		if (__builtin_mul_overflow(*ret, 10, ret) || __builtin_add_overflow(*ret, t.s[i] - '0', ret))
			*ret = UINT64_MAX;
	}
	return t.n;
}

/* --- a frame --- */

static bool hex_value(struct piece t, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < t.n; i++) {
		char c = t.s[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
		*ret = *ret << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return t.n && t.n <= 16;
}

/* "#1 ", "0x7f12 " and "7f12 " before a name. */
static struct piece take_address(struct piece t, uint64_t *ret)
{
	for (int i = 0; i < 2; i++) {
		size_t end = 0;
		struct piece word;

		while (end < t.n && !is_space(t.s[end]))
			end++;
		word = (struct piece){ t.s, end };
		if (word.n > 2 && !memcmp(word.s, "0x", 2))
			word = (struct piece){ t.s + 2, end - 2 };
		if (end == t.n || (*t.s != '#' && !hex_value(word, ret)))
			break;
		t = trim((struct piece){ t.s + end, t.n - end });
	}
	return t;
}

/* The module of "name (module)", "name [module]" and "module`name". */
static struct piece take_module(struct piece t, struct piece *ret)
{
	char close = t.n ? t.s[t.n - 1] : 0, open = close == ')' ? '(' : '[';
	const char *tick = t.n ? memchr(t.s, '`', t.n) : NULL;

	*ret = (struct piece){ "", 0 };
	if (tick) {
		*ret = (struct piece){ t.s, tick - t.s };
		return (struct piece){ tick + 1, t.s + t.n - tick - 1 };
	}
	if (close != ')' && close != ']')
		return t;
	for (size_t i = t.n - 1; i >= 2; i--)
		if (t.s[i - 1] == open && t.s[i - 2] == ' ') {
			/* "f (int)" has arguments, not a module. */
			if (close == ')' && t.s[i] != '/' && t.s[i] != '[' && t.s[i] != 'i')
				break;
			*ret = (struct piece){ t.s + i, t.n - 1 - i };
			return trim((struct piece){ t.s, i - 2 });
		}
	return t;
}

/* "+0x1c", "+12" */
static struct piece without_offset(struct piece t)
{
	size_t n = t.n;

	while (n && ((t.s[n - 1] >= '0' && t.s[n - 1] <= '9') || (t.s[n - 1] >= 'a' && t.s[n - 1] <= 'f')))
		n--;
	if (n >= 3 && n < t.n && !memcmp(t.s + n - 3, "+0x", 3))
		return (struct piece){ t.s, n - 3 };
	for (n = t.n; n && t.s[n - 1] >= '0' && t.s[n - 1] <= '9';)
		n--;
	if (n >= 2 && n < t.n && t.s[n - 1] == '+')
		t.n = n - 1;
	return t;
}

static bool take_end(struct piece *t, const char *end)
{
	size_t n = strlen(end);

	if (t->n <= n || memcmp(t->s + t->n - n, end, n))
		return false;
	t->n -= n;
	return true;
}

void printed_frame(struct printed *s, const char *text, size_t n, bool kernel)
{
	static const char *const kernels[] = { "unix", "genunix", "mach_kernel", "kernel" };
	uint64_t address = 0;
	struct piece module, t = take_module(take_address(trim((struct piece){ text, n }), &address), &module);
	_cleanup_free_ char *path = mem_strndup(module.s, module.n), *name = NULL;
	struct frames_call call = { 0 };

	/* bcc with an old Python: b'name'. */
	if (t.n > 3 && !memcmp(t.s, "b'", 2) && t.s[t.n - 1] == '\'')
		t = (struct piece){ t.s + 2, t.n - 3 };
	kernel |= take_end(&t, "_[k]");
	t = without_offset(t);
	if (t.n > 2 && !memcmp(t.s, "0x", 2) && hex_value((struct piece){ t.s + 2, t.n - 2 }, &address))
		t = (struct piece){ "[unknown]", strlen("[unknown]") };
	call.name = name = mem_strndup(t.s, t.n);
	for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
		kernel |= !strcmp(path, kernels[i]);
	kernel |= frames_is_kernel(path) || frames_kernel_address(address);
	if (kernel && !strcmp(path, "kernel"))
		*path = 0; /* the same as no module: bcc does not always print it */
	vec_push(&s->list, frames_named(&s->frames, !strcmp(path, "[unknown]") ? PROFILE_NONE : frames_module(&s->frames, path, NULL, 0),
					kernel ? FRAME_KERNEL : FRAME_USER, address, &call, 1));
}

/* --- the kernel's frames --- */

static const char *name_of(const struct profile *p, uint32_t frame)
{
	return profile_str(p, p->functions.v[p->lines.v[p->frames.v[frame].first_line].function].name);
}

/* The same frame, of the kernel. */
static uint32_t kernel_frame(struct printed *s, uint32_t frame)
{
	const struct profile_frame *f = &s->p->frames.v[frame];

	if (f->kind == FRAME_KERNEL)
		return frame;
	return frames_named(&s->frames, f->module, FRAME_KERNEL, f->address, &(struct frames_call){ .name = name_of(s->p, frame) }, 1);
}

static void set_kernel(struct printed *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->list.v[i] = kernel_frame(s, s->list.v[i]);
}

void printed_kernel(struct printed *s)
{
	set_kernel(s, s->list.n);
}

static bool is_entry(const char *name)
{
	static const char *const starts[] = { "entry_SYSCALL", "do_syscall_64", "ret_from_fork", "asm_sysvec_", "asm_exc_", "asm_common_interrupt",
					      "el0t_64_sync", "el0_svc", "el0_sync", "el1h_64_", "secondary_startup", "common_startup_64",
					      "__irqentry_text_end", "x86_64_start_", "kthread" };

	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (str_starts(name, starts[i]))
			return true;
	return false;
}

/* How many frames belong to the kernel, from one on: 0 where none enters it. */
static size_t kernel_frames(const struct printed *s, size_t from)
{
	size_t n = 0;

	for (size_t i = from; i < s->list.n; i++)
		if (is_entry(name_of(s->p, s->list.v[i])))
			n = i + 1 - from;
	return n;
}

bool printed_enters_kernel(const struct printed *s, size_t from)
{
	return kernel_frames(s, from);
}

bool printed_off_cpu(const struct printed *s)
{
	enum { LEAVES = 6 };

	for (size_t i = 0; i < MIN(s->list.n, (size_t)LEAVES); i++) {
		const char *name = name_of(s->p, s->list.v[i]);

		if (!strcmp(name, "__schedule") || (!i && str_starts(name, "finish_task_switch")))
			return true;
	}
	return false;
}

void printed_swap(struct printed *s, size_t from)
{
	size_t n = s->list.n, later = n - from;
	_cleanup_free_ uint32_t *copy = mem_alloc((n + 1) * sizeof(*copy));

	for (size_t i = 0; i < n; i++)
		copy[i < from ? i + later : i - from] = s->list.v[i];
	for (size_t i = 0; i < n; i++)
		s->list.v[i] = copy[i];
}

/* --- a stack --- */

static uint32_t event_of(struct printed *s, const struct printed_event *e)
{
	uint32_t event = profile_find_event(s->p, e->name, e->unit);

	if (event == PROFILE_NONE)
		event = profile_add_event(s->p, e->name, e->unit, e->describe, e->samples ? e->factor : 0);
	while (s->totals.n <= event)
		vec_push(&s->totals, 0);
	return event;
}

int printed_add(struct printed *s, const struct printed_event *e, uint32_t pid, uint32_t tid, const char *comm, uint64_t number,
		  uint64_t line, struct err *err)
{
	uint32_t event = event_of(s, e);
	/* A sum is of more than one, at no time in particular; of how many nobody says. */
	struct profile_sample sample = { .event = event, .count = e->samples ? MIN(number, (uint64_t)UINT32_MAX) : 2 };
	uint64_t *total = &s->totals.v[event];

	if (__builtin_mul_overflow(number, e->factor, &sample.value) || __builtin_add_overflow(*total, sample.value, total) ||
	    *total > INT64_MAX)
		return err_set(err, ERANGE, "line %llu: the counts add up to more than can be counted", (unsigned long long)line);
	set_kernel(s, kernel_frames(s, 0));
	sample.stack = frames_stack(&s->frames, s->list.v, s->list.n);
	sample.thread = frames_thread(&s->frames, pid, tid, comm);
	vec_clear(&s->list);
	if (number)
		profile_add_sample(s->p, &sample);
	return 0;
}
