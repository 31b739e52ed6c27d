/*
 * threadrole.h - tells threads apart whose names the kernel has cut.
 *
 * The kernel keeps 15 bytes of a thread's name: `block_executor_warmer`, `…_execution` and `…_merkleizer` are all
 * `block_executor_`. Where threads of one process share a name of that length and run different functions, the function
 * is added to the name: `block_executor_ (handle_merkleization)`.
 *
 * The function of a thread is the outermost one of the program on its stacks, below whatever starts a thread. A closure
 * has no name of its own: the function that it calls stands for it if most of the thread's samples are there, else the
 * function that it is part of. Threads of a runtime (tokio, rayon) all begin in the runtime, and keep their names.
 */
#pragma once

struct profile;

/* After symbolizing, and before the profile is analyzed; not one that is written again. The kernel's name stays in
 * profile_thread.comm. */
void threadrole_tell_apart(struct profile *p);
