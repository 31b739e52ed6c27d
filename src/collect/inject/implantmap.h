/*
 * implantmap.h - the memory of the hooks in a process: made there once, and found again and proven to be ours (blobhead.h).
 *
 * The process may be hostile, and its other threads run all the time: they may put any file in the place of a
 * descriptor, and map anything under our name. So nothing is written to, truncated or mapped before it is
 * known to be a memfd that is new and empty; code is sealed against writing and compared with what we wrote
 * before a thread runs it; a mapping counts only if its device and inode are those of our own descriptor; and memory
 * that is found by its name is believed only if it has the seals, the size, and (code) the very bytes.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct blob_head;
struct blobkind;
struct err;
struct ptracecall;

struct implantmap {
	const struct blobkind *kind;
	uint64_t image;          /* its address in the process */
	int image_file;          /* sealed; for uprobes */
	int shared_file;         /* -1: it has none, as a child of fork */
	void *shared;            /* mapped here; NULL then */
	struct blob_head *fixed; /* a copy of the fixed part, ours */
};

/* Has one thread of the process map a blob: stops it for a moment, by a child that nothing ends with us. pidfd and memory
 * (/proc/PID/mem) are of the process. */
int implantmap_make(const struct blobkind *kind, pid_t pid, int pidfd, int memory, uint64_t *ret_stopped_ns,
		    struct err *err);
/* The same by a thread that is stopped already. */
int implantmap_make_by(const struct blobkind *kind, struct ptracecall *r, int pidfd, int memory, struct err *err);

/*
 * Finds an implant and takes hold of it: all of it; or, in a child of fork that has slots which lead to the
 * hooks, the image and the fixed part. -ENOENT: nothing that matters; -EBUSY: another gasflame has it;
 * -EPROTO: something of our name that is not ours, or of another version.
 */
int implantmap_find(const struct blobkind *kind, pid_t pid, int memory, struct implantmap *ret, struct err *err);
void implantmap_done(struct implantmap *m);
