/*
 * symbolize.h - gives the frames of a profile their names, at the end, once for each address.
 *
 * For every module: the file itself (a descriptor that the recorder kept, else
 * its path, when its build-id is the one recorded), its separate debug file
 * (.build-id folders, .gnu_debuglink, --symbols, a sibling build with the same
 * build-id, debuginfod when asked), read by the unprivileged child; kernel
 * frames from /proc/kallsyms; JIT frames from perf maps and jitdumps (jit/jitnames.h).
 * Results are cached below the user's cache folder (namecache.h). A frame for
 * which nothing is found gets the start of its function by the unwind
 * information, "reth+0x24bb400"; where that is not known either, its page of
 * code, "reth+0x24bb000 (page)", and so does code without a file. Such names
 * are replaced when symbols turn up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct kallsyms;
struct profile;
struct symbolizer;
struct worker;

struct symbolize_options {
	const char *const *paths; /* --symbols: files or folders; NULL-terminated, may be NULL */
	const char *root;         /* modules' paths are below this folder, a container's root; NULL: / */
	bool debuginfod;          /* ask the servers of DEBUGINFOD_URLS */
	bool no_cache;
	bool no_inline;           /* symbol tables only, no DWARF */
	bool keep_hash;           /* Rust hashes and compiler suffixes stay */
	bool often;               /* the same files for a few frames each minute: what is unpacked of them is kept on disk also where it is little */
};

/* worker is borrowed (NULL: makes its own). */
struct symbolizer *symbolizer_new(const struct symbolize_options *options, struct worker *worker);
void symbolizer_free(struct symbolizer *s);
/* The file of a module as it was when it ran; takes over fd. A callback of those that read files: the context is the
 * symbolizer. */
void symbolizer_keep_file(void *symbolizer, uint32_t module, int fd);
/* The kernel's symbols as they were read during the recording; takes them over. NULL is fine. */
void symbolizer_keep_kernel(struct symbolizer *s, struct kallsyms *kernel);
/* The same for symbols that stay the caller's, and there until the next call of one of these two, or the end. */
void symbolizer_lend_kernel(struct symbolizer *s, struct kallsyms *kernel);
/* While recording, about once a second: opens the maps and dumps of code made at run time (jit/jitfiles.h), which may be
 * gone at the end. Returns true if one of them is new or has grown. */
bool symbolizer_look(struct symbolizer *s, const struct profile *p);

/* Called now and then with the progress: done of total. */
typedef void symbolize_progress_fn(void *context, const char *module, size_t done, size_t total);

/* Names every frame that has none, and with --symbols or debuginfod those whose name is a place or an exported symbol;
 * after worker_cancel() it ends at once, and frames that have none yet stay so. Adds the counters
 * symbols.{frames,named,with lines,inlined,ms}, one "symbols.problem: <sentence>" for each module that has code in the profile
 * but no names and each file of --symbols that is not used, and one "symbols.other build: <sentence>" for each other build. */
int symbolize_profile(struct symbolizer *s, struct profile *p, symbolize_progress_fn *progress,
		      void *context, struct err *err);
