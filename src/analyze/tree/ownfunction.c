#include "analyze/tree/ownfunction.h"

#include <string.h>

#include "analyze/wait/cause.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/profile.h"

/* Prefixes of names; the sigils before a Rust path are skipped. */
static const char *const libraries[] = {
	"std::", "core::", "alloc::", "tokio::", "tokio_", "parking_lot", "crossbeam", "rayon",
	"futures", "mio::", "hashbrown::", "tracing", "once_cell::", "lock_api::", "dashmap::",
	"flume::", "async_channel::", "kanal::", "thingbuf::", "pin_project", "arc_swap::",
	"metrics::", "hyper::", "hyper_util::", "tower::", "tower_", "pthread_", "__pthread",
	"___pthread", "__lll_", "__futex", "futex_", "__GI_", "__libc_", "__gthread", "syscall",
	"__clone", "clone3", "start_thread", "__cxa_", "__gnu_cxx::", "boost::", "absl::", "runtime.",
	"sync.", "internal/", "syscall.", "time.", "io.", "bufio.", "net.", "net/http.", "crypto/tls.", "os.", "__rust_", "_rjem_", "je_", "mi_", "_start", "__new_sem_",
	"sem_", "_IO_", "rust_begin_", "<unknown>", "__internal_syscall", "cancellable",
	"__syscall_cancel", "WaitEventSetWait", "WaitLatch", "ProcSleep", "ProcWaitForSignal", "WaitOnLock", "LockAcquire",
	"PGSemaphore", "LWLockAcquire", "operator new", "operator delete",
	/* Programs' wrappers of malloc: of Redis, GNU, GLib, PostgreSQL, SQLite. */
	"zmalloc", "zcalloc", "zrealloc", "ztrymalloc", "ztrycalloc", "ztryrealloc", "xmalloc", "xcalloc", "xrealloc", "g_malloc",
	"g_realloc", "g_slice_", "palloc", "repalloc", "MemoryContextAlloc", "AllocSet", "sqlite3Malloc", "sqlite3_malloc",
	"sqlite3DbMalloc", "sqlite3Realloc",
};

/* So many functions without a name are passed over for a named one above them: in a stripped program that one says more. */
enum { NAMELESS = 2 };

static const char *const modules[] = { "libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "ld-2",
				       "libstdc++", "libgcc_s", "libm.so", "librt", "[vdso]",
				       "memfd:gasflame" };

/* Functions of the C library, also where it is linked into the program: those for files, and others. */
static const char *const file_calls[] = {
	"fsync", "fdatasync", "msync", "sync_file_range", "syncfs", "sync", "read", "pread64", "pread",
	"preadv", "preadv2", "readv", "write", "pwrite64", "pwrite", "pwritev", "pwritev2", "writev",
	"ftruncate", "ftruncate64", "fallocate", "posix_fallocate", "open", "openat", "open64", "stat",
	"fstat", "unlink", "rename", "sendfile", "copy_file_range", "mmap", "munmap", "madvise",
};
static const char *const other_calls[] = {
	"poll", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait", "nanosleep",
	"clock_nanosleep", "usleep", "sleep", "recv", "recvfrom", "recvmsg", "send", "sendto",
	"sendmsg", "connect", "accept", "accept4", "wait4", "waitpid", "waitid", "sched_yield",
	"sigwaitinfo", "sigtimedwait", "pause", "ioctl", "memcpy", "memmove", "memset", "malloc",
	"free", "calloc", "realloc",
};

/* Returns the entry of list that a function is, ignoring the C library's prefixes; NULL = none. */
static const char *call_of(const char *const *list, size_t n, const char *name)
{
	if (str_starts(name, "__libc_") || str_starts(name, "__GI_"))
		name = strchr(name + 2, '_') + 1;
	name += strspn(name, "_");
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, list[i]))
			return list[i];
	return NULL;
}

static bool starts_with_any(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_starts(s, list[i]))
			return true;
	return false;
}

/* Is it a type of the language? */
static bool is_primitive(const char *type, size_t n)
{
	static const char *const types[] = { "bool", "char", "str", "i16", "i32", "i64", "i128", "isize", "u16", "u32", "u64", "u128",
					     "usize", "f32", "f64" };

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (n == strlen(types[i]) && !strncmp(type, types[i], n))
			return true;
	return false;
}

bool ownfunction_is_library(const char *name, const char *module)
{
	const char *s = name, *as;

	if (starts_with_any(str_base_name(module), modules, ARRAY_LEN(modules)))
		return true;
	if (str_ends(name, "@plt") || call_of(file_calls, ARRAY_LEN(file_calls), name) ||
	    call_of(other_calls, ARRAY_LEN(other_calls), name))
		return true;
	/* "<&mut dyn core::..." */
	for (;;) {
		s += strspn(s, "<&*([");
		if (str_starts(s, "mut ") || str_starts(s, "dyn "))
			s += 4;
		else if (str_starts(s, "const "))
			s += 6;
		else
			break;
	}
	/* "<T as core::...>": a type parameter says nothing, nor does "<i64 as core::...>"; the trait does. */
	as = strstr(s, " as ");
	if (as && (as - s <= 2 || is_primitive(s, as - s)))
		s = as + 4;
	return starts_with_any(s, libraries, ARRAY_LEN(libraries));
}

bool ownfunction_is_allocator(const char *name, const char *module)
{
	static const char *const calls[] = { "malloc", "calloc", "realloc", "free", "cfree", "aligned_alloc", "memalign",
					     "posix_memalign", "mallocx", "rallocx", "sdallocx", "dallocx", "reallocarray",
					     "int_malloc", "int_free", "int_realloc", "int_memalign", "malloc_consolidate",
					     "sysmalloc", "systrim", "unlink_chunk" };
	static const char *const begins[] = { "je_", "_rjem_", "mi_", "_mi_", "operator new", "operator delete" };
	static const char *const files[] = { "libjemalloc", "libmimalloc" };

	return starts_with_any(str_base_name(module), files, ARRAY_LEN(files)) ||
	       starts_with_any(name, begins, ARRAY_LEN(begins)) || call_of(calls, ARRAY_LEN(calls), name);
}

/* Rates how much a library function tells about a wait: a runtime's more than a lock's, and that more than
 * the C library's. */
static int telling(const struct ident *id)
{
	static const char *const general[] = { "std::", "<std::", "core::", "<core::", "alloc::", "<alloc::",
					       "parking_lot", "<parking_lot" };

	/* Of Go: a package with a path says most, the ends of nearly every wait nothing. */
	static const char *const ends[] = { "runtime.gopark", "runtime.ready", "runtime.goready", "runtime.futex", "runtime.lock",
					    "runtime.note", "runtime.mPark", "runtime.usleep", "runtime.osyield", "runtime.epollwait",
					    "runtime.systemstack", "runtime.mcall", "runtime.sema", "internal/", "syscall." };

	if (!strstr(id->name, "::") && strchr(id->name, '.'))
		return starts_with_any(id->name, ends, ARRAY_LEN(ends)) ? 0 :
		       strcspn(id->name, "/") < strcspn(id->name, ".") ? 2 : 1;
	if (!strstr(id->name, "::") ||
	    starts_with_any(str_base_name(id->module), modules, ARRAY_LEN(modules)))
		return 0;
	return starts_with_any(id->name, general, ARRAY_LEN(general)) ? 1 : 2;
}

static uint32_t find(struct idents *t, uint32_t stack)
{
	const struct profile *p = t->p;
	uint32_t user = OWNFUNCTION_NONE, kernel = OWNFUNCTION_NONE, unnamed = OWNFUNCTION_NONE, n;
	unsigned passed = 0;
	int best = -1;

	for (; stack; stack = p->stacks.v[stack].parent) {
		uint32_t frame = p->stacks.v[stack].frame;
		enum profile_frame_kind kind = p->frames.v[frame].kind;
		const uint32_t *list;

		if (kind != FRAME_USER && kind != FRAME_KERNEL && kind != FRAME_NOTE)
			continue;
		list = idents_of_frame(t, frame, &n);
		if (kind != FRAME_USER) {
			/* The outermost but for the entry: the system call. */
			if (kernel == OWNFUNCTION_NONE || (!str_starts(t->list.v[list[0]].name, "entry_") &&
							   !str_starts(t->list.v[list[0]].name, "do_syscall") &&
							   !str_starts(t->list.v[list[0]].name, "asm_")))
				kernel = list[0];
			continue;
		}
		for (uint32_t k = n; k-- > 0;) {
			const struct ident *id = &t->list.v[list[k]];

			if (!ownfunction_is_library(id->name, id->module)) {
				if (id->kind != IDENT_UNNAMED)
					return list[k];
				if (unnamed == OWNFUNCTION_NONE)
					unnamed = list[k];
				if (++passed > NAMELESS)
					return unnamed;
				continue;
			}
			if (telling(id) > best) {
				best = telling(id);
				user = list[k];
			}
		}
	}
	return unnamed != OWNFUNCTION_NONE ? unnamed : user == OWNFUNCTION_NONE ? kernel : user;
}

uint32_t ownfunction_of_stack(struct idents *t, uint32_t stack)
{
	/* Millions of samples share some ten thousand stacks, and a stack is compared with a hundred words. */
	if (!t->own)
		t->own = mem_alloc(t->p->stacks.n * sizeof(*t->own));
	if (!t->own[stack])
		t->own[stack] = find(t, stack) + 1; /* OWNFUNCTION_NONE + 1 is 0: there are few, they are found again */
	return t->own[stack] - 1;
}

const char *ownfunction_operation(const struct profile *p, uint32_t stack)
{
	unsigned looked = 0;

	for (; stack && looked < 4; stack = p->stacks.v[stack].parent) {
		uint32_t frame = p->stacks.v[stack].frame;
		const char *call;

		if (p->frames.v[frame].kind != FRAME_USER)
			continue;
		looked++;
		call = call_of(file_calls, ARRAY_LEN(file_calls), cause_frame_name(p, frame));
		if (call)
			return call;
	}
	return NULL;
}
