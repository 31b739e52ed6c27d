/*
 * folder.h - the folder of a path, as a descriptor that stays the same folder whatever is renamed later.
 *
 * A path is a question that somebody else may answer: whoever can write to one of its folders can put a
 * symbolic link there. So a path is walked one part after the other, and as root only root's own links are
 * followed on the way (/tmp may be one): any other would let its owner choose where root writes. The last part
 * of the path is not looked at here: newfile.h says what may be there.
 *
 *	_cleanup_fd_ int folder = folder_open(path, NULL, &name, err);
 *	openat(folder, name, O_CREAT | O_EXCL | O_NOFOLLOW, ...);
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct err;

/* Who gets what is made; .given false: whoever we are. */
struct owner {
	bool given;
	uid_t uid;
	gid_t gid;
};

/*
 * A descriptor (O_PATH) of the folder that holds the last part of path, or a negative errno. *ret_name points
 * to that part in path; "" when path names a folder ("x/", "..", "/").
 */
int folder_open(const char *path, const char **ret_name, struct err *err);
/* The same of a path that begins at another folder than ours. */
int folder_open_at(int at, const char *path, const char **ret_name, struct err *err);
/* Folders that are missing are made (mkdir -p) and given to owner, NULL: to nobody. */
int folder_make(const char *path, const struct owner *owner, const char **ret_name, struct err *err);

/* Takes away name in folder if it is the very file that is known by these numbers: not what was put in its place. */
void folder_remove(int folder, const char *name, dev_t device, ino_t inode);
