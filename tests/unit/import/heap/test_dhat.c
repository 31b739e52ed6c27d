/* test_dhat.c - DHAT's JSON: totals of places, and files that are wrong. */
#include "test.h"

#include "base/buf.h"
#include "golden.h"
#include "heapfiles.h"

#define HEAD "{\"dhatFileVersion\":2,\"mode\":\"heap\",\"verb\":\"Allocated\",\"bklt\":true,\"bkacc\":true,\"tu\":\"instrs\",\"Mtu\":\"Minstr\","
#define FRAMES                                                                                                    \
	"\"ftbl\":[\"[root]\",\"0x48417B4: malloc (in /usr/libexec/valgrind/vgpreload_dhat-amd64-linux.so)\","   \
	"\"0x109176: keep (prog.c:4)\",\"0x1091DC: main (src/a.rs:9:13)\",\"0x5: ??? (in /lib/x.so)\"]}"

static const char good[] = HEAD "\"tuth\":500,\"cmd\":\"./prog\",\"pid\":77,\"te\":279952,\"tg\":174532,\"pps\":["
	"{\"tb\":100000,\"tbk\":100,\"tl\":11,\"mb\":100000,\"mbk\":100,\"gb\":90000,\"gbk\":90,\"eb\":40000,\"ebk\":40,\"rb\":7,\"wb\":9,"
	"\"acc\":[-1000,100],\"fs\":[1,2,3]},"
	"{\"tb\":500,\"tbk\":1,\"gb\":500,\"gbk\":1,\"eb\":0,\"ebk\":0,\"rb\":0,\"wb\":0,\"fs\":[1,2,4]},"
	"{\"tb\":0,\"tbk\":3,\"gb\":0,\"gbk\":0,\"eb\":0,\"ebk\":0,\"rb\":0,\"wb\":0,\"fs\":[]}],"
	FRAMES;

static void places(void **state)
{
	struct profile *p = heapfile_read("dhat", good);
	struct buf folded = heapfile_folded(p);

	heapfile_expect(p, "alloc", 100500, 104);
	heapfile_expect(p, "peak", 90500, 91);
	heapfile_expect(p, "heap", 40000, 40);
	assert_int_equal(heapfile_sum(p, "reads").bytes, 7);
	assert_int_equal(heapfile_sum(p, "writes").bytes, 9);
	assert_int_equal(p->duration_ns, 279952);
	assert_int_equal(p->threads.v[0].tid, 77);
	assert_string_equal(profile_str(p, p->target), "prog");
	golden_check("import-dhat.folded", folded.data, folded.n);
	buf_done(&folded);
	profile_free(p);
}

static void modes(void **state)
{
	struct profile *p = heapfile_read("dhat", "{\"dhatFileVersion\":2,\"mode\":\"copy\",\"bklt\":false,\"te\":5,\"pps\":"
						  "[{\"tb\":15,\"tbk\":2,\"fs\":[1,2]}]," FRAMES);

	assert_int_equal(p->events.n, 1);
	heapfile_expect(p, "copied", 15, 2);
	profile_free(p);
	p = heapfile_read("dhat", "{\"dhatFileVersion\":2,\"mode\":\"ad-hoc\",\"te\":5,\"pps\":[{\"tb\":15,\"tbk\":2,\"fs\":[2]}]," FRAMES);
	assert_string_equal(profile_str(p, p->events.v[0].unit), "count");
	heapfile_expect(p, "units", 15, 2);
	profile_free(p);
	/* Rust's crate has microseconds, and no accesses. */
	p = heapfile_read("dhat", "{\"dhatFileVersion\":2,\"mode\":\"rust-heap\",\"bklt\":true,\"bkacc\":false,\"tu\":\"µs\",\"te\":5,\"tg\":2,"
				  "\"pps\":[{\"tb\":15,\"tbk\":2,\"gb\":8,\"gbk\":1,\"eb\":0,\"ebk\":0,\"fs\":[3]}]," FRAMES);
	assert_int_equal(p->duration_ns, 5000);
	assert_int_equal(p->events.n, 3);
	heapfile_expect(p, "peak", 8, 1);
	assert_int_equal(p->lines.v[p->frames.v[p->stacks.v[p->samples.v[0].stack].frame].first_line].line, 9);
	profile_free(p);
}

/* More objects than a sample can count are several samples. */
static void many(void **state)
{
	struct profile *p = heapfile_read("dhat", HEAD "\"pps\":[{\"tb\":90000000000,\"tbk\":10000000000,\"fs\":[2]}]," FRAMES);

	heapfile_expect(p, "alloc", 90000000000, 10000000000);
	profile_free(p);
}

static void bad_files(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "{\"dhatFileVersion\":3,\"mode\":\"heap\",\"pps\":[]," FRAMES, "its version is 3" },
		{ "{\"dhatFileVersion\":2,\"mode\":\"?\",\"pps\":[]," FRAMES, "its mode is" },
		{ HEAD "\"pps\":7," FRAMES, "it has no places" },
		{ HEAD FRAMES, "it has no places" },
		{ HEAD "\"pps\":[{\"fs\":[5]}]," FRAMES, "place 0 of \"pps\": there is no such frame" },
		{ HEAD "\"pps\":[{},{\"fs\":[-1]}]," FRAMES, "place 1 of \"pps\": there is no such frame" },
		{ HEAD "\"pps\":[{\"fs\":[\"a\"]}]," FRAMES, "there is no such frame" },
		{ HEAD "\"pps\":[{\"tb\":-5,\"fs\":[1]}]," FRAMES, "\"tb\" is no number" },
		{ HEAD "\"pps\":[{\"tb\":1.5,\"fs\":[1]}]," FRAMES, "\"tb\" is no number" },
		{ HEAD "\"pps\":[{\"tb\":9223372036854775807},{\"tb\":1}]," FRAMES, "place 1 of \"pps\": its bytes add up" },
		{ HEAD "\"pps\":[{\"tb\":1,\"tbk\":9223372036854775807}]," FRAMES, "objects of one stack" },
		{ HEAD "\"pps\":[{\"tb\":18446744073709551616}]," FRAMES, "byte " },
		{ HEAD "\"te\":-1,\"pps\":[]," FRAMES, "\"te\" is no number" },
		{ HEAD "\"pps\":[],\"ftbl\":[1]}", "frame 0 of \"ftbl\" is no text" },
		{ HEAD, "byte " },
	};
	struct buf bomb = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		import_refused("dhat", cases[i].text, cases[i].why);
	for (int i = 0; i < 100000; i++)
		buf_puts(&bomb, "[");
	import_refused("dhat", bomb.data, "byte ");
	buf_done(&bomb);
	import_refused("dhat", "[1]", "version is 0");
	import_cut_everywhere("dhat", good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(modes),
		cmocka_unit_test(many),
		cmocka_unit_test(bad_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
