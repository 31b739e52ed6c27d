#include "import/web/chromesamples.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "import/web/chromespans.h"
#include "import/web/jsontext.h"
#include "import/web/webprofile.h"
#include "profile/profile.h"

void chromesamples_init(struct chromesamples *s)
{
	*s = (struct chromesamples){ .first_ns = UINT64_MAX };
}

void chromesamples_done(struct chromesamples *s)
{
	vec_done(&s->list);
	vec_done(&s->frames);
	map_done(&s->ids);
}

/* Ids are numbers or strings: 5 is "5". */
static uint64_t id_of(const char *text, size_t n)
{
	return n ? map_hash_bytes(text, n) & INT64_MAX : UINT64_MAX;
}

static uint64_t read_id(struct webprofile *w, struct jsontext *c)
{
	jsontext_string(c, &w->text);
	return id_of(w->text.data, w->text.n);
}

/* A number, which may be in quotes. */
static struct jsontext_number read_number(struct webprofile *w, struct jsontext *c, unsigned decimals)
{
	struct jsontext within;

	if (jsontext_kind(c) != '"')
		return jsontext_number(c, decimals);
	jsontext_string(c, &w->text);
	within = jsontext_of(w->text.data, w->text.n);
	return jsontext_number(&within, decimals);
}

static void read_sample(struct chromesamples *s, struct webprofile *w, struct chromespans *lanes, struct jsontext *c)
{
	struct jsontext_number time = { 0 }, weight = { 0 }, pid = { 0 }, tid = { 0 };
	uint64_t frame = UINT64_MAX;
	uint32_t lane;

	for (jsontext_object(c); jsontext_member(c);) {
		struct jsontext_number *number = jsontext_is(c, "weight") ? &weight : jsontext_is(c, "pid") ? &pid : jsontext_is(c, "tid") ? &tid : NULL;

		if (number)
			*number = read_number(w, c, 0);
		else if (jsontext_is(c, "ts"))
			time = read_number(w, c, 3);
		else if (jsontext_is(c, "sf"))
			frame = read_id(w, c);
		else
			jsontext_skip(c);
	}
	lane = chromespans_lane(lanes, pid.value, tid.value);
	if (c->failed || lane == UINT32_MAX || !time.there || time.negative || time.value > INT64_MAX || weight.negative || weight.huge) {
		w->left_out++;
		return;
	}
	s->first_ns = MIN(s->first_ns, time.value);
	vec_push(&s->list, (struct chrome_sample){ time.value, weight.there ? weight.value : 1, frame, lane });
}

void chromesamples_take(struct chromesamples *s, struct webprofile *w, struct chromespans *lanes, const char *text, size_t n)
{
	struct jsontext c = jsontext_of(text, n);

	read_sample(s, w, lanes, &c);
}

void chromesamples_list(struct chromesamples *s, struct webprofile *w, struct chromespans *lanes, const char *text, size_t n)
{
	struct jsontext c = jsontext_of(text, n);

	if (jsontext_kind(&c) == '[')
		for (jsontext_list(&c); jsontext_item(&c);)
			read_sample(s, w, lanes, &c);
}

void chromesamples_frames(struct chromesamples *s, struct webprofile *w, const char *text, size_t n)
{
	struct jsontext c = jsontext_of(text, n);

	if (jsontext_kind(&c) != '{')
		return;
	for (jsontext_object(&c); jsontext_member(&c);) {
		uint64_t id = id_of(c.key, c.key_n), parent = UINT64_MAX, *at;
		uint32_t name = 0;

		for (jsontext_object(&c); jsontext_member(&c);) {
			if (jsontext_is(&c, "name")) {
				jsontext_string(&c, &w->text);
				name = profile_string(w->p, w->text.data);
			} else if (jsontext_is(&c, "parent")) {
				parent = read_id(w, &c);
			} else {
				jsontext_skip(&c);
			}
		}
		at = map_put(&s->ids, id, s->frames.n);
		if (*at == s->frames.n)
			vec_push(&s->frames, (struct chrome_frame){ .stack = PROFILE_NONE });
		s->frames.v[*at].parent = parent;
		s->frames.v[*at].frame = profile_named_frame(w->p, PROFILE_NONE, FRAME_USER, name ? profile_str(w->p, name) : "[no name]");
	}
	w->left_out += c.failed != NULL;
}

/* UINT32_MAX: frames are their own callers. */
static uint32_t stack_of(struct chromesamples *s, struct profile *p, uint64_t id)
{
	VEC(uint32_t) chain = { 0 };
	uint64_t *at = map_get(&s->ids, id);
	uint32_t stack = 0;

	for (; at && s->frames.v[*at].stack == PROFILE_NONE && chain.n <= s->frames.n; at = map_get(&s->ids, s->frames.v[*at].parent))
		vec_push(&chain, *at);
	if (chain.n > s->frames.n) {
		vec_done(&chain);
		return UINT32_MAX;
	}
	if (at)
		stack = s->frames.v[*at].stack;
	for (; chain.n; chain.n--) {
		struct chrome_frame *f = &s->frames.v[chain.v[chain.n - 1]];

		stack = f->stack = profile_stack(p, stack, f->frame);
	}
	vec_done(&chain);
	return stack;
}

int chromesamples_add(struct chromesamples *s, struct webprofile *w, const struct chromespans *lanes, uint64_t zero_ns, struct err *err)
{
	uint32_t event = s->list.n ? webprofile_event(w, "samples", "count", "", 0) : 0;
	int r = 0;

	for (size_t i = 0; i < s->list.n && !r; i++) {
		const struct chrome_sample *x = &s->list.v[i];
		struct profile_sample sample = { .time_ns = x->time_ns - zero_ns, .value = x->weight, .event = event, .thread = lanes->lanes.v[x->lane].thread,
						 .stack = stack_of(s, w->p, x->frame) };

		if (sample.stack == UINT32_MAX)
			return err_set(err, EINVAL, "frames of \"stackFrames\" are their own callers");
		r = webprofile_add(w, &sample, 0, err);
	}
	return r;
}
