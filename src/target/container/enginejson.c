#include "target/container/enginejson.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "target/container/container.h"

#define LABEL_PREFIX "gasflame.label/"
enum { TEXT_MAX = 256, LIST_MAX = 100000 };

static json_t *load(const char *text, size_t n)
{
	return json_loadb(text, n, 0, NULL);
}

/* NULL if it is something else. */
static json_t *load_array(const char *text, size_t n)
{
	json_t *root = load(text, n);

	if (json_is_array(root))
		return root;
	json_decref(root);
	return NULL;
}

/* A string member, NULL if there is none. */
static const char *string_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* Text that is only shown. */
static char *shown(const char *s)
{
	char *copy = mem_strndup(s ? s : "", s ? strnlen(s, TEXT_MAX) : 0);

	for (char *p = copy; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	return copy;
}

/* Docker writes "/reth-a". */
static const char *bare(const char *name)
{
	return name && *name == '/' ? name + 1 : name;
}

static bool is_id(const char *id)
{
	return id && container_is_name(id) && strlen(id) <= 128;
}

/* An id that is none makes all of it worthless; a name that is none is no name. */
static int fill(struct container *c, const char *id, const char *name, const char *image)
{
	if (!is_id(id))
		return -EINVAL;
	name = bare(name);
	c->id = mem_strdup(id);
	c->name = mem_strdup(name && container_is_name(name) ? name : "");
	c->image = shown(image);
	return 0;
}

static void set_pod(struct container *c, const char *namespace, const char *pod, const char *part)
{
	if (!namespace || !pod || !container_is_name(namespace) || !container_is_name(pod))
		return;
	free(c->namespace);
	free(c->pod);
	free(c->part);
	c->namespace = mem_strdup(namespace);
	c->pod = mem_strdup(pod);
	c->part = mem_strdup(part && container_is_name(part) ? part : "");
}

/* Those that are meant for us. */
static void read_own_labels(struct container *c, json_t *labels)
{
	const char *key;
	json_t *value;

	json_object_foreach(labels, key, value) {
		char *label = json_is_string(value) && str_starts(key, LABEL_PREFIX) ?
				      container_label(key + strlen(LABEL_PREFIX), json_string_value(value)) : NULL;

		if (label && c->labels.n < CONTAINER_LABELS)
			vec_push(&c->labels, label);
		else
			free(label);
	}
}

static void read_labels(struct container *c, json_t *labels)
{
	read_own_labels(c, labels);
	set_pod(c, string_of(labels, "io.kubernetes.pod.namespace"), string_of(labels, "io.kubernetes.pod.name"),
		string_of(labels, "io.kubernetes.container.name"));
	if (!c->pod)
		container_read_pod_name(c);
}

int enginejson_inspect(const char *text, size_t n, struct container *ret)
{
	json_t *root = load(text, n), *config = json_object_get(root, "Config"),
	       *state = json_object_get(root, "State");
	const char *id = string_of(root, "Id");
	json_int_t pid;
	int r;

	*ret = (struct container){ .engine = "" };
	r = fill(ret, id ? id : string_of(root, "ID"), string_of(root, "Name"), string_of(config, "Image"));
	if (!r) {
		pid = json_integer_value(json_object_get(state, "Pid"));
		ret->running = json_is_true(json_object_get(state, "Running"));
		ret->pid = ret->running && pid > 0 && pid <= INT_MAX ? pid : 0;
		read_labels(ret, json_object_get(config, "Labels"));
	}
	json_decref(root);
	return r;
}

int enginejson_list(const char *text, size_t n, struct containers *ret)
{
	json_t *root = load_array(text, n), *x;
	size_t i;

	*ret = (struct containers){ 0 };
	if (!root)
		return -EINVAL;
	json_array_foreach(root, i, x) {
		struct container c = { .engine = "" };
		const char *state = string_of(x, "State");

		if (ret->list.n >= LIST_MAX ||
		    fill(&c, string_of(x, "Id"), json_string_value(json_array_get(json_object_get(x, "Names"), 0)),
			 string_of(x, "Image")))
			continue;
		c.running = state && (!strcmp(state, "running") || !strcmp(state, "paused"));
		read_labels(&c, json_object_get(x, "Labels"));
		vec_push(&ret->list, c);
	}
	json_decref(root);
	return 0;
}

int enginejson_store(const char *text, size_t n, struct containers *ret)
{
	json_t *root = load_array(text, n), *x;
	size_t i;

	*ret = (struct containers){ 0 };
	if (!root)
		return -EINVAL;
	json_array_foreach(root, i, x) {
		struct container c = { .engine = "" };
		/* JSON as a string in JSON. */
		const char *more = string_of(x, "metadata");
		json_t *metadata = more ? load(more, strlen(more)) : NULL;

		if (ret->list.n < LIST_MAX &&
		    !fill(&c, string_of(x, "id"), json_string_value(json_array_get(json_object_get(x, "names"), 0)),
			  string_of(metadata, "image-name"))) {
			container_read_pod_name(&c);
			vec_push(&ret->list, c);
		}
		json_decref(metadata);
	}
	json_decref(root);
	return 0;
}

int enginejson_bundle(const char *text, size_t n, struct container *ret)
{
	json_t *root = load(text, n), *notes = json_object_get(root, "annotations");
	const char *type = string_of(notes, "io.kubernetes.cri.container-type"),
		   *name = string_of(notes, "nerdctl/name"),
		   *part = string_of(notes, "io.kubernetes.cri.container-name");

	if (!json_is_object(root)) {
		json_decref(root);
		return -EINVAL;
	}
	if (type && !strcmp(type, "sandbox"))
		part = "POD";
	free(ret->name);
	free(ret->image);
	ret->name = mem_strdup(name && container_is_name(name) ? name : "");
	ret->image = shown(string_of(notes, "io.kubernetes.cri.image-name"));
	set_pod(ret, string_of(notes, "io.kubernetes.cri.sandbox-namespace"),
		string_of(notes, "io.kubernetes.cri.sandbox-name"), part);
	read_own_labels(ret, notes);
	json_decref(root);
	return 0;
}

int enginejson_annotations(const char *text, size_t n, struct container *ret)
{
	json_t *root = load(text, n);
	int r = json_is_object(root) ? 0 : -EINVAL;

	read_own_labels(ret, json_object_get(root, "annotations"));
	json_decref(root);
	return r;
}

char *enginejson_data_root(const char *text, size_t n)
{
	json_t *root = load(text, n);
	const char *path = string_of(root, "data-root");
	char *copy = mem_strdup(path && *path == '/' ? path : NULL);

	json_decref(root);
	return copy;
}
