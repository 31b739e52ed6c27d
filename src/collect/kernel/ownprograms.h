/* ownprograms.h - tells the kernelmap where our own BPF programs lie, so that their frames are known as ours. */
#pragma once

struct bpf_object;
struct kernelmap;

/* Of all programs of o that are loaded. Where the kernel hides addresses there is nothing to tell. */
void ownprograms_add(struct kernelmap *k, const struct bpf_object *o);
