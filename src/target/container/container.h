/*
 * container.h - containers as their engines know them: Docker and podman by their socket or their state
 * files, containerd, CRI-O and Kubernetes by their state files.
 *
 * One source a file (dockerapi.c, dockerstate.c, podmanstate.c, containerd.c), one table in container.c. A
 * source makes claims: a name, an id, perhaps a pid. The caller checks the id against /proc/PID/cgroup
 * (cgrouppath.h). No claim reaches a shell, and a name reaches a path or a URL only after container_is_name(). A
 * socket that is slow, dead or lies costs at most a second, all of them together, and is reported in the
 * notes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct container {
	const char *engine;            /* a constant: "docker", "podman", "containerd", "cri-o" */
	char *id;
	char *name;                    /* "" = none but the id */
	char *image;                   /* "" = unknown */
	char *namespace, *pod, *part;  /* Kubernetes: part is the container's name in its pod; NULL = in no pod */
	VEC(char *) labels;            /* "KEY=VALUE" of its labels or annotations "gasflame.label/KEY" (container_label()) */
	pid_t pid;                     /* of its first process; 0 = unknown */
	bool running;
	bool hearsay;                  /* from files, which may be older than the truth */
};
struct containers {
	VEC(struct container) list;
};

/* A sentence about a source that failed. */
struct container_note {
	char *text;
	bool minor; /* worth saying only where nothing was found: an ordinary user may not ask most engines */
};
struct container_notes {
	VEC(struct container_note) list;
};

struct container_query {
	const char *name;      /* a name or the beginning of an id; NULL = all that run */
	bool pods;             /* name is NAMESPACE/POD[/CONTAINER] or POD[/CONTAINER] */
	bool forced;           /* asked for by "container:" or "pod:": beginnings of an id may be shorter than
				* CONTAINER_ID_SHORTEST, and every engine is asked for pods */
	uint64_t deadline_ns;  /* of sockets, CLOCK_MONOTONIC; 0 = set when it begins */
	struct container_notes *notes;
};
enum { CONTAINER_ID_SHORTEST = 4, CONTAINER_SOCKETS_MS = 900 };
/* What is taken over of labels: so many, each of so many bytes at most, of which the key has some. */
enum { CONTAINER_LABELS = 60, CONTAINER_LABEL_BYTES = 200, CONTAINER_LABEL_KEY = 63 };

/* Finds the containers named q->name, running or not. More than one: the name is ambiguous. */
void containers_find(struct container_query *q, struct containers *ret);
void containers_done(struct containers *c);
void container_done(struct container *c);
void container_notes_done(struct container_notes *n);

/* Letters, digits, "_", "." and "-", not at the start but for the first two: what engines allow. */
bool container_is_name(const char *s);
/* Names of Kubernetes: lower case, with one or two slashes between. */
bool container_is_pod(const char *s);
/* Returns whether the container matches the query. */
bool container_matches(const struct container *c, const struct container_query *q);
/* "k8s_reth_reth-0_eth_UID_0", as Docker and CRI-O name a pod's containers: fills namespace, pod and part. */
void container_read_pod_name(struct container *c);
/* The same with the words for it: "eth/reth-0/reth", or the name, or the short id. Caller frees. */
char *container_title(const struct container *c);
/* "KEY=VALUE" as plain text within its bounds: of the key odd characters are replaced, of the value the end is cut. NULL = there is no such key.
 * Caller frees. */
char *container_label(const char *key, const char *value);
/* Returns whether the container is only the pause container that holds a pod's namespaces. */
bool container_is_sandbox(const struct container *c);

/* --- for the sources --- */

void container_say(const struct container_query *q, bool minor, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Was something said already that has this in it? */
bool container_said(const struct container_query *q, const char *words);
/* Takes it over if it matches and is not there yet, else frees it. */
void containers_add(struct containers *all, const struct container_query *q, struct container *c);
/* Calls each for the entries of a folder that are container_is_name(). -errno if it cannot be opened. */
int container_each(const char *folder, void (*each)(void *context, const char *name), void *context);
/* A regular file of an engine, whole; as fd_read_path(). */
int container_read(const char *path, size_t limit, char **ret, size_t *ret_n);
/* The number in a pid file, 0 if there is none. */
pid_t container_read_pid(const char *path);
/* The value of an option of each running program of root's with that name: "--data-root X" or "--data-root=X". */
void container_options(const char *program, const char *option, const char *with,
		       void (*each)(void *context, const char *value), void *context);

/* Each appends to ret. Sockets: 0, or -errno when the engine said nothing; then its files are read. */
int dockerapi_look(const char *engine, const char *socket, const struct container_query *q, struct containers *ret);
void dockerstate_look(const char *data_root, const struct container_query *q, struct containers *ret);
void podmanstate_look(const char *root, const char *run_root, const struct container_query *q,
		      struct containers *ret);
void containerd_look(const char *state, const struct container_query *q, struct containers *ret);
