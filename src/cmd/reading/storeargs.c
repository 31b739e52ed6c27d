#include "cmd/reading/storeargs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/str.h"
#include "cmd/reading/input.h"
#include "fleet/storeurl.h"

/* For as long as the program runs. */
struct operands {
	VEC(char *) list; /* NULL-terminated */
	VEC(char *) made; /* those of them that are ours */
};

/* Options of which each means a store. */
static const char *const about_stores[] = { "target", "release", "base-target", "base-release", "base-from", "base-to" };

void store_choice_done(struct store_choice *c)
{
	vec_done(&c->labels.list);
}

static const char *text_of(const struct option_spec *options, const char *name)
{
	const struct option_spec *o = options_find(options, name);

	if (o && o->type == OPTION_MOMENT)
		return ((const struct option_moment *)o->value)->text;
	return o && o->type == OPTION_STRING ? *(const char **)o->value : NULL;
}

/* --- the address --- */

/* A command that takes a file knows a store by its scheme, of which http is none. */
static void put_store(struct buf *b, const char *store)
{
	static const struct {
		const char *http, *own;
	} schemes[] = { { "http://", "clickhouse://" }, { "https://", "clickhouses://" } };

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (str_starts(store, schemes[i].http)) {
			buf_puts(b, schemes[i].own);
			store += strlen(schemes[i].http);
			break;
		}
	buf_puts(b, store);
}

char *storeargs_address(const char *store, const struct storeargs_place *p)
{
	struct buf b = { 0 };

	put_store(&b, store);
	if (p->target)
		storeurl_add(&b, !p->exact && strpbrk(p->target, "*?") ? "targets" : "target", p->target);
	if (p->release)
		storeurl_add(&b, "release", p->release);
	for (const char *const *label = p->labels; label && *label; label++)
		storeurl_add(&b, "label", *label);
	if (p->from)
		storeurl_add(&b, "from", p->from);
	if (p->to)
		storeurl_add(&b, "to", p->to);
	return b.data;
}

/* --- what is on the command line --- */

static bool is_given(const struct option_spec *options)
{
	const struct option_spec *labels = options_find(options, "label");

	for (size_t i = 0; i < ARRAY_LEN(about_stores); i++)
		if (text_of(options, about_stores[i]))
			return true;
	return labels && labels->type == OPTION_LIST && ((const struct option_list *)labels->value)->list.n;
}

/* Of a command without a store: options that are about one, and times that are none of a recording. */
static int check_without(const struct option_spec *options, struct err *err)
{
	if (is_given(options))
		return err_set(err, EINVAL, "--target, --release, --label and --base-... are of a store: name it with --store "
			       "clickhouse://HOST:8123/DATABASE, or in GASFLAME_STORE");
	for (const struct option_spec *o = options; o->name; o++) {
		const struct option_moment *m = o->value;
		uint64_t ns;

		if (o->type == OPTION_MOMENT && m->text && str_parse_duration(m->text, &ns))
			return err_set(err, EINVAL, "--%s wants a time of the recording like 0.5, 30s, 2m or 7d, not %.80s; times of the calendar are of "
				       "a --store", o->name, m->text);
		if (o->type == OPTION_STRING && (!strcmp(o->name, "from") || !strcmp(o->name, "to")) && *(const char **)o->value)
			return err_set(err, EINVAL, "--%s is a time of a store: name it with --store, and a --target", o->name);
	}
	return 0;
}

static struct storeargs_place place_of(const struct option_spec *options)
{
	const struct option_spec *labels = options_find(options, "label");

	return (struct storeargs_place){ .target = text_of(options, "target"), .release = text_of(options, "release"),
					 .from = text_of(options, "from"), .to = text_of(options, "to"),
					 .labels = labels ? ((const struct option_list *)labels->value)->list.v : NULL };
}

static bool has_base(const struct option_spec *options)
{
	return text_of(options, "base-target") || text_of(options, "base-release") || text_of(options, "base-from") ||
	       text_of(options, "base-to");
}

static struct storeargs_place base_of(const struct option_spec *options, const struct storeargs_place *p)
{
	struct storeargs_place base = *p;
	const char *from = text_of(options, "base-from"), *to = text_of(options, "base-to");

	base.target = text_of(options, "base-target") ?: p->target;
	base.release = text_of(options, "base-release") ?: p->release;
	base.from = from ?: p->from;
	/* "The hour before this one": what begins earlier ends where the other begins. */
	base.to = to ?: from && p->from ? p->from : p->to;
	return base;
}

/* A mistake is told by its option, not as a part of an address that nobody typed. */
static int check_times(const struct option_spec *options, struct err *err)
{
	static const char *const names[] = { "from", "to", "base-from", "base-to" };
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *text = text_of(options, names[i]);

		if (text && storeurl_time(text, clock_wall_ns(), &ns, err))
			return err_prefix(err, "--%s", names[i]);
	}
	return 0;
}

static int check_address(const char *address, struct err *err)
{
	struct storeurl u;
	int r = storeurl_parse(address, clock_wall_ns(), &u, err);

	storeurl_done(&u);
	return r;
}

/* Adds the address of a place, if it is one. */
static int add_address(struct operands *o, const char *store, const struct storeargs_place *place, struct err *err)
{
	char *address = storeargs_address(store, place);

	vec_push(&o->made, address);
	vec_push(&o->list, address);
	return check_address(address, err);
}

int storeargs_complete(const struct command *c, const struct option_spec *options, struct command_operands *operands, struct err *err)
{
	static struct operands all;
	const char *given = text_of(options, "store"), *store = NULL;
	struct storeargs_place place = place_of(options), base;
	bool is_diff = options_find(options, "base-target");
	int r;

	/* One that asks a server by itself has a --store of its own. */
	if (c->connects || !options_find(options, "store"))
		return 0;
	all.list.n = 0;
	/* It may be hidden already. */
	store = given ? input_address(given) : is_given(options) ? getenv("GASFLAME_STORE") : NULL;
	if (!store || !*store)
		return check_without(options, err);
	r = check_times(options, err);
	/* A file is what was before. */
	for (int i = 0; !r && is_diff && i < operands->n; i++)
		vec_push(&all.list, operands->v[i]);
	if (!r && has_base(options)) {
		base = base_of(options, &place);
		r = add_address(&all, store, &base, err);
	}
	if (!r)
		r = add_address(&all, store, &place, err);
	for (int i = 0; !r && !is_diff && i < operands->n; i++)
		vec_push(&all.list, operands->v[i]);
	for (const struct option_spec *o = options; o->name; o++)
		if (o->type == OPTION_MOMENT)
			((struct option_moment *)o->value)->ns = 0;
	if (given)
		storeurl_hide((char *)given);
	if (r)
		return r;
	if (is_diff && all.list.n != 2)
		return err_set(err, EINVAL, "diff --store compares two: say the other one with --base-from, --base-target or --base-release, or as a "
			       "file");
	vec_push(&all.list, NULL);
	*operands = (struct command_operands){ all.list.v, all.list.n - 1 };
	return 0;
}
