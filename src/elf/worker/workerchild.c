/*
 * workerchild.c - the child's side: reads the descriptors that it receives; it never sees a file
 * name.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "elf/buildfacts.h"
#include "elf/probe/allocator.h"
#include "elf/budget.h"
#include "elf/demangle.h"
#include "elf/probe/disassemble.h"
#include "elf/probe/goplaces.h"
#include "elf/probe/probesites.h"
#include "elf/file.h"
#include "elf/jit.h"
#include "elf/packedsymbols.h"
#include "elf/symbols.h"
#include "elf/plaincopy.h"
#include "elf/tokio/tokio.h"
#include "elf/tokio/tokiopack.h"
#include "elf/unwind/functions.h"
#include "elf/unwind/unwind.h"
#include "elf/probe/usdt.h"
#include "elf/worker/packedtable.h"
#include "elf/worker/worker.h"
#include "elf/worker/workerproto.h"

struct job {
	struct worker_request request;
	int fds[WORKER_FDS]; /* -1 = not sent */
	uint64_t written;    /* bytes of the reply file */
};

/* Appends to the reply file. */
static int put(struct job *j, const void *data, size_t n, struct err *err)
{
	const char *p = data;

	if (n > WORKER_MAX_REPLY - j->written)
		return err_set(err, EFBIG, "the answer is too large");
	while (n) {
		ssize_t w = pwrite(j->fds[WORKER_FD_REPLY], p, n, j->written);

		if (w <= 0)
			return err_errno(err, w ? errno : EIO, "cannot write the answer");
		p += w;
		n -= w;
		j->written += w;
	}
	return 0;
}

static int do_unwind(struct job *j, struct elf *elf, struct err *err)
{
	_cleanup_(unwind_done) struct unwind_table t = { 0 };
	struct packedtable head;
	int r = unwind_build(elf, &t, err);

	if (r < 0)
		return r;
	head = packedtable_of(&t);
	r = put(j, &head, sizeof(head), err);
	if (!r)
		r = put(j, t.pages, t.page_count * sizeof(*t.pages), err);
	if (!r)
		r = put(j, t.rows, t.row_count * sizeof(*t.rows), err);
	if (!r)
		r = put(j, t.rules, t.rule_count * sizeof(*t.rules), err);
	return r;
}

static int do_inspect(struct job *j, struct elf *elf, struct err *err)
{
	struct symbols_info info = { 0 };
	struct worker_info out = { 0 };

	symbols_inspect(elf, &info);
	out.flags = (info.symtab ? WORKER_HAS_SYMTAB : 0) | (info.dynsym ? WORKER_HAS_DYNSYM : 0) |
		    (info.debug_line ? WORKER_HAS_DEBUG_LINE : 0) |
		    (info.debug_info ? WORKER_HAS_DEBUG_INFO : 0) |
		    (info.minidebug ? WORKER_HAS_MINIDEBUG : 0) |
		    (info.eh_frame ? WORKER_HAS_EH_FRAME : 0) |
		    (info.debug_frame ? WORKER_HAS_DEBUG_FRAME : 0) | (info.go ? WORKER_HAS_GO : 0);
	out.debuglink_crc = info.debuglink_crc;
	out.symbol_count = info.symbol_count;
	out.dynamic_count = info.dynamic_count;
	out.go_count = info.go_count;
	out.machine = info.machine;
	out.type = info.type;
	out.build_id_size = info.build_id_size;
	out.alt_build_id_size = info.alt_build_id_size;
	memcpy(out.build_id, info.build_id, sizeof(out.build_id));
	memcpy(out.alt_build_id, info.alt_build_id, sizeof(out.alt_build_id));
	memcpy(out.debuglink, info.debuglink, sizeof(out.debuglink));
	memcpy(out.altlink, info.altlink, sizeof(out.altlink));
	memcpy(out.allocator, info.allocator, sizeof(out.allocator));
	return put(j, &out, sizeof(out), err);
}

/* Answers come in any order and may share strings: each is demangled once. */
struct collected {
	struct packedsymbols_builder builder;
	const uint64_t *addresses;
	struct packedsymbols_span *spans; /* for each address, into builder.calls */
	struct map demangled;     /* string id of a linkage name to that of its readable form */
	enum demangle_flags flags;
};

static uint32_t readable(struct collected *c, uint32_t linkage)
{
	uint64_t *id = map_put(&c->demangled, linkage, UINT64_MAX);

	if (*id == UINT64_MAX) {
		_cleanup_free_ char *name = demangle(strtab_get(&c->builder.strings, linkage), c->flags);

		*id = strtab_add(&c->builder.strings, name);
	}
	return *id;
}

static void collect_calls(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct collected *c = context;
	struct packedsymbols_builder *b = &c->builder;

	count = MIN(count, (size_t)PACKEDSYMBOLS_MAX_DEPTH);
	c->spans[index] = (struct packedsymbols_span){ b->calls.n, count };
	for (size_t i = 0; i < count; i++) {
		struct packedsymbols_call call = { .linkage = strtab_add(&b->strings, calls[i].linkage),
					   .file = strtab_add(&b->strings, calls[i].file),
					   .line = calls[i].line };

		call.name = call.linkage ? readable(c, call.linkage) : strtab_add(&b->strings, calls[i].name);
		vec_push(&b->calls, call);
	}
}

/* Reads the input that the parent wrote into the reply file. */
static int read_input(struct job *j, size_t n, char **ret, struct err *err)
{
	char *data = mem_alloc(n + 1);
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(j->fds[WORKER_FD_REPLY], data + got, n - got, got);

		if (r <= 0) {
			free(data);
			return err_errno(err, r ? errno : EIO, "cannot read the request");
		}
		got += r;
	}
	*ret = data;
	return 0;
}

static int read_addresses(struct job *j, uint64_t **ret, struct err *err)
{
	if (j->request.count > WORKER_MAX_ADDRESSES)
		return err_set(err, E2BIG, "too many addresses");
	return read_input(j, j->request.count * sizeof(uint64_t), (char **)ret, err);
}

static int do_symbolize(struct job *j, struct elf *elf, struct err *err)
{
	_cleanup_(elf_freep) struct elf *debug = NULL, *alt = NULL;
	_cleanup_free_ uint64_t *addresses = NULL;
	struct symbols_files files = { .main = elf, .scratch_fd = j->fds[WORKER_FD_SCRATCH],
				       .no_dwarf = j->request.flags & WORKER_NO_DWARF };
	size_t n = j->request.count;
	struct collected c = { 0 };
	struct symbols *symbols;
	_cleanup_(buf_done) struct buf out = { 0 };
	int r = read_addresses(j, &addresses, err);

	/* An unreadable debug file does not prevent using the main file. */
	if (!r && j->fds[WORKER_FD_DEBUG] >= 0 && !elf_open(j->fds[WORKER_FD_DEBUG], &debug, NULL))
		files.debug = debug;
	if (!r && j->fds[WORKER_FD_ALT] >= 0 && !elf_open(j->fds[WORKER_FD_ALT], &alt, NULL))
		files.alt = alt;
	if (!r)
		r = symbols_new(&files, &symbols, err);
	if (r < 0)
		return r;
	packedsymbols_builder_init(&c.builder);
	c.addresses = addresses;
	c.flags = j->request.flags & WORKER_KEEP_HASH ? DEMANGLE_KEEP_HASH : 0;
	c.spans = mem_alloc((n + 1) * sizeof(*c.spans));
	r = symbols_resolve(symbols, addresses, n, collect_calls, &c);
	if (r < 0)
		err_errno(err, -r, "cannot resolve its addresses");
	symbols_free(symbols);
	for (size_t i = 0; i < n; i++) {
		vec_push(&c.builder.addresses, addresses[i]);
		vec_push(&c.builder.spans, c.spans[i]);
	}
	if (!r && !packedsymbols_builder_pack(&c.builder, &out))
		r = err_set(err, EFBIG, "the answer is too large");
	if (!r)
		r = put(j, out.data, out.n, err);
	map_done(&c.demangled);
	free(c.spans);
	packedsymbols_builder_done(&c.builder);
	return r;
}

static int do_offset(struct job *j, struct elf *elf, struct err *err)
{
	uint64_t address;

	if (!elf_offset_to_address(elf, j->request.offset, &address))
		return err_set(err, ENOENT, "no code is mapped from offset %#llx",
			       (unsigned long long)j->request.offset);
	return put(j, &address, sizeof(address), err);
}

static int do_disassemble(struct job *j, struct elf *elf, struct err *err)
{
	_cleanup_(elf_freep) struct elf *debug = NULL;
	_cleanup_(buf_done) struct buf out = { 0 };
	struct symbols_files files = { .main = elf, .scratch_fd = -1, .no_dwarf = true };
	int r;

	if (j->fds[WORKER_FD_DEBUG] >= 0 && !elf_open(j->fds[WORKER_FD_DEBUG], &debug, NULL))
		files.debug = debug;
	r = disassemble_function(&files, j->request.offset, &out, err);
	return r ? r : put(j, out.data, out.n, err);
}

static int do_identify(struct job *j, struct elf *elf, struct err *err)
{
	struct worker_identity id = { 0 };

	id.build_id_size = elf_build_id(elf, id.build_id);
	id.compressed = plaincopy_measure(elf, &id.unpacked_bytes);
	return put(j, &id, sizeof(id), err);
}

static int do_allocator(struct job *j, struct elf *elf, struct err *err)
{
	_cleanup_free_ struct allocator_info *info = mem_alloc(sizeof(*info));

	allocator_find(elf, info);
	return put(j, info, sizeof(*info), err);
}

static int do_probesites(struct job *j, struct elf *elf, struct err *err)
{
	_cleanup_free_ struct probesites_info *info = mem_alloc(sizeof(*info));
	_cleanup_free_ char *text = NULL;
	int r;

	if (j->request.count > PROBESITES_TEXT)
		return err_set(err, E2BIG, "too many patterns");
	r = read_input(j, j->request.count, &text, err);
	if (!r)
		r = probesites_find(elf, text, j->request.count, info, err);
	return r ? r : put(j, info, sizeof(*info), err);
}

static int do_usdt(struct job *j, struct elf *elf, struct err *err)
{
	_cleanup_free_ struct usdt_info *info = mem_alloc(sizeof(*info));

	usdt_find(elf, info);
	return put(j, info, sizeof(*info), err);
}

static int do_goplaces(struct job *j, struct elf *elf, struct err *err)
{
	struct goplaces g;

	goplaces_find(elf, &g);
	return put(j, &g, sizeof(g), err);
}

static int do_buildfacts(struct job *j, struct elf *elf, struct err *err)
{
	struct buildfacts b;

	buildfacts_find(elf, &b);
	return put(j, &b, sizeof(b), err);
}

static int do_functions(struct job *j, struct elf *elf, struct err *err)
{
	_cleanup_(functions_done) struct functions f = { 0 };
	struct worker_functions head;
	int r;

	functions_read(elf, &f);
	head = (struct worker_functions){ f.n, f.text_bytes, f.from, f.overlapping };
	r = put(j, &head, sizeof(head), err);
	return r ? r : put(j, f.v, f.n * sizeof(*f.v), err);
}

static int do_tokio(struct job *j, struct elf *elf, struct err *err)
{
	_cleanup_(elf_freep) struct elf *debug = NULL;
	_cleanup_(tokio_done) struct tokio_program p = { 0 };
	_cleanup_(buf_done) struct buf out = { 0 };
	struct symbols_files files = { .main = elf, .scratch_fd = -1, .no_dwarf = true };
	int r;

	if (j->fds[WORKER_FD_DEBUG] >= 0 && !elf_open(j->fds[WORKER_FD_DEBUG], &debug, NULL))
		files.debug = debug;
	r = tokio_find(&files, &p, err);
	if (r < 0)
		return r;
	tokio_pack(&p, &out);
	return put(j, out.data, out.n, err);
}

static int do_layout(struct job *j, struct elf *elf, struct err *err)
{
	_cleanup_free_ struct worker_layout *out = mem_alloc(sizeof(*out));

	out->build_id_size = elf_build_id(elf, out->build_id);
	for (size_t i = 0; i < elf->segment_count && out->part_count < WORKER_LAYOUT_PARTS; i++) {
		const struct elf_segment *s = &elf->segments[i];
		/* The kernel maps whole pages: a mapping may begin before the segment does. */
		uint64_t before = s->offset & 0xfff;

		if (s->type != PT_LOAD || !(s->flags & PF_X))
			continue;
		out->parts[out->part_count].offset = s->offset - before;
		out->parts[out->part_count].size = s->file_size + before;
		out->parts[out->part_count++].address = s->address - before;
	}
	return put(j, out, sizeof(*out), err);
}

/* --- files that need not be ELF files --- */

static int do_crc(struct job *j, struct err *err)
{
	enum { PIECE = 1 << 20, KEEP = 64 << 20 };
	_cleanup_free_ uint8_t *piece = mem_alloc(PIECE);
	int fd = j->fds[WORKER_FD_MAIN];
	uint64_t at = 0, given = 0;
	uint32_t crc = 0;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return err_errno(err, errno, "cannot look at the file");
	if ((uint64_t)st.st_size > BUDGET_CRC_BYTES ||
	    (uint64_t)st.st_size > budget_real_bytes(fd, st.st_size) + BUDGET_HOLE_BYTES)
		return err_set(err, EFBIG, "it is too large, or mostly a hole");
	while ((n = pread(fd, piece, PIECE, at)) > 0) {
		crc = crc32_z(crc, piece, n);
		at += n;
		/* Each page is read once and perhaps never needed again. */
		if (at - given >= KEEP) {
			posix_fadvise(fd, given, at - given, POSIX_FADV_DONTNEED);
			given = at;
		}
	}
	return n < 0 ? err_errno(err, errno, "cannot read the file") : put(j, &crc, sizeof(crc), err);
}

static void collect_jit(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct collected *c = context;

	if (count)
		c->spans[index] = (struct packedsymbols_span){ c->builder.calls.n, count };
	for (size_t i = 0; i < count; i++) {
		struct packedsymbols_call call = { .name = strtab_add(&c->builder.strings, calls[i].name),
					   .file = strtab_add(&c->builder.strings, calls[i].file), .line = calls[i].line };

		vec_push(&c->builder.calls, call);
	}
}

static int pack_jit(struct job *j, const struct jit *jit, const uint64_t *addresses, struct err *err)
{
	size_t n = j->request.count;
	_cleanup_free_ struct packedsymbols_span *spans = mem_alloc((n + 1) * sizeof(*spans));
	_cleanup_(buf_done) struct buf out = { 0 };
	struct collected c = { .addresses = addresses, .spans = spans };
	int r = 0;

	packedsymbols_builder_init(&c.builder);
	if (j->request.flags & WORKER_JIT_HISTORY)
		jit_history(jit, j->request.offset, collect_jit, &c);
	else
		jit_resolve(jit, collect_jit, &c);
	for (size_t i = 0; i < n; i++) {
		vec_push(&c.builder.addresses, addresses[i]);
		vec_push(&c.builder.spans, spans[i]);
	}
	if (!packedsymbols_builder_pack(&c.builder, &out))
		r = err_set(err, EFBIG, "the answer is too large");
	packedsymbols_builder_done(&c.builder);
	return r ? r : put(j, out.data, out.n, err);
}

/* Finds where the last piece of a perf map begins that is read (BUDGET_JIT_BYTES). A hole before it is left out: a log
 * that was cut while it was open begins with one, and on tmpfs reading it through a mapping would fill it. */
static uint64_t map_tail(int fd, uint64_t size)
{
	uint64_t at = size > BUDGET_JIT_BYTES ? size - BUDGET_JIT_BYTES : 0;
	off_t data = lseek(fd, at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? size : at;
	return data & ~(off_t)0xffff; /* a multiple of any page size */
}

/* Maps the part of a perf map or jitdump that is read, and skips a first line that is only the end of one. */
static int map_jit(int fd, bool dump, char **ret, size_t *ret_n, size_t *ret_skip, struct err *err)
{
	struct stat st;
	uint64_t at, end;

	if (fstat(fd, &st))
		return err_errno(err, errno, "cannot look at the file");
	end = dump ? MIN((uint64_t)st.st_size, BUDGET_JIT_DUMP_BYTES) : (uint64_t)st.st_size;
	at = dump ? 0 : map_tail(fd, end);
	if (!dump && end - at > budget_real_bytes(fd, end) + BUDGET_HOLE_BYTES)
		return err_set(err, EFBIG, "it has more holes than bytes");
	*ret_n = end - at;
	*ret = *ret_n ? mmap(NULL, *ret_n, PROT_READ, MAP_SHARED, fd, at) : NULL;
	if (*ret == MAP_FAILED)
		return err_errno(err, errno, "cannot map the file");
	if (at && *ret_n) {
		char *line = memchr(*ret, '\n', *ret_n);

		*ret_skip = line ? (size_t)(line + 1 - *ret) : *ret_n;
	}
	return 0;
}

static int do_jit(struct job *j, struct err *err)
{
	_cleanup_free_ uint64_t *addresses = NULL;
	bool dump = j->request.flags & WORKER_JIT_DUMP;
	int r = read_addresses(j, &addresses, err);
	size_t n = 0, skip = 0;
	char *data = NULL;
	struct jit *jit;

	for (uint64_t i = 1; !r && i < j->request.count; i++)
		if (addresses[i] < addresses[i - 1])
			r = err_set(err, EINVAL, "the addresses do not ascend");
	if (!r)
		r = map_jit(j->fds[WORKER_FD_MAIN], dump, &data, &n, &skip, err);
	if (r < 0)
		return r;
	jit = jit_new(addresses, j->request.count);
	if (dump)
		r = jit_parse_dump(jit, data, n, err);
	else if (n)
		jit_parse_map(jit, data + skip, n - skip);
	if (!r)
		r = pack_jit(j, jit, addresses, err);
	jit_free(jit);
	if (data)
		munmap(data, n);
	return r;
}

static int do_plain_copy(struct job *j, struct elf *elf, struct err *err)
{
	return plaincopy_write(elf, j->fds[WORKER_FD_SCRATCH], err);
}

static int run(struct job *j, struct err *err)
{
	static int (*const jobs[])(struct job *, struct elf *, struct err *) = {
		[WORKER_UNWIND] = do_unwind,
		[WORKER_INSPECT] = do_inspect,
		[WORKER_SYMBOLIZE] = do_symbolize,
		[WORKER_OFFSET] = do_offset,
		[WORKER_IDENTIFY] = do_identify,
		[WORKER_DISASSEMBLE] = do_disassemble,
		[WORKER_ALLOCATOR] = do_allocator,
		[WORKER_PROBESITES] = do_probesites,
		[WORKER_USDT] = do_usdt,
		[WORKER_BUILDFACTS] = do_buildfacts,
		[WORKER_FUNCTIONS] = do_functions,
		[WORKER_GOPLACES] = do_goplaces,
		[WORKER_TOKIO] = do_tokio,
		[WORKER_LAYOUT] = do_layout,
		[WORKER_PLAIN_COPY] = do_plain_copy,
	};
	_cleanup_(elf_freep) struct elf *elf = NULL;
	int r;

	if (j->fds[WORKER_FD_REPLY] < 0 || j->fds[WORKER_FD_MAIN] < 0)
		return err_set(err, EBADF, "a descriptor is missing");
	if (j->request.op == WORKER_CRC)
		return do_crc(j, err);
	if (j->request.op == WORKER_JIT)
		return do_jit(j, err);
	r = elf_open(j->fds[WORKER_FD_MAIN], &elf, err);
	if (r < 0)
		return r;
	if (j->request.op >= ARRAY_LEN(jobs) || !jobs[j->request.op])
		return err_set(err, ENOSYS, "unknown request");
	return jobs[j->request.op](j, elf, err);
}

void worker_child_run(int sock)
{
	for (;;) {
		int received[WORKER_FDS];
		size_t count = ARRAY_LEN(received), used = 0;
		struct worker_reply reply = { 0 };
		struct job j = { 0 };
		struct err err = { 0 };

		if (fd_recv(sock, &j.request, sizeof(j.request), received, &count) != sizeof(j.request))
			return;
		for (int i = 0; i < WORKER_FDS; i++)
			j.fds[i] = j.request.have & 1U << i && used < count ? received[used++] : -1;
		reply.status = run(&j, &err);
		reply.size = reply.status ? 0 : j.written;
		snprintf(reply.text, sizeof(reply.text), "%s", err.text);
		for (int i = 0; i < WORKER_FDS; i++)
			fd_close(&j.fds[i]);
		malloc_trim(0);
		if (fd_send(sock, &reply, sizeof(reply), NULL, 0))
			return;
	}
}
