/*
 * heapurl.c - `heap dump --url`: the heap that a node offers over HTTP, and what its refusals mean.
 *
 * Read in the sources: reth 2.5.1 (crates/node/metrics/src/server.rs), ethrex 25.0.0-rc.2
 * (crates/networking/rpc/rpc.rs), Go's net/http/pprof for geth and erigon.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cmd/heap/heap.h"
#include "cmd/stop.h"
#include "import/jemalloc/heappprof.h"
#include "import/jemalloc/heapv2.h"
#include "net/http.h"

static const uint64_t limit_bytes = 2ULL << 30;
enum { FIRST_PAUSE_US = 100000, LONGEST_PAUSE_US = 1000000 };

/* The pages of the known clients, in the order in which they are tried of an address without a path. */
static const char *const pages[] = { "/debug/pprof/heap", "/debug/pprof/allocs" };

static const struct {
	unsigned status;
	const char *meaning;
} refusals[] = {
	{ 403, "heap profiling is compiled into this node, but not active: start it with MALLOC_CONF=prof:true,prof_active:true, "
	       "or switch it on in the running process with `gasflame heap dump --active on --no-dump TARGET`" },
	{ 404, "there is no heap at this address: reth and op-reth offer it at /debug/pprof/heap of the metrics port (--metrics), "
	       "ethrex at /debug/pprof/allocs of the HTTP RPC port, geth and erigon at /debug/pprof/heap of --pprof" },
	{ 500, "the node could not make its dump: profiling may be off (start it with MALLOC_CONF=prof:true), or the folder of its "
	       "dumps cannot be written to (reth: --datadir.pprof-dumps); its log says which" },
	{ 501, "this node was built without heap profiling: build reth with --features jemalloc-prof, ethrex with --features "
	       "jemalloc_profiling; `gasflame record -e heap TARGET` needs neither" },
	{ 503, "another heap dump of this node is still being made: try again later, or wait longer with --wait" },
};

static int explain(const char *url, unsigned status, int r, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (refusals[i].status == status)
			return err_set(err, -r, "%.100s answers %u: %s", url, status, refusals[i].meaning);
	return r;
}

/* While the node makes a dump for another, it is asked again until wait_ns have passed. */
static int get(const char *url, uint64_t wait_ns, char **ret, size_t *ret_n, unsigned *ret_status, struct err *err)
{
	uint64_t end = clock_mono_ns() + wait_ns;
	unsigned pause_us = FIRST_PAUSE_US;
	int r;

	for (;;) {
		*ret_status = 0;
		r = http_get_text(url, &(struct http_limits){ .bytes = limit_bytes, .ret_status = ret_status }, ret, ret_n, err);
		if (*ret_status != 503 || stop_wanted || clock_mono_ns() + pause_us * 1000ULL > end)
			return r;
		usleep(pause_us);
		pause_us = MIN(pause_us * 2, (unsigned)LONGEST_PAUSE_US);
	}
}

/* Returns whether the address ends behind the host: "http://127.0.0.1:9001", or with a slash. */
static bool has_no_page(const char *url)
{
	const char *host = strstr(url, "://"), *slash = host ? strchr(host + 3, '/') : NULL;

	return host && (!slash || !slash[1]) && !strchr(host, '?');
}

int heap_fetch(const char *url, uint64_t wait_ns, char **ret, size_t *ret_n, struct err *err)
{
	size_t tries = has_no_page(url) ? ARRAY_LEN(pages) : 1;
	_cleanup_free_ char *full = NULL;
	unsigned status = 404;
	int r = -ENOENT;

	for (size_t i = 0; i < tries && r && status == 404; i++) {
		free(full);
		full = mem_printf("%.*s%s", (int)strlen(url) - (tries > 1 && url[strlen(url) - 1] == '/'), url, tries > 1 ? pages[i] : "");
		r = get(full, wait_ns, ret, ret_n, &status, err);
	}
	if (r)
		return explain(full, status, r, err);
	if (heapv2_probe(*ret, *ret_n, true) || heappprof_probe(*ret, *ret_n))
		return 0;
	return err_set(err, EPROTO,
		       "%.100s answers with something else than a heap dump of jemalloc (heap_v2, or pprof's); a node's addresses: "
		       "gasflame doctor TARGET", full);
}
