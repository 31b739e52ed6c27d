#include "import/web/speedscope.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "import/import.h"
#include "import/web/jsontext.h"
#include "import/web/webprofile.h"
#include "profile/profile.h"

struct scope_unit {
	const char *name;     /* in the file */
	unsigned decimals;    /* so many, then it is in unit */
	const char *unit, *event;
};

/* A profile of the file. */
struct scope_profile {
	struct jsontext_place samples, weights, events, times, counts;
	struct jsontext_number start, end;
	const struct scope_unit *unit;
	unsigned decimals; /* of its numbers, in the event's unit */
	uint32_t event, thread;
	uint64_t start_value; /* in the event's unit */
};

struct scope {
	struct webprofile w;
	struct jsontext_place frames, profiles, name;
	VEC(uint32_t) list;    /* frames, by their index in the file; PROFILE_NONE = is left out of stacks */
	VEC(uint32_t) open;    /* how often each is open now: evented */
	VEC(uint32_t) opened;  /* indexes, from the outermost on */
	VEC(uint32_t) stacks;  /* of them */
	uint64_t zero;         /* where times begin */
	struct err *err;
};

static const struct scope_unit units[] = {
	{ "none", 0, "count", "samples" },
	{ "nanoseconds", 0, "ns", "time" },
	{ "microseconds", 3, "ns", "time" },
	{ "milliseconds", 6, "ns", "time" },
	{ "seconds", 9, "ns", "time" },
	{ "bytes", 0, "bytes", "bytes" },
};
/* Weights of no unit that have decimals. */
static const struct scope_unit fractions = { "none", 6, "count/1000000", "samples" };

bool speedscope_probe(const char *data, size_t n, bool whole)
{
	return webprofile_holds(data, n, "https://www.speedscope.app/file-format-schema.json") ||
	       (webprofile_holds(data, n, "\"startValue\"") && (webprofile_holds_member(data, n, "\"type\"", "\"sampled\"") ||
								webprofile_holds_member(data, n, "\"type\"", "\"evented\"")));
}

/* --- frames --- */

static void read_frame(struct scope *s, struct jsontext *c)
{
	struct profile *p = s->w.p;
	uint32_t name = 0, file = 0, kind = 0, module = PROFILE_NONE;
	struct frames_call call = { 0 };

	jsontext_object(c);
	while (jsontext_member(c)) {
		bool path = jsontext_is(c, "module");
		uint32_t *text = jsontext_is(c, "name") ? &name : jsontext_is(c, "file") ? &file : jsontext_is(c, "kind") ? &kind : NULL;

		if (text || path) {
			jsontext_string(c, &s->w.text);
			if (path)
				module = frames_module(&s->w.frames, s->w.text.data, NULL, 0);
			else
				*text = profile_string(p, s->w.text.data);
		} else if (jsontext_is(c, "line")) {
			call.line = jsontext_uint(c);
		} else {
			jsontext_skip(c); /* col: a profile has lines only */
		}
	}
	call.name = profile_str(p, name);
	call.file = file ? profile_str(p, file) : NULL;
	/* The cause of a wait, in a file of ours: it is found again by the stack. */
	vec_push(&s->list, !strcmp(profile_str(p, kind), "cause") ? PROFILE_NONE : webprofile_frame(&s->w, module, profile_str(p, kind), &call));
	vec_push(&s->open, 0);
}

static void read_frames(struct scope *s)
{
	struct jsontext *c = &s->frames.at;

	for (jsontext_list(c); jsontext_item(c);)
		read_frame(s, c);
}

/* --- one profile --- */

static bool has_decimals(const struct jsontext_place *list)
{
	struct jsontext end = list->at;

	if (!list->there)
		return false;
	jsontext_skip(&end);
	for (size_t i = list->at.at; i < end.at; i++)
		if (list->at.data[i] == '.' || list->at.data[i] == 'e' || list->at.data[i] == 'E')
			return true;
	return false;
}

/* What exports of ours say of a profile, beside what speedscope knows. */
struct scope_own {
	uint32_t event, unit, describe, thread;
	uint32_t pid, tid;
	uint64_t period;
};

static void read_own(struct scope *s, struct jsontext *c, struct scope_own *own, struct scope_profile *x)
{
	jsontext_object(c);
	while (jsontext_member(c)) {
		uint32_t *text = jsontext_is(c, "event")    ? &own->event
				 : jsontext_is(c, "unit")     ? &own->unit
				 : jsontext_is(c, "describe") ? &own->describe
				 : jsontext_is(c, "thread")   ? &own->thread
							      : NULL;
		uint32_t *id = jsontext_is(c, "pid") ? &own->pid : jsontext_is(c, "tid") ? &own->tid : NULL;

		if (text) {
			jsontext_string(c, &s->w.text);
			*text = profile_string(s->w.p, s->w.text.data);
		} else if (id) {
			*id = jsontext_uint(c);
		} else if (jsontext_is(c, "period")) {
			own->period = jsontext_number(c, 0).value;
		} else if (jsontext_is(c, "times")) {
			x->times = jsontext_keep(c);
		} else if (jsontext_is(c, "counts")) {
			x->counts = jsontext_keep(c);
		} else {
			jsontext_skip(c);
		}
	}
}

static const struct scope_unit *unit_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (!strcmp(units[i].name, name))
			return &units[i];
	return NULL;
}

static void name_profile(struct scope *s, struct scope_profile *x, const struct scope_own *own, uint32_t name)
{
	struct profile *p = s->w.p;
	const char *unit = own->unit ? profile_str(p, own->unit) : x->unit->unit;

	x->event = webprofile_event(&s->w, own->event ? profile_str(p, own->event) : x->unit->event, unit, profile_str(p, own->describe),
				    own->period);
	x->thread = frames_thread(&s->w.frames, own->pid, own->tid, profile_str(p, own->event ? own->thread : name));
}

static struct scope_profile look_at_profile(struct scope *s, struct jsontext *c)
{
	struct scope_profile x = { .unit = units };
	struct jsontext_place start = { 0 };
	struct scope_own own = { 0 };
	uint32_t name = 0;
	bool decimals;

	jsontext_object(c);
	while (jsontext_member(c)) {
		struct jsontext_place *place = jsontext_is(c, "samples")      ? &x.samples
					    : jsontext_is(c, "weights")    ? &x.weights
					    : jsontext_is(c, "events")     ? &x.events
					    : jsontext_is(c, "startValue") ? &start
									   : NULL;

		if (place) {
			*place = jsontext_keep(c);
		} else if (jsontext_is(c, "name")) {
			jsontext_string(c, &s->w.text);
			name = profile_string(s->w.p, s->w.text.data);
		} else if (jsontext_is(c, "unit")) {
			jsontext_string(c, &s->w.text);
			x.unit = unit_of(s->w.text.data);
			if (!x.unit)
				jsontext_fail(c, "this is no unit of speedscope's");
		} else if (jsontext_is(c, "gasflame") && jsontext_kind(c) == '{') {
			read_own(s, c, &own, &x);
		} else {
			jsontext_skip(c);
		}
	}
	if (c->failed)
		return x;
	decimals = has_decimals(&x.weights) || has_decimals(&x.events);
	if (x.unit == units && decimals && !own.unit)
		x.unit = &fractions;
	x.decimals = own.unit && x.unit == units ? webprofile_decimals(profile_str(s->w.p, own.unit)) : x.unit->decimals;
	if (start.there)
		x.start = jsontext_number(&start.at, x.decimals);
	x.start_value = x.start.there && !x.start.negative && !x.start.huge ? x.start.value : 0;
	name_profile(s, &x, &own, name);
	return x;
}

/* --- samples --- */

static uint32_t read_stack(struct scope *s, struct jsontext *c)
{
	uint32_t stack = 0;

	for (jsontext_list(c); jsontext_item(c);) {
		int32_t i = jsontext_index(c, s->list.n);

		if (i >= 0)
			stack = s->list.v[i] == PROFILE_NONE ? stack : profile_stack(s->w.p, stack, s->list.v[i]);
		else
			jsontext_fail(c, "a stack has something in it that is no index of a frame");
	}
	return stack;
}

static uint64_t next_number(struct jsontext_place *list, uint64_t otherwise)
{
	struct jsontext_number n = { 0 };

	if (jsontext_beside(list))
		n = jsontext_number(&list->at, 0);
	return n.there && !n.negative && !n.huge ? n.value : otherwise;
}

static int add_sample(struct scope *s, const struct scope_profile *x, struct profile_sample *sample, struct jsontext_number weight)
{
	if (!weight.there || weight.negative) {
		s->w.left_out++;
		return 0;
	}
	if (weight.huge)
		return err_set(s->err, ERANGE, "its weights add up to more than can be counted");
	sample->event = x->event;
	sample->thread = x->thread;
	sample->value = weight.value;
	return webprofile_add(&s->w, sample, !strcmp(x->unit->unit, "ns") ? weight.value : 0, s->err);
}

static int read_sampled(struct scope *s, struct scope_profile *x)
{
	bool clock = !strcmp(x->unit->unit, "ns");
	uint64_t now = clock ? x->start_value - s->zero : 0;
	struct jsontext *stacks = &x->samples.at, *weights = &x->weights.at;
	int r = 0;

	if (x->times.there)
		jsontext_list(&x->times.at);
	if (x->counts.there)
		jsontext_list(&x->counts.at);
	jsontext_list(stacks);
	if (x->weights.there)
		jsontext_list(weights);
	while (!r && jsontext_item(stacks)) {
		struct jsontext_number one = { .there = true, .value = 1 };
		struct profile_sample sample = { .stack = read_stack(s, stacks) };
		struct jsontext_number weight = !x->weights.there       ? one
						: jsontext_item(weights) ? jsontext_number(weights, x->decimals)
									 : (struct jsontext_number){ 0 };
		uint64_t count;

		if (stacks->failed || weights->failed)
			break;
		if (!weight.there && x->weights.there)
			return err_set(s->err, EINVAL, "byte %zu: there is no weight for each sample", weights->at);
		sample.time_ns = next_number(&x->times, now);
		count = next_number(&x->counts, 0);
		sample.count = MIN(count, UINT32_MAX);
		r = add_sample(s, x, &sample, weight);
		if (clock && !weight.negative && __builtin_add_overflow(now, weight.value, &now))
			r = err_set(s->err, ERANGE, "its weights add up to more than can be counted");
	}
	if (!r && x->weights.there && !stacks->failed && jsontext_item(weights))
		return err_set(s->err, EINVAL, "byte %zu: there are more weights than samples", weights->at);
	r = r ?: jsontext_error(stacks, s->err);
	return r ?: x->weights.there ? jsontext_error(weights, s->err) : 0;
}

/* --- events --- */

static void open_frame(struct scope *s, uint32_t frame)
{
	uint32_t below = s->stacks.n ? s->stacks.v[s->stacks.n - 1] : 0;

	vec_push(&s->stacks, s->list.v[frame] == PROFILE_NONE ? below : profile_stack(s->w.p, below, s->list.v[frame]));
	vec_push(&s->opened, frame);
	s->open.v[frame]++;
}

/* Those that are open within it end with it. */
static void close_frame(struct scope *s, uint32_t frame)
{
	uint32_t last;

	if (!s->open.v[frame]) {
		s->w.left_out++;
		return;
	}
	do {
		last = s->opened.v[--s->opened.n];
		s->stacks.n--;
		s->open.v[last]--;
		s->w.left_out += last != frame;
	} while (last != frame);
}

/* The stretch up to a moment is a sample. */
static int pass(struct scope *s, const struct scope_profile *x, uint64_t *now, uint64_t to)
{
	bool clock = !strcmp(x->unit->unit, "ns");
	struct profile_sample sample = { .time_ns = clock && *now > s->zero ? *now - s->zero : 0 };
	struct jsontext_number passed = { .there = true, .value = to - *now };

	*now = to;
	if (!s->stacks.n)
		return 0;
	sample.stack = s->stacks.v[s->stacks.n - 1];
	return add_sample(s, x, &sample, passed);
}

static int read_event(struct scope *s, struct scope_profile *x, struct jsontext *c, uint64_t *now)
{
	struct jsontext_number at = { 0 };
	struct jsontext begin = *c;
	int32_t frame = -1;
	char type = 0;
	int r;

	jsontext_object(c);
	while (jsontext_member(c)) {
		if (jsontext_is(c, "type")) {
			jsontext_string(c, &s->w.text);
			type = s->w.text.n == 1 ? *s->w.text.data : 0;
		} else if (jsontext_is(c, "frame")) {
			frame = jsontext_index(c, s->list.n);
		} else if (jsontext_is(c, "at")) {
			at = jsontext_number(c, x->decimals);
		} else {
			jsontext_skip(c);
		}
	}
	if (c->failed)
		return 0;
	if (frame < 0 || !at.there || at.negative || at.huge || (type != 'O' && type != 'C'))
		return err_set(s->err, EINVAL, "byte %zu: this event has no type, frame or time that can be", begin.at);
	if (at.value < *now)
		return err_set(s->err, EINVAL, "byte %zu: this event is earlier than the one before it", begin.at);
	r = pass(s, x, now, at.value);
	if (type == 'O')
		open_frame(s, frame);
	else
		close_frame(s, frame);
	return r;
}

static int read_evented(struct scope *s, struct scope_profile *x)
{
	struct jsontext *c = &x->events.at;
	uint64_t now = x->start_value;
	int r = 0;

	for (jsontext_list(c); !r && jsontext_item(c);)
		r = read_event(s, x, c, &now);
	r = r ?: jsontext_error(c, s->err);
	/* A file that was cut: what is open at its end has no end. */
	s->w.left_out += s->opened.n;
	for (size_t i = 0; i < s->opened.n; i++)
		s->open.v[s->opened.v[i]] = 0;
	s->opened.n = s->stacks.n = 0;
	return r;
}

/* --- the file --- */

static int read_profiles(struct scope *s)
{
	VEC(struct scope_profile) list = { 0 };
	struct jsontext *c = &s->profiles.at;
	int r;

	for (jsontext_list(c); jsontext_item(c);)
		vec_push(&list, look_at_profile(s, c));
	r = jsontext_error(c, s->err);
	s->zero = UINT64_MAX;
	for (size_t i = 0; i < list.n && !r; i++)
		if (!strcmp(list.v[i].unit->unit, "ns"))
			s->zero = MIN(s->zero, list.v[i].start_value);
	for (size_t i = 0; i < list.n && !r; i++) {
		if (list.v[i].events.there)
			r = read_evented(s, &list.v[i]);
		else if (list.v[i].samples.there)
			r = read_sampled(s, &list.v[i]);
		else
			s->w.left_out++;
	}
	vec_done(&list);
	return r;
}

static void find_parts(struct scope *s, struct jsontext *c)
{
	jsontext_object(c);
	while (jsontext_member(c)) {
		if (jsontext_is(c, "profiles")) {
			s->profiles = jsontext_keep(c);
		} else if (jsontext_is(c, "name")) {
			s->name = jsontext_keep(c);
		} else if (jsontext_is(c, "gasflame") && jsontext_kind(c) == '{') {
			for (jsontext_object(c); jsontext_member(c);) {
				struct jsontext_number n = jsontext_number(c, 0);

				if (jsontext_is(c, "start_wall_ns") && !n.huge)
					s->w.p->start_wall_ns = n.value;
				else if (jsontext_is(c, "duration_ns") && !n.huge)
					s->w.p->duration_ns = n.value;
			}
		} else if (jsontext_is(c, "shared") && jsontext_kind(c) == '{') {
			for (jsontext_object(c); jsontext_member(c);)
				if (jsontext_is(c, "frames"))
					s->frames = jsontext_keep(c);
				else
					jsontext_skip(c);
		} else {
			jsontext_skip(c);
		}
	}
}

static int read_text(struct scope *s, const char *text, size_t n)
{
	struct jsontext c = jsontext_of(text, n);
	int r;

	find_parts(s, &c);
	r = jsontext_error(&c, s->err);
	if (!r && (!s->frames.there || !s->profiles.there))
		r = err_set(s->err, EINVAL, "it has no \"shared\" frames, or no \"profiles\": this is no file of speedscope's");
	if (r)
		return r;
	if (s->name.there) {
		jsontext_string(&s->name.at, &s->w.text);
		if (s->w.text.n)
			s->w.p->target = profile_string(s->w.p, s->w.text.data);
	}
	read_frames(s);
	return jsontext_error(&s->frames.at, s->err) ?: read_profiles(s);
}

int speedscope_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct scope s = { .err = err };
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = webprofile_text(in, &text, &n, err);

	if (r)
		return r;
	webprofile_init(&s.w, in);
	r = read_text(&s, text, n);
	vec_done(&s.list);
	vec_done(&s.open);
	vec_done(&s.opened);
	vec_done(&s.stacks);
	return webprofile_end(&s.w, r, ret, err);
}
