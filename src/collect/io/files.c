#include "collect/io/files.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "profile/profile.h"

enum { MAGIC_PIPE = 0x50495045, MAGIC_ANON_INODE = 0x09041934 };

struct files {
	struct profile *profile;
	struct map frames; /* key to frame */
	uint32_t none, unknown, memory, all;
};

static uint32_t note(struct profile *p, const char *name)
{
	return profile_named_frame(p, PROFILE_NONE, FRAME_NOTE, name);
}

struct files *files_new(struct profile *p)
{
	struct files *f = mem_alloc(sizeof(*f));

	f->profile = p;
	f->none = note(p, "[no open file]");
	f->unknown = note(p, "[file not known]");
	f->memory = note(p, "[mapped memory]");
	f->all = note(p, "[all files]");
	return f;
}

void files_free(struct files *f)
{
	if (!f)
		return;
	map_done(&f->frames);
	free(f);
}

/* The port that says most is the service's, and that is the lower one: the other was picked by the kernel. */
static void name_port(struct buf *b, const struct shared_file *r)
{
	if (r->peer_port && (r->peer_port < r->local_port || !r->local_port))
		buf_printf(b, " to port %u", r->peer_port);
	else if (r->local_port)
		buf_printf(b, " on port %u", r->local_port);
}

static void name_socket(struct buf *b, const struct shared_file *r)
{
	static const char *const types[] = { [SOCK_STREAM] = "stream", [SOCK_DGRAM] = "datagram",
					     [SOCK_RAW] = "raw", [SOCK_SEQPACKET] = "seqpacket" };
	const char *type = r->type < ARRAY_LEN(types) && types[r->type] ? types[r->type] : "other";

	buf_puts(b, "socket:");
	if (r->family == AF_INET || r->family == AF_INET6) {
		buf_puts(b, r->type == SOCK_STREAM ? "tcp" : r->type == SOCK_DGRAM ? "udp" : type);
		name_port(b, r);
	} else if (r->family == AF_UNIX) {
		buf_printf(b, "unix %s", type);
	} else if (r->family == AF_NETLINK) {
		buf_puts(b, "netlink");
	} else {
		buf_printf(b, "family %u %s", r->family, type);
	}
}

/* Names come leaf first; a path is the other way round. */
static void name_path(struct buf *b, const struct shared_file *r, const char *names)
{
	const char *end = names + r->bytes;

	if (r->magic == MAGIC_PIPE) {
		buf_printf(b, "pipe:[%llu]", (unsigned long long)r->inode);
		return;
	}
	if (r->magic == MAGIC_ANON_INODE)
		buf_puts(b, "anon_inode:");
	if (r->flags & FILE_CUT)
		buf_puts(b, "…");
	if (!r->bytes)
		buf_putc(b, '/');
	while (end > names) {
		const char *start = end - 1; /* its NUL */

		while (start > names && start[-1])
			start--;
		if (!(r->flags & FILE_ROOTLESS))
			buf_putc(b, '/');
		buf_puts(b, start);
		end = start;
	}
	if (r->flags & FILE_DELETED && !(r->flags & FILE_ROOTLESS))
		buf_puts(b, " (deleted)");
}

void files_learn(struct files *f, const struct shared_file *r, size_t size)
{
	const char *names = (const char *)(r + 1);
	_cleanup_(buf_done) struct buf b = { 0 };

	if (size < sizeof(*r) || size < sizeof(*r) + r->bytes || (r->bytes && names[r->bytes - 1]))
		return;
	if (S_ISSOCK(r->mode))
		name_socket(&b, r);
	else
		name_path(&b, r, names);
	*map_put(&f->frames, r->key, 0) = note(f->profile, b.data);
}

uint32_t files_frame(const struct files *f, uint64_t key, enum shared_io_op op)
{
	uint64_t *frame = key ? map_get(&f->frames, key) : NULL;

	if (key)
		return frame ? *frame : f->unknown;
	return op == IO_OP_msync ? f->memory : op == IO_OP_sync ? f->all : f->none;
}
