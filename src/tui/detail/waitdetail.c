#include "tui/detail/waitdetail.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/wait/waits.h"
#include "base/text/str.h"
#include "profile/profile.h"
#include "tui/model.h"
#include "tui/page.h"
#include "tui/table.h"

enum { MAX_FRAMES = 128, NO_LINK = UINT32_MAX };

enum column_at { AT_TIME, AT_SHARE, AT_COUNT, AT_WHAT, AT_CAUSE, AT_FUNCTION, AT_THREAD };

static const struct column columns[] = {
	[AT_TIME] = { "TIME", "ns", COLUMN_TIME, 8, 0 },
	[AT_SHARE] = { "SHARE", "percent", COLUMN_PERCENT, 6, 3 },
	[AT_COUNT] = { "COUNT", "count", COLUMN_COUNT, 9, 4 },
	[AT_WHAT] = { "", "what", COLUMN_TEXT, 11, 0 },
	[AT_CAUSE] = { "CAUSE", "cause", COLUMN_TEXT, 10, 0 },
	[AT_FUNCTION] = { "FUNCTION", "function", COLUMN_NAME, 0, 0 },
	[AT_THREAD] = { "THREAD", "thread", COLUMN_TEXT, 20, 2 },
	{ 0 },
};

static struct row *add_row(struct table *t, const char *what, const char *function, const char *thread, uint64_t ns)
{
	struct row *r = table_row(t);

	r->value[AT_TIME] = ns ? ns : NAN;
	r->value[AT_SHARE] = r->value[AT_COUNT] = NAN;
	r->text[AT_WHAT] = what;
	r->text[AT_CAUSE] = "";
	r->text[AT_FUNCTION] = function;
	r->text[AT_THREAD] = thread;
	r->id = map_hash(page_id(what, function) * 31 + page_id(thread, ""));
	r->index = NO_LINK;
	return r;
}

static bool has_user_frame(struct waits *w, uint32_t stack)
{
	const struct profile *p = w->idents.p;

	for (; stack && stack < p->stacks.n; stack = p->stacks.v[stack].parent) {
		uint32_t n;
		const uint32_t *list = idents_of_frame(&w->idents, p->stacks.v[stack].frame, &n);

		if (w->idents.list.v[list[0]].kind != IDENT_KERNEL)
			return true;
	}
	return false;
}

/* Puts the functions from which a waker ended the waits, innermost first. The kernel's own way to wake somebody tells nothing
 * about a program, so its functions are shown of kernel threads only. */
static void put_stack(struct table *t, struct waits *w, uint32_t stack, uint64_t above)
{
	const struct profile *p = w->idents.p;
	bool kernel = !has_user_frame(w, stack);
	unsigned put = 0;

	for (; stack && stack < p->stacks.n && put < MAX_FRAMES; stack = p->stacks.v[stack].parent) {
		uint32_t frame = p->stacks.v[stack].frame, n;
		const uint32_t *list = idents_of_frame(&w->idents, frame, &n);

		for (uint32_t k = n; k-- > 0;) {
			const struct ident *id = &w->idents.list.v[list[k]];
			struct row *r;

			if (id->kind == IDENT_KERNEL && !kernel)
				continue;
			r = add_row(t, "", id->name, "", 0);
			r->id = map_hash(above + ++put);
			r->depth = 2;
			r->kind = ROW_NOTE;
		}
	}
}

static void put_waiters(struct table *t, const struct waits_site *s)
{
	for (size_t i = 0; i < s->waiters.n; i++) {
		const struct waits_waiter *w = &s->waiters.v[i];
		struct row *r;

		r = add_row(t, i ? "" : "waits here", i ? "" : s->function, w->thread, w->ns);
		if (w->threads > 1) {
			_cleanup_free_ char *name = mem_printf("%s x%u", w->thread, w->threads);

			r->text[AT_THREAD] = table_text(t, name);
		}
		r->text[AT_CAUSE] = i ? "" : cause_name(s->cause);
		r->id = map_hash(page_id("waits", w->thread));
		r->value[AT_SHARE] = str_percent(w->ns, s->ns);
		if (!i)
			r->value[AT_COUNT] = s->count;
	}
}

/* A lock is let go by whoever held it. */
static void put_wakers(struct table *t, struct waits *all, const struct waits_site *s, struct map *open)
{
	const char *what = s->cause == CAUSE_LOCK ? "released by" : "woken by";

	for (size_t i = 0; i < s->wakers.n; i++) {
		const struct waits_waker *w = &s->wakers.v[i];
		const char *function = w->interrupt ? waits_interrupt(w->interrupt) : w->function;
		struct row *r = add_row(t, i ? "" : what, function, w->interrupt ? "" : w->thread, w->ns);
		bool shown, has_stack = !w->interrupt && w->stack;

		r->value[AT_SHARE] = str_percent(w->ns, s->woken_ns);
		r->value[AT_COUNT] = w->count;
		r->id = map_hash(page_id(what, function) * 31 + page_id(w->interrupt ? "" : w->thread, ""));
		shown = has_stack && map_get(open, r->id) && *map_get(open, r->id);
		r->mark = !has_stack ? 0 : shown ? '-' : '+';
		if (shown)
			put_stack(t, all, w->stack, r->id);
	}
	if (!s->wakers.n)
		add_row(t, what, "[not seen]", "", 0)->kind = ROW_NOTE;
}

static void put_chains(struct table *t, const struct waits_site *s)
{
	for (size_t i = 0; i < s->chains.n; i++) {
		const struct waits_chain *c = &s->chains.v[i];

		for (uint32_t k = 0; k < c->link_count; k++) {
			const struct waits_link *link = &c->links[k];
			struct row *r = add_row(t, k ? "" : "because", link->function, link->thread, k ? 0 : c->ns);

			_cleanup_free_ char *note = mem_printf("%s itself waited: %s. Enter goes there.", link->thread,
							       cause_name(link->cause));

			if (!k)
				r->value[AT_COUNT] = c->count;
			r->note = table_text(t, note);
			r->text[AT_CAUSE] = cause_name(link->cause);
			r->depth = k;
			r->index = i * WAITS_LINKS + k;
			r->id = map_hash(r->id + (i + 1) * 97 + k);
		}
		if (c->end)
			add_row(t, "", waits_interrupt(c->end), "", 0)->depth = c->link_count;
	}
}

static const struct waits_site *find_site(const struct waits *w, const char *function, const char *module, enum cause cause)
{
	for (size_t i = 0; w && i < w->sites.n; i++) {
		const struct waits_site *s = &w->sites.v[i];

		if (s->cause == cause && !strcmp(s->function, function) && (!module || !strcmp(s->module, module)))
			return s;
	}
	return NULL;
}

/* The place with all its details: these are only made for so many of the first places. */
static const struct waits_site *detailed_site(struct model *m, const struct waitdetail_key *key)
{
	const struct waits *w = model_waits(m);
	const struct waits_site *s = find_site(w, key->function, key->module, key->cause);

	if (!s)
		return NULL;
	w = model_waits_detailed(m, s - w->sites.v + 1);
	return find_site(w, key->function, key->module, key->cause);
}

void waitdetail_fill(struct table *t, struct model *m, const struct waitdetail_key *key, struct map *open)
{
	const struct waits_site *s = detailed_site(m, key);

	table_init(t, columns);
	t->fixed = true;
	if (!s) {
		snprintf(t->empty, sizeof(t->empty), "Nobody waits there now: Esc goes back.");
		return;
	}
	put_waiters(t, s);
	put_wakers(t, &m->waits, s, open);
	for (size_t i = 0; i < s->ran.n; i++)
		add_row(t, i ? "" : "waker ran", s->ran.v[i].function, "", s->ran.v[i].ns);
	put_chains(t, s);
}

const struct waits_site *waitdetail_next(struct model *m, const struct waitdetail_key *key, const struct row *r)
{
	const struct waits_site *s = r->index == NO_LINK ? NULL : detailed_site(m, key);
	const struct waits_link *link;

	if (!s || r->index / WAITS_LINKS >= s->chains.n)
		return NULL;
	link = &s->chains.v[r->index / WAITS_LINKS].links[r->index % WAITS_LINKS];
	return find_site(&m->waits, link->function, NULL, link->cause);
}
