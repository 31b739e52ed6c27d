/*
 * commit.c - a small database: one writer that holds the lock while it syncs, readers that wait for it, and a
 * pool of threads that nobody needs.
 *
 * So readers wait for a lock whose holder waits for the disk.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workload.h"

enum { ROWS = 512, BATCH = 8, BLOCK = 4096 };

static pthread_mutex_t database = PTHREAD_MUTEX_INITIALIZER;
static uint64_t rows[ROWS];

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	bool stop;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER };

static __attribute__((noinline)) void commit_sync(int fd)
{
	if (fdatasync(fd)) {
		perror("fdatasync");
		exit(1);
	}
}

/* A batch of rows, on the disk before anybody reads them. */
static __attribute__((noinline)) void commit_batch(struct worker *w)
{
	unsigned char block[BLOCK];

	for (int i = 0; i < BATCH; i++) {
		uint64_t row = worker_random(w) % ROWS;

		rows[row] ^= worker_random(w);
		memset(block, (int)rows[row], sizeof(block));
		if (pwrite(w->fd, block, sizeof(block), (off_t)row * BLOCK) != sizeof(block)) {
			perror("pwrite");
			exit(1);
		}
	}
	commit_sync(w->fd);
}

void commit_unit(struct worker *w)
{
	if (!w->fd)
		disk_open(w);
	pthread_mutex_lock(&database);
	commit_batch(w);
	pthread_mutex_unlock(&database);
}

static __attribute__((noinline)) uint64_t query_rows(uint64_t which)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&database);
	for (int i = 0; i < 16; i++)
		sum += rows[(which + (uint64_t)i * 7) % ROWS];
	pthread_mutex_unlock(&database);
	return sum;
}

void query_unit(struct worker *w)
{
	uint64_t state[25] = { query_rows(worker_random(w)) };

	mix_state(state, 24);
	w->result ^= state[4];
}

/* Idle, and meant to be. */
void pool_unit(struct worker *w)
{
	pthread_mutex_lock(&pool.lock);
	while (!pool.stop)
		pthread_cond_wait(&pool.wanted, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
	w->turn++;
}

void pool_shutdown(void)
{
	pthread_mutex_lock(&pool.lock);
	pool.stop = true;
	pthread_cond_broadcast(&pool.wanted);
	pthread_mutex_unlock(&pool.lock);
}
