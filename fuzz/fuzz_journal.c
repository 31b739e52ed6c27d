/*
 * The log of a recorder that died, with right checksums, so that SQLite takes what is in it: pages of a sound capture in
 * which bytes were changed. Input, again and again: page (1), where in it (2, little-endian), how many bytes (1), these.
 */
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "capture/capture.h"
#include "common/sound.h"

enum { PAGE = 4096, MOST_FRAMES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *file;
static size_t file_size;

static struct profile *make_profile(void)
{
	struct profile *p = profile_new();
	uint32_t process = profile_add_process(p, &(struct profile_process){ .pid = 7, .name = profile_string(p, "node") });
	uint32_t thread = profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = 8 });
	uint32_t module = profile_add_module(p, &(struct profile_module){ .path = profile_string(p, "/bin/node"),
									  .process = PROFILE_NONE });
	uint32_t event = profile_add_event(p, "cpu", "ns", "", 1001001), stack = 0;

	for (uint32_t i = 1; i < 400; i++) {
		uint32_t frame = profile_frame(p, module, FRAME_USER, i * 64);
		struct profile_function f = { .name = profile_string(p, i % 2 ? "odd" : "even"), .module = module };

		profile_set_lines(p, frame, &(struct profile_line){ .function = profile_function(p, &f) }, 1);
		stack = profile_stack(p, i % 20 ? stack : 0, frame);
		profile_add_sample(p, &(struct profile_sample){ .event = event, .thread = thread, .stack = stack, .time_ns = i });
	}
	profile_count(p, "samples.lost", 1);
	p->finished = true;
	return p;
}

static void make_file(void)
{
	char path[] = "/tmp/gasflame-fuzz-XXXXXX";
	struct profile *p = make_profile();
	int fd = mkstemp(path);

	sound(fd >= 0);
	close(fd);
	sound(capture_save(path, p, NULL) == 0);
	sound(fd_read_path(path, 16 << 20, &file, &file_size) == 0);
	unlink(path);
	profile_free(p);
}

/* SQLite's, of words as a machine of this kind has them. */
static void add_up(uint32_t sum[2], const void *data, size_t n)
{
	const uint8_t *b = data;

	for (; n; n -= 8, b += 8) {
		uint32_t words[2];

		memcpy(words, b, sizeof(words));
		sum[0] += words[0] + sum[1];
		sum[1] += words[1] + sum[0];
	}
}

static void put_frame(struct buf *wal, uint32_t sum[2], uint32_t page, const char *content)
{
	uint32_t head[6] = { htobe32(page), htobe32(file_size / PAGE), 1, 1, 0, 0 };

	add_up(sum, head, 8);
	add_up(sum, content, PAGE);
	head[4] = htobe32(sum[0]);
	head[5] = htobe32(sum[1]);
	buf_add(wal, head, sizeof(head));
	buf_add(wal, content, PAGE);
}

static int file_of(const char *data, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	sound(fd >= 0 && fd_write_all(fd, data, n) == 0);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* The last bit of the first word says whose words are added up. */
	uint32_t head[8] = { htobe32(0x377f0682 | (__BYTE_ORDER == __BIG_ENDIAN)), htobe32(3007000), htobe32(PAGE), 0, 1, 1 };
	uint32_t sum[2] = { 0 };
	struct profile *p = NULL;
	struct err err = { 0 };
	struct buf wal = { 0 };
	char page[PAGE];

	if (!file)
		make_file();
	add_up(sum, head, 24);
	head[6] = htobe32(sum[0]);
	head[7] = htobe32(sum[1]);
	buf_add(&wal, head, sizeof(head));
	for (int i = 0; i < MOST_FRAMES && size >= 4; i++) {
		uint32_t number = data[0] % (file_size / PAGE), at = (data[1] | data[2] << 8) % PAGE, n = data[3];

		data += 4;
		size -= 4;
		n = MIN(n, size);
		n = MIN(n, PAGE - at);
		memcpy(page, file + (size_t)number * PAGE, PAGE);
		memcpy(page + at, data, n);
		put_frame(&wal, sum, number + 1, page);
		data += n;
		size -= n;
	}
	if (capture_read_files(file_of(file, file_size), file_of(wal.data, wal.n), "x.gasflame", &p, &err) < 0)
		sound(err.text[0] && !p);
	else
		sound_profile(p);
	profile_free(p);
	buf_done(&wal);
	return 0;
}
