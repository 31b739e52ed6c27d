#include "collect/event/eventset.h"

#include <errno.h>
#include <fnmatch.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "target/trace/eventspec.h"
#include "target/trace/tracefs.h"

/*
 * Tracepoints that fire in an interrupt or in a thread of the kernel, whoever caused
 * them: which thread is there at that moment says nothing. They are
 * counted for the whole machine.
 */
static const char *const everywhere[] = {
	"block:block_rq_complete", "block:block_rq_error", "block:block_bio_complete", "irq:*", "irq_vectors:*",
	"napi:*", "nvme:nvme_complete_rq", "scsi:scsi_dispatch_cmd_done", "timer:*expire*", "vmscan:*kswapd*",
	"workqueue:workqueue_execute_*", "writeback:writeback_exec", "writeback:writeback_start",
	"net:netif_receive_skb", "net:napi_*",
};

static enum shared_everywhere is_everywhere(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(everywhere); i++)
		if (!fnmatch(everywhere[i], name, 0))
			return EVERYWHERE;
	return strcmp(name, "oom:mark_victim") ? NOT_EVERYWHERE : SOMETIMES_EVERYWHERE;
}

const char *eventset_note(uint32_t note)
{
	static const char *const futex[] = {
		"FUTEX_WAIT", "FUTEX_WAKE", "FUTEX_FD", "FUTEX_REQUEUE", "FUTEX_CMP_REQUEUE", "FUTEX_WAKE_OP",
		"FUTEX_LOCK_PI", "FUTEX_UNLOCK_PI", "FUTEX_TRYLOCK_PI", "FUTEX_WAIT_BITSET", "FUTEX_WAKE_BITSET",
		"FUTEX_WAIT_REQUEUE_PI", "FUTEX_CMP_REQUEUE_PI", "FUTEX_LOCK_PI2",
	};

	return note < ARRAY_LEN(futex) ? futex[note] : "FUTEX_?";
}

struct eventset *eventset_new(void)
{
	return mem_alloc(sizeof(struct eventset));
}

void eventset_free(struct eventset *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->sources.n; i++)
		free(set->sources.v[i].name);
	for (size_t i = 0; i < set->uses.n; i++) {
		free(set->uses.v[i].name);
		free(set->uses.v[i].describe);
	}
	vec_done(&set->sources);
	vec_done(&set->uses);
	free(set);
}

bool eventset_is_event(const char *word)
{
	struct eventspec e;
	bool is = eventspec_parse(word, &e, NULL) >= 0;

	eventspec_done(&e);
	return is || strchr(word, ':');
}

/* --- adding --- */

static int find_source(struct eventset *set, const char *name, uint32_t *ret, struct err *err)
{
	for (*ret = 0; *ret < set->sources.n; ++*ret)
		if (!strcmp(set->sources.v[*ret].name, name))
			return 0;
	if (set->sources.n >= SHARED_MAX_EVENTS)
		return err_set(err, E2BIG, "more than %d events at once", SHARED_MAX_EVENTS);
	vec_push(&set->sources, (struct eventset_source){ .name = mem_strdup(name) });
	return 0;
}

/* Twice the same is once. */
static bool has_use(const struct eventset *set, const char *name)
{
	for (size_t i = 0; i < set->uses.n; i++)
		if (!strcmp(set->uses.v[i].name, name))
			return true;
	return false;
}

static int add_use(struct eventset *set, uint32_t source, struct eventset_use use,
		   struct shared_event_use how, struct err *err)
{
	struct shared_event *shared = &set->sources.v[source].shared;
	int r = 0;

	if (shared->use_count >= SHARED_EVENT_USES)
		r = err_set(err, E2BIG, "%s is asked for in more than %d ways", set->sources.v[source].name,
			    SHARED_EVENT_USES);
	else if (set->uses.n >= SHARED_MAX_EVENTS)
		r = err_set(err, E2BIG, "more than %d events at once", SHARED_MAX_EVENTS);
	if (r < 0) {
		free(use.name);
		free(use.describe);
		return r;
	}
	use.source = source;
	how.event = set->uses.n;
	shared->uses[shared->use_count++] = how;
	vec_push(&set->uses, use);
	return 0;
}

/* Returns the unit of a field, by its name; the kernel does not tell. */
static const char *unit_of(const char *point, const char *field)
{
	bool transfer = strstr(point, "read") || strstr(point, "write") || strstr(point, "send") ||
			strstr(point, "recv") || strstr(point, "copy_file");

	if (strstr(field, "bytes") || !strcmp(field, "len") || !strcmp(field, "size") ||
	    (transfer && (!strcmp(field, "count") || !strcmp(field, "ret"))))
		return "bytes";
	if (!strcmp(field, "delay") || !strcmp(field, "runtime"))
		return "ns";
	return "count";
}

static int no_such_field(const struct tracefs_format *f, const char *name, const char *field, struct err *err)
{
	const struct tracefs_field *found = tracefs_find_field(f, field);
	_cleanup_(buf_done) struct buf list = { 0 };
	int r;

	for (size_t i = 0; i < f->fields.n; i++)
		if (f->fields.v[i].integer)
			buf_printf(&list, "%s%s", list.n ? ", " : "", f->fields.v[i].name);
	if (found)
		r = err_set(err, EINVAL, "field '%s' of %s (%s) is not a number that can be summed; these are: %s",
			    field, name, found->type, list.n ? list.data : "none");
	else
		r = err_set(err, EINVAL, "%s has no field '%s'; it has: %s", name, field,
			    list.n ? list.data : "none");
	return r;
}

static void set_note(struct eventset_source *source, const struct tracefs_format *f)
{
	const struct tracefs_field *op;

	/* Waits and wakes are one system call: only the second argument tells them apart. */
	if (strcmp(source->name, "syscalls:sys_enter_futex"))
		return;
	op = tracefs_find_field(f, "op");
	if (op && op->integer) {
		source->shared.note_offset = op->offset;
		source->shared.note_size = op->size;
	}
}

static int add_format(struct eventset *set, const struct eventspec *e, const struct tracefs_format *f,
		      struct err *err)
{
	const struct tracefs_field *field = e->field ? tracefs_find_field(f, e->field) : NULL;
	struct eventset_use use = { .unit = e->field ? unit_of(e->point, e->field) : "count" };
	struct shared_event_use how = { 0 };
	struct eventset_source *source;
	uint32_t at;
	int r;

	if (e->field && (!field || !field->integer))
		return no_such_field(f, e->name, e->field, err);
	r = find_source(set, e->name, &at, err);
	if (r < 0)
		return r;
	source = &set->sources.v[at];
	source->type = PERF_TYPE_TRACEPOINT;
	source->config = f->id;
	source->shared.everywhere = is_everywhere(e->name);
	set_note(source, f);
	use.name = e->field ? mem_printf("%s/%s", e->name, e->field) : mem_strdup(e->name);
	if (has_use(set, use.name)) {
		free(use.name);
		return 0;
	}
	use.describe = mem_printf("tracepoint, %s%s%s", e->field ? "the sum of its field " : "counted",
				  e->field ? e->field : "",
				  source->shared.everywhere ? ", of the whole machine" : "");
	if (field)
		how = (struct shared_event_use){ .offset = field->offset, .size = field->size,
						 .is_signed = field->is_signed };
	return add_use(set, at, use, how, err);
}

/* A setup that can be helped is an error, a kernel that lacks something is not. */
static int add_tracepoint(struct eventset *set, const struct eventspec *e, const char *where, struct err *err)
{
	struct tracefs_format format;
	struct err why = { 0 };
	const char *root;
	int r = tracefs_root(&root, err);

	if (r < 0)
		return r;
	r = tracefs_read_format(e->group, e->point, &format, &why);
	if (r < 0) {
		log_warn("%s%s: skipped", where, why.text);
		return 0;
	}
	r = add_format(set, e, &format, err);
	tracefs_format_done(&format);
	return r;
}

struct expansion {
	struct eventset *set;
	const struct eventspec *pattern;
	struct err *err;
	size_t found;
};

/* Of a pattern with a field, those that have the field. */
static int expand_one(void *context, const char *group, const char *name)
{
	struct expansion *x = context;
	struct eventspec e = { .group = (char *)group, .point = (char *)name, .field = x->pattern->field };
	_cleanup_free_ char *full = NULL;
	struct tracefs_format format;
	int r = 0;

	if (fnmatch(x->pattern->group, group, 0) || fnmatch(x->pattern->point, name, 0))
		return 0;
	e.name = full = mem_printf("%s:%s", group, name);
	if (tracefs_read_format(group, name, &format, NULL) < 0)
		return 0;
	if (!e.field || tracefs_find_field(&format, e.field)) {
		x->found++;
		r = add_format(x->set, &e, &format, x->err);
	}
	tracefs_format_done(&format);
	return r;
}

static int add_pattern(struct eventset *set, const struct eventspec *e, const char *where, struct err *err)
{
	struct expansion x = { .set = set, .pattern = e, .err = err };
	int r = tracefs_list(expand_one, &x, err);

	if (r < 0)
		return r;
	if (!x.found)
		log_warn("%sno tracepoint of this kernel matches %s%s%s: skipped", where, e->name,
			 e->field ? "/" : "", e->field ? e->field : "");
	return 0;
}

static int add_named(struct eventset *set, const struct eventspec *e, const char *where, struct err *err)
{
	struct eventset_use use = { .unit = str_starts(e->name, "cpu-clock") ? "ns" : "count" };
	struct eventset_source *source;
	uint32_t at;
	int r = eventspec_probe(e);

	if (r < 0 && r != -EACCES && r != -EPERM) {
		log_warn("%sthis machine does not count %s%s: skipped", where, e->name,
			 e->kind != EVENTSPEC_HARDWARE ? "" :
			 " (the counters of its CPU are not to be had, as in many virtual machines)");
		return 0;
	}
	if (has_use(set, e->name))
		return 0;
	r = find_source(set, e->name, &at, err);
	if (r < 0)
		return r;
	source = &set->sources.v[at];
	source->type = e->type;
	source->config = e->config;
	source->sampled = e->sampled;
	source->user_only = e->user_only;
	source->kernel_only = e->kernel_only;
	use.name = mem_strdup(e->name);
	use.describe = mem_printf("%s event, %s", e->kind == EVENTSPEC_HARDWARE ? "hardware" : "software",
				  e->sampled ? "sampled" : "counted");
	return add_use(set, at, use, (struct shared_event_use){ 0 }, err);
}

int eventset_add(struct eventset *set, const char *word, const char *where, struct err *err)
{
	struct eventspec e;
	int r = eventspec_parse(word, &e, err);

	if (r >= 0)
		r = e.kind != EVENTSPEC_TRACEPOINT ? add_named(set, &e, where, err) :
		    eventspec_is_pattern(&e)	   ? add_pattern(set, &e, where, err) :
						     add_tracepoint(set, &e, where, err);
	eventspec_done(&e);
	return r < 0 && *where && err ? err_prefix(err, "%.*s", (int)strlen(where) - 2, where) : r;
}
