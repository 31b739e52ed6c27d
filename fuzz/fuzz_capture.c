/* A capture and the log beside it: four bytes say how long the first is, little-endian; what follows it is the log. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "capture/capture.h"
#include "common/sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file_of(const uint8_t *data, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	sound(fd >= 0 && fd_write_all(fd, data, n) == 0);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile *p = NULL;
	struct err err = { 0 };
	uint32_t n;
	int wal = -1;

	if (size < sizeof(n))
		return 0;
	memcpy(&n, data, sizeof(n));
	data += sizeof(n);
	size -= sizeof(n);
	n = MIN(n, size);
	if (size > n)
		wal = file_of(data + n, size - n);
	/* What is wrong is said in a sentence; what is read is sound. */
	if (capture_read_files(file_of(data, n), wal, "x.gasflame", &p, &err) < 0)
		sound(err.text[0] && !p);
	else
		sound_profile(p);
	profile_free(p);
	return 0;
}
