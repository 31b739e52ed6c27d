/*
 * codemap.h - which module a file of code is, in the BPF map where the kernel side looks for it (young.bpf.h).
 *
 * Files are named by device, inode, size and time of change. User space and the kernel may have different numbers for
 * the device of one file: overlayfs and btrfs show their own. So the kernel's name is learned when a stack was cut
 * there: all of a name but the device is equal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct codemap;
struct shared_code_key;
struct shared_mapping;
struct shared_young;
struct shared_young_mapping;
struct worker_layout;

/* The descriptors stay the caller's: the maps code_files and young. */
struct codemap *codemap_new(int files_fd, int young_fd);
void codemap_free(struct codemap *c);

/* Where the code of a module's file lies. A file that finds no room, or has too many parts, is found as before: by what
 * user space says of each process. */
void codemap_add(struct codemap *c, uint32_t module, const struct shared_code_key *file, const struct worker_layout *layout);
/* What a mapping that the kernel side has found is by what is known now, as young_place() finds it; false: not known. */
bool codemap_place(const struct codemap *c, const struct shared_young_mapping *m, struct shared_mapping *ret);
/* Looks for files that the kernel side has found and does not know: is one of them known by another device? */
void codemap_learn(struct codemap *c, const struct shared_young *y);
void codemap_learn_process(struct codemap *c, pid_t pid);
