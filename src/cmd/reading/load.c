#include "cmd/reading/load.h"

#include <stdlib.h>

#include "cmd/reading/files.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum { WAITS_DETAILED = 10 };

void load_free(struct load *l)
{
	if (!l)
		return;
	if (l->job.waits) {
		verdict_done(&l->verdict);
		waits_done(&l->waits);
	}
	account_done(&l->account);
	quality_done(&l->quality);
	selection_done(&l->selection);
	causes_done(&l->causes);
	patterns_done(&l->patterns);
	profile_free(l->profile);
	free(l);
}

int load_read(const char *path, const struct load_options *o, struct load **ret, struct err *err)
{
	const struct symbolize_options names = { .paths = o->symbols.list.v, .debuginfod = o->debuginfod,
						 .no_cache = o->no_cache };
	struct load *l = mem_alloc(sizeof(*l));
	char *paths[] = { (char *)path };
	int r = files_read_patterns(&o->patterns, &l->patterns, err);

	if (!r)
		r = files_read(paths, 1, &l->profile, err);
	if (!r)
		r = files_find_names(&names, l->profile, err);
	if (r) {
		load_free(l);
		return r;
	}
	causes_init(&l->causes, l->profile, &l->patterns);
	*ret = l;
	return 0;
}

int load_judge(struct load *l, struct err *err)
{
	struct select_options select = { .causes = &l->causes };
	int r = select_event(l->profile, NULL, &select.event, err);

	if (!r)
		r = selection_make(l->profile, &select, &l->selection, err);
	if (r)
		return r;
	quality_measure(&l->quality, l->profile, &l->selection);
	l->job = (struct export_job){ l->profile, &l->selection, &l->quality };
	if (account_make(&l->account, l->profile, &select, &l->causes)) {
		waits_make(&l->waits, l->profile, &select, WAITS_DETAILED);
		verdict_make(&l->verdict, l->profile, &l->account, &l->waits, &select);
		l->job.account = &l->account;
		l->job.waits = &l->waits;
		l->job.verdict = &l->verdict;
	}
	return 0;
}

int load_capture(const char *path, const struct load_options *o, struct load **ret, struct err *err)
{
	int r = load_read(path, o, ret, err);

	if (!r)
		r = load_judge(*ret, err);
	if (r) {
		load_free(*ret);
		*ret = NULL;
	}
	return r;
}
