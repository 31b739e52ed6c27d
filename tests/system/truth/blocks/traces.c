/*
 * traces - a program that traces itself as nodes do, and says what is true of it.
 *
 *	truth-traces FOLDER ROUNDS [quiet]
 *
 * Each round is a block: on_new_payload holds execute_block, which holds many short tx, and then await_state_root, while
 * another thread is in prewarm, for which it waits. These spans go to
 *	FOLDER/trace.json             a Chrome trace as tracing-chrome writes it: an array that stays open, times since the
 *	                              file was made, buffered
 *	FOLDER/PID/marker-PID-TID.txt samply's marker files as tracing-samply writes them: mapped once and unmapped, kept open,
 *	                              buffered by 8 KiB
 * and "span NAME NUMBER START END", by CLOCK_MONOTONIC, to the standard output. Each block is also a mark of gasflame.h,
 * "own", so that times of the recording can be compared. quiet: no marker files. NODE_LOG in the environment is a file that
 * gets a line for each block, as a node's log has it, half a second after the block or at the end.
 *
 * It waits for a line after "ready", and for another one after "done", when all is flushed.
 */
#include <fcntl.h>
#include <gasflame.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../truth.h"

enum { BUFFER = 8192, TX = 60, ROUNDS = 64 };

static const char *folder;
static int quiet;
static FILE *chrome, *node_log;
static uint64_t chrome_zero;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread FILE *marker;
static volatile uint64_t sum;
static pthread_barrier_t round_begins;
static int rounds;
static uint64_t block_ends[ROUNDS];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static FILE *buffered(int fd)
{
	FILE *f = fdopen(fd, "w");

	setvbuf(f, NULL, _IOFBF, BUFFER);
	return f;
}

static void open_marker(void)
{
	char path[512];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%d/marker-%d-%ld.txt", folder, (int)getpid(), (int)getpid(), syscall(SYS_gettid));
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	map = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	munmap(map, 1);
	marker = buffered(fd);
}

/* The number of this thread in the Chrome trace: tracing-chrome counts from 0. */
static __thread int thread;

static void chrome_event(char phase, const char *name, uint64_t number, uint64_t ns)
{
	pthread_mutex_lock(&lock);
	fprintf(chrome, ",\n{");
	if (number)
		fprintf(chrome, "\"args\":{\"block_hash\":\"0x%064llx\",\"block_num\":\"%llu\"},", (unsigned long long)number,
			(unsigned long long)number);
	fprintf(chrome, "\"cat\":\"engine::tree\",\"name\":\"%s\",\"ph\":\"%c\",\"pid\":1,\"tid\":%d,\"ts\":%.3f}", name, phase, thread,
		(ns - chrome_zero) / 1000.0);
	pthread_mutex_unlock(&lock);
}

static uint64_t begin(const char *name, uint64_t number)
{
	uint64_t start = now_ns();

	chrome_event('B', name, number, start);
	return start;
}

static void end(const char *name, uint64_t number, uint64_t start)
{
	uint64_t stop = now_ns();

	chrome_event('E', name, number, stop);
	if (!quiet) {
		if (!marker)
			open_marker();
		fprintf(marker, "%llu %llu %s\n", (unsigned long long)start, (unsigned long long)stop, name);
	}
	pthread_mutex_lock(&lock);
	printf("span %s %llu %llu %llu\n", name, (unsigned long long)number, (unsigned long long)start, (unsigned long long)stop);
	pthread_mutex_unlock(&lock);
}

static NOINLINE void execute_block(void)
{
	uint64_t start = begin("execute_block", 0);

	for (int i = 0; i < TX; i++) {
		uint64_t tx = begin("tx", 0);

		sum += spin(5001);
		end("tx", 0, tx);
	}
	end("execute_block", 0, start);
}

static NOINLINE void await_state_root(void)
{
	uint64_t start = begin("await_state_root", 0);

	sum += spin(900003);
	end("await_state_root", 0, start);
}

/* Lines of the blocks that are older than half a second, or of all. */
static void write_log(int done, uint64_t now, int all)
{
	static int written;

	for (; node_log && written < done && (all || now - block_ends[written] > 500000000); written++)
		fprintf(node_log, "INFO Block added to canonical chain number=%d hash=0x%064x txs=3 gas_used=1.50Mgas elapsed=1ms\n",
			1000 + written, 1000 + written);
	if (node_log)
		fflush(node_log);
}

static NOINLINE void on_new_payload(uint64_t number)
{
	uint64_t start;

	GASFLAME_SPAN_BEGIN("own", number);
	start = begin("on_new_payload", number);
	pthread_barrier_wait(&round_begins);
	execute_block();
	await_state_root();
	pthread_barrier_wait(&round_begins); /* the other thread was in prewarm meanwhile */
	end("on_new_payload", number, start);
	GASFLAME_SPAN_END("own", number);
}

static void name_thread(const char *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&lock);
	fprintf(chrome, "%s{\"ph\":\"M\",\"pid\":1,\"name\":\"thread_name\",\"tid\":%d,\"args\":{\"name\":\"%s\"}}", thread ? ",\n" : "", thread, name);
	pthread_mutex_unlock(&lock);
}

static void *prewarmer(void *unused)
{
	thread = 1;
	name_thread("prewarmer");
	for (int i = 0; i < rounds; i++) {
		uint64_t start;

		pthread_barrier_wait(&round_begins);
		start = begin("prewarm", 0);
		sum += spin(300007);
		end("prewarm", 0, start);
		pthread_barrier_wait(&round_begins);
	}
	if (marker)
		fclose(marker);
	return unused;
}

int main(int argc, char **argv)
{
	char path[512];
	pthread_t other;

	if (argc < 3)
		return 2;
	folder = argv[1];
	rounds = atoi(argv[2]) < ROUNDS ? atoi(argv[2]) : ROUNDS;
	quiet = argc > 3;
	if (getenv("NODE_LOG"))
		node_log = fopen(getenv("NODE_LOG"), "a");
	snprintf(path, sizeof(path), "%s/trace.json", folder);
	chrome = buffered(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
	chrome_zero = now_ns();
	fprintf(chrome, "[\n");
	name_thread("engine");
	pthread_barrier_init(&round_begins, NULL, 2);
	pthread_create(&other, NULL, prewarmer, NULL);
	say_ready();
	getchar();
	for (int i = 0; i < rounds; i++) {
		on_new_payload(1000 + i);
		block_ends[i] = now_ns();
		write_log(i + 1, block_ends[i], 0);
		nanosleep(&(struct timespec){ .tv_nsec = 8000000 }, NULL);
	}
	write_log(rounds, 0, 1);
	pthread_join(other, NULL);
	fflush(chrome); /* the array stays open, as that of a program which runs */
	if (marker)
		fflush(marker);
	puts("done");
	fflush(stdout);
	getchar();
	return 0;
}
