#include "import/web/v8profile.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "import/import.h"
#include "import/web/jsontext.h"
#include "import/web/webprofile.h"
#include "profile/profile.h"

void v8profile_done(struct v8profile *v)
{
	vec_done(&v->nodes);
	vec_done(&v->samples);
	vec_done(&v->deltas_ns);
	map_done(&v->ids);
}

/* --- reading --- */

/* Index of a node; made, without a name, if it is mentioned before it comes. */
static struct v8node *node_of(struct v8profile *v, uint64_t id)
{
	uint64_t *at = map_put(&v->ids, id, v->nodes.n);

	if (*at == v->nodes.n)
		vec_push(&v->nodes, (struct v8node){ UINT64_MAX, PROFILE_NONE, PROFILE_NONE });
	return &v->nodes.v[*at];
}

static uint32_t read_call(struct webprofile *w, struct jsontext *c)
{
	struct profile *p = w->p;
	uint32_t name = 0, url = 0, line = 0;
	struct frames_call call;

	for (jsontext_object(c); jsontext_member(c);) {
		uint32_t *text = jsontext_is(c, "functionName") ? &name : jsontext_is(c, "url") ? &url : NULL;

		if (text) {
			jsontext_string(c, &w->text);
			*text = profile_string(p, w->text.data);
		} else if (jsontext_is(c, "lineNumber")) {
			line = jsontext_int(c) + 1; /* from 0 on; -1 = not known */
		} else {
			jsontext_skip(c);
		}
	}
	if (!strcmp(profile_str(p, name), "(root)"))
		return PROFILE_NONE;
	call = (struct frames_call){ name ? profile_str(p, name) : "(anonymous)", url ? profile_str(p, url) : NULL, line };
	return frames_named(&w->frames, PROFILE_NONE, FRAME_USER, 0, &call, 1);
}

static void read_node(struct v8profile *v, struct webprofile *w, struct jsontext *c)
{
	struct jsontext_place children = { 0 };
	struct jsontext_number id = { 0 }, parent = { 0 };
	uint32_t frame = PROFILE_NONE;

	for (jsontext_object(c); jsontext_member(c);) {
		if (jsontext_is(c, "id"))
			id = jsontext_number(c, 0);
		else if (jsontext_is(c, "parent"))
			parent = jsontext_number(c, 0);
		else if (jsontext_is(c, "children") && jsontext_kind(c) == '[')
			children = jsontext_keep(c);
		else if (jsontext_is(c, "callFrame") && jsontext_kind(c) == '{')
			frame = read_call(w, c);
		else
			jsontext_skip(c);
	}
	if (!id.there || id.negative || c->failed) {
		w->left_out++;
		return;
	}
	node_of(v, id.value)->frame = frame;
	if (parent.there && !parent.negative)
		node_of(v, id.value)->parent = parent.value;
	if (children.there)
		for (jsontext_list(&children.at); jsontext_item(&children.at);) {
			struct jsontext_number child = jsontext_number(&children.at, 0);

			if (child.there && !child.negative)
				node_of(v, child.value)->parent = id.value;
		}
}

static void read_samples(struct v8profile *v, struct jsontext *c)
{
	for (jsontext_list(c); jsontext_item(c);) {
		struct jsontext_number n = jsontext_number(c, 0);

		vec_push(&v->samples, n.there && !n.negative ? n.value : UINT64_MAX);
	}
}

static void read_deltas(struct v8profile *v, struct jsontext *c)
{
	for (jsontext_list(c); jsontext_item(c);) {
		struct jsontext_number n = jsontext_number(c, 3);
		int64_t value = MIN(n.value, (uint64_t)INT64_MAX / 4);

		vec_push(&v->deltas_ns, n.negative ? -value : value);
	}
}

/* One member of an object that has the parts of a profile. */
static void take_member(struct v8profile *v, struct webprofile *w, struct jsontext *c)
{
	uint64_t *time = jsontext_is(c, "startTime") ? &v->start_ns : jsontext_is(c, "endTime") ? &v->end_ns : NULL;

	if (time) {
		struct jsontext_number n = jsontext_number(c, 3);

		*time = n.there && !n.negative && n.value <= INT64_MAX ? n.value : 0;
	} else if (jsontext_is(c, "nodes") && jsontext_kind(c) == '[') {
		for (jsontext_list(c); jsontext_item(c);)
			read_node(v, w, c);
	} else if (jsontext_is(c, "samples") && jsontext_kind(c) == '[') {
		read_samples(v, c);
	} else if (jsontext_is(c, "timeDeltas") && jsontext_kind(c) == '[') {
		read_deltas(v, c);
	} else {
		jsontext_skip(c);
	}
}

void v8profile_take(struct v8profile *v, struct webprofile *w, struct jsontext *c)
{
	jsontext_object(c);
	while (jsontext_member(c)) {
		if (!jsontext_is(c, "cpuProfile") || jsontext_kind(c) != '{') {
			take_member(v, w, c);
			continue;
		}
		for (jsontext_object(c); jsontext_member(c);)
			take_member(v, w, c);
	}
}

/* --- stacks --- */

/* UINT32_MAX: nodes are their own callers. */
static uint32_t stack_of(struct v8profile *v, struct profile *p, uint64_t id)
{
	VEC(uint32_t) chain = { 0 };
	uint64_t *at = map_get(&v->ids, id);
	uint32_t stack = 0;

	for (; at && chain.n <= v->nodes.n; at = map_get(&v->ids, v->nodes.v[*at].parent)) {
		if (v->nodes.v[*at].stack != PROFILE_NONE) {
			stack = v->nodes.v[*at].stack;
			break;
		}
		vec_push(&chain, *at);
	}
	if (chain.n > v->nodes.n) {
		vec_done(&chain);
		return UINT32_MAX;
	}
	while (chain.n) {
		struct v8node *n = &v->nodes.v[chain.v[--chain.n]];

		stack = n->stack = n->frame == PROFILE_NONE ? stack : profile_stack(p, stack, n->frame);
	}
	vec_done(&chain);
	return stack;
}

int v8profile_add(struct v8profile *v, struct webprofile *w, uint32_t thread, uint64_t zero_ns, struct err *err)
{
	uint32_t event = webprofile_event(w, "time", "ns", "time between samples of V8's profiler", 0);
	int64_t now = v->start_ns > zero_ns ? v->start_ns - zero_ns : 0, end = v->end_ns > zero_ns ? v->end_ns - zero_ns : 0, last = 0;
	int r = 0;

	for (size_t i = 0; i < v->samples.n && !r; i++) {
		int64_t begin, next;
		struct profile_sample s = { .thread = thread, .event = event };

		if (!i && v->deltas_ns.n && __builtin_add_overflow(now, v->deltas_ns.v[0], &now))
			now = INT64_MAX / 2;
		next = i + 1 < v->deltas_ns.n && i + 1 < v->samples.n ? v->deltas_ns.v[i + 1] : i + 1 == v->samples.n && end > now ? end - now : 0;
		if (__builtin_add_overflow(now, next, &next))
			next = INT64_MAX / 2;
		/* Times may go backwards a little: what was passed already is not passed again. */
		begin = MAX(now, last);
		now = next;
		if (next <= begin)
			continue;
		last = next;
		s.stack = stack_of(v, w->p, v->samples.v[i]);
		if (s.stack == UINT32_MAX)
			return err_set(err, EINVAL, "nodes of the profile are their own callers");
		s.time_ns = begin;
		s.value = next - begin;
		r = webprofile_add(w, &s, s.value, err);
	}
	return r;
}

/* --- files --- */

bool cpuprofile_probe(const char *data, size_t n, bool whole)
{
	if (webprofile_holds(data, n, "\"traceEvents\"") || webprofile_holds(data, n, "\"selfSize\"")) /* a heap profile */
		return false;
	return (webprofile_holds(data, n, "\"nodes\"") && webprofile_holds(data, n, "\"callFrame\"")) ||
	       (webprofile_holds(data, n, "\"head\"") && webprofile_holds(data, n, "\"functionName\""));
}

int cpuprofile_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct v8profile v = { 0 };
	struct webprofile w;
	struct jsontext c;
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = webprofile_text(in, &text, &n, err);

	if (r)
		return r;
	webprofile_init(&w, in);
	c = jsontext_of(text, n);
	v8profile_take(&v, &w, &c);
	r = jsontext_error(&c, err);
	if (!r && v.deltas_ns.n && v.samples.n != v.deltas_ns.n)
		r = err_set(err, EINVAL, "it has %zu samples and %zu times between them (timeDeltas)", v.samples.n, v.deltas_ns.n);
	if (!r && !v.deltas_ns.n && (v.samples.n || !v.nodes.n))
		r = err_set(err, EINVAL, "it has no timeDeltas, or no nodes: profiles of Chrome before version 58 are not read");
	r = r ?: v8profile_add(&v, &w, frames_thread(&w.frames, 0, 0, "main"), v.start_ns, err);
	v8profile_done(&v);
	return webprofile_end(&w, r, ret, err);
}
