#include "export/section/ownertext.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "export/report/cleantext.h"
#include "profile/profile.h"

enum { SHOWN = 8, SHORT_ID = 12 };

/* How many processes it has, and the first of them, which is the main one. */
static size_t processes_of(const struct profile *p, size_t owner, const struct profile_process **ret_first)
{
	size_t n = 0;

	*ret_first = NULL;
	for (size_t i = 0; i < p->processes.n; i++) {
		if (p->processes.v[i].owner != owner + 1)
			continue;
		if (!n++)
			*ret_first = &p->processes.v[i];
	}
	return n;
}

static void put_container(const struct profile *p, const struct profile_owner *o, struct buf *b)
{
	const char *name = profile_str(p, o->name), *engine = profile_str(p, o->engine), *image = profile_str(p, o->image);

	if (o->pod)
		buf_printf(b, "pod %s, ", profile_str(p, o->pod));
	buf_printf(b, "container %.*s", *name ? 255 : SHORT_ID, *name ? name : profile_str(p, o->container));
	if (*engine || *image)
		buf_printf(b, " (%s%s%s%s)", engine, *engine && *image ? ", " : "", *image ? "image " : "", image);
}

bool ownertext_line(const struct profile *p, size_t i, struct buf *out)
{
	const struct profile_process *first;
	const struct profile_owner *o;
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t n;

	if (i >= p->owners.n)
		return false;
	o = &p->owners.v[i];
	n = processes_of(p, i, &first);
	if (o->container)
		put_container(p, o, &b);
	else
		buf_printf(&b, "%s %s", profile_str(p, o->kind), profile_str(p, o->name));
	if (n > 1)
		buf_printf(&b, ", %zu processes", n);
	if (first && first->inner_pid)
		buf_printf(&b, ", pid %u inside, %u here", first->inner_pid, first->pid);
	else if (first)
		buf_printf(&b, ", pid %u", first->pid);
	if (n > 1)
		buf_printf(&b, " (%s)", profile_str(p, first->name));
	cleantext_put(out, b.data);
	return true;
}

void ownertext_put(const struct profile *p, struct buf *out)
{
	for (size_t i = 0; i < p->owners.n && i < SHOWN; i++) {
		ownertext_line(p, i, out);
		buf_putc(out, '\n');
	}
	if (p->owners.n > SHOWN)
		buf_printf(out, "and %zu more\n", p->owners.n - SHOWN);
}

static void put_processes(const struct profile *p, size_t owner, struct json *j)
{
	json_open_array(j, "processes");
	for (size_t i = 0; i < p->processes.n; i++) {
		const struct profile_process *x = &p->processes.v[i];

		if (x->owner != owner + 1)
			continue;
		json_open_object(j, NULL);
		json_put_uints(j, { "pid", x->pid }, { "inner_pid", x->inner_pid ? x->inner_pid : x->pid });
		json_put_string(j, "name", profile_str(p, x->name));
		json_close(j);
	}
	json_close(j);
}

void ownertext_json(const struct profile *p, struct json *j)
{
	if (!p->owners.n)
		return;
	json_open_array_line(j, "owners", 0);
	for (size_t i = 0; i < p->owners.n; i++) {
		const struct profile_owner *o = &p->owners.v[i];
		const struct {
			const char *key;
			uint32_t value;
		} members[] = { { "kind", o->kind },     { "name", o->name },   { "container", o->container },
				{ "engine", o->engine }, { "image", o->image }, { "pod", o->pod },
				{ "cgroup", o->cgroup } };

		json_open_row(j, 1);
		for (size_t k = 0; k < ARRAY_LEN(members); k++)
			json_put_string(j, members[k].key, profile_str(p, members[k].value));
		put_processes(p, i, j);
		json_close(j);
	}
	json_close(j);
}
