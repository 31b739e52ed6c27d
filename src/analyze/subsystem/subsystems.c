#include "analyze/subsystem/subsystems.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text/conf.h"
#include "base/text/str.h"
#include "subsystems.conf.h"

enum { RULES_MAX = 1 << 16, LABELS_MAX = 1024, LABEL_BYTES = 32 };

static const char kernel_module[] = "[kernel]";

void subsystems_init(struct subsystems *t)
{
	*t = (struct subsystems){ 0 };
	strtab_init(&t->label_names);
	vec_push(&t->list,
		 (struct subsystem){ mem_strdup("other"), mem_strdup("what no pattern knows"), true });
	vec_push(&t->labels, (struct subsystem_label_name){ "", LABEL_NONE });
}

void subsystems_done(struct subsystems *t)
{
	for (size_t i = 0; i < t->list.n; i++) {
		free(t->list.v[i].name);
		free(t->list.v[i].about);
	}
	vec_done(&t->list);
	vec_done(&t->labels);
	vec_done(&t->rules);
	words_done(&t->functions);
	words_done(&t->modules);
	if (t->label_names.n)
		strtab_done(&t->label_names);
	buf_done(&t->plain);
}

int subsystems_find(const struct subsystems *t, const char *name)
{
	for (size_t i = 0; i < t->list.n; i++)
		if (!strcasecmp(t->list.v[i].name, name))
			return i;
	return -1;
}

char *subsystem_key(const char *name)
{
	char *key = mem_strdup(name);

	for (char *c = key; *c; c++)
		*c = isalnum((unsigned char)*c) ? tolower((unsigned char)*c) : '_';
	return key;
}

/* --- reading --- */

struct reading {
	struct subsystems *t;
	const char *file;
	size_t line;
	int current; /* subsystem, -1 = none yet */
	struct err *err;
};

static int complain(const struct reading *r, const char *what, const char *which)
{
	return err_set(r->err, EINVAL, "%s:%zu: %s%s%s%s", r->file, r->line, what, which ? " '" : "",
		       which ? which : "", which ? "'" : "");
}

static int begin(struct reading *r, const char *line)
{
	if (!*line || strlen(line) > LABEL_BYTES)
		return complain(r, "a subsystem needs a name of at most 32 bytes between [ and ]", NULL);
	for (const char *c = line; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(" -_/.,", *c))
			return complain(r, "names of subsystems are of letters, digits, spaces and -_/., not",
					line);
	r->current = subsystems_find(r->t, line);
	if (!r->current)
		return complain(r, "other is what no pattern knows, and has none", NULL);
	if (r->current > 0)
		return 0;
	if (r->t->list.n == SUBSYSTEMS_MAX)
		return complain(r, "too many subsystems: 63 fit, with the built-in ones", NULL);
	r->current = r->t->list.n;
	vec_push(&r->t->list, (struct subsystem){ mem_strdup(line), mem_strdup(""), false });
	return 0;
}

/* The number of a label, made if there is none; 0: too many. */
static uint16_t label_of(struct subsystems *t, const char *name, enum subsystem_label kind)
{
	for (size_t i = 1; i < t->labels.n; i++)
		if (t->labels.v[i].kind == kind && !strcmp(t->labels.v[i].name, name))
			return i;
	if (t->labels.n == LABELS_MAX)
		return 0;
	vec_push(&t->labels, (struct subsystem_label_name){
				     strtab_get(&t->label_names, strtab_add(&t->label_names, name)), kind });
	return t->labels.n - 1;
}

static int add_word(struct reading *r, const char *word, const struct subsystem_rule *rule)
{
	static const char module[] = "module:";
	bool of_module = str_starts(word, module);
	const char *text = of_module ? word + strlen(module) : word;
	int e;

	if (rule->kind && !rule->label && !strstr(word, "{}"))
		return complain(r, "{} must stand for the opcode's name, or the key must say it, in", word);
	if ((!rule->kind || rule->label) && strstr(word, "{}"))
		return complain(r, "{} is for opcode = and precompile = without a name, not for", word);
	if (r->t->rules.n == RULES_MAX)
		return complain(r, "too many words", NULL);
	e = words_add(of_module ? &r->t->modules : &r->t->functions, text, r->t->rules.n, r->err);
	if (e)
		return err_prefix(r->err, "%s:%zu", r->file, r->line);
	vec_push(&r->t->rules, *rule);
	return 0;
}

static int add_words(struct reading *r, char *value, const struct subsystem_rule *rule)
{
	char *rest = value, *word;

	while ((word = strsep(&rest, " \t"))) {
		int e = *word ? add_word(r, word, rule) : 0;

		if (e)
			return e;
	}
	return 0;
}

/* "opcode", "opcode SLOAD", "precompile ecrecover" */
static int set_label(struct reading *r, const char *key, struct subsystem_rule *rule)
{
	static const char *const kinds[] = { [LABEL_OPCODE] = "opcode", [LABEL_PRECOMPILE] = "precompile" };

	for (size_t k = LABEL_OPCODE; k < ARRAY_LEN(kinds); k++) {
		const char *name = key + strlen(kinds[k]);

		if (!str_starts(key, kinds[k]) || (*name && !isspace((unsigned char)*name)))
			continue;
		name += strspn(name, " \t");
		rule->kind = k;
		if (!*name)
			return 1;
		if (strlen(name) > LABEL_BYTES)
			return complain(r, "a name of more than 32 bytes:", name);
		rule->label = label_of(r->t, name, k);
		return rule->label ? 1 : complain(r, "too many names of opcodes and precompiles", NULL);
	}
	return 0;
}

static int set_key(struct reading *r, const char *key, char *value)
{
	struct subsystem_rule rule = { 0 };
	struct subsystem *s;
	int e;

	if (r->current < 0)
		return complain(r, "a [name] must come before", key);
	if (!*value)
		return complain(r, "nothing after = for", key);
	s = &r->t->list.v[r->current];
	rule.subsystem = r->current;
	rule.weak = !strcmp(key, "weak");
	if (rule.weak || !strcmp(key, "function"))
		return add_words(r, value, &rule);
	if (!strcmp(key, "about")) {
		free(s->about);
		s->about = mem_strdup(value);
		return 0;
	}
	if (!strcmp(key, "general")) {
		if (strcmp(value, "yes"))
			return complain(r, "general can only be yes, not", value);
		s->general = true;
		return 0;
	}
	e = set_label(r, key, &rule);
	if (e < 0)
		return e;
	return e ? add_words(r, value, &rule)
		 : complain(r, "keys are function, weak, opcode, precompile, about and general, not", key);
}

static int read_line(struct reading *r, char *text)
{
	struct conf_line line = conf_line(text);

	switch (line.kind) {
	case CONF_SECTION:
		return begin(r, line.key);
	case CONF_KEY:
		return set_key(r, line.key, line.value);
	case CONF_OPEN:
		return complain(r, "no ] at the end of", line.key);
	case CONF_NEITHER:
		return complain(r, "neither [name] nor key = value:", line.key);
	default:
		return 0;
	}
}

static int add(struct subsystems *t, const char *file, const char *text, struct err *err)
{
	struct reading r = { .t = t, .file = file, .current = -1, .err = err };
	_cleanup_free_ char *copy = mem_strdup(text);
	char *rest = copy, *line;
	int e = 0;

	while (!e && (line = strsep(&rest, "\n"))) {
		r.line++;
		e = read_line(&r, line);
	}
	return e;
}

int subsystems_add(struct subsystems *t, const char *file, const char *text, struct err *err)
{
	t->extended = true;
	return add(t, file, text, err);
}

void subsystems_add_builtin(struct subsystems *t)
{
	struct err err;

	/* A unit test reads the table; a user's subsystems may fill the room, which only ends it earlier. */
	add(t, "built-in subsystems", subsystems_conf, &err);
}

/* --- matching --- */

/* "delegate_call" to "DELEGATECALL"; precompiles stay as they are. */
static uint16_t captured_label(struct subsystems *t, const struct words_match *m, enum subsystem_label kind)
{
	char name[LABEL_BYTES + 1];
	size_t n = 0;

	for (size_t i = m->from; i < m->to && n < LABEL_BYTES; i++) {
		unsigned char c = t->plain.data[i];

		if (kind == LABEL_PRECOMPILE || c != '_')
			name[n++] = kind == LABEL_OPCODE ? toupper(c) : c;
	}
	name[n] = 0;
	return n ? label_of(t, name, kind) : 0;
}

struct subsystem_use subsystems_of_name(struct subsystems *t, const char *name, const char *module,
					bool kernel)
{
	struct words_match m, by_module;
	const struct subsystem_rule *rule;
	bool found;

	words_plain(name, &t->plain);
	found = !kernel && words_find(&t->functions, t->plain.data, &m);
	if (words_find(&t->modules, kernel ? kernel_module : str_base_name(module), &by_module) &&
	    (!found || by_module.id < m.id)) {
		m = by_module;
		found = true;
	}
	if (!found)
		return (struct subsystem_use){ 0 };
	rule = &t->rules.v[m.id];
	return (struct subsystem_use){ rule->subsystem, rule->weak,
				       rule->label  ? rule->label
				       : rule->kind ? captured_label(t, &m, rule->kind)
						    : 0 };
}
