/*
 * all.c NAME - one program with many of the unit tests, for the build with sanitizers.
 *
 * A program of its own for each would be 48 MB there, and most of the work of that build would be to link them. The main()
 * of each test is main_NAME here; TESTS, from meson.build, is their list.
 */
#include <stdio.h>
#include <string.h>

#define TEST(name) int main_##name(void);
TESTS
#undef TEST

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : "";

#define TEST(name) \
	if (!strcmp(wanted, #name)) \
		return main_##name();
	TESTS
#undef TEST
	fprintf(stderr, "usage: %s TEST\n", argv[0]);
	return 2;
}
