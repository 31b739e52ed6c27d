#include "cmd/reading/reading.h"

#include <errno.h>
#include <linux/capability.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/cache.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/reading/broker.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/input.h"
#include "capture/capture.h"
#include "profile/profile.h"
#include "sandbox/confine.h"
#include "sandbox/owner.h"
#include "sandbox/rights.h"
#include "symbol/symbolize.h"

/* Allocations from this size on are mappings of their own. */
enum { OWN_MAPPING_BYTES = 1 << 20 };

struct reading {
	const struct command *command;
	VEC(char *) inputs;  /* all that is read, by name */
	const char *output;  /* -o, NULL = none */
	bool connects, cached;
	struct owner_choice owner;
	struct confine confine;
};

static const char *text_of(const struct option_spec *options, const char *name)
{
	const struct option_spec *o = options_find(options, name);

	return o && o->type == OPTION_STRING ? *(const char **)o->value : NULL;
}

static bool is_set(const struct option_spec *options, const char *name)
{
	const struct option_spec *o = options_find(options, name);

	return o && o->type == OPTION_FLAG && *(bool *)o->value;
}

static void collect(struct reading *r, const struct option_spec *options, char **operands, int n)
{
	const char *base = text_of(options, "base"), *marks = text_of(options, "marks");

	for (int i = 0; i < n; i++)
		vec_push(&r->inputs, operands[i]);
	for (const char *const *path = n ? NULL : r->command->reads_by_default; path && *path; path++)
		vec_push(&r->inputs, (char *)*path);
	if (base)
		vec_push(&r->inputs, (char *)base);
	if (marks)
		vec_push(&r->inputs, (char *)marks);
	r->output = text_of(options, "output");
	if (r->output && !strcmp(r->output, "-"))
		r->output = NULL;
	r->connects = r->command->connects || is_set(options, "debuginfod") || is_set(options, "fetch") || text_of(options, "rpc");
	for (size_t i = 0; i < r->inputs.n; i++) {
		bool store = input_is_store(r->inputs.v[i]);

		r->connects |= store;
		/* The first operand of a command that connects is an address, http:// too. */
		if (store || (r->command->connects && !i))
			input_hide(r->inputs.v[i]);
	}
	r->cached = options_find(options, "no-cache") && !is_set(options, "no-cache");
}

/* A command that removes captures acts for the owner of the folder. */
static void choose_remover(struct reading *r)
{
	struct stat st;

	r->owner.kind = geteuid() ? OWNER_SELF : OWNER_ROOT;
	r->confine.capabilities = RIGHTS_BIT(CAP_DAC_OVERRIDE) | RIGHTS_BIT(CAP_DAC_READ_SEARCH) | RIGHTS_BIT(CAP_FOWNER);
	for (size_t i = 0; i < r->inputs.n && i < CONFINE_FOLDERS; i++)
		if (!stat(r->inputs.v[i], &st))
			r->confine.removes[r->confine.remove_count++] = r->inputs.v[i];
}

static int choose_user(struct reading *r, struct err *err)
{
	if (r->command->removes) {
		choose_remover(r);
		return 0;
	}
	owner_find(&r->owner, r->inputs.v, r->inputs.n);
	if (r->owner.kind != OWNER_USER)
		return 0;
	log_debug("reading as %s, who owns %s", r->owner.name, r->owner.file);
	return owner_become(&r->owner, err);
}

/* Root without a capability still owns the kernel's settings below /proc: only Landlock keeps those from it. */
static bool reads_as_nobody(const struct reading *r)
{
	return r->owner.kind == OWNER_SEVERAL ||
	       (r->owner.kind == OWNER_ROOT && !r->command->removes && !confine_has_landlock());
}

/* The folder of a path, "." where it has none; the caller frees it. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? mem_strdup("/") : slash ? mem_strndup(path, slash - path) : mem_strdup(".");
}

static int start_broker(struct reading *r, struct err *err)
{
	bool capture = r->output && (r->command->makes_capture || str_ends(r->output, ".gasflame"));
	/* "slow" for x/slow.gasflame. */
	_cleanup_free_ char *label =
		r->command->pictures && r->inputs.n ? captureio_beside(str_base_name(r->inputs.v[0]), "") : NULL;
	_cleanup_free_ char *folder = capture ? folder_of(r->output) : NULL;
	_cleanup_free_ char *who = r->owner.kind == OWNER_USER ? mem_printf("%s, who owns %s", r->owner.name, r->owner.file) :
								 NULL;
	struct broker_places places = {
		.who = who, .pictures = label,
		.output = r->output, .also = r->command->also_writes, .inputs = r->inputs.v, .input_count = r->inputs.n,
		.temporary = folder, .temporary_owner = reads_as_nobody(r) ? OWNER_NOBODY : geteuid(),
	};

	return broker_start(&places, err);
}

static int confine(struct reading *r, struct err *err)
{
	_cleanup_(buf_done) struct buf held = { 0 };
	_cleanup_fd_ int cache = r->cached ? cache_open_folder() : -1;
	char cache_path[64];
	int e;

	if (broker_folder())
		r->confine.writes[r->confine.write_count++] = broker_folder();
	if (cache >= 0) {
		snprintf(cache_path, sizeof(cache_path), "/proc/self/fd/%d", cache);
		r->confine.writes[r->confine.write_count++] = cache_path;
	}
	if (reads_as_nobody(r)) {
		r->confine.capabilities = RIGHTS_BIT(CAP_DAC_READ_SEARCH);
		e = rights_become(OWNER_NOBODY, OWNER_NOBODY, r->confine.capabilities);
		if (e < 0 && e != -EPERM && e != -EINVAL)
			return err_errno(err, -e, "cannot become nobody to read these files");
	}
	r->confine.listen = r->command->listens;
	r->confine.terminal = r->command->pictures;
	r->confine.connect = r->connects;
	e = confine_enter(&r->confine, &held, err);
	if (!e)
		log_debug("reading as user %u: %s", (unsigned)geteuid(), held.data);
	return e;
}

int reading_begin(const struct command *c, const struct option_spec *options, char **operands, int n)
{
	struct reading r = { .command = c };
	struct err err = { 0 };
	int e;

	/* The lists of a long capture are tens of megabytes. By default, freeing one raises the size up to 32 MB, and what is
	 * freed later stays in the heap; a mapping goes back at once, and grows without a copy. */
	mallopt(M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
	collect(&r, options, operands, n);
	e = choose_user(&r, &err);
	if (!e)
		e = start_broker(&r, &err);
	if (!e)
		e = confine(&r, &err);
	if (e)
		log_error("%s", err.text);
	owner_done(&r.owner);
	vec_done(&r.inputs);
	return e ? EXIT_ERROR : 0;
}

int reading_as_capture(const char *path, char **ret, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_free_ char *made = NULL;
	struct stat st;
	int r;

	/* What is missing, a folder or a device gets the messages for captures. */
	if (strcmp(path, "-") && !input_is_store(path) && (stat(path, &st) || !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)) || input_is_capture(path))) {
		*ret = mem_strdup(path);
		return 0;
	}
	if (!broker_folder())
		return err_set(err, EACCES, "there is no folder for temporary files: gasflame import makes a capture of %s", path);
	made = mem_printf("%s/imported.gasflame", broker_folder());
	r = input_read(path, &p, err);
	if (!r)
		r = captureio_find_names(&(struct symbolize_options){ 0 }, p, err);
	if (!r)
		r = capture_save(made, p, err);
	if (r)
		return r;
	*ret = made;
	made = NULL;
	return 0;
}

int reading_save(const char *path, struct profile *p, struct err *err)
{
	static const char name[] = "new.gasflame";
	_cleanup_free_ char *made = broker_folder() ? mem_printf("%s/%s", broker_folder(), name) : NULL;
	struct stat st;
	int r;

	if (!stat(path, &st) && !input_is_capture(path))
		return err_set(err, EEXIST, "%s exists and is not a gasflame capture: it is left alone, name another file with -o",
			       path);
	if (!made)
		return err_set(err, EACCES, "cannot make files in the folder of %s: name another place with -o", path);
	r = capture_save(made, p, err);
	if (r)
		return err_prefix(err, "cannot write %s", path);
	return broker_move(name, path, err);
}
