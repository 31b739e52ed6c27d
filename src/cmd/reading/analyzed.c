#include "cmd/reading/analyzed.h"
#include "analyze/tree/threadrole.h"

#include <errno.h>
#include <stdlib.h>

#include "capture/capture.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/input.h"
#include "cmd/reading/subsystemio.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum { WAITS_DETAILED = 10 };

void analyzed_free(struct analyzed *l)
{
	if (!l)
		return;
	if (l->job.waits)
		waits_done(&l->waits);
	verdict_done(&l->verdict);
	account_done(&l->account);
	quality_done(&l->quality);
	selection_done(&l->selection);
	causes_done(&l->causes);
	patterns_done(&l->patterns);
	classifier_done(&l->subsystems);
	subsystems_done(&l->table);
	capture_parts_close(l->parts);
	profile_free(l->profile);
	free(l);
}

static int read_profile(char *path, const struct analyzed_options *o, struct analyzed *l, struct err *err)
{
	int r = -ENOTSUP;

	if (o->coarse)
		return capture_read_coarse(path, o->coarse, &l->profile, err);
	if (o->parts && input_is_capture(path) && !input_is_store(path))
		r = capture_parts_open(path, &l->parts, &l->profile, err);
	if (r != -ENOTSUP)
		return r;
	if (o->span)
		return captureio_read_span(&path, 1, o->span, &l->profile, err);
	return (o->blocks ? captureio_read_blocks : o->sums ? captureio_read_sums : captureio_read)(&path, 1, &l->profile, err);
}

int analyzed_read(const char *path, const struct analyzed_options *o, struct analyzed **ret, struct err *err)
{
	const struct symbolize_options names = { .paths = o->symbols.list.v, .debuginfod = o->debuginfod,
						 .no_cache = o->no_cache };
	struct analyzed *l = mem_alloc(sizeof(*l));
	int r = captureio_read_patterns(&o->patterns, &l->patterns, err);

	if (!r)
		r = subsystemio_read(&o->subsystems, &l->table, err);
	if (!r)
		r = read_profile((char *)path, o, l, err);
	if (!r && !o->coarse)
		r = captureio_find_names(&names, l->profile, err);
	if (r) {
		analyzed_free(l);
		return r;
	}
	threadrole_tell_apart(l->profile);
	causes_init(&l->causes, l->profile, &l->patterns);
	classifier_init(&l->subsystems, l->profile, &l->table);
	*ret = l;
	return 0;
}

int analyzed_outline(struct analyzed *l, struct err *err)
{
	struct select_options select = { .causes = &l->causes };
	int r = select_event(l->profile, NULL, &select.event, err);

	if (!r)
		r = selection_make(l->profile, &select, &l->selection, err);
	if (r)
		return r;
	quality_measure(&l->quality, l->profile, &l->selection);
	l->job = (struct export_job){ l->profile, &l->selection, &l->quality, .subsystems = &l->subsystems };
	return 0;
}

int analyzed_judge(struct analyzed *l, struct err *err)
{
	struct select_options select = { .causes = &l->causes };
	int r = analyzed_outline(l, err);

	if (r)
		return r;
	select.event = l->selection.options.event;
	if (account_make(&l->account, l->profile, &select, &l->causes)) {
		waits_make(&l->waits, l->profile, &select, WAITS_DETAILED);
		verdict_make(&l->verdict, l->profile, &l->account, &l->waits, &select);
		l->job.account = &l->account;
		l->job.waits = &l->waits;
	} else {
		verdict_make_without_waits(&l->verdict, l->profile, &select);
	}
	l->job.verdict = &l->verdict;
	return 0;
}

int analyzed_load(const char *path, const struct analyzed_options *o, struct analyzed **ret, struct err *err)
{
	int r = analyzed_read(path, o, ret, err);

	if (!r)
		r = analyzed_judge(*ret, err);
	if (r) {
		analyzed_free(*ret);
		*ret = NULL;
	}
	return r;
}
