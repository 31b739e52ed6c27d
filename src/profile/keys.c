#include "profile/keys.h"

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

#define KEY(kind, constant, name, ...) const char KEY_##constant[] = name;
#include "profile/keys.def"

const struct key key_table[] = {
#define KEY(kind, constant, name, unit, merge, meaning) \
	{ KEY_##constant, unit, meaning, KEY_##kind, KEY_##merge },
#include "profile/keys.def"
};
const size_t key_table_size = ARRAY_LEN(key_table);

/* Where in name that which takes the place of the '*' begins, and its length; NULL: not of this family. */
static const char *find_which(const char *family, const char *name, size_t *ret_n)
{
	size_t before = strcspn(family, "*"), after = strlen(family + before), n = strlen(name);

	if (!after || n < before + after || strncmp(name, family, before) || !str_ends(name, family + before + 1))
		return NULL;
	*ret_n = n - before - (after - 1);
	return name + before;
}

const struct key *key_find(const char *name)
{
	const struct key *family = NULL;
	size_t n;

	for (size_t i = 0; i < key_table_size; i++) {
		if (!strcmp(key_table[i].name, name))
			return &key_table[i];
		if (!family && find_which(key_table[i].name, name, &n))
			family = &key_table[i];
	}
	return family;
}

const char *key_unit(const char *name)
{
	const struct key *k = key_find(name);

	return k ? k->unit : "";
}

char *key_of(const char *family, const char *which)
{
	size_t before = strcspn(family, "*");

	return mem_printf("%.*s%s%s", (int)before, family, which, family[before] ? family + before + 1 : "");
}

char *key_which(const char *family, const char *name)
{
	size_t n;
	const char *which = find_which(family, name, &n);

	return which ? mem_strndup(which, n) : NULL;
}

const char *key_rest(const char *family, const char *name)
{
	size_t n;

	return find_which(family, name, &n);
}
