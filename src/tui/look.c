#include "tui/look.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/quality.h"
#include "base/buf.h"
#include "export/export.h"
#include "profile/profile.h"
#include "tui/table.h"
#include "tui/detail/tree.h"

void look_init(struct look *l, const struct source *source, const struct scope *scope, uint64_t window_ns)
{
	*l = (struct look){
		.source = source, .scope = *scope, .window_ns = window_ns, .since_start = !source->live
	};
	l->asked = mem_strdup(scope->what);
	model_init(&l->model);
	l->model.live = source->live;
	patterns_init(&l->patterns);
	patterns_add_builtin(&l->patterns);
}

void look_done(struct look *l)
{
	model_done(&l->model);
	if (l->causes.p)
		causes_done(&l->causes);
	patterns_done(&l->patterns);
	scope_done(&l->scope);
	free(l->asked);
}

void look_again(struct look *l)
{
	causes_grow(&l->causes);
	if (model_look(&l->model, l->p, &l->causes, &l->scope) < 0) {
		scope_set(&l->scope.what, NULL);
		model_look(&l->model, l->p, &l->causes, &l->scope);
	}
}

void look_refresh(struct look *l)
{
	bool hold = l->paused && l->p;

	l->p = l->source->refresh(l->source->context, l->since_start ? 0 : l->window_ns, hold, &l->changes);
	/* The display is frozen, and with it its data. */
	if (hold)
		return;
	/* Causes computed from names that were unknown then are computed again. */
	if (l->causes.p && (l->changes || l->causes.p != l->p))
		causes_done(&l->causes);
	l->changes = 0;
	if (!l->causes.p)
		causes_init(&l->causes, l->p, &l->patterns);
	if (l->source->memory)
		l->source->memory(l->source->context, &l->model);
	look_again(l);
}

int look_begin(struct look *l, struct err *err)
{
	uint32_t event;
	int r;

	look_refresh(l);
	/* The refresh ignored the unknown event; the user who typed it is told here. */
	r = l->asked ? select_event(l->p, l->asked, &event, err) : 0;
	if (!r && !model_selection(&l->model) && l->model.err.code == EINVAL)
		r = err_set(err, EINVAL, "%s", l->model.err.text);
	return r;
}

int look_picture(struct look *l, char **ret_paths, struct err *err)
{
	static const char *const formats[] = { "svg", "html" };
	const struct selection *s = model_selection(&l->model);
	struct look_file files[ARRAY_LEN(formats)] = { 0 };
	_cleanup_free_ char *stem = NULL;
	struct quality quality = { 0 };
	struct export_job job = { .profile = l->p, .selection = s, .quality = &quality,
				  .options = { .group = CALLTREE_BY_NAME } };
	int r = 0;

	if (!s || !s->all.samples)
		return err_set(err, ENODATA, "there is nothing to draw here");
	quality_measure(&quality, l->p, s);
	for (size_t i = 0; !r && i < ARRAY_LEN(formats); i++) {
		const struct export_format *f = export_find(formats[i]);

		files[i].extension = f->extension;
		r = f->write(&job, &files[i].data, err);
	}
	if (!r)
		r = l->source->write(l->source->context, model_what(&l->model), files, ARRAY_LEN(files), &stem, err);
	/* There are 80 columns. */
	if (!r)
		*ret_paths = mem_printf("%s%s and %s", stem, files[0].extension, files[1].extension);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		buf_done(&files[i].data);
	quality_done(&quality);
	return r;
}

void look_fill(struct look *l, struct table *t, enum page page, unsigned variant, struct tree *tree)
{
	const struct top *top;

	page_fill(t, page, &l->model, variant);
	if (page != PAGE_TREE)
		return;
	top = model_top(&l->model);
	if (top) {
		t->unit = l->model.selection.unit;
		tree_fill(tree, &top->tree, top->all.value, t);
	}
	t->fixed = true;
	if (!t->rows.n)
		snprintf(t->empty, sizeof(t->empty), "Nothing here yet.");
}
