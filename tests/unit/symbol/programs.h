/*
 * programs.h - programs that a test of symbols compiles in a folder of its own, and a cache of names in that folder.
 *
 *	static int make(void **state) { return programs_make(source); }
 *	cmocka_run_group_tests(tests, make, programs_remove);
 */
#pragma once

#include "test.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "elf/worker/worker.h"
#include "folder.h"
#include "profile/profile.h"
#include "putfile.h"

static inline void __attribute__((format(printf, 1, 2))) shell(const char *fmt, ...)
{
	char command[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	if (system(command))
		fail_msg("%s", command);
}

/* The folder is $T in commands; prog.c in it has the source. */
static inline int programs_make(const char *source)
{
	_cleanup_free_ char *cache = NULL;

	if (make_folder(NULL))
		return -1;
	cache = in_folder("cache");
	setenv("T", folder, 1);
	setenv("XDG_CACHE_HOME", cache, 1);
	unsetenv("SUDO_UID");
	put(folder, "prog.c", source);
	return 0;
}

static inline int programs_remove(void **state)
{
	return remove_folder(state);
}

/* The first word that a command prints, a hexadecimal number. */
static inline uint64_t number_of(const char *command)
{
	FILE *f = popen(command, "r");
	unsigned long long v = 0;

	assert_int_equal(fscanf(f, "%llx", &v), 1);
	pclose(f);
	return v;
}

/* The address of a symbol. */
static inline uint64_t symbol(const char *path, const char *name)
{
	_cleanup_free_ char *command = mem_printf("nm %s | grep -w %s", path, name);

	return number_of(command);
}

/* A module of the profile: path, with the build-id of the file identity. "": it has none. */
static inline uint32_t add_module(struct profile *p, struct worker *w, const char *path, const char *identity)
{
	struct profile_module m = { .kind = MODULE_FILE, .process = PROFILE_NONE, .path = profile_string(p, path) };

	if (identity[0]) {
		_cleanup_fd_ int fd = open(identity, O_RDONLY | O_CLOEXEC);
		struct worker_identity id;

		assert_int_equal(worker_identify(w, fd, &id, NULL), 0);
		m.build_id_size = id.build_id_size;
		memcpy(m.build_id, id.build_id, 20);
	}
	return profile_add_module(p, &m);
}
