#include "elf/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "elf/buildfacts.h"
#include "elf/probe/disassemble.h"
#include "elf/probe/goplaces.h"
#include "elf/probe/probesites.h"
#include "elf/probe/allocator.h"
#include "elf/packedsymbols.h"
#include "elf/probe/usdt.h"
#include "elf/tokio/tokiopack.h"
#include "elf/unwind/functions.h"
#include "elf/worker/inspected.h"
#include "elf/worker/packedtable.h"
#include "elf/worker/workerint.h"

/* Makes an unlinked file on disk, so that unpacked sections need not stay in memory. -1 = none. */
static int make_scratch(void)
{
	const char *folders[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		_cleanup_free_ char *path = NULL;
		int fd;

		if (!folders[i] || folders[i][0] != '/')
			continue;
		fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
		if (fd >= 0)
			return fd;
		path = mem_printf("%s/gasflame-XXXXXX", folders[i]);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0) {
			unlink(path);
			return fd;
		}
	}
	return -1;
}

int worker_unwind(struct worker *w, int fd, struct unwind_table *ret, struct err *err)
{
	struct worker_call c = worker_call(WORKER_UNWIND, fd);
	int r = worker_ask(w, &c, err);

	if (!r && !packedtable_open(c.bulk, c.bulk_size, ret))
		r = worker_bad_answer(w, err);
	worker_call_done(&c);
	return r;
}

static int ask_plain(struct worker *w, struct worker_call *c, void *ret, size_t n, struct err *err)
{
	int r = worker_ask(w, c, err);

	if (!r && c->bulk_size != n)
		r = worker_bad_answer(w, err);
	if (!r && n)
		memcpy(ret, c->bulk, n);
	worker_call_done(c);
	return r;
}

static int ask_about(struct worker *w, enum worker_op op, int fd, void *ret, size_t n, struct err *err)
{
	struct worker_call c = worker_call(op, fd);

	return ask_plain(w, &c, ret, n, err);
}

static void copy_string(char *to, const char *from, size_t size)
{
	memcpy(to, from, size);
	to[size - 1] = 0;
}

int worker_inspect(struct worker *w, int fd, struct symbols_info *ret, struct err *err)
{
	struct worker_info in;
	struct stat now = { 0 };
	int r;

	if (!worker_cancelled(w) && inspected_find(worker_inspected(w), fd, &now, ret))
		return 0;
	r = ask_about(w, WORKER_INSPECT, fd, &in, sizeof(in), err);
	if (!r) {
		*ret = (struct symbols_info){
			.symtab = in.flags & WORKER_HAS_SYMTAB, .dynsym = in.flags & WORKER_HAS_DYNSYM,
			.debug_line = in.flags & WORKER_HAS_DEBUG_LINE,
			.debug_info = in.flags & WORKER_HAS_DEBUG_INFO,
			.minidebug = in.flags & WORKER_HAS_MINIDEBUG,
			.eh_frame = in.flags & WORKER_HAS_EH_FRAME,
			.debug_frame = in.flags & WORKER_HAS_DEBUG_FRAME,
			.go = in.flags & WORKER_HAS_GO,
			.debuglink_crc = in.debuglink_crc, .machine = in.machine, .type = in.type,
			.symbol_count = in.symbol_count, .dynamic_count = in.dynamic_count, .go_count = in.go_count,
			.build_id_size = MIN(in.build_id_size, 20),
			.alt_build_id_size = MIN(in.alt_build_id_size, 20),
		};
		memcpy(ret->build_id, in.build_id, sizeof(ret->build_id));
		memcpy(ret->alt_build_id, in.alt_build_id, sizeof(ret->alt_build_id));
		copy_string(ret->debuglink, in.debuglink, sizeof(ret->debuglink));
		copy_string(ret->altlink, in.altlink, sizeof(ret->altlink));
		copy_string(ret->allocator, in.allocator, sizeof(ret->allocator));
		inspected_put(worker_inspected(w), &now, ret);
	}
	return r;
}

/* Asks about addresses; the answer is packed names, which are passed to got one by one. */
static int ask_names(struct worker *w, struct worker_call *c, const uint64_t *addresses, size_t n, symbols_got_fn *got,
		     void *context, struct err *err)
{
	_cleanup_fd_ int reply = -1;
	struct packedsymbols names;
	int r;

	if (n > WORKER_MAX_ADDRESSES)
		return err_set(err, E2BIG, "too many addresses");
	c->request.count = n;
	c->fds[WORKER_FD_REPLY] = reply = worker_make_reply_file(err);
	if (reply < 0)
		return reply;
	r = fd_write_all(reply, addresses, n * sizeof(*addresses));
	if (r < 0)
		return err_errno(err, -r, "cannot hand over the addresses");
	r = worker_ask(w, c, err);
	if (!r && (!packedsymbols_open(c->bulk, c->bulk_size, &names) || names.count != n))
		r = worker_bad_answer(w, err);
	for (size_t i = 0; !r && i < n; i++) {
		struct symbols_call calls[PACKEDSYMBOLS_MAX_DEPTH];

		got(context, i, calls, packedsymbols_calls(&names, i, calls, PACKEDSYMBOLS_MAX_DEPTH));
	}
	worker_call_done(c);
	return r;
}

int worker_symbolize(struct worker *w, const struct worker_files *files, const uint64_t *addresses,
		     size_t n, symbols_got_fn *got, void *context, struct err *err)
{
	_cleanup_fd_ int scratch = -1;
	struct worker_call c = worker_call(WORKER_SYMBOLIZE, files->main);

	c.request.flags = (files->keep_hash ? WORKER_KEEP_HASH : 0) |
			  (files->no_dwarf ? WORKER_NO_DWARF : 0);
	c.fds[WORKER_FD_DEBUG] = files->debug;
	c.fds[WORKER_FD_ALT] = files->alt;
	c.fds[WORKER_FD_SCRATCH] = scratch = make_scratch();
	return ask_names(w, &c, addresses, n, got, context, err);
}

int worker_jit(struct worker *w, int fd, bool dump, const uint64_t *addresses, size_t n, symbols_got_fn *got,
	       void *context, struct err *err)
{
	struct worker_call c = worker_call(WORKER_JIT, fd);

	c.request.flags = dump ? WORKER_JIT_DUMP : 0;
	return ask_names(w, &c, addresses, n, got, context, err);
}

int worker_jit_history(struct worker *w, int fd, uint64_t base_ns, const uint64_t *addresses, size_t n, symbols_got_fn *got,
		       void *context, struct err *err)
{
	struct worker_call c = worker_call(WORKER_JIT, fd);

	c.request.flags = WORKER_JIT_DUMP | WORKER_JIT_HISTORY;
	c.request.offset = base_ns;
	return ask_names(w, &c, addresses, n, got, context, err);
}

int worker_offset_to_address(struct worker *w, int fd, uint64_t offset, uint64_t *ret, struct err *err)
{
	struct worker_call c = worker_call(WORKER_OFFSET, fd);

	c.request.offset = offset;
	return ask_plain(w, &c, ret, sizeof(*ret), err);
}

int worker_layout(struct worker *w, int fd, struct worker_layout *ret, struct err *err)
{
	int r = ask_about(w, WORKER_LAYOUT, fd, ret, sizeof(*ret), err);

	return r ?: worker_layout_valid(ret) ? 0 : worker_bad_answer(w, err);
}

bool worker_layout_valid(const struct worker_layout *l)
{
	return l->build_id_size <= sizeof(l->build_id) && l->part_count <= WORKER_LAYOUT_PARTS;
}

bool worker_layout_address(const struct worker_layout *l, uint64_t offset, uint64_t *ret)
{
	for (uint32_t i = 0; i < l->part_count; i++)
		if (offset >= l->parts[i].offset && offset - l->parts[i].offset < l->parts[i].size) {
			*ret = l->parts[i].address + (offset - l->parts[i].offset);
			return true;
		}
	return false;
}

int worker_crc(struct worker *w, int fd, uint32_t *ret, struct err *err)
{
	return ask_about(w, WORKER_CRC, fd, ret, sizeof(*ret), err);
}

int worker_identify(struct worker *w, int fd, struct worker_identity *ret, struct err *err)
{
	int r = ask_about(w, WORKER_IDENTIFY, fd, ret, sizeof(*ret), err);

	if (!r)
		ret->build_id_size = MIN(ret->build_id_size, 20);
	return r;
}

int worker_allocator(struct worker *w, int fd, struct allocator_info *ret, struct err *err)
{
	int r = ask_about(w, WORKER_ALLOCATOR, fd, ret, sizeof(*ret), err);

	return r ?: allocator_check(ret) ? 0 : worker_bad_answer(w, err);
}

int worker_probesites(struct worker *w, int fd, const char *patterns, size_t n, struct probesites_info *ret, struct err *err)
{
	_cleanup_fd_ int reply = worker_make_reply_file(err);
	struct worker_call c = worker_call(WORKER_PROBESITES, fd);
	int r;

	if (reply < 0)
		return reply;
	c.request.count = n;
	c.fds[WORKER_FD_REPLY] = reply;
	r = fd_write_all(reply, patterns, n);
	if (r < 0)
		return err_errno(err, -r, "cannot hand over the patterns");
	r = ask_plain(w, &c, ret, sizeof(*ret), err);
	return r ?: probesites_check(ret) ? 0 : worker_bad_answer(w, err);
}

int worker_usdt(struct worker *w, int fd, struct usdt_info *ret, struct err *err)
{
	int r = ask_about(w, WORKER_USDT, fd, ret, sizeof(*ret), err);

	return r ?: usdt_check(ret) ? 0 : worker_bad_answer(w, err);
}

int worker_goplaces(struct worker *w, int fd, struct goplaces *ret, struct err *err)
{
	int r = ask_about(w, WORKER_GOPLACES, fd, ret, sizeof(*ret), err);

	return r ?: goplaces_check(ret) ? 0 : worker_bad_answer(w, err);
}

int worker_tokio(struct worker *w, int fd, int debug, struct tokio_program *ret, struct err *err)
{
	struct worker_call c = worker_call(WORKER_TOKIO, fd);
	int r;

	c.fds[WORKER_FD_DEBUG] = debug;
	r = worker_ask(w, &c, err);
	if (!r && !tokio_unpack(c.bulk, c.bulk_size, ret))
		r = worker_bad_answer(w, err);
	worker_call_done(&c);
	return r;
}

int worker_buildfacts(struct worker *w, int fd, struct buildfacts *ret, struct err *err)
{
	int r = ask_about(w, WORKER_BUILDFACTS, fd, ret, sizeof(*ret), err);

	if (!r)
		buildfacts_clean(ret);
	return r;
}

int worker_functions(struct worker *w, int fd, struct functions *ret, struct err *err)
{
	struct worker_call c = worker_call(WORKER_FUNCTIONS, fd);
	struct worker_functions head = { 0 };
	struct functions f = { 0 };
	int r = worker_ask(w, &c, err);

	if (!r && c.bulk_size >= sizeof(head))
		memcpy(&head, c.bulk, sizeof(head));
	if (!r && (head.count > FUNCTIONS_MAX || c.bulk_size != sizeof(head) + head.count * sizeof(*f.v)))
		r = worker_bad_answer(w, err);
	if (!r) {
		f = (struct functions){ .n = head.count, .from = head.from, .overlapping = head.overlapping,
					.text_bytes = head.text_bytes };
		f.v = mem_alloc(f.n * sizeof(*f.v) + 1);
		memcpy(f.v, c.bulk + sizeof(head), f.n * sizeof(*f.v));
		if (!functions_valid(&f)) {
			functions_done(&f);
			r = worker_bad_answer(w, err);
		}
	}
	worker_call_done(&c);
	if (!r)
		*ret = f;
	return r;
}

int worker_plain_copy(struct worker *w, int fd, int out, struct err *err)
{
	struct worker_call c = worker_call(WORKER_PLAIN_COPY, fd);

	c.fds[WORKER_FD_SCRATCH] = out;
	return ask_plain(w, &c, NULL, 0, err);
}

/* Instructions must follow each other, and their text must be printable. */
static bool check_instructions(const char *bulk, uint64_t n, worker_instruction_fn *got, void *context)
{
	uint64_t at = 0, next = 0;

	while (at < n) {
		struct disassemble_entry e;
		char text[256];

		if (n - at < sizeof(e))
			return false;
		memcpy(&e, bulk + at, sizeof(e));
		at += sizeof(e);
		if (e.text_size >= sizeof(text) || e.text_size > n - at || !e.size || e.address < next ||
		    e.address + e.size < e.address)
			return false;
		memcpy(text, bulk + at, e.text_size);
		text[e.text_size] = 0;
		for (char *c = text; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = *c == '\t' ? ' ' : '?';
		at += e.text_size;
		next = e.address + e.size;
		got(context, e.address, e.size, text);
	}
	return true;
}

int worker_disassemble(struct worker *w, int fd, int debug, uint64_t address, worker_instruction_fn *got,
		       void *context, struct err *err)
{
	struct worker_call c = worker_call(WORKER_DISASSEMBLE, fd);
	int r;

	if (!disassemble_there())
		return disassemble_function(NULL, 0, NULL, err);
	c.request.offset = address;
	c.fds[WORKER_FD_DEBUG] = debug;
	r = worker_ask(w, &c, err);
	if (!r && !check_instructions(c.bulk, c.bulk_size, got, context))
		r = worker_bad_answer(w, err);
	worker_call_done(&c);
	return r;
}
