#include "cmd/captures/newest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/captures/captures.h"

enum { MOST = 2 };

struct found {
	char *path; /* NULL: none */
	uint64_t mtime_ns;
	uid_t owner;
};

struct search {
	struct owner behind_sudo;
	struct stat named;       /* the capture that the user named; st_ino 0: none */
	struct found best[MOST]; /* the newest first */
	struct found foreign;    /* the newest one of another user */
};

static bool is_ours(const struct search *s, uid_t owner)
{
	return owner == geteuid() || !owner || (s->behind_sudo.given && owner == s->behind_sudo.uid);
}

static bool is_newer(const struct found *f, const struct found *than)
{
	if (!than->path || f->mtime_ns != than->mtime_ns)
		return !than->path || f->mtime_ns > than->mtime_ns;
	return strcmp(f->path, than->path) > 0;
}

/* Takes over f.path. */
static void keep(struct found *list, size_t n, struct found f)
{
	for (size_t i = 0; i < n; i++)
		if (is_newer(&f, &list[i])) {
			struct found next = list[i];

			list[i] = f;
			f = next;
			if (!f.path)
				return;
		}
	free(f.path);
}

static int visit(void *context, const struct captures_entry *e)
{
	struct search *s = context;
	struct found f = { mem_strdup(e->path), e->mtime_ns, e->owner };

	if ((s->named.st_ino == e->inode && s->named.st_dev == e->device) || captures_in_use(e))
		free(f.path);
	else if (is_ours(s, e->owner))
		keep(s->best, MOST, f);
	else
		keep(&s->foreign, 1, f);
	return 0;
}

/* Reports the missing capture, and what to type. */
static int too_few(const struct command *c, const struct search *s, struct err *err)
{
	if (s->foreign.path)
		return err_set(err, ENOENT, "%s belongs to user %u and is not taken unasked: `gasflame %s %s` reads it",
			       s->foreign.path, (unsigned)s->foreign.owner, c->name, s->foreign.path);
	if (s->best[0].path || s->named.st_ino)
		return err_set(err, ENOENT, "%s takes %u captures, and there is only one here: `gasflame record TARGET` makes "
			       "another, or name both files", c->name, c->newest);
	return err_set(err, ENOENT, "there is no capture in this folder or below " CAPTURES_FOLDER "/: `gasflame record TARGET` "
		       "makes one, or name %s: `gasflame %s %s`", c->keeps_rights ? "a target" : "a file", c->name,
		       c->keeps_rights ? "TARGET" : "FILE");
}

static void tell(const struct command_operands *o, unsigned chosen, const struct found *foreign,
		 const struct found *newest)
{
	if (foreign->path && is_newer(foreign, newest))
		log_info("%s is newer, but belongs to user %u: name it to read it", foreign->path, (unsigned)foreign->owner);
	if (o->n == 1)
		log_info("reading %s, the newest capture here", o->v[0]);
	else
		log_info("comparing %s (before) with %s (after), %s here", o->v[0], o->v[1],
			 chosen == 1 ? "the newest other capture" : "the two newest captures");
}

/* Puts two operands in the order of their age; best[0] is the only one that was found where the user named
 * the other. */
static void put_two(struct command_operands *o, struct search *s)
{
	static char *both[MOST + 1];
	struct found named = { o->n ? o->v[0] : NULL,
			       (uint64_t)s->named.st_mtim.tv_sec * 1000000000 + s->named.st_mtim.tv_nsec, 0 };
	const struct found *other = o->n ? &named : &s->best[1];
	bool newer = is_newer(&s->best[0], other);

	both[0] = newer ? other->path : s->best[0].path;
	both[1] = newer ? s->best[0].path : other->path;
	*o = (struct command_operands){ both, MOST };
}

static bool has_target(const struct option_spec *options)
{
	const struct option_spec *pid = options_find(options, "pid");

	return pid && ((const struct option_list *)pid->value)->list.n;
}

int newest_complete(const struct command *c, const struct option_spec *options, struct command_operands *operands,
		    struct owner behind_sudo, struct err *err)
{
	static char *one[2];
	struct search s = { .behind_sudo = behind_sudo };
	unsigned missing = c->newest - operands->n;
	int r = 0;

	if ((unsigned)operands->n >= c->newest || has_target(options))
		return 0;
	/* Whether the file that was named is there is for the command to say. */
	if (operands->n && stat(operands->v[0], &s.named))
		s.named = (struct stat){ 0 };
	captures_walk_here(visit, &s);
	if (!s.best[missing - 1].path) {
		r = too_few(c, &s, err);
	} else {
		if (c->newest == 1) {
			one[0] = s.best[0].path;
			*operands = (struct command_operands){ one, 1 };
		} else {
			put_two(operands, &s);
		}
		tell(operands, missing, &s.foreign, &s.best[0]);
	}
	for (int i = 0; i < MOST; i++)
		if (r || i >= (int)missing)
			free(s.best[i].path);
	free(s.foreign.path);
	return r;
}
