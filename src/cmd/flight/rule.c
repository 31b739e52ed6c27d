#include "cmd/flight/rule.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"

enum value { VALUE_TIME, VALUE_PERCENT, VALUE_PERCENT_OR_SIZE };

/* What a rule begins with, without spaces, and what follows. */
static const struct form {
	const char *begins, *example, *needs;
	enum value value;
} forms[RULE_KINDS] = {
	[RULE_BLOCK] = { "block>", "block > 500ms", NULL, VALUE_TIME },
	[RULE_NO_BLOCK] = { "noblockfor", "no block for 30s", NULL, VALUE_TIME },
	[RULE_RSS] = { "rss>", "rss > 90% (of the limit) or rss > 8G", "mem", VALUE_PERCENT_OR_SIZE },
	[RULE_QUEUE] = { "queue>", "queue > 50%", "wait", VALUE_PERCENT },
	[RULE_CPU] = { "cpu>", "cpu > 350% (of one CPU)", "cpu", VALUE_PERCENT },
};

const char *rule_needs(enum rule_kind kind)
{
	return forms[kind].needs;
}

static char *without_spaces(const char *s)
{
	char *copy = mem_strdup(s), *to = copy;

	for (; *s; s++)
		if (!isspace((unsigned char)*s))
			*to++ = *s;
	*to = 0;
	return copy;
}

static int fail(const char *text, struct err *err)
{
	_cleanup_(buf_done) struct buf list = { 0 };

	for (size_t i = 0; i < RULE_KINDS; i++)
		buf_printf(&list, "%s%s", i ? "; " : "", forms[i].example);
	return err_set(err, EINVAL, "\"%s\" is no rule. There are: %s", text, list.data);
}

/* "30s", and of the others "90%" with its sign: "rss > 90" may be meant as either. */
static int parse_value(struct rule *r, enum value value, const char *s)
{
	if (value == VALUE_TIME)
		return str_parse_duration(s, &r->ns) || !r->ns ? -EINVAL : 0;
	if (str_ends(s, "%")) { /* of several CPUs it may be more than 100 */
		_cleanup_free_ char *number = mem_strndup(s, strlen(s) - 1);

		return str_parse_number(number, &r->percent) || !(r->percent > 0) ? -EINVAL : 0;
	}
	if (value == VALUE_PERCENT || !*s || isdigit((unsigned char)s[strlen(s) - 1]))
		return -EINVAL;
	return str_parse_size(s, &r->bytes) || !r->bytes ? -EINVAL : 0;
}

int rules_add(struct rules *r, const char *text, struct err *err)
{
	static const char *const wanted[] = { [VALUE_TIME] = "a time, 500ms or 30s", [VALUE_PERCENT] = "a percentage, 50%",
					      [VALUE_PERCENT_OR_SIZE] = "a percentage or a size, 90% or 8G" };
	_cleanup_free_ char *packed = without_spaces(text);

	for (size_t i = 0; i < RULE_KINDS; i++) {
		struct rule x = { .kind = i };

		if (strncasecmp(packed, forms[i].begins, strlen(forms[i].begins)))
			continue;
		if (parse_value(&x, forms[i].value, packed + strlen(forms[i].begins)))
			return err_set(err, EINVAL, "the rule \"%s\" needs %s: %s", text, wanted[forms[i].value], forms[i].example);
		x.text = mem_strdup(text);
		vec_push(&r->list, x);
		return 0;
	}
	return fail(text, err);
}

void rules_done(struct rules *r)
{
	vec_done_each(&r->list, e, free(e->text));
}

bool rules_have(const struct rules *r, enum rule_kind kind)
{
	for (size_t i = 0; i < r->list.n; i++)
		if (r->list.v[i].kind == kind)
			return true;
	return false;
}

/* --- is it so? --- */

static char *rss_reason(const struct rule *r, const struct rule_facts *f)
{
	char is[32], limit[32];

	if (r->bytes)
		return mem_printf("RSS is %s, over %s", str_bytes(is, f->rss_bytes), str_bytes(limit, r->bytes));
	return mem_printf("RSS is %s, %.0f %% of %s", str_bytes(is, f->rss_bytes), str_percent(f->rss_bytes, f->limit_bytes),
			  str_bytes(limit, f->limit_bytes));
}

/* The reason, which the caller frees; NULL: it is false, or not known. */
static char *holds(const struct rule *r, const struct rule_facts *f)
{
	char text[32];

	switch (r->kind) {
	case RULE_BLOCK:
		return f->block_ns > r->ns ? mem_printf("%s took %s", f->block_name, str_duration(text, f->block_ns)) : NULL;
	case RULE_NO_BLOCK:
		return f->now_ns - MIN(f->now_ns, f->last_block_ns) > r->ns ?
			       mem_printf("no block for %s", str_duration(text, f->now_ns - f->last_block_ns)) : NULL;
	case RULE_RSS:
		if (!f->memory_known || (r->bytes ? f->rss_bytes <= r->bytes :
				!f->limit_bytes || str_percent(f->rss_bytes, f->limit_bytes) <= r->percent))
			return NULL;
		return rss_reason(r, f);
	case RULE_QUEUE:
		return f->queue_known && f->queue_percent > r->percent ?
			       mem_printf("threads waited for a CPU in %.0f %% of their time", f->queue_percent) : NULL;
	case RULE_CPU:
		return f->cpu_known && f->cpu_percent > r->percent ? mem_printf("CPU time is %.0f %% of a CPU", f->cpu_percent) : NULL;
	case RULE_KINDS:
		break;
	}
	return NULL;
}

const struct rule *rules_look(struct rules *r, const struct rule_facts *f, char **ret_reason)
{
	const struct rule *first = NULL;

	for (size_t i = 0; i < r->list.n; i++) {
		struct rule *x = &r->list.v[i];
		_cleanup_free_ char *reason = holds(x, f);

		if (!reason) {
			x->was_false = true;
			continue;
		}
		if (f->now_ns < r->quiet_until_ns || first || (x->fired && !x->was_false))
			continue;
		x->fired = true;
		x->was_false = false;
		first = x;
		*ret_reason = reason;
		reason = NULL;
	}
	if (first)
		r->quiet_until_ns = f->now_ns + r->pause_ns;
	return first;
}
