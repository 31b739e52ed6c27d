/*
 * fleet.c - the part of the site that is about a store: its page, and the questions of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "fleet.html.h"
#include "serve/site.h"

static struct answer no_store(void)
{
	return site_sentence(404, "there is no store here: gasflame serve --store URL");
}

struct answer site_nodes(struct site *s)
{
	struct buf page = { 0 };

	if (!site_store(s))
		return no_store();
	buf_puts(&page, fleet_html);
	return site_bytes(200, "text/html; charset=utf-8", &page);
}

struct answer site_ask(struct site *s, const struct site_question *q)
{
	const struct site_fleet *fleet = site_store(s);
	struct buf data = { 0 };
	struct err err = { 0 };
	int r;

	if (!fleet)
		return no_store();
	r = fleet->ask(fleet->context, q, &data, &err);
	if (!r)
		return site_bytes(200, "application/json", &data);
	buf_done(&data);
	/* The page shows the sentence, whatever the status; 502: the store is the problem, not we. */
	return site_sentence(r == -ECANCELED ? 409 : r == -EINVAL || r == -E2BIG ? 400 : 502, err.text);
}

void site_cancel(struct site *s)
{
	const struct site_fleet *fleet = site_store(s);

	if (fleet)
		fleet->cancel(fleet->context);
}

bool site_question_replaces(const struct site_question *q, const struct site_question *old)
{
	return q->topic == old->topic && q->page && old->page && !strcmp(q->page, old->page);
}

void site_question_free(struct site_question *q)
{
	if (!q)
		return;
	free(q->page);
	free(q->figure);
	free(q->name);
	free(q->target);
	free(q->from);
	free(q->to);
	free(q->slot);
	free(q);
}
