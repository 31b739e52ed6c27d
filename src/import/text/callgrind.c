/* callgrind.c - reads the text: names and positions are written in short forms, which refer to what came before. */
#include "import/text/callgrind.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/lines.h"
#include "base/text/str.h"

enum name_kind { NAME_OBJECT, NAME_FILE, NAME_FUNCTION, NAME_KINDS };
enum {
	POSITIONS = 2,
	LONGEST = 1 << 30,   /* bytes of text */
	LINKS_MOST = 24 << 20, /* about five for each function, line and call: a gigabyte or two of memory */
};
#define NO_GRAPH SIZE_MAX

/* What the next line with a position belongs to. */
enum next { NEXT_SELF, NEXT_CALL, NEXT_JUMP };

struct parser {
	struct callgrind *c;
	struct lines lines;
	struct err *err;
	struct map names[NAME_KINDS]; /* number to string */
	struct map links, ids;        /* a trie of numbers, as in frames.c */
	size_t graph;                 /* NO_GRAPH: not begun since the last header */
	uint32_t object, file, function;
	bool in_function;
	uint32_t callee_object, callee_file, callee_name;
	bool has_callee_object, has_callee_file, has_callee;
	enum next next;
	bool instr, line;             /* positions */
	uint64_t at[POSITIONS];
	uint32_t pid, thread;
	uint64_t part_total, part_summary;
};

#define fail(p, code, fmt, ...) \
	err_set((p)->err, code, "line %llu: " fmt, (unsigned long long)(p)->lines.number, ##__VA_ARGS__)

/* --- numbers --- */

static const char *skip_blanks(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

/* A decimal number, or one in hex after 0x. */
static bool take_number(const char **s, uint64_t *ret)
{
	unsigned base = (*s)[0] == '0' && ((*s)[1] | 0x20) == 'x' ? 16 : 10;
	const char *from = *s + (base == 16 ? 2 : 0), *c = from;
	uint64_t value = 0;

	for (; isxdigit((unsigned char)*c) && (base == 16 || isdigit((unsigned char)*c)); c++) {
		unsigned digit = isdigit((unsigned char)*c) ? *c - '0' : (*c | 0x20) - 'a' + 10;

		if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value))
			return false;
	}
	if (c == from || (*c && *c != ' ' && *c != '\t'))
		return false;
	*s = skip_blanks(c);
	*ret = value;
	return true;
}

/* "+3", "-2", "*" are relative to the last position of a cost. */
static int take_position(struct parser *p, const char **s, uint64_t from, uint64_t *ret)
{
	char sign = **s;
	uint64_t by;

	if (sign == '*') {
		*s = skip_blanks(*s + 1);
		*ret = from;
		return 0;
	}
	*s += sign == '+' || sign == '-';
	if (!take_number(s, &by))
		return fail(p, EINVAL, "no position where one should be: %.40s", *s);
	if (sign == '+' ? __builtin_add_overflow(from, by, ret) : sign == '-' ? __builtin_sub_overflow(from, by, ret) : (*ret = by, false))
		return fail(p, ERANGE, "a position %s", sign == '+' ? "beyond what can be counted" : "before 0");
	return 0;
}

static int take_positions(struct parser *p, const char **s, uint64_t ret[POSITIONS])
{
	int r = 0;

	ret[0] = ret[1] = 0;
	if (p->instr)
		r = take_position(p, s, p->at[0], &ret[0]);
	if (!r && p->line)
		r = take_position(p, s, p->at[1], &ret[1]);
	return r;
}

/* --- names --- */

/* "(7) name" gives 7 a name, "(7)" is the one it has; anything else is a name itself. "???" is none. */
static int take_name(struct parser *p, enum name_kind kind, const char *s, uint32_t *ret)
{
	const char *end = s + 1;
	uint64_t id, *known;

	while (*s == '(' && isdigit((unsigned char)*end))
		end++;
	if (*s != '(' || *end != ')' || end == s + 1) {
		*ret = strtab_add(&p->c->strings, s);
		return 0;
	}
	id = strtoull(s + 1, NULL, 10);
	end = skip_blanks(end + 1);
	if (*end) {
		*ret = strtab_add(&p->c->strings, end);
		*map_put(&p->names[kind], id, 0) = *ret;
		return 0;
	}
	known = map_get(&p->names[kind], id);
	if (!known)
		return fail(p, EINVAL, "the name %.24s was never given", s);
	*ret = *known;
	return 0;
}

/* The node of a key that is one number longer. */
static uint32_t link_to(struct parser *p, uint32_t node, uint32_t number)
{
	return *map_put(&p->links, map_pair(node, number), p->links.n + 1);
}

/* --- the graph --- */

/* Of each thread one, for all parts of a file. */
static struct callgrind_graph *graph_of(struct parser *p)
{
	struct callgrind *c = p->c;
	uint64_t *id;

	if (p->graph == NO_GRAPH) {
		id = map_put(&p->ids, link_to(p, link_to(p, 0, p->thread), p->pid), c->graphs.n);
		p->graph = *id;
		if (*id == c->graphs.n)
			vec_push(&c->graphs, (struct callgrind_graph){ .thread = p->thread, .pid = p->pid });
	}
	return &c->graphs.v[p->graph];
}

/* Roots of the trie, by graph: 0 for graphs themselves. */
enum { OF_FUNCTIONS, OF_SELF, OF_CALLS, KINDS };
static uint32_t root_of(struct parser *p, unsigned kind)
{
	return link_to(p, link_to(p, UINT32_MAX, p->graph), kind);
}

static uint32_t function_of(struct parser *p, uint32_t name, uint32_t file, uint32_t object)
{
	struct callgrind_graph *g = graph_of(p);
	uint32_t node = link_to(p, link_to(p, link_to(p, root_of(p, OF_FUNCTIONS), name), file), object);
	uint64_t *id = map_put(&p->ids, node, g->functions.n);

	if (*id == g->functions.n)
		vec_push(&g->functions, (struct callgrind_function){ name, file, object });
	return *id;
}

static int add_costs(struct parser *p, uint64_t *to, const uint64_t *costs)
{
	for (size_t i = 0; i < p->c->event_count; i++)
		if (__builtin_add_overflow(to[i], costs[i], &to[i]))
			return fail(p, ERANGE, "costs add up to more than can be counted");
	return 0;
}

static int add_self(struct parser *p, uint32_t line, const uint64_t *costs)
{
	struct callgrind_graph *g = graph_of(p);
	size_t n = p->c->event_count;
	uint32_t node = link_to(p, link_to(p, link_to(p, root_of(p, OF_SELF), p->function), p->file), line);
	uint64_t *id = map_put(&p->ids, node, g->self.n);

	if (*id == g->self.n) {
		vec_push(&g->self, (struct callgrind_cost){ .function = p->function, .file = p->file, .line = line });
		for (size_t i = 0; i < n; i++)
			vec_push(&g->self_costs, 0);
	}
	return add_costs(p, p->c->total, costs) ?: add_costs(p, &g->self_costs.v[*id * n], costs);
}

static int add_call(struct parser *p, uint32_t line, const uint64_t *costs)
{
	uint32_t callee = function_of(p, p->callee_name, p->has_callee_file ? p->callee_file : p->file,
				      p->has_callee_object ? p->callee_object : p->object);
	struct callgrind_graph *g = graph_of(p);
	size_t n = p->c->event_count;
	uint32_t node = link_to(p, link_to(p, link_to(p, root_of(p, OF_CALLS), p->function), p->file), line);
	uint64_t *id = map_put(&p->ids, link_to(p, node, callee), g->calls.n);

	if (*id == g->calls.n) {
		vec_push(&g->calls, (struct callgrind_cost){ p->function, callee, p->file, line });
		for (size_t i = 0; i < n; i++)
			vec_push(&g->call_costs, 0);
	}
	p->has_callee = p->has_callee_file = p->has_callee_object = false;
	return add_costs(p, &g->call_costs.v[*id * n], costs);
}

/* --- lines --- */

static int take_costs(struct parser *p, const char *s, uint64_t costs[CALLGRIND_EVENTS])
{
	memset(costs, 0, CALLGRIND_EVENTS * sizeof(*costs));
	for (size_t i = 0; *s; i++) {
		if (i == p->c->event_count)
			return fail(p, EINVAL, "more costs than events");
		if (!take_number(&s, &costs[i]))
			return fail(p, EINVAL, "no cost, or one that is too large: %.40s", s);
	}
	return 0;
}

static int read_cost(struct parser *p, const char *s)
{
	uint64_t costs[CALLGRIND_EVENTS], at[POSITIONS];
	enum next next = p->next;
	int r = take_positions(p, &s, at);

	if (r)
		return r;
	if (!p->c->event_count)
		return fail(p, EINVAL, "costs before a line that names their events");
	if (!p->in_function)
		return fail(p, EINVAL, "costs before a function");
	memcpy(p->at, at, sizeof(at));
	p->next = NEXT_SELF;
	if (next == NEXT_JUMP)
		return 0;
	if (at[1] > UINT32_MAX)
		return fail(p, ERANGE, "a source line beyond %u", UINT32_MAX);
	r = take_costs(p, s, costs);
	if (r)
		return r;
	return next == NEXT_CALL ? add_call(p, at[1], costs) : add_self(p, at[1], costs);
}

static int begin_function(struct parser *p, const char *s)
{
	uint32_t name;
	int r = take_name(p, NAME_FUNCTION, s, &name);

	if (r)
		return r;
	p->function = function_of(p, name, p->file, p->object);
	p->in_function = true;
	return 0;
}

/* The count and the target of a call: only that it was made is of interest. */
static int begin_call(struct parser *p, const char *s)
{
	uint64_t count, target[POSITIONS];
	int r = 0;

	if (!p->has_callee)
		return fail(p, EINVAL, "a call without the function that is called");
	if (!take_number(&s, &count))
		return fail(p, EINVAL, "a call without its count");
	if (*s)
		r = take_positions(p, &s, target);
	p->next = NEXT_CALL;
	return r;
}

static int read_spec(struct parser *p, const char *key, const char *s)
{
	uint32_t dropped;

	if (!strcmp(key, "fn"))
		return begin_function(p, s);
	if (!strcmp(key, "fl") || !strcmp(key, "fi") || !strcmp(key, "fe"))
		return take_name(p, NAME_FILE, s, &p->file);
	if (!strcmp(key, "ob"))
		return take_name(p, NAME_OBJECT, s, &p->object);
	if (!strcmp(key, "cfn")) {
		p->has_callee = true;
		return take_name(p, NAME_FUNCTION, s, &p->callee_name);
	}
	if (!strcmp(key, "cfi") || !strcmp(key, "cfl")) {
		p->has_callee_file = true;
		return take_name(p, NAME_FILE, s, &p->callee_file);
	}
	if (!strcmp(key, "cob")) {
		p->has_callee_object = true;
		return take_name(p, NAME_OBJECT, s, &p->callee_object);
	}
	if (!strcmp(key, "calls"))
		return begin_call(p, s);
	if (!strcmp(key, "jfi"))
		return take_name(p, NAME_FILE, s, &dropped);
	if (!strcmp(key, "jfn"))
		return take_name(p, NAME_FUNCTION, s, &dropped);
	if (!strcmp(key, "jump") || !strcmp(key, "jcnd"))
		p->next = NEXT_JUMP;
	else
		p->c->ignored++;
	return 0;
}

/* --- headers --- */

static int read_events(struct parser *p, const char *s)
{
	struct callgrind *c = p->c;
	bool again = c->event_count;
	size_t n = 0;

	for (; *s; n++) {
		size_t length = strcspn(s, " \t");
		uint32_t name = strtab_add_n(&c->strings, s, length);

		if (n == CALLGRIND_EVENTS)
			return fail(p, E2BIG, "more than %d events", CALLGRIND_EVENTS);
		if (again && (n >= c->event_count || c->events[n] != name))
			return fail(p, EINVAL, "a part with other events than those before it");
		c->events[n] = name;
		s = skip_blanks(s + length);
	}
	if (!n)
		return fail(p, EINVAL, "no events");
	if (again && n != c->event_count)
		return fail(p, EINVAL, "a part with other events than those before it");
	c->event_count = n;
	return 0;
}

/* Ours, after the events: "# Unit of cpu: ns". */
static void read_unit(struct parser *p, const char *s)
{
	struct callgrind *c = p->c;
	const char *colon = strchr(s, ':');

	for (size_t i = 0; colon && i < c->event_count; i++) {
		const char *name = strtab_get(&c->strings, c->events[i]);

		if (strlen(name) == (size_t)(colon - s) && !strncmp(name, s, colon - s))
			c->units[i] = strtab_add(&c->strings, skip_blanks(colon + 1));
	}
}

static void end_part(struct parser *p)
{
	uint64_t part = p->part_total ? p->part_total : p->part_summary;

	if (__builtin_add_overflow(p->c->stated, part, &p->c->stated))
		p->c->stated = UINT64_MAX;
	p->part_total = p->part_summary = 0;
}

/* Headers of the next part come after the costs of the last one. */
static void begin_header(struct parser *p)
{
	if (!p->in_function)
		return;
	end_part(p);
	p->in_function = false;
	p->graph = NO_GRAPH;
	p->object = p->file = 0;
	p->next = NEXT_SELF;
	p->at[0] = p->at[1] = 0;
	p->has_callee = p->has_callee_file = p->has_callee_object = false;
}

static int read_header(struct parser *p, const char *key, const char *s)
{
	struct callgrind *c = p->c;
	uint64_t number = 0;

	if (!strcmp(key, "totals"))
		return take_number(&s, &p->part_total) || !*s ? 0 : fail(p, EINVAL, "totals that are no numbers");
	if (!strcmp(key, "summary"))
		return take_number(&s, &p->part_summary) || !*s ? 0 : fail(p, EINVAL, "a summary that is no number");
	begin_header(p);
	if (!strcmp(key, "version") && take_number(&s, &number) && number > 1)
		return fail(p, ENOTSUP, "version %llu of the format is not known", (unsigned long long)number);
	if (!strcmp(key, "events"))
		return read_events(p, s);
	if (!strcmp(key, "positions")) {
		p->instr = strstr(s, "instr") || strstr(s, "addr");
		p->line = strstr(s, "line");
	} else if (!strcmp(key, "creator")) {
		c->creator = strtab_add(&c->strings, s);
	} else if (!strcmp(key, "cmd")) {
		c->command = strtab_add(&c->strings, s);
	} else if (!strcmp(key, "pid")) {
		p->pid = take_number(&s, &number) && number <= INT32_MAX ? number : 0;
	} else if (!strcmp(key, "thread")) {
		p->thread = strtab_add(&c->strings, s);
	} else if (!strcmp(key, "part")) {
		p->thread = 0;
	}
	return 0;
}

static int read_line(struct parser *p, char *line, size_t n)
{
	size_t key;
	char mark;

	if (strlen(line) != n)
		return fail(p, EINVAL, "a zero byte");
	while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
		line[--n] = 0;
	if (str_starts(line, CALLGRIND_UNIT))
		read_unit(p, line + strlen(CALLGRIND_UNIT));
	if (!n || *line == '#')
		return 0;
	if (isdigit((unsigned char)*line) || *line == '+' || *line == '-' || *line == '*')
		return read_cost(p, line);
	key = strspn(line, "abcdefghijklmnopqrstuvwxyz");
	mark = line[key];
	line[key] = 0;
	if (mark == '=')
		return read_spec(p, line, skip_blanks(line + key + 1));
	if (mark == ':')
		return read_header(p, line, skip_blanks(line + key + 1));
	p->c->ignored++;
	return 0;
}

int callgrind_read(struct callgrind *c, struct stream *in, struct err *err)
{
	struct parser p = { .c = c, .err = err, .graph = NO_GRAPH, .line = true };
	char *line;
	size_t n;
	int r;

	*c = (struct callgrind){ 0 };
	strtab_init(&c->strings);
	p.lines = lines_of(in);
	p.lines.limit = LONGEST;
	while ((r = lines_next(&p.lines, &line, &n, err)) > 0) {
		r = read_line(&p, line, n);
		if (!r && p.links.n > LINKS_MOST)
			r = fail(&p, EFBIG, "more functions, lines and calls than can be kept");
		if (r)
			break;
	}
	end_part(&p);
	lines_done(&p.lines);
	for (size_t i = 0; i < NAME_KINDS; i++)
		map_done(&p.names[i]);
	map_done(&p.links);
	map_done(&p.ids);
	if (!r && !c->event_count)
		r = err_set(err, EINVAL, "it names no events: it is cut off, or no file of callgrind");
	return r;
}

void callgrind_done(struct callgrind *c)
{
	vec_done_each(&c->graphs, g, vec_done(&g->functions); vec_done(&g->self); vec_done(&g->calls); vec_done(&g->self_costs);
		      vec_done(&g->call_costs));
	strtab_done(&c->strings);
}
