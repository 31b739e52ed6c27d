#include "fleet/sink/sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "fleet/sink/sinktypes.h"

const struct sink_type *const sink_types[] = {
	&sink_clickhouse,
	&sink_otlp,
	&sink_pyroscope,
	&sink_prometheus,
	&sink_files,
	&sink_s3,
	NULL,
};

struct sink {
	const struct sink_type *type;
	void *state;
	char *name;
};

/* Is the address of this kind? "otlp+http" is a scheme only where "://" follows. */
static bool has_scheme(const struct sink_type *t, const char *url)
{
	for (size_t i = 0; i < ARRAY_LEN(t->schemes) && t->schemes[i]; i++)
		if (str_starts(url, t->schemes[i]) && str_starts(url + strlen(t->schemes[i]), "://"))
			return true;
	return false;
}

/* An option that would be ignored is a mistake of whoever gave it. */
static int check_options(const struct sink_type *t, const struct sink_options *o, struct err *err)
{
	const struct {
		bool given;
		enum sink_takes takes;
		const char *name;
	} all[] = {
		{ o->token, SINK_TOKEN, "token" },
		{ o->user || o->password, SINK_USER, "user or password" },
		{ o->tenant, SINK_TENANT, "tenant" },
		{ o->ca_file, SINK_CA, "ca file" },
		{ o->region, SINK_REGION, "region" },
		{ o->keep_bytes || o->keep_ns, SINK_KEEP, "limit of what is kept" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].given && !(t->takes & all[i].takes))
			return err_set(err, EINVAL, "a sink of %s:// takes no %s: leave it out", t->schemes[0], all[i].name);
	return 0;
}

/* The schemes of all kinds, for the sentence. */
static int no_scheme(struct err *err)
{
	char list[256] = "";

	for (size_t i = 0; sink_types[i]; i++) {
		size_t n = strlen(list);

		snprintf(list + n, sizeof(list) - n, "%s%s://", i ? ", " : "", sink_types[i]->schemes[0]);
	}
	return err_set(err, EINVAL, "its address has to begin with one of %s", list);
}

int sink_open(const struct sink_options *o, struct sink **ret, struct err *err)
{
	const struct sink_type *type = NULL;
	struct sink *s;
	int r;

	for (size_t i = 0; sink_types[i] && !type; i++)
		if (has_scheme(sink_types[i], o->url ? o->url : ""))
			type = sink_types[i];
	r = type ? check_options(type, o, err) : no_scheme(err);
	if (!r) {
		s = mem_alloc(sizeof(*s));
		s->type = type;
		s->name = mem_strdup(o->name ? o->name : type->schemes[0]);
		r = type->open(o, &s->state, err);
		if (!r) {
			*ret = s;
			return 0;
		}
		sink_close(s);
	}
	if (err)
		err_prefix(err, "sink %s", o->name ? o->name : "without a name");
	return r;
}

void sink_close(struct sink *s)
{
	if (!s)
		return;
	s->type->close(s->state);
	free(s->name);
	free(s);
}

const char *sink_name(const struct sink *s)
{
	return s->name;
}

static int named(const struct sink *s, int r, const struct err *own, struct err *err)
{
	if (r < 0 && err) {
		*err = *own;
		err_prefix(err, "sink %s", s->name);
	}
	return r;
}

int sink_send(struct sink *s, const struct sink_window *w, struct err *err)
{
	struct err own = { 0 };

	return named(s, s->type->send(s->state, w, &own), &own, err);
}

bool sink_has_batches(const struct sink *s)
{
	return s->type->add;
}

int sink_add(struct sink *s, const struct sink_window *w, struct err *err)
{
	struct err own = { 0 };

	return named(s, s->type->add(s->state, w, &own), &own, err);
}

int sink_flush(struct sink *s, struct err *err)
{
	struct err own = { 0 };

	return named(s, s->type->flush(s->state, &own), &own, err);
}
