/*
 * golden.h - compares text with a file below tests/golden.
 *
 * GASFLAME_GOLDEN=refresh in the environment writes the files anew; read the
 * difference before it is kept. GOLDEN_DIR comes from meson.
 */
#pragma once

#include "base/buf.h"
#include "base/file/fd.h"
#include "base/mem.h"

static inline void golden_check(const char *name, const char *data, size_t n)
{
	_cleanup_free_ char *path = mem_printf("%s/%s", GOLDEN_DIR, name), *expected = NULL;
	const char *mode = getenv("GASFLAME_GOLDEN");
	size_t expected_n = 0, at = 0, line = 1;

	if (mode && !strcmp(mode, "refresh")) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		assert_int_equal(fwrite(data, 1, n, f), n);
		assert_int_equal(fclose(f), 0);
		return;
	}
	if (fd_read_path(path, 64 << 20, &expected, &expected_n))
		fail_msg("%s is missing: GASFLAME_GOLDEN=refresh makes it", path);
	while (at < n && at < expected_n && data[at] == expected[at])
		line += data[at++] == '\n';
	if (at < n || at < expected_n)
		fail_msg("%s differs in line %zu (GASFLAME_GOLDEN=refresh rewrites it):\n expected %.80s\n   "
			 "   got %.80s",
			 path, line, expected + at, data + at);
}
