#include "symbol/symbolize.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/cache.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "elf/demangle.h"
#include "elf/packedsymbols.h"
#include "elf/unwind/functions.h"
#include "elf/worker/worker.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "symbol/binary.h"
#include "symbol/find.h"
#include "symbol/jit/jitfiles.h"
#include "symbol/jit/jitnames.h"
#include "symbol/jit/jitpast.h"
#include "symbol/stillrunning.h"
#include "symbol/stripped/kept.h"
#include "symbol/stripped/otherbuild.h"
#include "target/kallsyms.h"
#include "target/kernelplaces.h"

struct symbolizer {
	struct symbolize_options options;
	struct worker *worker;
	bool own_worker;
	struct map kept; /* module to descriptor */
	struct map alone; /* modules beside whose files nothing was found, where that is asked often */
	struct jitfiles *jit;
	struct kallsyms *kernel; /* kept from one call to the next: it takes long to read */
	bool kernel_early;       /* it was read during the recording */
	bool kernel_lent;        /* it is somebody else's */
};

struct symbolizer *symbolizer_new(const struct symbolize_options *options, struct worker *worker)
{
	struct symbolizer *s = mem_alloc(sizeof(*s));

	if (options)
		s->options = *options;
	s->worker = worker ? worker : worker_new();
	s->own_worker = !worker;
	s->jit = jitfiles_new();
	return s;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->kept.capacity; i++)
		if (s->kept.slots[i].used && (int)s->kept.slots[i].value >= 0)
			close(s->kept.slots[i].value);
	map_done(&s->kept);
	map_done(&s->alone);
	jitfiles_free(s->jit);
	symbolizer_keep_kernel(s, NULL);
	if (s->own_worker)
		worker_free(s->worker);
	free(s);
}

void symbolizer_keep_kernel(struct symbolizer *s, struct kallsyms *kernel)
{
	if (!s->kernel_lent)
		kallsyms_free(s->kernel);
	s->kernel = kernel;
	s->kernel_early = kernel != NULL;
	s->kernel_lent = false;
}

void symbolizer_lend_kernel(struct symbolizer *s, struct kallsyms *kernel)
{
	symbolizer_keep_kernel(s, kernel);
	s->kernel_lent = kernel != NULL;
}

void symbolizer_keep_file(void *symbolizer, uint32_t module, int fd)
{
	struct symbolizer *s = symbolizer;
	uint64_t *slot = map_put(&s->kept, module, (uint64_t)-1);

	if ((int)*slot >= 0)
		close(*slot);
	*slot = fd;
}

bool symbolizer_look(struct symbolizer *s, const struct profile *p)
{
	return jitfiles_look(s->jit, p);
}

/* A frame without a name. Frames of one module stand together, by address. */
struct open_frame {
	uint32_t module, frame;
	uint64_t address;
};

/* State of a call of symbolize_profile. */
struct run {
	struct symbolizer *s;
	struct profile *p;
	struct cache *cache;
	struct find_index index;
	VEC(struct open_frame) frames;
	uint64_t named, with_lines, inlined;
	bool again; /* there may be better names than those that a capture has */
	struct jitpast past;
	bool kernel_tried;
	struct map kernel_modules; /* string id of "[ext4]" to module */
	struct kernelplaces places; /* of the machine as it is now */
	bool places_read;
};

static int compare_frames(const void *a, const void *b)
{
	const struct open_frame *x = a, *y = b;

	return ORDER(x->module, y->module) ?: ORDER(x->address, y->address) ?: ORDER(x->frame, y->frame);
}

static void add_problem(struct run *r, const char *sentence, uint64_t frames)
{
	profile_count_of(r->p, KEY_SYMBOLS_PROBLEM_OF, sentence, frames);
}

/* Gives one frame its calls, innermost first. module is whose code it is. */
static void name_frame(struct run *r, uint32_t frame, uint32_t module, enum profile_named named,
		       const struct symbols_call *calls, size_t count)
{
	struct profile_line lines[PACKEDSYMBOLS_MAX_DEPTH];
	struct profile *p = r->p;
	bool has_line = false;
	uint32_t n = 0;

	for (size_t i = 0; i < count && n < ARRAY_LEN(lines); i++) {
		struct profile_function f = { .module = module, .named = named };

		if (!calls[i].name[0])
			continue;
		f.name = profile_string(p, calls[i].name);
		f.linkage = profile_string(p, calls[i].linkage);
		f.file = profile_string(p, calls[i].file);
		if (f.linkage == f.name)
			f.linkage = 0;
		has_line |= calls[i].line > 0;
		lines[n++] = (struct profile_line){ .function = profile_function(p, &f),
						    .line = calls[i].line, .inlined = true };
	}
	if (!n)
		return;
	lines[n - 1].inlined = false;
	profile_set_lines(p, frame, lines, n);
	r->named++;
	r->with_lines += has_line;
	r->inlined += n > 1;
}

/* "module+0x1200" for what has no name: where its function starts, else its page, else (in the kernel, where nearly all is
 * named or nothing is) its address. */
static void name_by_place(struct run *r, const struct open_frame *f, enum profile_named named, uint64_t place)
{
	struct profile *p = r->p;
	const char *path = f->module < p->modules.n ? profile_str(p, p->modules.v[f->module].path) : "";
	_cleanup_free_ char *name = mem_printf("%s+0x%llx%s", path[0] ? str_base_name(path) : "[unknown]",
					       (unsigned long long)place, named == NAMED_PAGE ? " (page)" : "");
	struct profile_function function = { .name = profile_string(p, name), .module = f->module, .named = named };
	struct profile_line line = { .function = profile_function(p, &function) };

	profile_set_lines(p, f->frame, &line, 1);
}

static void name_by_address(struct run *r, const struct open_frame *f)
{
	const struct profile *p = r->p;
	enum profile_module_kind kind = f->module < p->modules.n ? p->modules.v[f->module].kind : MODULE_NONE;

	if (kind == MODULE_FILE)
		name_by_place(r, f, NAMED_PAGE, f->address & ~(uint64_t)0xfff);
	else if (kind == MODULE_JIT)
		name_by_place(r, f, NAMED_PAGE, jitnames_page(p, f->module, f->address));
	else
		name_by_place(r, f, NAMED_ADDRESS, f->address);
}

/* The frames of one module: their addresses once each, and which frames belong to each. */
struct group {
	struct run *run;
	uint32_t module;
	const struct open_frame *frames;
	size_t n;
	VEC(uint64_t) addresses;
	VEC(size_t) first; /* frames[first[i] .. first[i + 1]) have addresses[i] */
	const struct binary *binary; /* where the names are those of a file */
};

/* A stripped file names what it exports, by .dynsym, and the stubs of its PLT. Only better files have lines. */
static enum profile_named named_by(const struct group *g, const struct symbols_call *calls, size_t count)
{
	if (!g->binary || !count || calls[0].line)
		return g->binary && g->binary->by_other ? NAMED_BUILD : NAMED_SYMBOL;
	if (str_ends(calls[count - 1].name, "@plt"))
		return NAMED_PLT;
	if (g->binary->by_other)
		return NAMED_BUILD;
	return g->binary->find.other || g->binary->find.level == FIND_EXPORTS ? NAMED_DYNAMIC : NAMED_SYMBOL;
}

static void got_names(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct group *g = context;
	enum profile_named named = named_by(g, calls, count);

	for (size_t i = g->first.v[index]; i < g->first.v[index + 1]; i++)
		name_frame(g->run, g->frames[i].frame, g->module, named, calls, count);
}

/* Comes after the names. What has none is shown by its function's start; a start that a capture kept is as good. */
static void got_range(void *context, size_t index, uint64_t start, uint64_t end)
{
	struct group *g = context;
	struct profile *p = g->run->p;

	profile_add_range(p, g->module, start, end);
	for (size_t i = g->first.v[index]; i < g->first.v[index + 1]; i++)
		if (profile_frame_unnamed(p, g->frames[i].frame))
			name_by_place(g->run, &g->frames[i], NAMED_START, start);
}

/* --- ELF files --- */

/* A copy of our own vdso: every process has the same. */
static int vdso_file(void)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
	size_t size = 2 * sysconf(_SC_PAGESIZE);
	int fd = image ? memfd_create("gasflame-vdso", MFD_CLOEXEC) : -1;

	/* The second page of the vdso is not always there: write() then stops short instead of failing. */
	if (fd >= 0 && write(fd, image, size) <= 0)
		fd_close(&fd);
	return fd;
}

static void resolve_file(struct group *g)
{
	struct run *r = g->run;
	struct symbolizer *s = r->s;
	const struct profile_module *m = &r->p->modules.v[g->module];
	_cleanup_free_ char *path = mem_strdup(profile_str(r->p, m->path));
	uint64_t *kept = map_get(&s->kept, g->module);
	_cleanup_(functions_done) struct functions known = { 0 };
	uint8_t build_id[20];
	struct binary b = { .keep_hash = s->options.keep_hash, .often = s->options.often, .range = got_range };

	memcpy(build_id, m->build_id, sizeof(build_id));
	b.find = (struct find){ .worker = s->worker, .cache = r->cache, .index = &r->index, .main = -1,
				.pid = stillrunning_pid_of_module(r->p, g->module), .path = path,
				.build_id = build_id, .build_id_size = MIN(m->build_id_size, 20),
				.recorded_wall_ns = r->p->start_wall_ns, .no_dwarf = s->options.no_inline,
				.root = s->options.root, .debuginfod = s->options.debuginfod, .known = &known };
	b.find.no_siblings = s->options.often && map_get(&s->alone, g->module + 1);
	kept_functions(r->p, g->module, &known);
	g->binary = &b;
	if (kept && (int)*kept >= 0)
		b.find.main = fcntl(*kept, F_DUPFD_CLOEXEC, 3);
	else if (m->kind == MODULE_VDSO)
		b.find.main = vdso_file();
	binary_resolve(&b, g->addresses.v, g->addresses.n, got_names, g);
	s->options.debuginfod = s->options.debuginfod && b.find.debuginfod;
	if (b.find.siblings_in_vain)
		map_put(&s->alone, g->module + 1, 1);
	g->binary = NULL;
	if (b.other[0])
		profile_count_of(r->p, KEY_SYMBOLS_BUILD_OF, b.other, g->n);
	if (b.problem[0])
		add_problem(r, b.problem, g->n);
}

/* --- the kernel --- */

static uint32_t kernel_module(struct run *r, uint32_t own, const char *name)
{
	uint32_t string = profile_string(r->p, name);
	uint64_t *id = map_put(&r->kernel_modules, string, PROFILE_NONE);

	if (!name[0])
		return own;
	for (uint32_t i = 0; *id == PROFILE_NONE && i < r->p->modules.n; i++)
		if (r->p->modules.v[i].kind == MODULE_KERNEL && r->p->modules.v[i].path == string)
			*id = i;
	if (*id == PROFILE_NONE)
		*id = profile_add_module(r->p, &(struct profile_module){ .path = string,
									 .kind = MODULE_KERNEL,
									 .process = PROFILE_NONE });
	return *id;
}

/* Where a frame's distance is from: as the recorder knows it, or where it is now, as the machine was not booted since. */
static uint64_t kernel_base(struct run *r, uint32_t module)
{
	uint64_t base = profile_kernel_base(r->p, module);
	const struct kernelplace *place;

	if (base)
		return base;
	if (!r->places_read)
		kernelplaces_read(&r->places);
	r->places_read = true;
	place = kernelplaces_named(&r->places, profile_str(r->p, r->p->modules.v[module].path));
	return place ? place->start : 0;
}

/* 0: not to be known, as of BPF programs of a recording that was read from a file. */
static uint64_t kernel_address(struct run *r, uint32_t module, uint64_t distance)
{
	uint64_t base;

	if (distance & PROFILE_KERNEL_HALF) /* of an older capture */
		return distance;
	base = kernel_base(r, module);
	return base ? ((base + distance) | PROFILE_KERNEL_HALF) : 0;
}

/* Symbols that were read early are as good as those of now for the kernel itself, and for modules while no other is loaded
 * or gone. Code that was made at run time since is not among them. */
static void forget_early_kernel(struct run *r, uint32_t module)
{
	const char *path = profile_str(r->p, r->p->modules.v[module].path);

	if (!r->s->kernel_early || !strcmp(path, "[kernel]") ||
	    (strcmp(path, "[kernel jit]") && kallsyms_current(r->s->kernel)))
		return;
	symbolizer_keep_kernel(r->s, NULL);
	r->kernel_tried = false;
}

static void resolve_kernel(struct group *g)
{
	const struct kallsyms *kernel;
	struct run *r = g->run;

	forget_early_kernel(r, g->module);
	if (!r->kernel_tried) {
		r->kernel_tried = true;
		if (!stillrunning_kernel(r->p))
			add_problem(r, "no kernel symbols: it was recorded on another machine, or before the "
				    "last boot", g->n);
		else if (!r->s->kernel && kallsyms_read(&r->s->kernel) < 0)
			add_problem(r, "no kernel symbols: /proc/kallsyms cannot be read", g->n);
		else if (kallsyms_hidden(r->s->kernel))
			add_problem(r, "no kernel symbols: /proc/kallsyms hides its addresses; run as root, "
				    "or: sysctl kernel.kptr_restrict=0", g->n);
	}
	kernel = stillrunning_kernel(r->p) ? r->s->kernel : NULL;
	for (size_t i = 0; kernel && i < g->addresses.n; i++) {
		uint64_t address = kernel_address(r, g->module, g->addresses.v[i]);
		const char *module, *name = address ? kallsyms_find(kernel, address, &module) : NULL;
		struct symbols_call call = { .linkage = name ? name : "", .file = "" };
		_cleanup_free_ char *readable = NULL;

		if (!name)
			continue;
		readable = demangle(name, r->s->options.keep_hash ? DEMANGLE_KEEP_HASH : 0);
		call.name = readable;
		for (size_t k = g->first.v[i]; k < g->first.v[i + 1]; k++)
			name_frame(r, g->frames[k].frame, kernel_module(r, g->module, module), NAMED_SYMBOL, &call,
				   1);
	}
}

/* --- JIT --- */

/* A dump was opened when it was mapped: that counts also when its process ended before anybody looked. */
static void hand_over_dumps(const struct run *r, uint32_t process)
{
	for (uint32_t i = 0; i < r->p->modules.n; i++) {
		const char *path = profile_str(r->p, r->p->modules.v[i].path);
		const uint64_t *kept = r->p->modules.v[i].kind == MODULE_FILE && jitfiles_dump_number(path) ?
					       map_get(&r->s->kept, i) : NULL;

		if (kept && (int)*kept >= 0)
			jitfiles_add_dump(r->s->jit, r->p, process, path, *kept);
	}
}

/* Names that an address had before. */
static void got_past(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct group *g = context;

	for (size_t i = g->first.v[index]; i < g->first.v[index + 1]; i++)
		jitpast_add(&g->run->past, g->run->p, g->frames[i].frame, calls, count);
}

static void resolve_jit(struct group *g)
{
	struct run *r = g->run;
	uint32_t process = r->p->modules.v[g->module].process;
	char why[512] = "";
	size_t unnamed = 0;

	hand_over_dumps(r, process);
	/* A profile without stacks is only a batch of frames (background.c): it has no past. */
	jitnames_resolve(r->p, process, r->s->jit, r->s->worker, g->addresses.v, g->addresses.n, got_names,
			 r->p->stacks.n > 1 ? got_past : NULL, g, why, sizeof(why));
	for (size_t i = 0; i < g->n; i++)
		unnamed += profile_frame_unnamed(r->p, g->frames[i].frame);
	if (why[0])
		add_problem(r, why, unnamed);
}

/* --- all --- */

static void resolve_group(struct group *g)
{
	const struct open_frame *f = g->frames;
	struct profile *p = g->run->p;

	for (size_t i = 0; i < g->n; i++)
		if (!i || f[i].address != f[i - 1].address) {
			vec_push(&g->addresses, f[i].address);
			vec_push(&g->first, i);
		}
	vec_push(&g->first, g->n);
	if (g->module < p->modules.n)
		switch (p->modules.v[g->module].kind) {
		case MODULE_FILE:
		case MODULE_VDSO:
			resolve_file(g);
			break;
		case MODULE_KERNEL:
			resolve_kernel(g);
			break;
		case MODULE_JIT:
			resolve_jit(g);
			break;
		case MODULE_NONE:
			break;
		}
	for (size_t i = 0; i < g->n && !worker_cancelled(g->run->s->worker); i++)
		if (!p->frames.v[f[i].frame].line_count)
			name_by_address(g->run, &f[i]);
	vec_done(&g->addresses);
	vec_done(&g->first);
}

/* Is the name of a frame one that another file may know better? */
static bool is_makeshift(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];

	if (f->module >= p->modules.n || p->modules.v[f->module].kind != MODULE_FILE || f->kind != FRAME_USER || !f->address)
		return false;
	return profile_frame_unnamed(p, frame) || p->functions.v[p->lines.v[f->first_line].function].named != NAMED_SYMBOL;
}

static void list_frames(struct run *r)
{
	for (uint32_t i = 0; i < r->p->frames.n; i++) {
		const struct profile_frame *f = &r->p->frames.v[i];

		if (f->kind != FRAME_TRUNCATED && (!f->line_count || (r->again && is_makeshift(r->p, i))))
			vec_push(&r->frames, (struct open_frame){ f->module, i, f->address });
	}
	vec_sort(&r->frames, compare_frames);
}

/* A file that the user named must be that of a module, else they look at the wrong build. */
static void check_named(struct run *r)
{
	struct profile *p = r->p;

	for (size_t i = 0; i < r->index.problems.n; i++)
		add_problem(r, r->index.problems.v[i], 0);
	for (size_t i = 0; i < r->index.files.n; i++) {
		struct find_entry *e = &r->index.files.v[i];
		const struct profile_module *like = NULL;
		char hex[41], other[41], sentence[640];

		for (size_t k = 0; k < p->modules.n && e->named && !e->used; k++) {
			const struct profile_module *m = &p->modules.v[k];
			const char *base = str_base_name(profile_str(p, m->path));

			e->used = m->build_id_size && e->id.build_id_size == m->build_id_size &&
				  !memcmp(e->id.build_id, m->build_id, MIN(m->build_id_size, 20));
			if (base[0] && !strncmp(str_base_name(e->path), base, strlen(base)))
				like = m;
		}
		if (!e->named || e->used)
			continue;
		find_hex(hex, e->id.build_id, e->id.build_id_size);
		if (e->like && e->of)
			snprintf(sentence, sizeof(sentence), "--symbols %.200s was not used: its build-id (%s) is that of no "
				 "module, and as another build it does not fit: of %zu %s of %.200s %zu agree in start and "
				 "size, and %d %% must", e->path, hex[0] ? hex : "none", e->of,
				 e->of == 1 ? "function" : "functions", e->like, e->agree, OTHERBUILD_PERCENT);
		else if (like)
			snprintf(sentence, sizeof(sentence), "--symbols %.200s was not used: its build-id is "
				 "%s, and %.200s ran with %s", e->path, hex[0] ? hex : "missing",
				 profile_str(p, like->path),
				 like->build_id_size ? find_hex(other, like->build_id, like->build_id_size)
						     : "none");
		else
			snprintf(sentence, sizeof(sentence), "--symbols %.200s was not used: nothing in this "
				 "recording has its build-id (%s)", e->path, hex[0] ? hex : "it has none");
		add_problem(r, sentence, 0);
	}
}

static const char *module_label(const struct profile *p, uint32_t module)
{
	return module < p->modules.n ? profile_str(p, p->modules.v[module].path) : "[unknown]";
}

int symbolize_profile(struct symbolizer *s, struct profile *p, symbolize_progress_fn *progress,
		      void *context, struct err *err)
{
	struct run r = { .s = s, .p = p };
	uint64_t start_ns = clock_mono_ns();
	size_t next;

	r.again = (s->options.paths && s->options.paths[0]) || s->options.debuginfod;
	list_frames(&r);
	if (r.frames.n && !s->options.no_cache)
		r.cache = cache_open();
	if (r.frames.n)
		find_index_build(&r.index, s->worker, s->options.paths);
	for (size_t i = 0; i < r.frames.n; i = next) {
		struct group g = { .run = &r, .module = r.frames.v[i].module, .frames = &r.frames.v[i] };

		for (next = i; next < r.frames.n && r.frames.v[next].module == g.module; next++)
			;
		g.n = next - i;
		/* Frames that stay without a name can get one later. */
		if (worker_cancelled(s->worker)) {
			add_problem(&r, "symbolizing was cancelled; gasflame report continues it", r.frames.n - i);
			break;
		}
		if (progress)
			progress(context, module_label(p, g.module), i, r.frames.n);
		resolve_group(&g);
	}
	if (!jitpast_apply(&r.past, p))
		add_problem(&r, "[jit]: code was replaced too often: some samples have the name of code that came later", 0);
	check_named(&r);
	profile_count(p, KEY_SYMBOLS_FRAMES, r.frames.n);
	profile_count(p, KEY_SYMBOLS_NAMED, r.named);
	profile_count(p, KEY_SYMBOLS_WITH_LINES, r.with_lines);
	profile_count(p, KEY_SYMBOLS_INLINED, r.inlined);
	profile_count(p, KEY_SYMBOLS_MS, (clock_mono_ns() - start_ns) / 1000000);
	cache_close(r.cache);
	find_index_done(&r.index);
	map_done(&r.kernel_modules);
	kernelplaces_done(&r.places);
	jitpast_done(&r.past);
	vec_done(&r.frames);
	return 0;
}
