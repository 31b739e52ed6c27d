#include "test.h"

#include <errno.h>
#include <lzma.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/stream.h"
#include "base/mem.h"

enum { LARGE = 300000 };

/* --- how things are packed --- */

static void pack_gzip(struct buf *b, const char *data, size_t n)
{
	z_stream z = { 0 };
	_cleanup_free_ char *out = NULL;

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.avail_out = deflateBound(&z, n);
	out = mem_alloc(z.avail_out);
	z.next_in = (Bytef *)data;
	z.avail_in = n;
	z.next_out = (Bytef *)out;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	buf_add(b, out, z.total_out);
	deflateEnd(&z);
}

static void pack_zstd_as(struct buf *b, const char *data, size_t n, bool checksum)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t room = ZSTD_compressBound(n), r;
	_cleanup_free_ char *out = mem_alloc(room);

	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksum);
	r = ZSTD_compress2(c, out, room, data, n);
	assert_false(ZSTD_isError(r));
	buf_add(b, out, r);
	ZSTD_freeCCtx(c);
}

static void pack_zstd(struct buf *b, const char *data, size_t n)
{
	pack_zstd_as(b, data, n, true);
}

/* As programs make them that call the library. */
static void pack_zstd_plain(struct buf *b, const char *data, size_t n)
{
	pack_zstd_as(b, data, n, false);
}

static void pack_xz(struct buf *b, const char *data, size_t n)
{
	size_t room = lzma_stream_buffer_bound(n), at = 0;
	_cleanup_free_ uint8_t *out = mem_alloc(room);

	assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, (const uint8_t *)data, n, out, &at, room), LZMA_OK);
	buf_add(b, out, at);
}

static const struct packer {
	const char *name;
	void (*pack)(struct buf *b, const char *data, size_t n);
	size_t magic_n;
	bool garbage; /* what follows is ignored */
} packers[] = {
	{ "gzip", pack_gzip, 3, true },
	{ "zstd", pack_zstd, 4, false },
	{ "zstd", pack_zstd_plain, 4, false },
	{ "xz", pack_xz, 6, false },
};

/* Text that packs well, and not too well. */
static char *make_text(size_t n)
{
	char *text = mem_alloc(n + 1);
	uint32_t x = 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 1103515245 + 12345;
		text[i] = i % 50 < 40 ? 'a' + i % 40 % 26 : 'A' + (x >> 20) % 26;
	}
	return text;
}

/* All of a stream, so many bytes at a time. */
static int read_in_pieces(struct stream *s, size_t piece, struct buf *out, struct err *err)
{
	_cleanup_free_ char *data = mem_alloc(piece);
	ssize_t n;

	while ((n = stream_read(s, data, piece, err)) > 0) {
		assert_true((size_t)n <= piece);
		buf_add(out, data, n);
		assert_int_equal(stream_offset(s), out->n);
	}
	return n;
}

static void check_reads(const struct buf *packed, const char *text, size_t n, const char *format)
{
	static const size_t pieces[] = { 1, 7, 4096, 65536, 1 << 20 };

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		_cleanup_(stream_freep) struct stream *s = stream_of(packed->data, packed->n);
		_cleanup_(buf_done) struct buf out = { 0 };
		struct err err = { 0 };

		if (pieces[i] == 1 && n > 10000)
			continue;
		if (read_in_pieces(s, pieces[i], &out, &err))
			fail_msg("%s in pieces of %zu: %s", format, pieces[i], err.text);
		assert_int_equal(out.n, n);
		assert_memory_equal(out.data, text, n);
		if (format)
			assert_string_equal(stream_packed(s), format);
		else
			assert_null(stream_packed(s));
	}
}

/* --- what is whole --- */

static void as_it_is(void **state)
{
	_cleanup_free_ char *text = make_text(LARGE);

	for (size_t n = 1; n < 20; n++)
		check_reads(&(struct buf){ text, n, n }, text, n, NULL);
	check_reads(&(struct buf){ text, LARGE, LARGE }, text, LARGE, NULL);
}

static void packed(void **state)
{
	static const size_t lengths[] = { 1, 5, 1000, LARGE };
	_cleanup_free_ char *text = make_text(LARGE), *zeros = mem_alloc(LARGE);

	for (size_t i = 0; i < ARRAY_LEN(packers); i++)
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
			_cleanup_(buf_done) struct buf b = { 0 }, z = { 0 };

			packers[i].pack(&b, text, lengths[k]);
			check_reads(&b, text, lengths[k], packers[i].name);
			/* Much comes out of little, all of which is read at once. */
			packers[i].pack(&z, zeros, lengths[k]);
			check_reads(&z, zeros, lengths[k], packers[i].name);
		}
}

static void members_are_joined(void **state)
{
	_cleanup_free_ char *text = make_text(LARGE);

	for (size_t i = 0; i < ARRAY_LEN(packers); i++) {
		_cleanup_(buf_done) struct buf b = { 0 };

		packers[i].pack(&b, text, 10);
		packers[i].pack(&b, text + 10, 0);
		packers[i].pack(&b, text + 10, 200000);
		packers[i].pack(&b, text + 200010, LARGE - 200010);
		check_reads(&b, text, LARGE, packers[i].name);
	}
}

static void zeros_between_members(void **state)
{
	static const size_t lengths[] = { 4, 8, 512, 700000 };
	_cleanup_free_ char *text = make_text(100), *zeros = mem_alloc(700000);

	for (size_t i = 0; i < ARRAY_LEN(packers); i++)
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
			_cleanup_(buf_done) struct buf b = { 0 };

			packers[i].pack(&b, text, 60);
			buf_add(&b, zeros, lengths[k]);
			packers[i].pack(&b, text + 60, 40);
			buf_add(&b, zeros, lengths[k]);
			check_reads(&b, text, 100, packers[i].name);
		}
}

/* pzstd begins with a frame that says how long the next one is, and readers skip it. */
static void skipped_frames(void **state)
{
	static const char frame[] = "\x5f\x2a\x4d\x18\x04\x00\x00\x00\xff\x00\xff\x00";
	_cleanup_free_ char *text = make_text(100);
	_cleanup_(buf_done) struct buf b = { 0 };

	buf_add(&b, frame, 12);
	pack_zstd(&b, text, 50);
	buf_add(&b, frame, 12);
	buf_add(&b, frame, 12);
	pack_zstd(&b, text + 50, 50);
	buf_add(&b, frame, 12);
	check_reads(&b, text, 100, "zstd");
}

static void what_follows(void **state)
{
	static const char *const garbage[] = { "x", "garbage", "a longer text, as of a log that went to the same file" };
	_cleanup_free_ char *text = make_text(100);

	for (size_t i = 0; i < ARRAY_LEN(packers); i++)
		for (size_t k = 0; k < ARRAY_LEN(garbage); k++) {
			_cleanup_(stream_freep) struct stream *s = NULL;
			_cleanup_(buf_done) struct buf b = { 0 }, out = { 0 };
			struct err err = { 0 };
			int r;

			packers[i].pack(&b, text, 100);
			buf_puts(&b, garbage[k]);
			s = stream_of(b.data, b.n);
			r = read_in_pieces(s, 4096, &out, &err);
			assert_int_equal(out.n, 100);
			assert_int_equal(r, packers[i].garbage ? 0 : -EINVAL);
			if (r)
				assert_string_equal(err.text, packers[i].magic_n == 4 ?
						    "after 100 bytes: after its zstd data come bytes that are none" :
						    "after 100 bytes: after its xz data come bytes that are none");
		}
}

static void empty(void **state)
{
	_cleanup_(stream_freep) struct stream *s = stream_of("", 0);
	const char *start;
	char c, *all;
	size_t n = 7;

	assert_int_equal(stream_peek(s, &start, NULL), 0);
	assert_int_equal(stream_read(s, &c, 1, NULL), 0);
	assert_int_equal(stream_whole(s, 0, &all, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_string_equal(all, "");
	free(all);
}

/* --- what is not --- */

static int whole_of(const void *data, size_t n, size_t limit, struct buf *out, struct err *err)
{
	/* A copy that ends where it ends, for the sanitizer. */
	_cleanup_free_ char *copy = mem_alloc(n + 1), *all = NULL;
	_cleanup_(stream_freep) struct stream *s = NULL;
	size_t all_n = 0;
	int r;

	memcpy(copy, data, n);
	s = stream_of(copy, n);
	r = stream_whole(s, limit, &all, &all_n, err);
	if (!r)
		buf_add(out, all, all_n);
	return r;
}

static void cut_at_each_byte(void **state)
{
	_cleanup_free_ char *text = make_text(300);

	for (size_t i = 0; i < ARRAY_LEN(packers); i++) {
		_cleanup_(buf_done) struct buf b = { 0 };
		size_t first;

		packers[i].pack(&b, text, 200);
		first = b.n;
		packers[i].pack(&b, text + 200, 100);
		for (size_t n = packers[i].magic_n; n < b.n; n++) {
			_cleanup_(buf_done) struct buf out = { 0 };
			struct err err = { 0 };
			int r = whole_of(b.data, n, 1 << 20, &out, &err);

			if (n == first) {
				assert_int_equal(r, 0);
				assert_int_equal(out.n, 200);
				continue;
			}
			if (r != -EPIPE || !strstr(err.text, "it is cut"))
				fail_msg("%s, %zu of %zu bytes: %d, %s", packers[i].name, n, b.n, r, err.text);
		}
	}
}

/* A byte that is wrong is found, or makes no difference. */
static void damaged_at_each_byte(void **state)
{
	_cleanup_free_ char *text = make_text(200);

	for (size_t i = 0; i < ARRAY_LEN(packers); i++) {
		_cleanup_(buf_done) struct buf b = { 0 };

		if (packers[i].pack == pack_zstd_plain) /* has nothing to find it by */
			continue;
		packers[i].pack(&b, text, 200);
		for (size_t n = packers[i].magic_n; n < b.n; n++)
			for (unsigned bit = 0; bit < 8; bit++) {
				_cleanup_(buf_done) struct buf out = { 0 };
				struct err err = { 0 };
				int r;

				b.data[n] ^= 1 << bit;
				r = whole_of(b.data, b.n, 1 << 20, &out, &err);
				b.data[n] ^= 1 << bit;
				if (r) {
					assert_true(*err.text);
					continue;
				}
				assert_int_equal(out.n, 200);
				assert_memory_equal(out.data, text, 200);
			}
	}
}

static void errors_without_a_sentence(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 }, out = { 0 };

	pack_gzip(&b, "text", 4);
	assert_int_equal(whole_of(b.data, b.n - 1, 100, &out, NULL), -EPIPE);
	b.data[b.n - 5] ^= 1;
	assert_int_equal(whole_of(b.data, b.n, 100, &out, NULL), -EINVAL);
}

/* --- limits --- */

static void limits_of_whole(void **state)
{
	_cleanup_free_ char *text = make_text(LARGE);
	static const size_t limits[] = { 0, 1, 100, 65534, 65535, 65536, 131072, LARGE - 1, LARGE };

	for (size_t k = 0; k < ARRAY_LEN(limits); k++) {
		_cleanup_(buf_done) struct buf out = { 0 }, b = { 0 }, unpacked = { 0 };
		struct err err = { 0 };

		assert_int_equal(whole_of(text, limits[k], limits[k], &out, NULL), 0);
		assert_int_equal(out.n, limits[k]);
		assert_int_equal(whole_of(text, limits[k] + 1, limits[k], &out, &err), -EFBIG);
		pack_xz(&b, text, limits[k] + 1);
		assert_int_equal(whole_of(b.data, b.n, limits[k], &unpacked, &err), -EFBIG);
		assert_non_null(strstr(err.text, "once it is decompressed from xz"));
	}
	/* No limit at all. */
	{
		_cleanup_(buf_done) struct buf out = { 0 };

		assert_int_equal(whole_of(text, LARGE, SIZE_MAX, &out, NULL), 0);
		assert_int_equal(out.n, LARGE);
	}
}

static long memory_kb(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

/* 10 GB in some hundred KB. */
static void bomb(void **state)
{
	enum { MEMBER = 64 << 20, MEMBERS = 160, LIMIT = 4 << 20 };
	char *zeros = mmap(NULL, MEMBER, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	_cleanup_(buf_done) struct buf member = { 0 }, b = { 0 }, out = { 0 };
	struct err err = { 0 };
	long before;

	assert_ptr_not_equal(zeros, MAP_FAILED);
	pack_zstd(&member, zeros, MEMBER);
	munmap(zeros, MEMBER);
	for (int i = 0; i < MEMBERS; i++)
		buf_add(&b, member.data, member.n);
	assert_true(b.n < 10 << 20);
	before = memory_kb();
	assert_int_equal(whole_of(b.data, b.n, LIMIT, &out, &err), -EFBIG);
	assert_string_equal(err.text, "it has more than 4 MB once it is decompressed from zstd: a file of this kind is read at once");
	assert_true(memory_kb() - before < 100 << 10);
}

/* A header that asks for a dictionary or a window of gigabytes. */
static void too_much_memory(void **state)
{
	static const char window[] = "\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00";
	enum { HEADER = 12, DICTIONARY_4G = 40 };
	_cleanup_(buf_done) struct buf b = { 0 }, out = { 0 };
	struct err err = { 0 };
	size_t size;
	char *filter;
	uint32_t crc;

	assert_int_equal(whole_of(window, 9, 100, &out, &err), -ENOMEM);
	assert_string_equal(err.text, "after 0 bytes: its zstd data want more than 128 MB to be decompressed");
	pack_xz(&b, "text", 4);
	size = ((uint8_t)b.data[HEADER] + 1) * 4;
	filter = memmem(b.data + HEADER, size, "\x21\x01", 2);
	assert_non_null(filter);
	filter[2] = DICTIONARY_4G;
	crc = lzma_crc32((uint8_t *)b.data + HEADER, size - 4, 0);
	for (int i = 0; i < 4; i++)
		b.data[HEADER + size - 4 + i] = crc >> 8 * i;
	assert_int_equal(whole_of(b.data, b.n, 100, &out, &err), -ENOMEM);
	assert_string_equal(err.text, "after 0 bytes: its xz data want more than 128 MB to be decompressed");
}

/* --- peeking --- */

static void peek_then_read(void **state)
{
	_cleanup_free_ char *text = make_text(LARGE);

	for (size_t i = 0; i <= ARRAY_LEN(packers); i++) {
		_cleanup_(buf_done) struct buf b = { 0 }, out = { 0 };
		_cleanup_(stream_freep) struct stream *s = NULL;
		const char *start;
		char some[1000];

		if (i < ARRAY_LEN(packers))
			packers[i].pack(&b, text, LARGE);
		else
			buf_add(&b, text, LARGE);
		s = stream_of(b.data, b.n);
		assert_int_equal(stream_peek(s, &start, NULL), STREAM_PEEK_BYTES);
		assert_memory_equal(start, text, STREAM_PEEK_BYTES);
		assert_int_equal(stream_offset(s), 0);
		assert_int_equal(stream_read(s, some, sizeof(some), NULL), 1000);
		assert_memory_equal(some, text, 1000);
		assert_int_equal(stream_offset(s), 1000);
		assert_int_equal(stream_peek(s, &start, NULL), STREAM_PEEK_BYTES);
		assert_memory_equal(start, text + 1000, STREAM_PEEK_BYTES);
		buf_add(&out, text, 1000);
		assert_int_equal(read_in_pieces(s, 3000, &out, NULL), 0);
		assert_int_equal(out.n, LARGE);
		assert_memory_equal(out.data, text, LARGE);
		assert_int_equal(stream_peek(s, &start, NULL), 0);
	}
}

/* --- files and pipes --- */

/* Each read gives one byte. */
static void a_byte_at_a_time(void **state)
{
	_cleanup_free_ char *text = make_text(150);

	for (size_t i = 0; i <= ARRAY_LEN(packers); i++) {
		_cleanup_(buf_done) struct buf b = { 0 }, out = { 0 };
		_cleanup_(stream_freep) struct stream *s = NULL;
		int ends[2];

		if (i < ARRAY_LEN(packers))
			packers[i].pack(&b, text, 150);
		else
			buf_add(&b, text, 150);
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
		for (size_t k = 0; k < b.n; k++)
			assert_int_equal(send(ends[1], b.data + k, 1, MSG_DONTWAIT), 1);
		fd_close(&ends[1]);
		s = stream_open(ends[0]);
		assert_int_equal(stream_size_hint(s), 0);
		assert_int_equal(stream_written_ns(s), 0);
		assert_int_equal(read_in_pieces(s, 64, &out, NULL), 0);
		assert_int_equal(out.n, 150);
		assert_memory_equal(out.data, text, 150);
		fd_close(&ends[0]);
	}
}

static int file_of(const void *data, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, n), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void check_seekable(int fd, const char *text, size_t n)
{
	_cleanup_free_ char *back = mem_alloc(n);
	char c;

	assert_int_equal(pread(fd, back, n, 0), n);
	assert_memory_equal(back, text, n);
	assert_int_equal(pread(fd, &c, 1, n), 0);
}

static void seekable(void **state)
{
	_cleanup_free_ char *text = make_text(LARGE);
	_cleanup_(buf_done) struct buf b = { 0 };
	struct stream *s;
	const char *start;
	int fd = file_of(text, LARGE), got = -1, again = -1;

	/* The file itself, whatever was read of it. */
	s = stream_open(fd);
	assert_int_equal(stream_size_hint(s), LARGE);
	assert_true(stream_written_ns(s) > 0);
	assert_int_equal(stream_peek(s, &start, NULL), STREAM_PEEK_BYTES);
	assert_int_equal(stream_seekable(s, 10, &got, NULL), 0);
	assert_int_equal(got, fd);
	check_seekable(got, text, LARGE);
	stream_free(s);
	fd_close(&fd);
	/* A copy of what was packed; the same one again. */
	pack_gzip(&b, text, LARGE);
	fd = file_of(b.data, b.n);
	s = stream_open(fd);
	assert_int_equal(stream_peek(s, &start, NULL), STREAM_PEEK_BYTES);
	assert_int_equal(stream_seekable(s, LARGE, &got, NULL), 0);
	assert_int_not_equal(got, fd);
	check_seekable(got, text, LARGE);
	assert_int_equal(stream_seekable(s, LARGE, &again, NULL), 0);
	assert_int_equal(again, got);
	stream_free(s);
	fd_close(&fd);
}

static void seekable_not(void **state)
{
	_cleanup_free_ char *text = make_text(1000);
	_cleanup_(buf_done) struct buf b = { 0 };
	struct err err = { 0 };
	struct stream *s;
	int ends[2], got = 5;
	char c;

	/* A pipe is copied. */
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, 1000), 1000);
	fd_close(&ends[1]);
	s = stream_open(ends[0]);
	assert_int_equal(stream_seekable(s, 1000, &got, NULL), 0);
	check_seekable(got, text, 1000);
	stream_free(s);
	fd_close(&ends[0]);
	/* Too much: neither now nor later, in part. */
	pack_xz(&b, text, 1000);
	s = stream_of(b.data, b.n);
	assert_int_equal(stream_seekable(s, 999, &got, &err), -EFBIG);
	assert_int_not_equal(stream_seekable(s, 2000, &got, &err), 0);
	assert_true(got < 0);
	stream_free(s);
	/* Some was read, and is gone. */
	s = stream_of(b.data, b.n);
	assert_int_equal(stream_read(s, &c, 1, NULL), 1);
	assert_int_equal(stream_seekable(s, 2000, &got, &err), -ESPIPE);
	stream_free(s);
}

static void what_cannot_be_read(void **state)
{
	struct stream *s = stream_open(-1);
	struct err err = { 0 };
	char c, *all;
	size_t n;

	assert_int_equal(stream_read(s, &c, 1, &err), -EBADF);
	assert_string_equal(err.text, "cannot read it: Bad file descriptor");
	assert_int_equal(stream_whole(s, 10, &all, &n, &err), -EBADF);
	stream_free(s);
	stream_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_it_is),
		cmocka_unit_test(packed),
		cmocka_unit_test(members_are_joined),
		cmocka_unit_test(zeros_between_members),
		cmocka_unit_test(skipped_frames),
		cmocka_unit_test(what_follows),
		cmocka_unit_test(empty),
		cmocka_unit_test(cut_at_each_byte),
		cmocka_unit_test(damaged_at_each_byte),
		cmocka_unit_test(errors_without_a_sentence),
		cmocka_unit_test(limits_of_whole),
		cmocka_unit_test(bomb),
		cmocka_unit_test(too_much_memory),
		cmocka_unit_test(peek_then_read),
		cmocka_unit_test(a_byte_at_a_time),
		cmocka_unit_test(seekable),
		cmocka_unit_test(seekable_not),
		cmocka_unit_test(what_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
