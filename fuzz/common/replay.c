/*
 * replay.c - runs a fuzzer's function once for each file named, or found in a folder named. So that what
 * once broke is tried again with any compiler, sanitizers or not.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const size_t input_limit = 64 << 20;

/* How many inputs were run, or -1. */
static int replay_file(const char *path)
{
	char *data;
	uint8_t *exact;
	size_t n;
	int r = fd_read_path(path, input_limit, &data, &n);

	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return -1;
	}
	/* Without a byte to spare, so that a sanitizer sees one read too many. */
	exact = mem_resize(NULL, n + !n, 1);
	memcpy(exact, data, n);
	free(data);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return 1;
}

static int replay_folder(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int count = 0;

	if (!dir) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	while (count >= 0 && (e = readdir(dir))) {
		_cleanup_free_ char *file = mem_printf("%s/%s", path, e->d_name);
		struct stat st;

		if (!stat(file, &st) && S_ISREG(st.st_mode))
			count = replay_file(file) < 0 ? -1 : count + 1;
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;
		int n;

		if (stat(argv[i], &st)) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
			return 1;
		}
		n = S_ISDIR(st.st_mode) ? replay_folder(argv[i]) : replay_file(argv[i]);
		if (n < 0)
			return 1;
		total += n;
	}
	printf("%d inputs\n", total);
	return total ? 0 : 1;
}
