/*
 * folder.h - opens the folder of a path, as a descriptor that stays the same folder when names change later.
 *
 * A user who can write to one of the folders of a path can put a symbolic link there. So a path is walked one
 * part after the other, and as root only root's own links are followed on the way (/tmp may be one): any
 * other would let its owner choose where root writes. The last part of the path is not checked here:
 * newfile.h says what may be there.
 *
 *	_cleanup_fd_ int folder = folder_open(path, NULL, &name, err);
 *	openat(folder, name, O_CREAT | O_EXCL | O_NOFOLLOW, ...);
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct err;

/* The owner of new files; .given false: the current user. */
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
/* The same for a path relative to the folder at. */
int folder_open_at(int at, const char *path, const char **ret_name, struct err *err);
/* Makes missing folders (mkdir -p) and gives them to owner; NULL: they stay ours. */
int folder_make(const char *path, const struct owner *owner, const char **ret_name, struct err *err);

/* Removes name in folder if it is still the file with this device and inode. */
void folder_remove(int folder, const char *name, dev_t device, ino_t inode);
