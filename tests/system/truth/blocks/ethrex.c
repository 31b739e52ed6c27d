/*
 * ethrex.c - stands for ethrex-replay where none can be had: its crates by name, phases of known length, its lines.
 *
 *	ethrex block NUMBER --no-zkvm [--repeat N] [--rpc-url URL]
 *
 * Reads a cache (4 ms), prepares a state (4 ms), then runs a block N times, about 40 ms of CPU each: half of it SLOAD, a
 * quarter STATICCALL, a quarter merkleization, whose hashing is KeccakF1600. Names are mangled as Rust's are. The
 * last line has what its own clock says of each part, in ms.
 */
#include "../truth.h"

#include <stdlib.h>
#include <string.h>

#define RUST(name, mangled) NOINLINE uint64_t name(double ms) __asm__(mangled "17h0123456789abcdefE")

RUST(cache_load, "_ZN13ethrex_replay5cache4load");
RUST(prepare_state, "_ZN13ethrex_replay13prepare_state");
RUST(add_block_pipeline, "_ZN17ethrex_blockchain10Blockchain18add_block_pipeline");
RUST(op_sload, "_ZN11ethrex_levm7opcodes8op_sload");
RUST(op_staticcall, "_ZN11ethrex_levm7opcodes13op_staticcall");
RUST(get_storage_slot, "_ZN14ethrex_storage5Store16get_storage_slot");
RUST(find_key_index, "_ZN5alloc11collections5btree14find_key_index");
RUST(merkleization, "_ZN17ethrex_blockchain10Blockchain20handle_merkleization");
NOINLINE uint64_t __KeccakF1600(double ms);

static volatile uint64_t sink;
static double steps_per_ms;

/* Not by the clock: a part that is preempted must not get less. No function of its own, so that the caller is the
 * leaf. own: or equal functions become one. */
#define BURN(ms, own) __extension__({ \
	uint64_t x_ = (own); \
	for (uint64_t n_ = (uint64_t)((ms) * steps_per_ms); n_; n_--) { \
		x_ ^= x_ << 13; \
		x_ ^= x_ >> 7; \
		__asm__ volatile("" : "+r"(x_)); \
	} \
	x_; \
})
uint64_t cache_load(double ms) { return BURN(ms, 1); }
uint64_t prepare_state(double ms) { return BURN(ms, 2); }
uint64_t __KeccakF1600(double ms) { return BURN(ms, 3); }
uint64_t find_key_index(double ms) { return BURN(ms, 4); }
uint64_t get_storage_slot(double ms) { return find_key_index(ms) + 1; }
uint64_t op_sload(double ms) { return get_storage_slot(ms) + 1; }
uint64_t op_staticcall(double ms) { return BURN(ms, 5); }
uint64_t merkleization(double ms) { return __KeccakF1600(ms) + 1; }

static struct {
	const char *name;
	uint64_t (*run)(double ms);
	double ms, took;
} parts[] = {
	{ "cache", cache_load, 4, 0 },       { "prepare", prepare_state, 4, 0 },
	{ "sload", op_sload, 20, 0 },        { "staticcall", op_staticcall, 10, 0 },
	{ "keccak", merkleization, 10, 0 },
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]), FIRST_OF_BLOCK = 2 };

static void run_part(int i)
{
	double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);

	sink += parts[i].run(parts[i].ms);
	parts[i].took += (seconds_of(CLOCK_THREAD_CPUTIME_ID) - start) * 1000;
}

uint64_t add_block_pipeline(double ms)
{
	for (int i = FIRST_OF_BLOCK; i < PARTS; i++) {
		run_part(i);
		__asm__ volatile("" : "+r"(i)); /* in a register that is pushed first, as the real one does */
	}
	return sink + (uint64_t)ms;
}

int main(int argc, char **argv)
{
	const char *block = argc > 2 ? argv[2] : "0";
	int repeat = 1;
	double start;

	for (int i = 3; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--repeat"))
			repeat = atoi(argv[i + 1]);
	if (argc < 4 || strcmp(argv[1], "block") || strcmp(argv[3], "--no-zkvm"))
		return 2;
	steps_per_ms = 800000; /* about 1 ms; what it really took is measured */
	run_part(0);
	run_part(1);
	for (int i = 0; i < repeat; i++) {
		start = seconds_of(CLOCK_MONOTONIC);
		sink += add_block_pipeline(0);
		start = (seconds_of(CLOCK_MONOTONIC) - start) * 1000;
		printf("[METRIC] BLOCK %s 0x1234 | %.3f Ggas/s | %.2f ms | 442 txs | 37 Mgas (62%%)\n", block, 37.0 / start,
		       start);
	}
	printf("truth");
	for (int i = 0; i < PARTS; i++)
		printf(" %s %.3f", parts[i].name, parts[i].took);
	printf("\n");
	return 0;
}
