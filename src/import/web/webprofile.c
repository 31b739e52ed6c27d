#include "import/web/webprofile.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/import.h"
#include "profile/keys.h"
#include "profile/profile.h"

static const size_t whole_bytes = 1 << 30;

void webprofile_init(struct webprofile *w, const struct import_input *in)
{
	*w = (struct webprofile){ .p = profile_new() };
	frames_init(&w->frames, w->p);
	w->p->target = profile_string(w->p, in->name);
	w->p->finished = true;
}

uint32_t webprofile_event(struct webprofile *w, const char *name, const char *unit, const char *describe, uint64_t period)
{
	uint32_t event = profile_find_event(w->p, name, unit);

	return event != PROFILE_NONE ? event : profile_add_event(w->p, name, unit, describe, period);
}

int webprofile_add(struct webprofile *w, const struct profile_sample *s, uint64_t lasts_ns, struct err *err)
{
	uint64_t end_ns;

	if (!s->value)
		return 0;
	while (w->totals.n <= s->event)
		vec_push(&w->totals, 0);
	if (__builtin_add_overflow(w->totals.v[s->event], s->value, &w->totals.v[s->event]))
		return err_set(err, ERANGE, "its weights add up to more than can be counted");
	if (__builtin_add_overflow(s->time_ns, lasts_ns, &end_ns) || end_ns > INT64_MAX)
		return err_set(err, ERANGE, "a time in it is centuries away");
	w->end_ns = MAX(w->end_ns, end_ns);
	profile_add_sample(w->p, s);
	return 0;
}

int webprofile_end(struct webprofile *w, int r, struct profile **ret, struct err *err)
{
	struct profile *p = w->p;

	if (!r && !p->samples.n && !p->marks.n)
		r = err_set(err, ENODATA, "there is no sample in it");
	for (size_t i = 0; i < p->marks.n; i++)
		w->end_ns = MAX(w->end_ns, p->marks.v[i].end_ns);
	p->duration_ns = MAX(p->duration_ns, w->end_ns);
	if (w->left_out)
		profile_count(p, KEY_IMPORT_LEFT_OUT, w->left_out);
	frames_done(&w->frames);
	buf_done(&w->text);
	vec_done(&w->totals);
	if (r)
		profile_free(p);
	else
		*ret = p;
	w->p = NULL;
	return r;
}

unsigned webprofile_decimals(const char *unit)
{
	return str_starts(unit, "count/1") ? MIN(strlen(unit) - strlen("count/1"), (size_t)9) : 0;
}

static uint32_t line_frame(struct webprofile *w, uint32_t module, const struct frames_call *call, bool inlined, enum profile_named named)
{
	struct profile *p = w->p;
	struct profile_function f = { .name = profile_string(p, *call->name ? call->name : "[no name]"), .module = module, .named = named,
				      .file = call->file ? profile_string(p, call->file) : 0 };
	struct profile_line line = { profile_function(p, &f), call->line, inlined };

	vec_push(&p->frames, (struct profile_frame){ .module = module, .kind = FRAME_USER });
	profile_set_lines(p, p->frames.n - 1, &line, 1);
	return p->frames.n - 1;
}

uint32_t webprofile_frame(struct webprofile *w, uint32_t module, const char *kind, const struct frames_call *call)
{
	static const char cut[] = "[truncated: ";
	_cleanup_free_ char *reason = NULL;

	if (!strcmp(kind, "truncated")) {
		reason = mem_strdup(call->name + (str_starts(call->name, cut) ? strlen(cut) : 0));
		if (*reason && str_starts(call->name, cut))
			reason[strlen(reason) - 1] = 0;
		return profile_truncation_frame(w->p, reason);
	}
	if (!strcmp(kind, "note"))
		return profile_named_frame(w->p, module, FRAME_NOTE, call->name);
	if (!strcmp(kind, "inlined") || !strcmp(kind, "address"))
		return line_frame(w, module, call, *kind == 'i', *kind == 'a' ? NAMED_ADDRESS : NAMED_SYMBOL);
	return frames_named(&w->frames, module, strcmp(kind, "kernel") ? FRAME_USER : FRAME_KERNEL, 0, call, 1);
}

int webprofile_text(const struct import_input *in, char **ret, size_t *ret_n, struct err *err)
{
	return stream_whole(in->stream, whole_bytes, ret, ret_n, err);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The first byte that is no blank and no byte order mark. */
static size_t begin_of(const char *data, size_t n)
{
	size_t i = n >= 3 && !memcmp(data, "\xef\xbb\xbf", 3) ? 3 : 0;

	while (i < n && is_blank(data[i]))
		i++;
	return i;
}

bool webprofile_holds(const char *data, size_t n, const char *what)
{
	size_t i = begin_of(data, n);

	return i < n && data[i] == '{' && memmem(data + i, n - i, what, strlen(what));
}

bool webprofile_holds_member(const char *data, size_t n, const char *key, const char *value)
{
	size_t i = begin_of(data, n), key_n = strlen(key), value_n = strlen(value);
	const char *at, *end = data + n;

	if (i >= n || data[i] != '{')
		return false;
	for (at = data + i; (at = memmem(at, end - at, key, key_n));) {
		at += key_n;
		while (at < end && (is_blank(*at) || *at == ':'))
			at++;
		if ((size_t)(end - at) >= value_n && !memcmp(at, value, value_n))
			return true;
	}
	return false;
}
