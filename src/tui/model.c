#include "tui/model.h"

#include <stdlib.h>

#include "profile/profile.h"

void scope_done(struct scope *s)
{
	free(s->what);
	free(s->thread);
	free(s->function);
	*s = (struct scope){ 0 };
}

void scope_set(char **field, const char *value)
{
	char *copy = value && *value ? mem_strdup(value) : NULL;

	free(*field);
	*field = copy;
}

void model_init(struct model *m)
{
	*m = (struct model){ 0 };
}

static void forget(struct model *m)
{
	if (m->has_top)
		top_done(&m->top);
	if (m->has_selection || m->no_selection)
		selection_done(&m->selection);
	if (m->has_account || m->no_account)
		account_done(&m->account);
	if (m->has_waits)
		waits_done(&m->waits);
	if (m->has_io || m->no_io)
		io_done(&m->io);
	if (m->has_blocks)
		blocks_done(&m->blocks);
	if (m->has_tasks || m->no_tasks)
		tasks_done(&m->tasks);
	m->has_selection = m->has_top = m->has_account = m->has_waits = m->has_io = m->has_blocks = m->has_tasks = false;
	m->no_selection = m->no_account = m->no_io = m->no_blocks = m->no_tasks = false;
	m->err = (struct err){ 0 };
}

void model_done(struct model *m)
{
	forget(m);
	vec_done(&m->memory);
}

static bool has_event(const struct profile *p, const char *name)
{
	return profile_find_event(p, name, NULL) != PROFILE_NONE;
}

int model_look(struct model *m, const struct profile *p, struct causes *causes, const struct scope *scope)
{
	const char *what = scope->what ? scope->what : has_event(p, "cpu") ? "cpu" : NULL;

	forget(m);
	m->p = p;
	m->causes = causes;
	m->scope = scope;
	m->threads[0] = scope->thread;
	m->options = (struct select_options){ .causes = causes,
					      .idle = scope->idle,
					      .threads = scope->thread ? m->threads : NULL,
					      .from_ns = scope->from_ns,
					      .to_ns = scope->to_ns,
					      .function = scope->function };
	return select_event(p, what, &m->options.event, &m->err);
}

const struct selection *model_selection(struct model *m)
{
	if (!m->has_selection && !m->no_selection) {
		m->has_selection = !selection_make(m->p, &m->options, &m->selection, &m->err);
		m->no_selection = !m->has_selection;
	}
	return m->has_selection ? &m->selection : NULL;
}

const struct top *model_top(struct model *m)
{
	if (!m->has_top && model_selection(m)) {
		top_build(&m->top, m->p, &m->selection, false, TOP_BY_SELF);
		m->has_top = true;
	}
	return m->has_top ? &m->top : NULL;
}

const struct account *model_account(struct model *m)
{
	if (!m->has_account && !m->no_account) {
		m->has_account = account_make(&m->account, m->p, &m->options, m->causes);
		m->no_account = !m->has_account;
	}
	return m->has_account ? &m->account : NULL;
}

const struct waits *model_waits_detailed(struct model *m, size_t detailed)
{
	if (m->has_waits && m->waits_detailed < detailed) {
		waits_done(&m->waits);
		m->has_waits = false;
	}
	if (!m->has_waits && select_has_waits(m->p)) {
		waits_make(&m->waits, m->p, &m->options, detailed);
		m->waits_detailed = detailed;
		m->has_waits = true;
	}
	return m->has_waits ? &m->waits : NULL;
}

const struct waits *model_waits(struct model *m)
{
	return model_waits_detailed(m, 0);
}

const struct io_figures *model_io(struct model *m)
{
	if (!m->has_io && !m->no_io) {
		m->has_io = io_measure(&m->io, m->p, &m->options);
		m->no_io = !m->has_io;
	}
	return m->has_io ? &m->io : NULL;
}

const struct blocks *model_blocks(struct model *m)
{
	if (!m->has_blocks && !m->no_blocks) {
		m->has_blocks = !blocks_make(&m->blocks, m->p, m->causes, NULL, NULL, NULL);
		m->no_blocks = !m->has_blocks;
	}
	return m->has_blocks ? &m->blocks : NULL;
}

const struct tasks *model_tasks(struct model *m)
{
	if (!m->has_tasks && !m->no_tasks) {
		m->has_tasks = tasks_make(&m->tasks, m->p, &m->options, m->live ? TASKS_WINDOW : 0);
		m->no_tasks = !m->has_tasks;
	}
	return m->has_tasks ? &m->tasks : NULL;
}

const char *model_what(const struct model *m)
{
	if (m->options.event == SELECT_WALL)
		return "wall";
	return m->options.event < m->p->events.n ? profile_str(m->p, m->p->events.v[m->options.event].name)
						 : "";
}

const char *model_next_what(const struct model *m, int step)
{
	size_t n = m->p->events.n + select_has_waits(m->p);
	size_t at = m->options.event == SELECT_WALL ? n - 1 : m->options.event;

	if (!n)
		return NULL;
	at = (at + n + step) % n;
	return at < m->p->events.n ? profile_str(m->p, m->p->events.v[at].name) : "wall";
}
