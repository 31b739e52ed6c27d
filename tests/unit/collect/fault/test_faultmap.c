#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "collect/fault/faultmap.h"
#include "collect/shared.h"
#include "profile/profile.h"

/* The name of the innermost frame of what a major fault on the file became, less the range. */
static const char *named(struct faultmap *m, struct profile *p, const struct shared_fault *f)
{
	uint32_t stack = p->stacks.v[faultmap_stack(m, f, 0, 1)].parent;
	const struct profile_frame *frame = &p->frames.v[p->stacks.v[stack].frame];

	return profile_str(p, p->functions.v[p->lines.v[frame->first_line].function].name);
}

static struct shared_fault fault_on(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (struct shared_fault){ .pid = getpid(), .tid = getpid(), .count = 1, .what = FAULT_MAJOR,
				      .where = FAULT_FILE, .shift = 16, .inode = st.st_ino,
				      .device = major(st.st_dev) << 20 | minor(st.st_dev) };
}

/* Mapped, or open only because it was mapped for a moment, or neither. */
static void files_have_their_paths(void **state)
{
	char path[] = "/tmp/gasflame-faultmap-XXXXXX";
	int fd = mkstemp(path);
	struct shared_fault f;
	pid_t pid = getpid();

	assert_true(fd >= 0 && !ftruncate(fd, 8192));
	f = fault_on(fd);
	for (int round = 0; round < 3; round++) {
		struct profile *p = profile_new();
		struct faultmap *m = faultmap_new(p, &pid, 1);
		void *memory = round == 0 ? mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0) : NULL;
		const char *name;

		if (round == 2)
			close(fd);
		name = named(m, p, &f);
		if (round < 2)
			assert_string_equal(name, path);
		else
			assert_non_null(strstr(name, "[file "));
		if (memory)
			munmap(memory, 8192);
		faultmap_free(m);
		profile_free(p);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_have_their_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
