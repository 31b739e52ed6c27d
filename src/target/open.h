/*
 * open.h - the target's files, opened safely.
 *
 * The path in a process's maps is a name in *its* mount namespace and root; a
 * symlink there could lead a root tool to a file of the host, a FIFO or a
 * device. So: /proc/PID/map_files (the very file that is mapped, deleted or
 * replaced or not), else openat2(RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS) below
 * /proc/PID/root, and in both cases regular files only, opened without blocking,
 * whose device and inode match the mapping where both are known.
 */
#pragma once

#include <sys/types.h>

struct err;
struct proc_mapping;

/* The file behind a mapping of pid. Caller closes *ret_fd. */
int target_open_mapping(pid_t pid, const struct proc_mapping *m, int *ret_fd, struct err *err);
/* A path as the process sees it. */
int target_open_path(pid_t pid, const char *path, int *ret_fd, struct err *err);
/* A path below a folder that is a root: links in it stay below. */
int target_open_below(const char *root, const char *path, int *ret_fd, struct err *err);
/* A folder as the process sees it, "." being the one it is in, as a descriptor (O_PATH) or a negative errno. */
int target_open_folder(pid_t pid, const char *path, struct err *err);
/* A file in such a folder; a link in its place is not followed. Returns 0, -EINVAL for anything but a regular file, or
 * another negative errno. Caller closes *ret_fd. */
int target_open_in(int folder, const char *name, int *ret_fd);
/*
 * Opens a file that the process has just made in such a folder for us: a regular file of its own user, with
 * no other name and no link. Any other file of that name was planted there for us to read. Caller closes
 * *ret_fd.
 */
int target_open_made(pid_t pid, int folder, const char *name, int *ret_fd, struct err *err);
/* A path of the host (debug files, --symbols): regular files only. */
int target_open_host(const char *path, int *ret_fd, struct err *err);
