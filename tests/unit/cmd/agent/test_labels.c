/* The labels of a target's windows: whose goes before whose, and what several containers have in common. */
#include "test.h"

#include "base/mem.h"
#include "cmd/agent/labels.h"
#include "target/container/container.h"

static struct container make(const char *name, const char *image, const char *namespace, const char *pod, const char *part)
{
	return (struct container){ .engine = "docker", .id = mem_strdup("0123456789abcdef"), .name = mem_strdup(name), .image = mem_strdup(image),
				   .namespace = mem_strdup(namespace), .pod = mem_strdup(pod), .part = mem_strdup(part) };
}

static void carry(struct container *c, const char *key, const char *value)
{
	vec_push(&c->labels, container_label(key, value));
}

/* Labels in their order, parted by a bar. */
static void expect(const char *const *configured, struct containers *all, const char *want)
{
	char got[4096] = "";
	struct labels l;
	size_t n = 0;

	labels_make(&l, configured, all);
	for (size_t i = 0; i < l.list.n; i++)
		n += snprintf(got + n, sizeof(got) - n, "%s%s", i ? "|" : "", l.list.v[i]);
	assert_null(l.list.v[l.list.n]);
	assert_string_equal(got, want);
	labels_done(&l);
}

static void test_sources(void **state)
{
	static const char *const configured[] = { "region=eu", "image=mine", NULL };
	struct containers all = { 0 };

	expect(NULL, NULL, "");
	expect(configured, NULL, "region=eu|image=mine");
	expect(configured, &all, "region=eu|image=mine");
	vec_push(&all.list, make("reth-a", "reth:2", NULL, NULL, NULL));
	carry(&all.list.v[0], "tier", "rpc");
	expect(NULL, &all, "container=reth-a|image=reth:2|tier=rpc");
	/* The operator goes before the engine, and both before what a container says. */
	carry(&all.list.v[0], "region", "us");
	carry(&all.list.v[0], "container", "another");
	carry(&all.list.v[0], "tier", "again");
	expect(configured, &all, "region=eu|image=mine|container=reth-a|tier=rpc");
	containers_done(&all);
	vec_push(&all.list, make("", "", NULL, NULL, NULL));
	expect(NULL, &all, "container=0123456789ab");
	containers_done(&all);
	vec_push(&all.list, make("k8s_x", "", "eth", "reth-0", "reth"));
	expect(NULL, &all, "namespace=eth|pod=reth-0|container=reth");
	containers_done(&all);
}

/* Of several containers: what all have. */
static void test_several(void **state)
{
	struct containers all = { 0 };

	vec_push(&all.list, make("", "reth:2", "eth", "reth-0", "reth"));
	vec_push(&all.list, make("", "probe:1", "eth", "reth-0", "probe"));
	for (size_t i = 0; i < 2; i++)
		carry(&all.list.v[i], "tier", "rpc");
	carry(&all.list.v[1], "only", "second");
	expect(NULL, &all, "namespace=eth|pod=reth-0|tier=rpc");
	vec_push(&all.list, make("", "reth:2", "eth", "reth-1", "reth"));
	expect(NULL, &all, "namespace=eth");
	containers_done(&all);
}

static void test_bounds(void **state)
{
	static const char *configured[60 + 1];
	char big[300], text[60][8];
	struct containers all = { 0 };
	struct labels l;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	vec_push(&all.list, make("reth-a", big, NULL, NULL, NULL));
	labels_make(&l, NULL, &all);
	assert_int_equal(l.list.n, 2);
	assert_int_equal(strlen(l.list.v[1]), CONTAINER_LABEL_BYTES);
	labels_done(&l);
	for (size_t i = 0; i < 60; i++) {
		snprintf(text[i], sizeof(text[i]), "k%zu=v", i);
		configured[i] = text[i];
	}
	labels_make(&l, configured, &all);
	assert_int_equal(l.list.n, 60);
	assert_string_equal(l.list.v[59], "k59=v");
	labels_done(&l);
	containers_done(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sources), cmocka_unit_test(test_several), cmocka_unit_test(test_bounds) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
