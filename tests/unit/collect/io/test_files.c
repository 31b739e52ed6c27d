/* What files are called: from records as the BPF programs send them, and from broken ones. */
#include "test.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "collect/io/files.h"
#include "profile/profile.h"

struct record {
	struct shared_file head;
	char names[512];
};

static const char *name_of(const struct profile *p, uint32_t frame)
{
	assert_int_equal(p->frames.v[frame].kind, FRAME_NOTE);
	return profile_str(p, p->functions.v[p->lines.v[p->frames.v[frame].first_line].function].name);
}

/* names: n bytes, leaf first, each with its NUL */
static const char *learn(struct profile *p, struct files *f, struct shared_file head, const char *names,
			 size_t n)
{
	struct record r = { .head = head };

	r.head.kind = RECORD_FILE;
	r.head.bytes = n;
	memcpy(r.names, names, n);
	files_learn(f, &r.head, sizeof(r.head) + n);
	return name_of(p, files_frame(f, head.key, IO_OP_read));
}

#define LEARN(names, ...) \
	learn(p, f, (struct shared_file){ .mode = S_IFREG, __VA_ARGS__ }, names, sizeof(names) - 1)

static void paths(void **state)
{
	struct profile *p = profile_new();
	struct files *f = files_new(p);

	assert_string_equal(LEARN("mdbx.dat\0db\0data\0", .key = 1), "/data/db/mdbx.dat");
	assert_string_equal(LEARN("x\0", .key = 2, .flags = FILE_DELETED), "/x (deleted)");
	assert_string_equal(LEARN("x\0y\0", .key = 3, .flags = FILE_CUT), "…/y/x");
	assert_string_equal(LEARN("memfd:jit\0", .key = 4, .flags = FILE_ROOTLESS | FILE_DELETED), "memfd:jit");
	assert_string_equal(LEARN("[eventfd]\0", .key = 5, .flags = FILE_ROOTLESS, .magic = 0x09041934),
			    "anon_inode:[eventfd]");
	assert_string_equal(LEARN("", .key = 6), "/");
	assert_string_equal(LEARN("", .key = 7, .magic = 0x50495045, .inode = 42), "pipe:[42]");
	files_free(f);
	profile_free(p);
}

static void sockets(void **state)
{
	struct profile *p = profile_new();
	struct files *f = files_new(p);

#define SOCKET(k, fam, t, local, peer)                                                                        \
	learn(p, f, (struct shared_file){ .key = k, .mode = S_IFSOCK, .family = fam, .type = t,               \
					  .local_port = local, .peer_port = peer }, "", 0)
	assert_string_equal(SOCKET(1, AF_INET, SOCK_STREAM, 8545, 50123), "socket:tcp on port 8545");
	assert_string_equal(SOCKET(2, AF_INET6, SOCK_STREAM, 50123, 443), "socket:tcp to port 443");
	assert_string_equal(SOCKET(3, AF_INET, SOCK_DGRAM, 30303, 0), "socket:udp on port 30303");
	assert_string_equal(SOCKET(4, AF_INET, SOCK_DGRAM, 0, 0), "socket:udp");
	assert_string_equal(SOCKET(5, AF_UNIX, SOCK_SEQPACKET, 0, 0), "socket:unix seqpacket");
	assert_string_equal(SOCKET(6, AF_NETLINK, SOCK_RAW, 0, 0), "socket:netlink");
	assert_string_equal(SOCKET(7, 999, 77, 0, 0), "socket:family 999 other");
	files_free(f);
	profile_free(p);
}

static void unknown(void **state)
{
	struct profile *p = profile_new();
	struct files *f = files_new(p);
	struct record r = { .head = { .kind = RECORD_FILE, .key = 9, .mode = S_IFREG, .bytes = 4 },
			    .names = "abcd" };

	files_learn(f, &r.head, sizeof(r.head) - 1); /* cut off */
	files_learn(f, &r.head, sizeof(r.head) + 3);
	files_learn(f, &r.head, sizeof(r.head) + 4); /* a name without its end */
	assert_string_equal(name_of(p, files_frame(f, 9, IO_OP_read)), "[file not known]");
	assert_string_equal(name_of(p, files_frame(f, 0, IO_OP_read)), "[no open file]");
	assert_string_equal(name_of(p, files_frame(f, 0, IO_OP_msync)), "[mapped memory]");
	assert_string_equal(name_of(p, files_frame(f, 0, IO_OP_sync)), "[all files]");
	files_free(f);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(paths), cmocka_unit_test(sockets),
					    cmocka_unit_test(unknown) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
