/*
 * pageverdict.c - the sentences of the verdict in the head of a page: each with its advice, and with the part of the
 * viewer's state that proves it.
 */
#include <string.h>

#include "analyze/memory/heap.h"
#include "analyze/select.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/json.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/page/pagedata.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "profile/profile.h"

/* Opens a sentence. Only so many bytes of it are the page's. */
static void open_sentence(struct json *j, const char *text, size_t bytes, const char *advice)
{
	_cleanup_free_ char *said = mem_strndup(text, bytes);

	json_open_object(j, NULL);
	cleantext_json(j, "text", said);
	cleantext_json(j, "advice", advice);
}

static void open_state(struct json *j, const char *view, const char *what)
{
	json_open_object(j, "state");
	json_put_string(j, "view", view);
	cleantext_json(j, "what", what);
}

/* Is the place of that cause and function among those that the page lists? */
static bool is_listed(const struct waits *w, enum cause cause, const char *function)
{
	for (size_t i = 0; i < w->sites.n && i < SECTION_PAGE_WAITS; i++)
		if (w->sites.v[i].cause == cause && !strcmp(w->sites.v[i].function, function))
			return true;
	return false;
}

/* Puts the view that proves a sentence about tasks: the page of a type, which has its long polls, wakers and stacks. */
static void put_task_state(struct json *j, const char *name)
{
	json_open_object(j, "state");
	json_put_string(j, "view", "tasks");
	cleantext_json(j, "task", name);
	json_close(j);
}

/* Puts the view that proves a sentence about waits: the page of that wait, which has its wakers and stacks; of another one
 * the stacks through the function, with its callers. */
static void put_wait_state(struct json *j, const struct profile *p, const struct verdict_link *l, const struct waits *w)
{
	bool listed = l->function && is_listed(w, l->cause, l->function);

	if (!l->what) {
		json_put_null(j, "state");
		return;
	}
	if (l->task) {
		put_task_state(j, l->task);
		return;
	}
	open_state(j, listed ? "waits" : "flame", l->what);
	if (listed) {
		_cleanup_free_ char *site = mem_printf("%s %s", cause_key(l->cause), l->function);

		cleantext_json(j, "site", site);
	} else if (l->thread < p->threads.n) {
		json_open_array(j, "threads");
		json_put_uint(j, NULL, p->threads.v[l->thread].tid);
		json_close(j);
		json_open_array(j, "causes");
		json_put_string(j, NULL, cause_key(l->cause));
		json_close(j);
	}
	if (!listed && l->function)
		cleantext_json(j, "through", l->function);
	json_close(j);
}

/* Puts the view that proves a sentence about the heap: the callers of the function, in the time that it is about. */
static void put_heap_state(struct json *j, const struct heap_figures *f, const struct heap_link *l)
{
	if (!l->what) {
		json_put_null(j, "state");
		return;
	}
	open_state(j, l->function ? "sandwich" : "table", l->grew ? "growth" : l->what);
	if (l->function)
		cleantext_json(j, "fn", l->function);
	if (l->grew) {
		json_open_array(j, "range");
		json_put_uint(j, NULL, f->duration_ns / 3);
		json_put_uint(j, NULL, f->duration_ns);
		json_close(j);
	}
	json_close(j);
}

void page_verdict(struct json *j, const struct export_job *job, const struct verdict *v, const struct waits *w)
{
	struct heap_figures heap;

	json_open_array(j, "verdict");
	for (size_t i = 0; i < v->sentences.n; i++) {
		bool advised = i + 1 < v->sentences.n && v->links.v[i + 1].advice;

		if (v->links.v[i].advice)
			continue;
		open_sentence(j, v->sentences.v[i],
			      v->links.v[i].finding ? v->links.v[i].finding : strlen(v->sentences.v[i]),
			      advised ? v->sentences.v[i + 1] : "");
		put_wait_state(j, job->profile, &v->links.v[i], w);
		json_close(j);
	}
	heap_measure(&heap, job->profile, &(struct select_options){ 0 }, job->options.own);
	for (size_t i = 0; i < heap.verdict.n; i++) {
		const struct heap_link *l = &heap.links.v[i];
		_cleanup_free_ char *advice = mem_strndup(heap.verdict.v[i] + l->finding, l->said - l->finding);

		open_sentence(j, heap.verdict.v[i], l->finding, advice + strspn(advice, " "));
		put_heap_state(j, &heap, l);
		json_close(j);
	}
	heap_done(&heap);
	json_close_line(j, 0);
}
