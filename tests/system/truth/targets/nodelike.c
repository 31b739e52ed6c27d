/*
 * nodelike.c - stands for a node where none can be had: the texts that doctor looks for in a program's file, as the
 * sources of reth 2.5.1 put them there, and a jemalloc with a configuration of its own. It waits for its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *malloc_conf = "prof:true,prof_active:false,lg_prof_sample:19";

/* Where a panic would be, what the node calls itself, and --version. */
static const char *const texts[] = {
	"crates/engine/tree/src/tree/mod.rs",
	"reth/v2.5.1-7b3432d95/x86_64-unknown-linux-gnu",
	"Version: 2.5.1\nCommit SHA: 7b3432d950030875b23c5c4df7c9f53a7caa4868\nBuild Timestamp: 2026-08-21T14:53:24Z\n"
	"Build Features: asm-keccak,jemalloc,jemalloc_prof\nBuild Profile: maxperf-symbols",
};

int main(void)
{
	void *volatile some = malloc(1000);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		puts(texts[i]);
	puts("ready");
	fflush(stdout);
	pause();
	free(some);
	return 0;
}
