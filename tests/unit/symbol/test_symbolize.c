#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "elf/worker/worker.h"
#include "profile/profile.h"
#include "symbol/find.h"
#include "target/kallsyms.h"
#include "target/kernelplaces.h"
#include "symbol/symbolize.h"
#include "test.h"

#include "programs.h"

static const char source[] =
	"#include <stdlib.h>\n"
	"volatile int sink, build = BUILD;\n"
	"static inline __attribute__((always_inline)) void innermost(int x)\n"
	"{\n"
	"\tfor (int i = 0; i < x; i++) sink += i * x;\n"
	"}\n"
	"__attribute__((noinline)) void outer_function(int x)\n"
	"{\n"
	"\tinnermost(x);\n"
	"\tsink++;\n"
	"}\n"
	"static __attribute__((noinline)) void hidden_function(int x)\n"
	"{\n"
	"\tsink -= x;\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"\touter_function(argc);\n"
	"\thidden_function(argc);\n"
	"\treturn sink;\n"
	"}\n";

/* A fresh program "name" in the test's folder. */
static char *program(const char *name, const char *flags)
{
	static unsigned build;
	char *path = in_folder(name);

	/* Each has another build-id. */
	shell("cd $T && gcc -O1 -g -DBUILD=%u %s -o %s prog.c", ++build, flags, name);
	return path;
}

struct result {
	char name[256], file[256];
	uint32_t line, calls, module;
	char problem[1024];
};

struct query {
	const char *path;
	const char *identity; /* file whose build-id the module has; NULL = path, "" = none */
	uint64_t address;
	struct symbolize_options options;
	int keep; /* descriptor, 0 = none */
	uint64_t start_wall_ns;
};

static void read_problem(const struct profile *p, char out[1024])
{
	out[0] = 0;
	for (size_t i = 0; i < p->counters.n; i++) {
		const char *name = profile_str(p, p->counters.v[i].name);

		if (str_starts(name, "symbols.problem: "))
			snprintf(out, 1024, "%s", name + 17);
	}
}

static void read_frame(const struct profile *p, uint32_t frame, struct result *ret)
{
	const struct profile_frame *f = &p->frames.v[frame];
	const struct profile_line *l = &p->lines.v[f->first_line + f->line_count - 1];

	assert_true(f->line_count > 0);
	ret->calls = f->line_count;
	snprintf(ret->name, sizeof(ret->name), "%s", profile_str(p, p->functions.v[l->function].name));
	snprintf(ret->file, sizeof(ret->file), "%s", profile_str(p, p->functions.v[l->function].file));
	ret->line = l->line;
	ret->module = p->functions.v[l->function].module;
	assert_false(l->inlined);
	read_problem(p, ret->problem);
}

static struct result ask(const struct query *q)
{
	struct worker *w = worker_new();
	struct profile *p = profile_new();
	struct symbolizer *s = symbolizer_new(&q->options, w);
	struct result ret = { 0 };
	uint32_t module, frame;

	p->start_wall_ns = q->start_wall_ns;
	module = add_module(p, w, q->path, q->identity ? q->identity : q->path);
	frame = profile_frame(p, module, FRAME_USER, q->address);
	if (q->keep)
		symbolizer_keep_file(s, module, q->keep);
	assert_int_equal(symbolize_profile(s, p, NULL, NULL, NULL), 0);
	assert_int_equal(profile_counter(p, "symbols.frames"), 1);
	read_frame(p, frame, &ret);
	symbolizer_free(s);
	profile_free(p);
	worker_free(w);
	return ret;
}

static const struct symbolize_options uncached = { .no_cache = true };

static void by_path(void **state)
{
	_cleanup_free_ char *path = program("plain", "");
	struct query q = { path, .address = symbol(path, "hidden_function"), .options = uncached };
	struct result r = ask(&q);

	assert_string_equal(r.name, "hidden_function");
	assert_true(str_ends(r.file, "prog.c"));
	assert_true(r.line >= 13 && r.line <= 15);
	assert_string_equal(r.problem, "");

	q.options.no_inline = true;
	r = ask(&q);
	assert_string_equal(r.name, "hidden_function");
	assert_int_equal(r.line, 0);
}

static void inlined(void **state)
{
	_cleanup_free_ char *path = program("inlined", "");
	uint64_t start = symbol(path, "outer_function");
	bool seen = false;

	for (uint64_t at = start; at < start + 16 && !seen; at++) {
		struct result r = ask(&(struct query){ path, .address = at, .options = uncached });

		assert_string_equal(r.name, "outer_function");
		seen = r.calls == 2;
	}
	assert_true(seen);
}

static void nothing(void **state)
{
	_cleanup_free_ char *path = program("bare", "-s");
	struct result r = ask(&(struct query){ path, .address = 0x1234, .options = uncached });

	assert_string_equal(r.name, "bare+0x1000 (page)");
	assert_non_null(strstr(r.problem, "it is stripped, and functions are shown by their start; pass --symbols FILE (an "
			       "unstripped build, best with build-id "));
	r = ask(&(struct query){ "/nowhere/gone", .identity = "", .address = 0x1099, .options = uncached });
	assert_string_equal(r.name, "gone+0x1000 (page)");
	assert_non_null(strstr(r.problem, "/nowhere/gone"));
}

static void debuglink(void **state)
{
	_cleanup_free_ char *path = program("linked", "");
	uint64_t address = symbol(path, "hidden_function");
	struct query q = { path, .address = address, .options = uncached };

	shell("cd $T && objcopy --only-keep-debug linked linked.dbgfile && strip linked && "
	      "objcopy --add-gnu-debuglink=linked.dbgfile linked");
	assert_string_equal(ask(&q).name, "hidden_function");
	assert_true(ask(&q).line > 0);
	shell("cd $T && mkdir -p .debug && mv linked.dbgfile .debug/");
	assert_string_equal(ask(&q).name, "hidden_function");
	shell("rm $T/.debug/linked.dbgfile");
	assert_true(str_starts(ask(&q).name, "linked+0x"));
}

/* Without build-ids only the link's CRC says that a file belongs. */
static void debuglink_crc(void **state)
{
	_cleanup_free_ char *path = program("crc", "-Wl,--build-id=none");
	struct query q = { path, .address = symbol(path, "hidden_function"), .options = uncached };

	shell("cd $T && objcopy --only-keep-debug crc crc.dbgfile && strip crc && "
	      "objcopy --add-gnu-debuglink=crc.dbgfile crc");
	assert_string_equal(ask(&q).name, "hidden_function");
	shell("printf x >> $T/crc.dbgfile");
	assert_true(str_starts(ask(&q).name, "crc+0x"));
}

static void named_file(void **state)
{
	_cleanup_free_ char *path = program("named", ""), *other = program("other", "-O2");
	_cleanup_free_ char *full = in_folder("elsewhere/full");
	const char *paths[] = { full, NULL }, *wrong[] = { other, NULL }, *missing[] = { "/nowhere/x", NULL };
	struct query q = { path, .address = symbol(path, "hidden_function"),
			   .options = { paths, .no_cache = true } };
	struct result r;

	shell("cd $T && mkdir elsewhere && cp named elsewhere/full && strip named");
	r = ask(&q);
	assert_string_equal(r.name, "hidden_function");
	assert_string_equal(r.problem, "");
	q.options.paths = wrong;
	r = ask(&q);
	assert_true(str_starts(r.name, "named+0x"));
	assert_non_null(strstr(r.problem, "was not used"));
	q.options.paths = missing;
	assert_non_null(strstr(ask(&q).problem, "/nowhere/x"));
	/* The program itself is gone, its unstripped build is not. */
	q.options.paths = paths;
	q.identity = full;
	shell("rm $T/named");
	assert_string_equal(ask(&q).name, "hidden_function");
}

static void named_folder(void **state)
{
	_cleanup_free_ char *path = program("infolder", ""), *store = in_folder("store");
	const char *paths[] = { store, NULL };
	struct query q = { path, .address = symbol(path, "hidden_function"),
			   .options = { paths, .no_cache = true } };

	shell("cd $T && mkdir -p store/.build-id/12 && ln -s loop store/loop && ln -s .. store/up && "
	      "mkfifo store/fifo && echo text > store/readme && "
	      "objcopy --only-keep-debug infolder store/.build-id/12/3456.debug && strip infolder");
	assert_string_equal(ask(&q).name, "hidden_function");
	shell("rm -r $T/store/.build-id");
	assert_true(str_starts(ask(&q).name, "infolder+0x"));
}

/* Beside the stripped program, as cargo leaves it. */
static void sibling(void **state)
{
	_cleanup_free_ char *path = program("node", "");
	struct query q = { path, .address = symbol(path, "hidden_function"), .options = uncached };

	shell("cd $T && mkdir deps && cp node deps/node-0123456789abcdef && strip node");
	assert_string_equal(ask(&q).name, "hidden_function");
	shell("rm -r $T/deps");
}

static void minidebug(void **state)
{
	_cleanup_free_ char *path = program("mini", "");
	struct query q = { path, .address = symbol(path, "hidden_function"), .options = uncached };

	if (system("command -v xz > /dev/null"))
		skip();
	shell("cd $T && objcopy -S --keep-symbol=hidden_function mini mini.tab && "
	      "xz -c mini.tab > mini.xz && strip mini && objcopy --add-section .gnu_debugdata=mini.xz mini");
	assert_string_equal(ask(&q).name, "hidden_function");
}

static void deleted(void **state)
{
	_cleanup_free_ char *path = program("deleted", "");
	struct query q = { path, .identity = "", .address = symbol(path, "hidden_function"),
			   .options = uncached };

	q.keep = open(path, O_RDONLY | O_CLOEXEC);
	shell("rm $T/deleted");
	assert_string_equal(ask(&q).name, "hidden_function");
}

static void replaced(void **state)
{
	_cleanup_free_ char *path = program("replaced", ""), *copy = in_folder("replaced.old");
	struct query q = { path, .identity = copy, .address = symbol(path, "hidden_function"),
			   .options = uncached };
	struct result r;

	shell("cd $T && cp replaced replaced.old && gcc -O2 -g -DBUILD=0 -o replaced prog.c");
	r = ask(&q);
	assert_true(str_starts(r.name, "replaced+0x"));
	assert_non_null(strstr(r.problem, "was replaced since it started"));
	/* Without a build-id its age tells. */
	q.identity = "";
	q.start_wall_ns = clock_wall_ns() - 3600ULL * 1000000000;
	assert_non_null(strstr(ask(&q).problem, "was replaced since it started"));
}

/* Compressed debug sections, of both kinds, and what worker_plain_copy makes of them. */
static void compressed(void **state)
{
	static const char *const kinds[] = { "zlib-gabi", "zlib-gnu" };

	for (size_t i = 0; i < 2; i++) {
		_cleanup_free_ char *path = program("packed", ""), *out = in_folder("unpacked");
		_cleanup_fd_ int in_fd = -1, out_fd = -1;
		uint64_t address = symbol(path, "hidden_function");
		struct worker *w = worker_new();
		struct worker_identity id;
		struct err err = { 0 };
		struct stat st;
		struct result r;

		shell("cd $T && objcopy --compress-debug-sections=%s packed", kinds[i]);
		r = ask(&(struct query){ path, .address = address, .options = uncached });
		assert_string_equal(r.name, "hidden_function");
		assert_true(r.line > 0);
		in_fd = open(path, O_RDONLY | O_CLOEXEC);
		out_fd = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		assert_int_equal(worker_identify(w, in_fd, &id, NULL), 0);
		assert_true(id.compressed);
		assert_int_equal(worker_plain_copy(w, in_fd, out_fd, &err), 0);
		assert_int_equal(fstat(out_fd, &st), 0);
		assert_int_equal(st.st_size, id.unpacked_bytes);
		assert_int_equal(worker_identify(w, out_fd, &id, NULL), 0);
		assert_false(id.compressed);
		shell("cd $T && readelf --debug-dump=info unpacked | grep -q hidden_function");
		r = ask(&(struct query){ out, .identity = path, .address = address, .options = uncached });
		assert_string_equal(r.name, "hidden_function");
		assert_true(r.line > 0);
		worker_free(w);
	}
}

/* --- the cache --- */

static size_t cache_files(const char *suffix)
{
	_cleanup_free_ char *path = in_folder("cache/gasflame");
	DIR *d = opendir(path);
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d)))
		n += str_ends(e->d_name, suffix);
	if (d)
		closedir(d);
	return n;
}

static void cache(void **state)
{
	_cleanup_free_ char *path = program("cached", ""), *copy = in_folder("cached.id");
	uint64_t address = symbol(path, "hidden_function"), other = symbol(path, "outer_function");
	struct query q = { path, .identity = copy, .address = address };
	struct stat st;
	struct result r;

	shell("rm -rf $T/cache; cp $T/cached $T/cached.id");
	assert_string_equal(ask(&q).name, "hidden_function");
	assert_int_equal(cache_files(".names"), 1);
	_cleanup_free_ char *names = in_folder("cache/gasflame");
	assert_int_equal(stat(names, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	/* A second address joins the first. */
	q.address = other;
	assert_string_equal(ask(&q).name, "outer_function");
	assert_int_equal(cache_files(".names"), 1);
	/* Both come from there now, and nothing is written again. */
	shell("cd $T/cache/gasflame && test -s *.names && cp -p *.names $T/kept.names");
	r = ask(&q);
	assert_string_equal(r.name, "outer_function");
	assert_true(r.line > 0);
	shell("cd $T/cache/gasflame && cmp *.names $T/kept.names");
	/* With the program gone nobody can say that it was the same one. */
	shell("cd $T && rm cached");
	q.address = address;
	assert_true(str_starts(ask(&q).name, "cached+0x"));
}

/* A build-id is what a file says of itself: two programs may say the same. */
static void same_build_id(void **state)
{
	_cleanup_free_ char *honest = program("honest", "-Wl,--build-id=0x0123456789abcdef0123456789abcdef"), *liar = NULL;
	struct query q = { honest, .address = symbol(honest, "hidden_function") };

	shell("cd $T && rm -rf cache && mkdir -p lies && sed s/hidden_function/pwned_function/ prog.c > lies/prog.c && "
	      "gcc -O1 -g -DBUILD=0 -Wl,--build-id=0x0123456789abcdef0123456789abcdef -o lies/honest lies/prog.c");
	liar = in_folder("lies/honest");
	q.path = liar;
	assert_string_equal(ask(&q).name, "pwned_function");
	q.path = honest;
	assert_string_equal(ask(&q).name, "hidden_function");
	q.path = liar;
	assert_string_equal(ask(&q).name, "pwned_function");
	assert_int_equal(cache_files(".names"), 2);
	/* In the very place, with the same size and time of change. */
	shell("cd $T && cp -p honest times && cat lies/honest > honest && touch -r times honest && "
	      "test $(stat -c %%Y honest) = $(stat -c %%Y times)");
	q.path = honest;
	assert_string_equal(ask(&q).name, "pwned_function");
	/* And a debug file that somebody else put there. */
	shell("cd $T && cat times > honest && rm -rf cache && objcopy --only-keep-debug lies/honest honest.debug && strip honest");
	assert_string_equal(ask(&q).name, "pwned_function");
	shell("cd $T && objcopy --only-keep-debug times honest.debug");
	assert_string_equal(ask(&q).name, "hidden_function");
}

/* Large compressed debug information is unpacked once, and a damaged copy of it does no harm. */
static void plain_copy(void **state)
{
	_cleanup_free_ char *path = NULL;
	struct query q;

	/* 20 MB of strings, which pack well. */
	shell("cd $T && rm -rf cache && { echo 'enum big {'; seq 250000 | sed "
	      "'s/.*/the_enumerators_of_this_one_have_names_that_are_long_enough_to_fill_a_table_&,/'; "
	      "echo '} filled;'; } > big.h && gcc -O1 -g -gz -DBUILD=0 -include big.h -o big prog.c");
	path = in_folder("big");
	q = (struct query){ path, .address = symbol(path, "hidden_function") };
	assert_true(ask(&q).line > 0);
	assert_int_equal(cache_files(".plain"), 1);
	assert_int_equal(cache_files("0"), 0); /* nothing half-written stays: tmp-PID-0 */
	q.address = symbol(path, "outer_function");
	assert_string_equal(ask(&q).name, "outer_function");
	assert_int_equal(cache_files(".plain"), 1);
	shell("cd $T/cache/gasflame && rm *.names && for f in *.plain; do truncate -s 100 $f; done");
	assert_true(ask(&q).line > 0);
	shell("test $(stat -c %%s $T/cache/gasflame/*.plain) -gt 16000000 && rm $T/big");
}

/* What was cached of a stripped program gives way once its debug file is there. */
static void cache_improves(void **state)
{
	_cleanup_free_ char *path = program("improves", "");
	struct query q = { path, .address = symbol(path, "hidden_function") };

	shell("cd $T && rm -rf cache && cp improves full.save && strip improves");
	assert_true(str_starts(ask(&q).name, "improves+0x"));
	shell("cd $T && mv full.save improves.debug");
	assert_string_equal(ask(&q).name, "hidden_function");
	/* Gone again, it is not believed again. */
	shell("rm $T/improves.debug");
	assert_true(str_starts(ask(&q).name, "improves+0x"));
}

static void cache_hostile(void **state)
{
	_cleanup_free_ char *path = program("hostile", "");
	struct query q = { path, .address = symbol(path, "hidden_function") };
	static const char *const damage[] = {
		"for f in *.names; do printf XX | dd of=$f bs=1 seek=200 conv=notrunc 2>/dev/null; done",
		"for f in *.names; do : > $f; done",
		"for f in *.names; do truncate -s 20 $f; done",
		"for f in *.names; do head -c 100000 /dev/urandom > $f; done",
		"for f in *.names; do rm $f; ln -s /etc/passwd $f; done",
		"for f in *.names; do rm $f; mkfifo $f; done",
		"for f in *.names; do rm $f; mkdir $f; done",
	};

	shell("rm -rf $T/cache");
	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		assert_string_equal(ask(&q).name, "hidden_function");
		shell("cd $T/cache/gasflame && %s", damage[i]);
		assert_string_equal(ask(&q).name, "hidden_function");
		shell("cd $T/cache/gasflame && rm -rf *.names");
	}
	/* A folder that others may write to is not used. */
	shell("chmod 0777 $T/cache/gasflame");
	assert_string_equal(ask(&q).name, "hidden_function");
	assert_int_equal(cache_files(".names"), 0);
	shell("chmod 0700 $T/cache/gasflame");
	assert_string_equal(ask(&q).name, "hidden_function");
	assert_int_equal(cache_files(".names"), 1);
	if (!geteuid()) {
		shell("chown 65534 $T/cache/gasflame && rm $T/cache/gasflame/*.names");
		assert_string_equal(ask(&q).name, "hidden_function");
		assert_int_equal(cache_files(".names"), 0);
		/* That of the user behind sudo is, and stays theirs. */
		shell("chown 65534 $T $T/cache");
		setenv("SUDO_UID", "65534", 1);
		assert_string_equal(ask(&q).name, "hidden_function");
		assert_int_equal(cache_files(".names"), 1);
		shell("test $(stat -c %%u $T/cache/gasflame/*.names) = 65534");
		unsetenv("SUDO_UID");
		shell("chown 0 $T $T/cache");
	}
	shell("rm -rf $T/cache");
}

/* --- the kernel, the vdso --- */

static void kernel_symbols(void **state)
{
	const char text[] = "ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000100 t work\n"
			    "ffffffff81000200 d data\nffffffffc0000000 t ext4_read\t[ext4]\n"
			    "ffffffffc0000100 t bpf_prog_1\t[bpf]\ngarbage\nffff\n\n"
			    "ffffffffc0000050 t late\t[ext4]\n"
			    "ffffffffc0000060 t [\n";
	struct kallsyms *k = kallsyms_parse(mem_strdup(text));
	const char *module;

	assert_false(kallsyms_hidden(k));
	assert_string_equal(kallsyms_find(k, 0xffffffff81000050, &module), "_stext");
	assert_string_equal(kallsyms_find(k, 0xffffffff81000250, &module), "work");
	assert_string_equal(module, "");
	assert_string_equal(kallsyms_find(k, 0xffffffffc0000055, &module), "late");
	assert_string_equal(module, "[ext4]");
	assert_string_equal(kallsyms_find(k, 0xffffffffc0000100, &module), "bpf_prog_1");
	assert_null(kallsyms_find(k, 0xffffffff80000000, &module));
	assert_null(kallsyms_find(k, 0xffffffffffffff00, &module));
	kallsyms_free(k);
	k = kallsyms_parse(mem_strdup("0000000000000000 T _stext\n0000000000000000 t x\n"));
	assert_true(kallsyms_hidden(k));
	kallsyms_free(k);
}

static void kernel_places(void **state)
{
	const char kallsyms[] = "0000000000000000 A fixed\nffffffff9a000000 T startup_64\nffffffff9a000000 T _stext\n"
				"ffffffff9a000000 T _text\nffffffff9a000100 t work\n";
	const char iomem[] = "00001000-0009fbff : System RAM\n  01000000-02206fc7 : Kernel code\n  02400000-02e08fff : Kernel rodata\n";
	const char modules[] = "xfs 2097152 1 - Live 0xffffffffc0600000\next4 995328 1 mbcache,jbd2, Live 0xffffffffc0400000\n"
			       "hidden 4096 0 - Live 0x0000000000000000\nodd\nlong 99999999999999999999999 1 - Live 0xffffffffffffffff\n";
	struct kernelplaces k = { 0 };

	kernelplaces_parse(&k, kallsyms, iomem, modules);
	assert_int_equal(kernelplaces_named(&k, "[kernel]")->start, 0xffffffff9a000000);
	assert_string_equal(kernelplaces_find(&k, 0xffffffff9a000000)->name, "[kernel]");
	assert_string_equal(kernelplaces_find(&k, 0xffffffff9b206fc7)->name, "[kernel]");
	assert_null(kernelplaces_find(&k, 0xffffffff9b206fc8));
	assert_null(kernelplaces_find(&k, 0xffffffff99ffffff));
	assert_string_equal(kernelplaces_find(&k, 0xffffffffc0400010)->name, "[ext4]");
	assert_string_equal(kernelplaces_find(&k, 0xffffffffc07fffff)->name, "[xfs]");
	assert_null(kernelplaces_find(&k, 0xffffffffc0800000));
	assert_null(kernelplaces_named(&k, "[hidden]"));
	/* Nothing is to be seen. */
	kernelplaces_parse(&k, "0000000000000000 T _stext\n", NULL, NULL);
	assert_int_equal(k.list.n, 0);
	kernelplaces_parse(&k, NULL, NULL, NULL);
	assert_int_equal(k.list.n, 0);
	kernelplaces_done(&k);
}

static uint64_t address_of(const char *text, const char *name)
{
	_cleanup_free_ char *end = mem_printf(" T %s\n", name);
	const char *line = strstr(text, end);

	while (line && line > text && line[-1] != '\n')
		line--;
	return line ? strtoull(line, NULL, 16) : 0;
}

/* Distances: from where the kernel is now, and from where the recorder knows its modules. */
static void kernel_distance(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct profile *p = profile_new();
	struct symbolizer *s = symbolizer_new(&uncached, NULL);
	struct profile_module m = { .path = profile_string(p, "[kernel]"), .kind = MODULE_KERNEL };
	uint32_t module = profile_add_module(p, &m), jit, frames[3];
	uint64_t address, start;
	struct result r;

	assert_int_equal(fd_read_path("/proc/kallsyms", 256 << 20, &text, NULL), 0);
	address = address_of(text, "do_exit");
	start = address_of(text, "_stext");
	if (!address || !start) {
		print_message("skipped: the kernel hides its addresses\n");
		symbolizer_free(s);
		profile_free(p);
		skip();
	}
	m.path = profile_string(p, "[kernel jit]");
	jit = profile_add_module(p, &m);
	frames[0] = profile_frame(p, module, FRAME_KERNEL, address + 4 - start);
	/* The beginning is drawn at random, and may be above. */
	profile_set_kernel_base(p, jit, PROFILE_KERNEL_HALF | 0x7fffffff12345678);
	frames[1] = profile_frame(p, jit, FRAME_KERNEL, (address + 4 - 0xffffffff12345678) & ~PROFILE_KERNEL_HALF);
	m.path = profile_string(p, "[gone]");
	frames[2] = profile_frame(p, profile_add_module(p, &m), FRAME_KERNEL, 0x44);
	assert_int_equal(symbolize_profile(s, p, NULL, NULL, NULL), 0);
	read_frame(p, frames[0], &r);
	assert_string_equal(r.name, "do_exit");
	read_frame(p, frames[1], &r);
	assert_string_equal(r.name, "do_exit");
	read_frame(p, frames[2], &r);
	assert_string_equal(r.name, "[gone]+0x44");
	symbolizer_free(s);
	profile_free(p);
}

static void kernel_frame(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct profile *p = profile_new();
	struct symbolizer *s = symbolizer_new(&uncached, NULL);
	struct profile_module m = { .path = profile_string(p, "[kernel]"), .kind = MODULE_KERNEL };
	uint32_t module = profile_add_module(p, &m);
	unsigned long long address = 0xffffffff81000010;
	uint32_t frame;
	struct result r;
	char *line;

	/* From a kernel that shows its addresses, a real function; else the sentence. */
	assert_int_equal(fd_read_path("/proc/kallsyms", 256 << 20, &text, NULL), 0);
	line = strstr(text, " T do_exit\n");
	while (line && line > text && line[-1] != '\n')
		line--;
	if (line)
		sscanf(line, "%llx", &address);
	frame = profile_frame(p, module, FRAME_KERNEL, address ? address + 4 : 0xffffffff81000010);
	assert_int_equal(symbolize_profile(s, p, NULL, NULL, NULL), 0);
	read_frame(p, frame, &r);
	if (line && address) {
		assert_string_equal(r.name, "do_exit");
	} else {
		assert_true(str_starts(r.name, "[kernel]+0x"));
		assert_non_null(strstr(r.problem, "no kernel symbols"));
	}
	symbolizer_free(s);
	profile_free(p);
}

static void other_machine(void **state)
{
	struct profile *p = profile_new();
	struct symbolizer *s = symbolizer_new(&uncached, NULL);
	struct profile_module m = { .path = profile_string(p, "[kernel]"), .kind = MODULE_KERNEL };
	uint32_t module = profile_add_module(p, &m);
	uint32_t frame = profile_frame(p, module, FRAME_KERNEL, 0xffffffff81000010);
	struct result r;

	p->host = profile_string(p, "some-other-machine");
	assert_int_equal(symbolize_profile(s, p, NULL, NULL, NULL), 0);
	read_frame(p, frame, &r);
	assert_string_equal(r.name, "[kernel]+0xffffffff81000010");
	assert_non_null(strstr(r.problem, "another machine"));
	symbolizer_free(s);
	profile_free(p);
}

/* The first function that our own vdso exports. */
static uint64_t vdso_function(const char **ret_name)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)image;
	const Elf64_Shdr *sh = (const Elf64_Shdr *)(image + eh->e_shoff);

	for (unsigned i = 0; i < eh->e_shnum; i++) {
		const Elf64_Sym *syms = (const Elf64_Sym *)(image + sh[i].sh_offset);

		for (size_t k = 0; sh[i].sh_type == SHT_DYNSYM && k < sh[i].sh_size / sizeof(*syms); k++)
			if (ELF64_ST_TYPE(syms[k].st_info) == STT_FUNC && syms[k].st_size &&
			    ELF64_ST_BIND(syms[k].st_info) == STB_GLOBAL) {
				*ret_name = image + sh[sh[i].sh_link].sh_offset + syms[k].st_name;
				return syms[k].st_value;
			}
	}
	return 0;
}

static void vdso(void **state)
{
	struct profile *p = profile_new();
	struct symbolizer *s = symbolizer_new(&uncached, NULL);
	uint32_t module = profile_add_module(p, &(struct profile_module){ .path = profile_string(p, "[vdso]"),
									  .kind = MODULE_VDSO });
	const char *name = "";
	uint64_t address = vdso_function(&name);
	uint32_t frame = profile_frame(p, module, FRAME_USER, address + 1);
	struct result r;

	assert_int_equal(symbolize_profile(s, p, NULL, NULL, NULL), 0);
	read_frame(p, frame, &r);
	/* clock_gettime and __vdso_clock_gettime are one function. */
	assert_non_null(strstr(name, strstr(r.name, "__vdso_") ? r.name + 7 : r.name));
	symbolizer_free(s);
	profile_free(p);
}

/* --- JIT --- */

/* Ourselves as the process that wrote a map. */
static void jit_frame(void **state)
{
	_cleanup_free_ char *path = mem_printf("/tmp/perf-%d.map", getpid());
	FILE *f = fopen(path, "w");

	fprintf(f, "7000 100 LazyCompile:~run app.js:3\n");
	fclose(f);
	for (int round = 0; round < 2; round++) {
		struct profile *p = profile_new();
		struct symbolizer *s = symbolizer_new(&uncached, NULL);
		uint32_t process = profile_add_process(p, &(struct profile_process){ .pid = getpid() });
		struct profile_module m = { .path = profile_string(p, "[jit]"), .kind = MODULE_JIT,
					    .process = process };
		uint32_t frame = profile_frame(p, profile_add_module(p, &m), FRAME_USER, 0x7010);
		struct result r;

		assert_int_equal(symbolize_profile(s, p, NULL, NULL, NULL), 0);
		read_frame(p, frame, &r);
		if (!round) {
			assert_string_equal(r.name, "LazyCompile:~run app.js:3");
		} else {
			assert_string_equal(r.name, "[jit]+0x7000 (page)");
			assert_non_null(strstr(r.problem, "does not belong"));
		}
		symbolizer_free(s);
		profile_free(p);
		/* The same file, of somebody else. */
		if (geteuid() || chown(path, 65534, 65534))
			break;
	}
	unlink(path);
}

/* --- debuginfod --- */

static void servers(void **state)
{
	_cleanup_free_ char *path = program("served", ""), *id = in_folder("ids/served");
	struct query q = { path, .identity = id, .address = symbol(path, "hidden_function"),
			   .options = { .debuginfod = true } };
	char url[64] = "";
	struct result r;
	pid_t pid;
	FILE *f;

	shell("cd $T && rm -rf cache && mkdir ids && cp served ids/");
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	shell("cd $T && strip served");
	r = ask(&q);
	assert_true(str_starts(r.name, "served+0x"));
	if (strstr(r.problem, "built without") || system("command -v python3 > /dev/null")) {
		unsetenv("DEBUGINFOD_URLS");
		skip();
	}
	assert_non_null(strstr(r.problem, "debuginfod: http://127.0.0.1:1"));
	shell("cd $T && id=$(readelf -n ids/served | sed -n 's/.*Build ID: //p') && "
	      "mkdir -p www/buildid/$id && objcopy --only-keep-debug ids/served www/buildid/$id/debuginfo");
	pid = fork();
	if (!pid) {
		execlp("python3", "python3", "-c",
		       "import http.server,os,functools\n"
		       "t=os.environ['T']\n"
		       "class H(http.server.SimpleHTTPRequestHandler):\n"
		       "  def log_message(self,*a): pass\n"
		       "s=http.server.HTTPServer(('127.0.0.1',0),functools.partial(H,directory=t+'/www'))\n"
		       "open(t+'/port.new','w').write(str(s.server_port))\n"
		       "os.rename(t+'/port.new',t+'/port')\n"
		       "s.serve_forever()\n", NULL);
		_exit(127);
	}
	for (int i = 0; i < 1200 && !url[0]; i++) {
		_cleanup_free_ char *port = in_folder("port");
		char number[16];

		f = fopen(port, "r");
		if (f && fgets(number, sizeof(number), f))
			snprintf(url, sizeof(url), "http://127.0.0.1:1 http://127.0.0.1:%s/", number);
		if (f)
			fclose(f);
		usleep(50000);
	}
	assert_true(url[0]);
	setenv("DEBUGINFOD_URLS", url, 1);
	assert_string_equal(ask(&q).name, "hidden_function");
	assert_int_equal(cache_files(".debuginfo"), 1);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	/* Without the server, from the cache; and an unasked one is never asked. */
	q.address = symbol(id, "outer_function");
	assert_string_equal(ask(&q).name, "outer_function");
	unsetenv("DEBUGINFOD_URLS");
	shell("rm -rf $T/cache");
}

static int make(void **state)
{
	return programs_make(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_path),
		cmocka_unit_test(inlined),
		cmocka_unit_test(nothing),
		cmocka_unit_test(debuglink),
		cmocka_unit_test(debuglink_crc),
		cmocka_unit_test(named_file),
		cmocka_unit_test(named_folder),
		cmocka_unit_test(sibling),
		cmocka_unit_test(minidebug),
		cmocka_unit_test(deleted),
		cmocka_unit_test(replaced),
		cmocka_unit_test(compressed),
		cmocka_unit_test(plain_copy),
		cmocka_unit_test(cache),
		cmocka_unit_test(same_build_id),
		cmocka_unit_test(cache_improves),
		cmocka_unit_test(cache_hostile),
		cmocka_unit_test(kernel_symbols),
		cmocka_unit_test(kernel_places),
		cmocka_unit_test(kernel_distance),
		cmocka_unit_test(kernel_frame),
		cmocka_unit_test(other_machine),
		cmocka_unit_test(vdso),
		cmocka_unit_test(jit_frame),
		cmocka_unit_test(servers),
	};

	return cmocka_run_group_tests(tests, make, programs_remove);
}
