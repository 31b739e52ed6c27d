/*
 * owner.h - chooses the user as whom root reads files that are not root's.
 *
 * Files of one user who can read them: as that user, for good. Files of several users, folders, and files
 * that their owner cannot reach: as nobody, with the capability to read. Files of root: as root, without
 * capabilities (the caller drops them), since no other user could have written them.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct err;

enum owner_kind {
	OWNER_SELF,    /* not root: the user stays the same */
	OWNER_ROOT,
	OWNER_USER,
	OWNER_SEVERAL,
};

struct owner_choice {
	enum owner_kind kind;
	uid_t uid;
	gid_t gid;
	char *name;       /* for people: "alice", or "user 1234" */
	char *home;       /* NULL: not known */
	const char *file; /* the first that belongs to them; borrowed */
};

enum { OWNER_NOBODY = 65534 };

/* Paths that are not there, and "-", do not count. */
void owner_find(struct owner_choice *ret, char *const *paths, size_t n);
/* A user of /etc/passwd; -ENOENT: there is none of that number, or it is root's. */
int owner_find_user(struct owner_choice *ret, uid_t uid);
void owner_done(struct owner_choice *o);
/* Becomes the user, with their home in the environment and nothing that points to root's or sudo's. */
int owner_become(const struct owner_choice *o, struct err *err);
