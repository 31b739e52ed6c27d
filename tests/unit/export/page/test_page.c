/* The page's data against the profile that it was made of, as the viewer's own decoder reads them (with
 * node). */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "analyze/diff/diff.h"
#include "analyze/select.h"
#include "base/sanitized.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "exporting.h"
#include "export/report/cleantext.h"
#include "export/page/page.h"
#include "export/page/pagetree.h"
#include "waiting.h"

/* --- a page of one or two profiles --- */

struct opened {
	struct patterns patterns;
	struct causes causes[2];
	struct selection selections[2];
	struct quality qualities[2];
	struct export_job jobs[2];
	size_t n;
};

static void open_all(struct opened *o, struct profile *const *profiles, size_t n,
                     const struct select_options *with)
{
	*o = (struct opened){ .n = n };
	patterns_init(&o->patterns);
	patterns_add_builtin(&o->patterns);
	for (size_t i = 0; i < n; i++) {
		struct select_options select = with ? *with : (struct select_options){ 0 };

		causes_init(&o->causes[i], profiles[i], &o->patterns);
		select.causes = &o->causes[i];
		assert_int_equal(selection_make(profiles[i], &select, &o->selections[i], NULL), 0);
		quality_measure(&o->qualities[i], profiles[i], &o->selections[i]);
		o->jobs[i] = (struct export_job){ profiles[i], &o->selections[i], &o->qualities[i] };
	}
}

static void close_all(struct opened *o)
{
	for (size_t i = 0; i < o->n; i++) {
		quality_done(&o->qualities[i]);
		selection_done(&o->selections[i]);
		causes_done(&o->causes[i]);
	}
	patterns_done(&o->patterns);
}

/* --- what is expected: added up from the samples, one by one --- */

struct expected {
	struct buf stack; /* JSON */
	uint64_t value, count;
	uint32_t thread, event;
	enum cause cause;
	size_t side;
	VEC(struct pagetree_sample) samples;
};

struct expectation {
	VEC(struct expected) list;
	uint64_t slot_ns;
	const char *under; /* only stacks that begin so, in JSON without the bracket; NULL = all */
};

/* A node is inlined if it is in all of its samples: where a function is both, names are compared without. */
static bool plain_names;

static void put_name(struct buf *b, const char *name, bool inlined)
{
	struct buf clean = { 0 };

	cleantext_put(&clean, *name ? name : "[no name]");
	if (inlined && !plain_names)
		buf_puts(&clean, " (inlined)");
	if (b->n > 1)
		buf_putc(b, ',');
	buf_json(b, clean.data);
	buf_done(&clean);
}

static void put_frames(struct buf *b, const struct profile *p, struct idents *idents, uint32_t stack)
{
	const uint32_t *list;
	uint32_t n;

	if (!stack)
		return;
	put_frames(b, p, idents, p->stacks.v[stack].parent);
	list = idents_of_frame(idents, p->stacks.v[stack].frame, &n);
	for (uint32_t k = 0; k < n; k++)
		put_name(b, idents->list.v[list[k]].name,
		         n > 1 && idents_is_inlined(idents, p->stacks.v[stack].frame, k));
}

static void put_stack(struct buf *b, const struct profile *p, struct idents *idents, uint32_t thread,
                      uint32_t stack)
{
	_cleanup_free_ char *unnamed = mem_printf("thread/%u", p->threads.v[thread].tid);
	const char *name = profile_str(p, p->threads.v[thread].name);

	buf_putc(b, '[');
	put_name(b, *name ? name : unnamed, false);
	if (!stack)
		put_name(b, "[no stack]", false);
	put_frames(b, p, idents, stack);
	buf_putc(b, ']');
}

static struct expected *find(struct expectation *x, const struct expected *e)
{
	struct expected new = *e;

	for (size_t i = 0; i < x->list.n; i++) {
		struct expected *have = &x->list.v[i];

		if (have->thread == e->thread && have->event == e->event && have->cause == e->cause &&
		    have->side == e->side && !strcmp(have->stack.data, e->stack.data))
			return have;
	}
	new.stack = (struct buf){ 0 };
	buf_puts(&new.stack, e->stack.data);
	vec_push(&x->list, new);
	return &x->list.v[x->list.n - 1];
}

/* Samples are in the order of their slots, and within one of spans, values and counts. */
static bool comes_before(const struct pagetree_sample *a, const struct pagetree_sample *b)
{
	if (a->slot != b->slot)
		return a->slot < b->slot;
	if (a->span != b->span)
		return a->span < b->span;
	return a->value != b->value ? a->value < b->value : a->count < b->count;
}

static void expect_side(struct expectation *x, struct opened *o, size_t side, uint32_t threads_before)
{
	const struct profile *p = o->jobs[side].profile;
	struct idents idents;

	idents_init(&idents, p, 0);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		enum role role = cause_role(p, s->event);
		bool off = role == ROLE_WAIT || role == ROLE_QUEUE;
		struct expected e = { .thread = threads_before + s->thread,
			              .event = s->event,
			              .side = side,
			              .cause = causes_of(&o->causes[side], s) },
				*to;
		struct pagetree_sample sample = { .value = s->value, .count = s->count ? s->count : 1 };
		uint64_t begin, end;
		size_t k;

		put_stack(&e.stack, p, &idents, s->thread, off ? cause_trim(p, s->stack) : s->stack);
		if (!x->under || !strncmp(e.stack.data, x->under, strlen(x->under))) {
			to = find(x, &e);
			to->value += s->value;
			to->count += sample.count;
			select_span(p, i, role, &begin, &end);
			if (profile_summed_of(p, s))
				end = profile_summed_of(p, s)->end_ns;
			sample.slot = begin / x->slot_ns;
			if (end > begin && (end - 1) / x->slot_ns > sample.slot)
				sample.span = (end - 1) / x->slot_ns - sample.slot + 1;
			vec_push(&to->samples, sample);
			for (k = to->samples.n - 1; k && comes_before(&sample, &to->samples.v[k - 1]); k--)
				to->samples.v[k] = to->samples.v[k - 1];
			to->samples.v[k] = sample;
		}
		buf_done(&e.stack);
	}
	idents_done(&idents);
}

/* The expectation as page.js reads it; frees it. */
static void put_expectation(struct buf *b, struct expectation *x, const struct profile *p)
{
	buf_puts(b, "\"entries\":[");
	for (size_t i = 0; i < x->list.n; i++) {
		struct expected *e = &x->list.v[i];

		buf_printf(b,
		           "%s{\"stack\":%s,\"thread\":%u,\"cause\":\"%s\",\"side\":%zu,\"value\":%llu,"
		           "\"count\":%llu,\"event\":",
		           i ? ",\n" : "", e->stack.data, e->thread, cause_key(e->cause), e->side,
		           (unsigned long long)e->value, (unsigned long long)e->count);
		buf_json(b, profile_str(p, p->events.v[e->event].name));
		buf_puts(b, ",\"samples\":[");
		for (size_t k = 0; k < e->samples.n; k++)
			buf_printf(b, "%s[%u,%u,%llu,%u]", k ? "," : "", e->samples.v[k].slot,
			           e->samples.v[k].span, (unsigned long long)e->samples.v[k].value,
			           e->samples.v[k].count);
		buf_puts(b, "]}");
		buf_done(&e->stack);
		vec_done(&e->samples);
	}
	buf_putc(b, ']');
	vec_done(&x->list);
}

static void expect_all(struct buf *b, struct opened *o, uint64_t slot_ns, const char *under)
{
	struct expectation x = { .slot_ns = slot_ns, .under = under };
	uint32_t threads = 0;

	for (size_t i = 0; i < o->n; i++) {
		expect_side(&x, o, i, threads);
		threads += o->jobs[i].profile->threads.n;
	}
	put_expectation(b, &x, o->jobs[0].profile);
}

/* --- running the decoder --- */

static char folder[] = "/tmp/gasflame-page-XXXXXX";

static char *write_temporary(const char *name, const struct buf *data)
{
	char *path = mem_printf("%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data->data, data->n), 0);
	close(fd);
	return path;
}

static const char *damage_rounds; /* so many damaged copies of the page are decoded, too; NULL = none */

static void decode(const struct buf *page, struct buf *wanted)
{
#ifdef NODE
	struct buf braced = { 0 };
	char *files[2] = { write_temporary("page.html", page), NULL };
	int status;
	pid_t pid;

	buf_printf(&braced, "{\"plain\":%s%s%s}", plain_names ? "true" : "false", wanted->n ? "," : "",
	           wanted->n ? wanted->data : "");
	files[1] = write_temporary("wanted.json", &braced);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execl(NODE, NODE, SOURCE_DIR "/tests/unit/export/page/page.js", SOURCE_DIR "/ui/data.js", files[0],
		      files[1], NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!status && damage_rounds) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			execl(NODE, NODE, SOURCE_DIR "/tests/unit/export/page/pagedamage.js", SOURCE_DIR "/ui/data.js", files[0], damage_rounds, NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	for (size_t i = 0; i < 2; i++) {
		unlink(files[i]);
		free(files[i]);
	}
	buf_done(&braced);
	assert_int_equal(status, 0);
#else
	print_message("without node, only the C side is tested\n");
#endif
	buf_done(wanted);
}

/* A whole page, compared with all samples. has: members that the data must have, JSON. */
static void compare(struct profile *const *profiles, size_t n, const struct page_options *options,
                    const struct select_options *with, uint64_t slot_ns, const char *has)
{
	struct opened o;
	struct buf page = { 0 }, wanted = { 0 };

	open_all(&o, profiles, n, with);
	assert_int_equal(page_write(o.jobs, n, options, NULL, &page, NULL), 0);
	expect_all(&wanted, &o, slot_ns, NULL);
	if (has)
		buf_printf(&wanted, ",\"has\":%s", has);
	decode(&page, &wanted);
	buf_done(&page);
	close_all(&o);
}

static void compare_one(struct profile *p, const char *has)
{
	compare(&p, 1, &(struct page_options){ 0 }, NULL, 1000000, has);
	profile_free(p);
}

/* --- tests --- */

static void samples_come_back(void **state)
{
	compare_one(sample_make().p,
	            "{\"meta\":{\"target\":\"demo-node\",\"host\":\"box\",\"kernel\":\"6.1.0\",\"sides\":1,"
	            "\"start\":\"2025-11-15T10:02:11Z\",\"durationNs\":2100000000,\"slotNs\":1000000,"
	            "\"leftOut\":null,"
	            "\"initial\":{\"what\":\"cpu\"}},\"full\":null,\"diff\":null,\"account\":null,"
	            "\"threads\":[{\"tid\":100,\"name\":\"main\",\"process\":0,\"side\":0,\"account\":null},"
	            "{\"tid\":101},{\"tid\":200,\"process\":1}],"
	            "\"processes\":[{\"pid\":100,\"name\":\"node\"},{\"pid\":200}],"
	            "\"events\":[{\"name\":\"cpu\",\"unit\":\"ns\",\"period\":1000000,\"role\":\"cpu\"}]}");
}

/* Sums of slots that are longer than the page's are spread, whatever the event. */
static void sums_of_slots_have_spans(void **state)
{
	struct profile *p = sample_make().p;

	for (size_t i = 0; i < 40; i++) {
		struct profile_sample *s = &p->samples.v[i * 7];

		s->time_ns = i % 2 * 500000000;
		s->count = 2 + i % 5;
		s->value *= s->count;
	}
	profile_add_summed(p, &(struct profile_summed){ 0, 400000000 });
	profile_add_summed(p, &(struct profile_summed){ 500000000, 1500000000 });
	compare_one(p, "{\"events\":[{\"name\":\"cpu\",\"role\":\"cpu\",\"spanned\":true}]}");
}

static void waits_come_back_with_their_causes(void **state)
{
	struct waiting w = waiting_make();
	struct profile *p = w.s.p;

	profile_add_mark(p, &(struct profile_mark){ 5, 9, profile_string(p, "block </script> 7"),
	                                            profile_string(p, "block"), w.engine });
	profile_add_mark(p, &(struct profile_mark){ 7, 7, profile_string(p, "end"), 0, PROFILE_NONE });
	profile_add_point(p, profile_add_series(p, "rss", "bytes"), 3, 4096);
	profile_add_point(p, 0, 8, -1);
	damage_rounds = SANITIZED ? "20" : "300"; /* of JavaScript, which has no sanitizers */
	compare_one(p,
	            "{\"account\":{\"waits\":328},"
	            "\"threads\":{\"3\":{\"name\":\"persistence\",\"account\":{\"wallNs\":1000000000,"
	            "\"ns\":{\"1\":200000000,\"2\":20000000,\"6\":700000000},\"missingNs\":80000000,"
	            "\"waits\":7}}},"
	            "\"marks\":[{\"name\":\"block </script> 7\",\"kind\":\"block\",\"startNs\":5,\"endNs\":9,"
	            "\"thread\":5},{\"name\":\"end\",\"thread\":-1}],"
	            "\"series\":[{\"name\":\"rss\",\"unit\":\"bytes\",\"t\":{\"0\":3,\"1\":8},"
	            "\"v\":{\"0\":4096,\"1\":-1}}],"
	            "\"causes\":{\"3\":{\"key\":\"lock\"}},"
	            "\"verdict\":[{\"advice\":\"Another thread holds the lock: what it runs meanwhile stands below as \\\"wakers ran\\\". "
	            "What usually helps: Do less while holding it (no I/O, no allocation, no logging), split it, or give each thread its own "
	            "data.\",\"state\":{\"view\":\"waits\",\"what\":\"wait\",\"site\":\"lock reth::Cache::get\"}}],"
	            "\"waits\":[{\"function\":\"reth::Cache::get\",\"cause\":\"lock\",\"ns\":900000000,"
	            "\"count\":251,\"thread\":\"rpc-1\",\"waiters\":[{\"thread\":\"rpc-1\",\"threads\":1,\"ns\":900000000}],"
	            "\"wakers\":[{\"function\":\"reth::Cache::insert\",\"thread\":\"persistence\"}],"
	            "\"ran\":[{\"function\":\"reth::Cache::insert\",\"ns\":100000000}],"
	            "\"chains\":[{\"links\":[{\"thread\":\"persistence\",\"cause\":\"disk-write\"}]}]}]}");
	damage_rounds = NULL;
}

static void filters_are_what_is_shown_first(void **state)
{
	struct waiting w = waiting_make();
	const char *threads[] = { "rpc*", "114", NULL };

	compare(&w.s.p, 1, &(struct page_options){ 0 },
	        &(struct select_options){ .event = w.wait,
	                                  .threads = threads,
	                                  .from_ns = 10 * MS,
	                                  .to_ns = 900 * MS,
	                                  .function = "Cache::(get|set)",
	                                  .idle = true },
	        MS,
	        "{\"meta\":{\"initial\":{\"what\":\"wait\",\"range\":[10000000,900000000],\"threads\":[111,"
	        "114],"
	        "\"search\":\"Cache::(get|set)\",\"regex\":true,\"idle\":true}}}");
	profile_free(w.s.p);
}

static size_t count_of(const char *text, const char *words)
{
	size_t n = 0;

	for (; (text = strstr(text, words)); text++)
		n++;
	return n;
}

static void hostile_names_stay_names(void **state)
{
	struct sample s = export_hostile(), plain = sample_make();
	struct profile *p = s.p;
	struct buf page = export_all(p, "html", (struct export_options){ 0 });
	struct buf other = export_all(plain.p, "html", (struct export_options){ 0 });

	assert_null(strstr(page.data, "alert(1)"));
	/* With its mark: three letters alone may be in the data's base64 by chance. */
	assert_null(strstr(page.data, "\xe2\x80\xaegnp"));
	assert_int_equal(count_of(page.data, "<script"), count_of(other.data, "<script"));
	assert_int_equal(count_of(page.data, "</script"), count_of(other.data, "</script"));
	assert_int_equal(count_of(page.data, "<!--"), 0);
	buf_done(&page);
	buf_done(&other);
	profile_free(plain.p);
	compare_one(
		p,
		"{\"meta\":{\"target\":\"</text><script>alert(1)</script>\xef\xbf\xbd\xef\xbf\xbd[31m\"}}");
}

static void strange_profiles_have_pages(void **state)
{
	struct sample s = sample_empty();
	uint32_t bytes, stack;

	compare_one(s.p, "{\"tree\":{\"n\":1},\"entries\":{\"n\":0}}");
	compare_one(profile_new(), "{\"tree\":{\"n\":1},\"samples\":null}");
	s = sample_empty();
	sample_add(&s, s.main, sample_stack(&s, "a"), 1);
	compare_one(s.p, "{\"tree\":{\"n\":3}}");
	s = sample_empty();
	sample_add(&s, s.main, 0, 2);
	compare_one(s.p, "{\"tree\":{\"n\":3}}");
	compare_one(export_deep(4000).p, "{\"tree\":{\"n\":4002}}");
	/* Values that doubles cannot hold, and that overflow. */
	s = sample_empty();
	bytes = profile_add_event(s.p, "io", "bytes", "", 0);
	stack = sample_stack(&s, "a;b");
	for (int i = 0; i < 3; i++)
		profile_add_sample(s.p, &(struct profile_sample){ .value = (1ULL << 60) + 12345,
		                                                  .event = bytes,
		                                                  .stack = stack,
		                                                  .count = UINT32_MAX });
	compare(&s.p, 1, &(struct page_options){ 0 }, &(struct select_options){ .event = bytes }, 1000000,
	        "{\"meta\":{\"initial\":{\"what\":\"io\"}}}");
	profile_free(s.p);
}

/* Imported counts may have decimals: they are kept as so many hundredths. */
static void decimals_are_divided(void **state)
{
	struct sample s = sample_empty();
	uint32_t event = profile_add_event(s.p, "samples", "count/100", "", 0),
		 stack = sample_stack(&s, "a;b");
	struct buf page = { 0 }, wanted = { 0 };
	struct opened o;

	for (int i = 0; i < 2; i++)
		profile_add_sample(
			s.p, &(struct profile_sample){ .value = 12345, .event = event, .stack = stack });
	open_all(&o, &s.p, 1, &(struct select_options){ .event = event });
	assert_int_equal(page_write(o.jobs, 1, &(struct page_options){ 0 }, NULL, &page, NULL), 0);
	buf_puts(&wanted, "\"sums\":{\"samples\":246.9},\"has\":{\"events\":{\"1\":{\"unit\":\"count\"}}}");
	decode(&page, &wanted);
	buf_done(&page);
	close_all(&o);
	profile_free(s.p);
}

/* Deeper than a page can hold: what is below stays with the last that it shows. */
static void too_deep_is_cut(void **state)
{
	struct sample s = export_deep(PAGETREE_DEPTH + 100);
	struct profile *p = s.p;
	struct opened o;
	struct buf page = { 0 }, wanted = { 0 };

	open_all(&o, &p, 1, NULL);
	assert_int_equal(page_write(o.jobs, 1, &(struct page_options){ 0 }, NULL, &page, NULL), 0);
	buf_puts(&wanted,
	         "\"sums\":{\"cpu\":3000000},\"has\":{\"tree\":{\"n\":65001},\"entries\":{\"n\":1}}");
	decode(&page, &wanted);
	buf_done(&page);
	close_all(&o);
	profile_free(p);
}

/* Two recordings of one program that lies in another folder. */
static void two_sides_share_a_tree(void **state)
{
	struct sample a = sample_make(), b = sample_make();
	struct profile *both[] = { a.p, b.p };
	struct diff_row row = { .name = "node::fib",
		                .module = "/elsewhere/node",
		                .kind = IDENT_USER,
		                .self = { .a = 1,
		                          .b = 2,
		                          .delta = 1,
		                          .low = 0.5,
		                          .high = 1.5,
		                          .q = 0.002,
		                          .significant = true },
		                .only_b = true };
	struct diff diff = {
		.unit = "%", .normalized = true, .rows = { &row, 1, 1 }, .all = { .a = 5, .b = 6 },
		.scale = 0.9, .scaled = true, .samples_a = 10, .samples_b = 10, .tested = 1, .significant = 1,
		.significant_self = 1,
	};

	b.p->modules.v[b.node].path = profile_string(b.p, "/elsewhere/node");
	sample_add(&b, b.main, sample_stack(&b, "_start;main;node::added"), 7);
	compare(both, 2, &(struct page_options){ .diff = &diff }, NULL, 1000000,
	        "{\"meta\":{\"sides\":2,\"before\":{\"target\":\"demo-node\"}},"
	        "\"verdict\":[{\"text\":\"`node::fib` is new, nothing else changed. At equal work the whole takes "
	        "10.0 % less\",\"state\":{\"view\":\"diff\"}}],\"threads\":{\"3\":{\"side\":1,\"process\":2}},"
	        "\"processes\":{\"2\":{\"pid\":100,\"side\":1}},"
	        "\"diff\":{\"normalized\":true,\"unit\":\"%\",\"scale\":0.9,\"timeless\":false,\"all\":{\"a\":5,\"b\":6},\"rows\":[{\"onlyA\":"
	        "false,"
	        "\"onlyB\":true,\"self\":{\"a\":1,\"b\":2,\"delta\":1,\"low\":0.5,\"high\":1.5,\"q\":0.002,"
	        "\"significant\":true}}]}}");
	profile_free(a.p);
	profile_free(b.p);
}

static uint32_t dice(uint64_t *seed, uint32_t sides)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33) % sides;
}

/* Anything that a profile may hold: recursion, inlined calls, two addresses of one function, threads of one
 * name, no stack, waits of their own and waits that were added up, events with a period and without. */
static struct profile *random_profile(uint64_t seed)
{
	struct waiting w = waiting_make();
	struct sample *s = &w.s;
	uint32_t events[] = { s->cpu, w.wait, w.queue, profile_add_event(s->p, "read", "bytes", "", 0) };
	uint32_t threads[] = { s->main, s->worker, builder_thread(s->p, 0, 301, "main"),
		               builder_thread(s->p, 0, 302, "") };
	uint32_t stacks[64] = { 0, w.lock, w.park, w.preempted };

	for (size_t i = 4; i < ARRAY_LEN(stacks); i++) {
		uint32_t from = stacks[dice(&seed, i)], depth = 1 + dice(&seed, 5);

		for (stacks[i] = from; depth; depth--) {
			char name[16];
			struct profile_function f = { .module = s->node };
			struct profile_line lines[2];
			uint32_t frame = profile_frame(s->p, s->node, FRAME_USER, 0x9000 + dice(&seed, 40));

			if (!s->p->frames.v[frame].line_count) {
				for (int k = 0; k < 2; k++) {
					snprintf(name, sizeof(name), "f%u", dice(&seed, 9));
					f.name = profile_string(s->p, name);
					lines[k] = (struct profile_line){ profile_function(s->p, &f), 0, !k };
				}
				profile_set_lines(s->p, frame, lines + dice(&seed, 2), 1);
				if (dice(&seed, 2))
					profile_set_lines(s->p, frame, lines, 2);
			}
			stacks[i] = profile_stack(s->p, stacks[i], frame);
		}
	}
	for (size_t i = 0; i < 1500; i++) {
		uint32_t event = events[dice(&seed, 4)], thread = threads[dice(&seed, 4)];
		uint64_t value = dice(&seed, 3) ? SAMPLE_PERIOD_NS : dice(&seed, 1u << (1 + dice(&seed, 30)));

		waiting_add(&w, event, thread, stacks[dice(&seed, 64)], dice(&seed, 999) * MS, value,
		            dice(&seed, 3) ? 0 : dice(&seed, 5));
	}
	return s->p;
}

static void any_profile_comes_back(void **state)
{
	plain_names = true;
	for (uint64_t seed = 1; seed <= 4; seed++)
		compare_one(random_profile(seed), NULL);
	plain_names = false;
}

/* --- less than all --- */

/* Many light stacks of several threads, cpu and waits, and some heavy ones. */
static struct profile *bushy(void)
{
	struct waiting w = waiting_make();
	struct sample *s = &w.s;
	char names[3][32];

	for (unsigned i = 0; i < 3000; i++) {
		uint32_t stack;

		snprintf(names[0], sizeof(names[0]), "outer%u", i % 7);
		snprintf(names[1], sizeof(names[1]), "middle%u", i % 91);
		snprintf(names[2], sizeof(names[2]), "leaf%u", i);
		stack = sample_stack(s, "main;%s;%s;~after;%s", names[0], names[1], names[2]);
		s->now_ns = i * 300000 % 900000000;
		sample_add(s, i % 3 ? w.writer : w.rpc, stack, 1 + i % 4);
		if (i % 5 == 0)
			waiting_add(&w, w.wait, w.rpc, stack, i * 1000, 777777 + i, 1 + i % 2);
	}
	return s->p;
}

static void sum_events(struct buf *b, const struct profile *p)
{
	buf_puts(b, "\"sums\":{");
	for (size_t e = 0; e < p->events.n; e++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < p->samples.n; i++)
			sum += p->samples.v[i].event == e ? p->samples.v[i].value : 0;
		buf_printf(b, "%s\"%s\":%llu", e ? "," : "", profile_str(p, p->events.v[e].name),
		           (unsigned long long)sum);
	}
	buf_putc(b, '}');
}

static void the_lightest_are_left_out(void **state)
{
	struct profile *p = bushy();
	struct buf all = { 0 };
	struct opened o;
	size_t before;
	char *whole;

	open_all(&o, &p, 1, NULL);
	assert_int_equal(page_data(o.jobs, 1, &(struct page_options){ 0 }, &all, NULL), 0);
	whole = write_temporary("whole", &all);
	before = all.n;
	for (uint64_t max = all.n / 2; max > 4000; max /= 2) {
		struct buf data = { 0 }, wanted = { 0 };

		assert_int_equal(
			page_data(o.jobs, 1, &(struct page_options){ .max_bytes = max }, &data, NULL), 0);
		if (max > 8000)
			assert_true(data.n <= max + 3000); /* with its head */
		assert_true(data.n < before);
		before = data.n;
		sum_events(&wanted, p);
		buf_printf(&wanted, ",\"whole\":\"%s\"", whole);
		decode(&data, &wanted);
		buf_done(&data);
	}
	unlink(whole);
	free(whole);
	buf_done(&all);
	close_all(&o);
	profile_free(p);
}

/* The number in the whole tree of the node that names say, outermost first. */
static uint32_t number_of(struct opened *o, const char *const *names, size_t n)
{
	struct pagetree_side side = { o->jobs[0].profile, &o->causes[0] };
	uint32_t found = 0;
	struct pagetree t;

	pagetree_make(&t, &side, 1, &(struct pagetree_options){ 0 });
	for (uint32_t i = 1, depth = 0; i < t.stacks.nodes.n && depth < n; i++) {
		if (t.stacks.depths.v[i] == depth + 1 &&
		    !strcmp(t.idents.v[t.stacks.nodes.v[i] >> 1].name, names[depth])) {
			depth++;
			found = i;
		}
	}
	pagetree_done(&t);
	return found;
}

static void what_is_below_a_node_can_be_had(void **state)
{
	static const char *const names[] = { "persistence", "main" };
	struct profile *p = bushy();
	struct buf data = { 0 }, wanted = { 0 };
	struct err err = { 0 };
	struct opened o;
	uint32_t node;

	open_all(&o, &p, 1, NULL);
	node = number_of(&o, names, 2);
	assert_true(node > 0);
	assert_int_equal(page_data(o.jobs, 1, &(struct page_options){ .under = node }, &data, NULL), 0);
	expect_all(&wanted, &o, MS, "[\"persistence\",\"main\"");
	buf_printf(&wanted, ",\"under\":[\"persistence\",\"main\"],\"has\":{\"full\":{\"0\":%u,\"1\":%u}}",
	           node, node + 1);
	decode(&data, &wanted);
	assert_int_equal(page_data(o.jobs, 1, &(struct page_options){ .under = 1 << 30 }, &data, &err),
	                 -ENOENT);
	buf_done(&data);
	close_all(&o);
	profile_free(p);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_come_back),
		cmocka_unit_test(sums_of_slots_have_spans),
		cmocka_unit_test(waits_come_back_with_their_causes),
		cmocka_unit_test(filters_are_what_is_shown_first),
		cmocka_unit_test(hostile_names_stay_names),
		cmocka_unit_test(strange_profiles_have_pages),
		cmocka_unit_test(decimals_are_divided),
		cmocka_unit_test(too_deep_is_cut),
		cmocka_unit_test(two_sides_share_a_tree),
		cmocka_unit_test(any_profile_comes_back),
		cmocka_unit_test(the_lightest_are_left_out),
		cmocka_unit_test(what_is_below_a_node_can_be_had),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
