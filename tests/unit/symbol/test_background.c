#include "test.h"

#include <errno.h>
#include <link.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "elf/probe/disassemble.h"
#include "profile/profile.h"
#include "symbol/background.h"
#include "symbol/instructions.h"
#include "symbol/symbolize.h"

__attribute__((noinline, used)) static int find_me_in_the_background(int x)
{
	return x * 7919 + 1;
}

static int first_bias(struct dl_phdr_info *info, size_t size, void *context)
{
	*(uint64_t *)context = info->dlpi_addr;
	return 1;
}

/* This very program, with one frame in that function. */
static struct profile *own_profile(uint32_t *ret_frame, uint64_t *ret_address)
{
	struct profile *p = profile_new();
	uint64_t bias = 0;
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	uint32_t process, module;

	assert_true(n > 0);
	path[n] = 0;
	dl_iterate_phdr(first_bias, &bias);
	*ret_address = (uint64_t)(uintptr_t)find_me_in_the_background - bias;
	p->start_wall_ns = clock_wall_ns();
	process = profile_add_process(p, &(struct profile_process){ .pid = getpid() });
	module = profile_add_module(p, &(struct profile_module){ .path = profile_string(p, path), .kind = MODULE_FILE,
								 .process = PROFILE_NONE });
	profile_add_mapping(p, &(struct profile_mapping){ .process = process, .module = module, .bias = bias });
	*ret_frame = profile_frame(p, module, FRAME_USER, *ret_address);
	return p;
}

static const char *name_of(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];

	return f->line_count ? profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name) : "";
}

/* Polls until the frame has a name; false after a minute. */
static bool wait_for_name(struct background *b, struct profile *p, uint32_t frame)
{
	for (int i = 0; i < 3000 && !p->frames.v[frame].line_count; i++) {
		struct timespec nap = { .tv_nsec = 20000000 };

		background_poll(b, p);
		nanosleep(&nap, NULL);
	}
	return p->frames.v[frame].line_count > 0;
}

static void names_come_while_it_grows(void **state)
{
	const struct symbolize_options options = { .no_cache = true };
	uint64_t address;
	uint32_t frame, second;
	struct profile *p = own_profile(&frame, &address);
	struct background *b = background_new(&options);

	assert_false(background_busy(b));
	background_poll(b, p);
	assert_true(background_busy(b));
	/* What comes meanwhile is for the next batch. */
	second = profile_frame(p, 0, FRAME_USER, address + 1);
	profile_stack(p, 0, second);
	assert_true(wait_for_name(b, p, frame));
	assert_string_equal(name_of(p, frame), "find_me_in_the_background");
	assert_true(wait_for_name(b, p, second));
	assert_string_equal(name_of(p, second), "find_me_in_the_background");
	background_free(b);
	profile_free(p);
}

/* Leaving does not wait for what is under way. */
/* Polls until the frame has that name; false after a minute. */
static bool wait_for(struct background *b, struct profile *p, uint32_t frame, const char *name)
{
	for (int i = 0; i < 3000 && strcmp(name_of(p, frame), name); i++) {
		struct timespec nap = { .tv_nsec = 20000000 };

		background_poll(b, p);
		nanosleep(&nap, NULL);
	}
	return !strcmp(name_of(p, frame), name);
}

/* Code that is made at run time: its map is written later, and then other code takes its place. */
static void names_of_late_code(void **state)
{
	const struct symbolize_options options = { .no_cache = true };
	_cleanup_free_ char *path = mem_printf("/tmp/perf-%d.map", getpid());
	struct background *b = background_new(&options);
	struct profile *p = profile_new();
	uint32_t frame;
	FILE *map;

	unlink(path);
	p->start_wall_ns = clock_wall_ns();
	profile_add_process(p, &(struct profile_process){ .pid = getpid() });
	profile_add_module(p, &(struct profile_module){ .path = profile_string(p, "[jit]"), .kind = MODULE_JIT, .process = 0 });
	frame = profile_frame(p, 0, FRAME_USER, 0x7010);
	assert_true(wait_for(b, p, frame, "[jit]+0x7000 (page)"));
	map = fopen(path, "w");
	fprintf(map, "7000 100 early\n");
	fflush(map);
	assert_true(wait_for(b, p, frame, "early"));
	fprintf(map, "7000 100 late\n");
	fclose(map);
	assert_true(wait_for(b, p, frame, "late"));
	background_free(b);
	profile_free(p);
	unlink(path);
}

static void leaving_does_not_wait(void **state)
{
	const struct symbolize_options options = { .no_cache = true };
	uint64_t address;
	uint32_t frame;
	struct profile *p = own_profile(&frame, &address);
	struct background *b = background_new(&options);
	uint64_t before = clock_mono_ns();

	background_poll(b, p);
	background_free(b);
	assert_true(clock_mono_ns() - before < 10000000000);
	profile_free(p);
	background_free(NULL);
}

struct seen {
	uint64_t first, last_end;
	unsigned count, returns;
};

static void see(void *context, uint64_t address, uint32_t size, const char *text)
{
	struct seen *s = context;

	if (!s->count++)
		s->first = address;
	else
		assert_true(address >= s->last_end);
	s->last_end = address + size;
	s->returns += !strncmp(text, "ret", 3);
	for (; *text; text++)
		assert_true(*text >= ' ' && *text <= '~');
}

static void instructions_of_a_function(void **state)
{
	uint64_t address;
	uint32_t frame;
	struct profile *p = own_profile(&frame, &address);
	struct worker *w = worker_new();
	struct err err = { 0 };
	struct seen s = { 0 };
	int r = instructions_read(p, 0, address + 2, w, NULL, see, &s, &err);

	if (!disassemble_there()) {
		assert_int_equal(r, -ENOTSUP);
		assert_non_null(strstr(err.text, "libcapstone"));
	} else {
		assert_int_equal(r, 0);
		assert_int_equal(s.first, address); /* it begins where the function does */
		assert_true(s.returns >= 1);
		/* Nonsense is an error, or bytes; never a crash. */
		r = instructions_read(p, 0, 0xdeadbeef000, w, NULL, see, &s, &err);
		assert_int_equal(r, -ENOENT);
	}
	assert_true(instructions_read(p, 77, 0, w, NULL, see, &s, &err) < 0);
	worker_free(w);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_come_while_it_grows),
		cmocka_unit_test(names_of_late_code),
		cmocka_unit_test(leaving_does_not_wait),
		cmocka_unit_test(instructions_of_a_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
