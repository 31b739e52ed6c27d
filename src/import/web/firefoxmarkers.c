#include "import/web/firefoxmarkers.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "import/web/firefoxtables.h"
#include "import/web/webprofile.h"
#include "profile/profile.h"

/* What a marker says of a block. */
static void read_block(struct jsontext *c, struct block *block)
{
	for (jsontext_object(c); jsontext_member(c);) {
		uint32_t what = jsontext_is(c, "number") ? BLOCK_NUMBER : jsontext_is(c, "gas") ? BLOCK_GAS : jsontext_is(c, "transactions") ? BLOCK_TRANSACTIONS : 0;
		struct jsontext_number n = jsontext_number(c, 0);

		if (!what || !n.there || n.negative || n.huge)
			continue;
		*(what == BLOCK_NUMBER ? &block->number : what == BLOCK_GAS ? &block->gas : &block->transactions) = n.value;
		block->known |= what;
	}
}

static void add_block(struct webprofile *w, const char *name, uint64_t start_ns, uint64_t end_ns, struct jsontext *data)
{
	struct profile *p = w->p;
	struct profile_mark m = { start_ns, end_ns, profile_string(p, name), profile_string(p, "block"), PROFILE_NONE };
	char *end;

	m.block.number = strtoull(name + strlen("block "), &end, 10);
	if (!*end && end > name + strlen("block "))
		m.block.known = BLOCK_NUMBER;
	if (data && jsontext_kind(data) == '{') {
		struct jsontext again = *data;

		read_block(&again, &m.block);
	}
	profile_add_mark(p, &m);
}

struct fx_markers {
	struct jsontext_place name, start, end, phase, data;
};

static void find_marker_columns(struct jsontext *c, struct fx_markers *m)
{
	for (jsontext_object(c); jsontext_member(c);) {
		struct jsontext_place *place = jsontext_is(c, "name")        ? &m->name
					       : jsontext_is(c, "startTime") ? &m->start
					       : jsontext_is(c, "endTime")   ? &m->end
					       : jsontext_is(c, "phase")     ? &m->phase
					       : jsontext_is(c, "data")      ? &m->data
									     : NULL;

		if (!place || jsontext_kind(c) != '[') {
			jsontext_skip(c);
			continue;
		}
		*place = jsontext_keep(c);
		jsontext_list(&place->at);
	}
}

static struct jsontext_number next_of(struct jsontext_place *list)
{
	return jsontext_beside(list) ? jsontext_number(&list->at, 6) : (struct jsontext_number){ 0 };
}

void fxmarkers_read(struct webprofile *w, struct jsontext_place *markers, const struct fxtables *strings)
{
	struct fx_markers m = { 0 };

	if (!markers->there || jsontext_kind(&markers->at) != '{')
		return;
	find_marker_columns(&markers->at, &m);
	while (jsontext_beside(&m.name)) {
		int32_t i = jsontext_int(&m.name.at);
		const char *name = i >= 0 && (size_t)i < strings->strings.n ? profile_str(w->p, strings->strings.v[i]) : "";
		struct jsontext_number start = next_of(&m.start), end = next_of(&m.end);
		int32_t phase = jsontext_beside(&m.phase) ? jsontext_int(&m.phase.at) : -1;
		bool data = jsontext_beside(&m.data), good = start.there && end.there && !end.negative && !end.huge && end.value <= INT64_MAX;

		if (start.negative)
			start.value = 0;
		if (str_starts(name, "block ") && phase == 1 && good && start.value <= end.value)
			add_block(w, name, start.value, end.value, data ? &m.data.at : NULL);
		else
			w->left_out++;
		if (data)
			jsontext_skip(&m.data.at);
	}
}
