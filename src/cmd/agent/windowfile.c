#include "cmd/agent/windowfile.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/folder.h"
#include "base/file/newfile.h"
#include "base/mem.h"
#include "capture/capture.h"
#include "cmd/flight/cut.h"
#include "fleet/agent/spool.h"
#include "profile/keys.h"
#include "profile/profile.h"

void windowfile_make(struct windowfile *f, const struct keep_snap *snap, const struct windowfile_about *about)
{
	struct profile *out = profile_new();
	struct cut cut;

	cut_begin(&cut, snap, out);
	for (size_t i = 0; i < cut_pieces(&cut); i++)
		cut_piece(&cut, i);
	cut_end(&cut);
	profile_count_set_of(out, KEY_AGENT_TARGET_OF, about->target, 1);
	if (about->release)
		profile_count_set_of(out, KEY_AGENT_RELEASE_OF, about->release, 1);
	for (const char *const *label = about->labels; label && *label; label++)
		profile_count_set_of(out, KEY_AGENT_LABEL_OF, *label, 1);
	profile_count_set(out, KEY_AGENT_SEQUENCE, about->sequence);
	out->finished = true;
	*f = (struct windowfile){ .profile = out, .start_wall_ns = out->start_wall_ns, .duration_ns = out->duration_ns,
				  .name = spool_name(about->target, out->start_wall_ns, about->sequence) };
}

int windowfile_write(struct windowfile *f, const char *spool, struct err *err)
{
	_cleanup_free_ char *part = mem_printf("%s/new/%s.part", spool, f->name);
	_cleanup_fd_ int folder = -1;
	struct capture *c = NULL;
	const char *name;
	int r = capture_create_with(part, CAPTURE_ONCE, NULL, &c, err);

	if (r < 0)
		return r;
	r = capture_flush(c, f->profile, err);
	if (r < 0) {
		capture_discard(c);
		return r;
	}
	r = capture_close_whole(c, err);
	if (r < 0)
		return r;
	folder = folder_open(part, &name, err);
	if (folder < 0)
		return folder;
	r = newfile_rename_once(folder, name, f->name);
	if (r < 0) {
		unlinkat(folder, name, 0);
		return err_errno(err, -r, "cannot rename %s", part);
	}
	return 0;
}

void windowfile_done(struct windowfile *f)
{
	profile_free(f->profile);
	free(f->name);
	*f = (struct windowfile){ 0 };
}

int windowfile_whose(const struct profile *p, struct windowfile_whose *ret, struct err *err)
{
	*ret = (struct windowfile_whose){ .sequence = profile_counter(p, KEY_AGENT_SEQUENCE) };
	for (size_t i = 0; i < p->counters.n; i++) {
		const char *name = profile_str(p, p->counters.v[i].name), *rest;

		if ((rest = key_rest(KEY_AGENT_TARGET_OF, name)))
			ret->target = rest;
		else if ((rest = key_rest(KEY_AGENT_RELEASE_OF, name)))
			ret->release = rest;
		else if ((rest = key_rest(KEY_AGENT_LABEL_OF, name)))
			vec_push(&ret->labels, rest);
	}
	vec_push(&ret->labels, NULL);
	ret->labels.n--;
	return ret->target ? 0 : err_set(err, EBADMSG, "it is no window of an agent: it does not say whose it is");
}

void windowfile_whose_done(struct windowfile_whose *w)
{
	vec_done(&w->labels);
}
