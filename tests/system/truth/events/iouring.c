/*
 * iouring.c [rounds] - writes, reads and syncs a file through io_uring, with no library: a ring of eight
 * entries, one request at a time. Says what was moved, or "none" where the kernel has no io_uring.
 */
#include "../truth.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct io_uring_params params;
static int ring;
static char *submissions, *completions;
static struct io_uring_sqe *entries;
static char buffer[8192];

#define AT(base, offset) ((unsigned *)((base) + (offset)))

static NOINLINE long submit(int opcode, int fd, unsigned length)
{
	unsigned mask = *AT(submissions, params.sq_off.ring_mask), tail = *AT(submissions, params.sq_off.tail);
	unsigned head = *AT(completions, params.cq_off.head);
	struct io_uring_cqe *done;

	entries[tail & mask] = (struct io_uring_sqe){ .opcode = opcode, .fd = fd, .len = length,
						      .addr = length ? (uintptr_t)buffer : 0 };
	AT(submissions, params.sq_off.array)[tail & mask] = tail & mask;
	__atomic_store_n(AT(submissions, params.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return -1;
	done = (struct io_uring_cqe *)(completions + params.cq_off.cqes) +
	       (head & *AT(completions, params.cq_off.ring_mask));
	__atomic_store_n(AT(completions, params.cq_off.head), head + 1, __ATOMIC_RELEASE);
	return done->res;
}

int main(int argc, char **argv)
{
	int rounds = argument(argc, argv, 1, 100), fd = open("uring.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
	long got = 0, put = 0, failed = 0;

	usleep(300000);
	ring = syscall(__NR_io_uring_setup, 8, &params);
	if (ring < 0 || !(params.features & IORING_FEAT_SINGLE_MMAP)) {
		puts("none");
		return 0;
	}
	submissions = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	completions = submissions;
	entries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	if (submissions == MAP_FAILED || entries == MAP_FAILED)
		return 1;
	for (int i = 0; i < rounds; i++) {
		put += submit(IORING_OP_WRITE, fd, 5000);
		got += submit(IORING_OP_READ, fd, sizeof(buffer)); /* fewer come */
		failed += submit(IORING_OP_READ, 9999, 10) < 0;
	}
	submit(IORING_OP_FSYNC, fd, 0);
	printf("read %ld\nwrite %ld\nerrors %ld\n", got, put, failed);
	return 0;
}
