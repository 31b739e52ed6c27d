/*
 * lock.c - a queue behind one mutex that everybody wants, with two conditions.
 */
#include <pthread.h>
#include <stdbool.h>

#include "workload.h"

#define QUEUE_SIZE 64

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	uint64_t item[QUEUE_SIZE];
	unsigned head, count;
	bool stop;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .filled = PTHREAD_COND_INITIALIZER,
	    .emptied = PTHREAD_COND_INITIALIZER };

/* Work under the lock: what makes it contended. */
static __attribute__((noinline)) uint64_t hold_lock(uint64_t x)
{
	uint64_t state[25] = { x };
	mix_state(state, 12);
	return state[1];
}

void lock_produce_unit(struct worker *w)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.count == QUEUE_SIZE && !queue.stop)
		pthread_cond_wait(&queue.emptied, &queue.lock);
	if (!queue.stop) {
		queue.item[(queue.head + queue.count++) % QUEUE_SIZE] = hold_lock(worker_random(w));
		pthread_cond_signal(&queue.filled);
	}
	pthread_mutex_unlock(&queue.lock);
}

void lock_consume_unit(struct worker *w)
{
	pthread_mutex_lock(&queue.lock);
	while (!queue.count && !queue.stop)
		pthread_cond_wait(&queue.filled, &queue.lock);
	uint64_t x = 0;
	if (queue.count) {
		x = hold_lock(queue.item[queue.head]);
		queue.head = (queue.head + 1) % QUEUE_SIZE;
		queue.count--;
		pthread_cond_signal(&queue.emptied);
	}
	pthread_mutex_unlock(&queue.lock);
	uint64_t state[25] = { x };
	mix_state(state, 24);
	w->result ^= state[2];
}

void lock_shutdown(void)
{
	pthread_mutex_lock(&queue.lock);
	queue.stop = true;
	pthread_cond_broadcast(&queue.filled);
	pthread_cond_broadcast(&queue.emptied);
	pthread_mutex_unlock(&queue.lock);
}
