#include "import/web/chromespans.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "import/web/webprofile.h"
#include "profile/profile.h"

void chromespans_done(struct chromespans *s)
{
	vec_done(&s->lanes);
	vec_done(&s->spans);
	vec_done(&s->open);
	vec_done(&s->spare);
	map_done(&s->lane_index);
	map_done(&s->named);
}

uint32_t chromespans_lane(struct chromespans *s, uint64_t pid, uint64_t tid)
{
	uint64_t key = map_hash(pid) ^ map_hash(tid + 0x9e3779b97f4a7c15), *at = map_get(&s->lane_index, key);

	if (!at && s->lanes.n == CHROMESPANS_LANES)
		return UINT32_MAX;
	at = at ?: map_put(&s->lane_index, key, s->lanes.n);
	if (*at == s->lanes.n)
		vec_push(&s->lanes, (struct chrome_lane){ .pid = pid, .tid = tid });
	return *at;
}

/* --- joining --- */

static int too_many(struct err *err)
{
	return err_set(err, EFBIG, "it has more than %d spans, for which there is no memory; gasflame import --marks reads traces of any size as marks",
		       CHROMESPANS_MOST);
}

static int add_span(struct chromespans *s, const struct chrome_span *span, struct err *err)
{
	struct chrome_lane *l = &s->lanes.v[span->lane];

	if (span->end_ns < span->start_ns) {
		s->w->left_out++;
		return 0;
	}
	if (s->spans.n == CHROMESPANS_MOST)
		return too_many(err);
	l->last_ns = MAX(l->last_ns, span->end_ns);
	vec_push(&s->spans, *span);
	return 0;
}

int chromespans_begin(struct chromespans *s, uint32_t lane, uint64_t time_ns, uint32_t name, struct err *err)
{
	struct chrome_lane *l = &s->lanes.v[lane];
	struct chrome_open open = { time_ns, name, l->top, s->order++ };

	if (!s->spare.n && s->open.n == CHROMESPANS_MOST)
		return too_many(err);
	if (s->spare.n) {
		l->top = s->spare.v[--s->spare.n] + 1;
		s->open.v[l->top - 1] = open;
	} else {
		vec_push(&s->open, open);
		l->top = s->open.n;
	}
	l->last_ns = MAX(l->last_ns, time_ns);
	*map_put(&s->named, map_pair(lane, name), 0) += 1;
	return 0;
}

/* The innermost one of a thread ends. */
static int end_top(struct chromespans *s, uint32_t lane, uint64_t time_ns, struct err *err)
{
	struct chrome_lane *l = &s->lanes.v[lane];
	struct chrome_open open = s->open.v[l->top - 1];

	vec_push(&s->spare, l->top - 1);
	l->top = open.below;
	*map_put(&s->named, map_pair(lane, open.name), 1) -= 1;
	return add_span(s, &(struct chrome_span){ open.start_ns, time_ns, open.name, lane, open.order }, err);
}

int chromespans_end(struct chromespans *s, uint32_t lane, uint64_t time_ns, uint32_t name, struct err *err)
{
	uint64_t *open = name ? map_get(&s->named, map_pair(lane, name)) : NULL;
	struct chrome_lane *l = &s->lanes.v[lane];
	uint32_t ended;
	int r;

	l->last_ns = MAX(l->last_ns, time_ns);
	if (name ? !open || !*open : !l->top) {
		s->w->left_out++;
		return 0;
	}
	do {
		ended = s->open.v[l->top - 1].name;
		s->w->left_out += name && ended != name;
		r = end_top(s, lane, time_ns, err);
	} while (!r && name && ended != name);
	return r;
}

int chromespans_whole(struct chromespans *s, uint32_t lane, uint64_t start_ns, uint64_t end_ns, uint32_t name, struct err *err)
{
	return add_span(s, &(struct chrome_span){ start_ns, end_ns, name, lane, s->order++ }, err);
}

int chromespans_close(struct chromespans *s, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < s->lanes.n; i++)
		while (s->lanes.v[i].top && !r) {
			s->w->left_out++;
			r = end_top(s, i, s->lanes.v[i].last_ns, err);
		}
	return r;
}

/* --- nesting --- */

static int compare_spans(const void *a, const void *b)
{
	const struct chrome_span *x = a, *y = b;

	return ORDER(x->lane, y->lane) ?: ORDER(x->start_ns, y->start_ns) ?: ORDER(y->end_ns, x->end_ns) ?: ORDER(x->order, y->order);
}

struct nested {
	uint64_t end_ns;
	uint32_t stack;
};

struct nesting {
	struct chromespans *s;
	VEC(struct nested) stack;
	uint64_t now_ns, zero_ns;
	uint32_t event;
	struct err *err;
};

/* Time up to a moment is the innermost span's. */
static int pass(struct nesting *n, uint32_t thread, uint64_t to_ns)
{
	uint64_t from_ns = n->now_ns;
	struct profile_sample sample = { .thread = thread, .event = n->event };

	n->now_ns = to_ns;
	if (!n->stack.n || to_ns <= from_ns)
		return 0;
	sample.time_ns = from_ns - n->zero_ns;
	sample.value = to_ns - from_ns;
	sample.stack = n->stack.v[n->stack.n - 1].stack;
	return webprofile_add(n->s->w, &sample, sample.value, n->err);
}

/* Those that are over by then. */
static int leave(struct nesting *n, uint32_t thread, uint64_t time_ns)
{
	int r = 0;

	while (!r && n->stack.n && n->stack.v[n->stack.n - 1].end_ns <= time_ns) {
		r = pass(n, thread, n->stack.v[n->stack.n - 1].end_ns);
		n->stack.n--;
	}
	return r;
}

static int enter(struct nesting *n, const struct chrome_span *span, uint32_t thread)
{
	struct profile *p = n->s->w->p;
	struct nested inner = { span->end_ns, 0 };
	int r = pass(n, thread, span->start_ns);

	if (n->stack.n) {
		const struct nested *outer = &n->stack.v[n->stack.n - 1];

		inner.stack = outer->stack;
		n->s->w->left_out += inner.end_ns > outer->end_ns;
		inner.end_ns = MIN(inner.end_ns, outer->end_ns);
	}
	inner.stack = profile_stack(p, inner.stack, profile_named_frame(p, PROFILE_NONE, FRAME_USER, profile_str(p, span->name)));
	vec_push(&n->stack, inner);
	return r;
}

int chromespans_add(struct chromespans *s, uint32_t event, uint64_t zero_ns, struct err *err)
{
	struct nesting n = { .s = s, .zero_ns = zero_ns, .event = event, .err = err };
	int r = 0;

	vec_sort(&s->spans, compare_spans);
	for (size_t i = 0; i < s->spans.n && !r; i++) {
		const struct chrome_span *span = &s->spans.v[i];
		uint32_t thread = s->lanes.v[span->lane].thread;

		if (i && span->lane != span[-1].lane) {
			r = leave(&n, s->lanes.v[span[-1].lane].thread, UINT64_MAX);
			n.now_ns = 0;
		}
		r = r ?: leave(&n, thread, span->start_ns) ?: enter(&n, span, thread);
	}
	if (!r && s->spans.n)
		r = leave(&n, s->lanes.v[s->spans.v[s->spans.n - 1].lane].thread, UINT64_MAX);
	vec_done(&n.stack);
	return r;
}
