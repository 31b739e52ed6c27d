#include "collect/unwind/unwindmaps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "collect/shared.h"
#include "elf/unwind/unwind.h"

struct unwindmaps {
	int chunks_fd;
	uint64_t *rules;
	struct shared_module *modules;
	uint32_t *chunks[SHARED_MAX_CHUNKS];
	uint32_t chunk_count;
	uint64_t next_word;
	struct map rule_index; /* rule to its number */
	uint32_t rule_count;
};

enum {
	RULES_BYTES = SHARED_MAX_RULES * sizeof(uint64_t),
	MODULES_BYTES = SHARED_MAX_MODULES * sizeof(struct shared_module),
	CHUNK_BYTES = SHARED_CHUNK_WORDS * 4,
	CHUNKS_AT_ONCE = 64,
};

static void *map_shared(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Numbers a rule; the last number is kept for "cannot be said", should the dictionary fill up. */
static uint32_t number_rule(struct unwindmaps *t, uint64_t rule)
{
	uint64_t *number = map_get(&t->rule_index, rule);

	if (number)
		return *number;
	if (t->rule_count == SHARED_MAX_RULES - 1)
		return SHARED_MAX_RULES - 1;
	*map_put(&t->rule_index, rule, 0) = t->rule_count;
	t->rules[t->rule_count] = rule;
	return t->rule_count++;
}

/* Puts maps into another one, in one go: the kernel lets a grace period pass for each call, 8 to 16 ms. Old kernels take them
 * one by one only. */
static int put_inner(int outer_fd, const uint32_t *keys, const int *fds, uint32_t n)
{
	uint32_t count = n;

	if (!bpf_map_update_batch(outer_fd, keys, fds, &count, NULL))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (bpf_map_update_elem(outer_fd, &keys[i], &fds[i], BPF_ANY))
			return -1;
	return 0;
}

/* A cache (unwind.bpf.h) that gets its arrays on a thread of its own, as that takes a grace period. */
struct filling {
	int cache_fd;
	uint32_t keys[SHARED_PARTS], made;
	int fds[SHARED_PARTS];
	int error; /* errno, or 0 */
	pthread_t thread;
	bool started;
};

static void *fill(void *context)
{
	struct filling *f = context;

	f->error = put_inner(f->cache_fd, f->keys, f->fds, f->made) ? errno : 0;
	return NULL;
}

/* Makes the arrays of a cache and has them put into it. */
static void begin_filling(struct filling *f, int cache_fd, uint32_t entries, uint32_t bytes)
{
	sigset_t all, before;

	*f = (struct filling){ .cache_fd = cache_fd };
	for (; f->made < SHARED_PARTS; f->made++) {
		f->keys[f->made] = f->made;
		f->fds[f->made] = bpf_map_create(BPF_MAP_TYPE_ARRAY, "cache_part", sizeof(*f->keys), bytes, entries, NULL);
		if (f->fds[f->made] < 0) {
			f->error = errno;
			return;
		}
	}
	/* Signals are for the session. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	f->started = !pthread_create(&f->thread, NULL, fill, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!f->started)
		fill(f);
}

/* r: an error from before, which stays. */
static int end_filling(struct filling *f, int r, struct err *err)
{
	if (f->started)
		pthread_join(f->thread, NULL);
	while (f->made)
		close(f->fds[--f->made]); /* the cache holds it */
	return r >= 0 && f->error ? err_errno(err, f->error, "cannot make a BPF map for a cache") : r;
}

/* Makes a chunk and maps it. Its descriptor, or negative. */
static int make_chunk(uint32_t **ret, struct err *err)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "gasflame_rows", 4, CHUNK_BYTES, 1, &opts);

	if (fd < 0)
		return err_errno(err, errno, "cannot make a BPF map for unwind tables");
	*ret = map_shared(fd, CHUNK_BYTES);
	if (*ret)
		return fd;
	close(fd);
	return err_errno(err, errno, "cannot map a BPF map for unwind tables");
}

/* Makes chunks until there are so many. */
static int add_chunks(struct unwindmaps *t, uint32_t count, struct err *err)
{
	uint32_t keys[CHUNKS_AT_ONCE] = { 0 }, made = 0;
	int fds[CHUNKS_AT_ONCE] = { 0 }, r = 0;

	while (made < CHUNKS_AT_ONCE && t->chunk_count + made < count) {
		keys[made] = t->chunk_count + made;
		fds[made] = make_chunk(&t->chunks[keys[made]], err);
		if (fds[made] < 0) {
			r = fds[made];
			break;
		}
		made++;
	}
	if (r >= 0 && put_inner(t->chunks_fd, keys, fds, made))
		r = err_errno(err, errno, "cannot add BPF maps for unwind tables");
	for (uint32_t i = 0; i < made; i++) {
		close(fds[i]); /* the outer map and our mapping hold it */
		if (r < 0)
			munmap(t->chunks[keys[i]], CHUNK_BYTES);
	}
	if (r >= 0)
		t->chunk_count += made;
	return r;
}

/* Sees to it that there is room before a word. */
static int reach(struct unwindmaps *t, uint64_t word, struct err *err)
{
	uint64_t count = (word + SHARED_CHUNK_WORDS - 1) / SHARED_CHUNK_WORDS;
	int r = 0;

	if (count > SHARED_MAX_CHUNKS)
		return err_set(err, ENOSPC, "the unwind tables are full (%d MiB)", SHARED_MAX_CHUNKS);
	while (r >= 0 && t->chunk_count < count)
		r = add_chunks(t, count, err);
	return r;
}

int unwindmaps_new(const struct unwindmaps_fds *fds, uint64_t words, struct unwindmaps **ret, struct err *err)
{
	struct unwindmaps *t = mem_alloc(sizeof(*t));
	struct filling rule_cache, seen;
	struct err why = { 0 };
	int r = 0;

	t->chunks_fd = fds->chunks;
	t->rules = map_shared(fds->rules, RULES_BYTES);
	t->modules = map_shared(fds->modules, MODULES_BYTES);
	if (!t->rules || !t->modules)
		r = err_errno(err, errno, "cannot map the BPF tables");
	begin_filling(&rule_cache, fds->rule_cache, SHARED_RULE_PART, sizeof(struct shared_cached_rule));
	begin_filling(&seen, fds->seen, SHARED_SEEN_PART, sizeof(uint64_t));
	/* Where there is no room for them, loading them says so. */
	if (reach(t, words, &why) < 0)
		log_debug("%s", why.text);
	r = end_filling(&rule_cache, r, err);
	r = end_filling(&seen, r, err);
	if (r < 0) {
		unwindmaps_free(t);
		return r;
	}
	number_rule(t, RULE_NONE); /* is number 0 */
	t->rules[SHARED_MAX_RULES - 1] = RULE_UNSUPPORTED;
	*ret = t;
	return 0;
}

void unwindmaps_free(struct unwindmaps *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->chunk_count; i++)
		munmap(t->chunks[i], CHUNK_BYTES);
	if (t->rules)
		munmap(t->rules, RULES_BYTES);
	if (t->modules)
		munmap(t->modules, MODULES_BYTES);
	map_done(&t->rule_index);
	free(t);
}

static uint32_t *word_at(const struct unwindmaps *t, uint64_t word)
{
	return &t->chunks[word / SHARED_CHUNK_WORDS][word % SHARED_CHUNK_WORDS];
}

/* Where count words can stand without crossing from one chunk into the next. */
static uint64_t place_run(uint64_t word, uint32_t count)
{
	uint64_t room = SHARED_CHUNK_WORDS - word % SHARED_CHUNK_WORDS;

	return count > room ? word + room : word;
}

static void publish(struct unwindmaps *t, uint32_t module, uint32_t state)
{
	__atomic_store_n(&t->modules[module].state, state, __ATOMIC_RELEASE);
}

void unwindmaps_announce(struct unwindmaps *t, uint32_t module)
{
	publish(t, module, MODULE_BUILDING);
}

void unwindmaps_none(struct unwindmaps *t, uint32_t module)
{
	publish(t, module, MODULE_NO_TABLE);
}

/* The word behind the rows of a table whose first one stands at word. */
static uint64_t end_of_rows(const struct unwind_table *table, uint64_t word)
{
	for (uint32_t i = 0; i < table->page_count; i++)
		word = place_run(word, table->pages[i].count) + table->pages[i].count;
	return word;
}

uint64_t unwindmaps_words(const struct unwind_table *table)
{
	uint64_t words = 2 + 2 * (uint64_t)table->page_count + table->row_count;

	/* At the end of a chunk there may be no room for the rows of a page, of which there are 4096 at most. */
	return words + (words / SHARED_CHUNK_WORDS + 1) * 4096;
}

int unwindmaps_load(struct unwindmaps *t, uint32_t module, const struct unwind_table *table, struct err *err)
{
	struct shared_module *m = &t->modules[module];
	uint64_t index = (t->next_word + 1) & ~1ULL; /* a page's two words never cross a chunk */
	uint64_t word = index + 2 * (uint64_t)table->page_count;
	_cleanup_free_ uint32_t *numbers = mem_alloc(table->rule_count * sizeof(*numbers));
	int r = reach(t, end_of_rows(table, word), err);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < table->rule_count; i++)
		numbers[i] = number_rule(t, table->rules[i]);
	for (uint32_t i = 0; i < table->page_count; i++) {
		const struct unwind_page *page = &table->pages[i];
		uint32_t *out;

		word = place_run(word, page->count);
		*word_at(t, index + 2 * i) = word;
		*word_at(t, index + 2 * i + 1) = page->count;
		out = word_at(t, word);
		for (uint32_t k = 0; k < page->count; k++) {
			uint32_t row = table->rows[page->first + k];

			out[k] = (row & 0xffff) | numbers[row >> 16] << 16;
		}
		word += page->count;
	}
	t->next_word = word;
	m->first_page = table->first_page;
	m->page_count = table->page_count;
	m->index = index;
	publish(t, module, MODULE_TABLE);
	return 0;
}

bool unwindmaps_building(const struct unwindmaps *t, uint32_t module)
{
	return module < SHARED_MAX_MODULES && t->modules[module].state == MODULE_BUILDING;
}

uint64_t unwindmaps_rule(const struct unwindmaps *t, uint32_t module, uint64_t address)
{
	const struct shared_module *m = &t->modules[module];
	uint64_t page = (address >> 12) - m->first_page;
	const uint32_t *entry, *rows;
	uint32_t low = 0, high;

	if (m->state != MODULE_TABLE)
		return RULE_FRAME_POINTER;
	if (page >= m->page_count)
		return RULE_NONE;
	entry = word_at(t, m->index + 2 * page);
	rows = word_at(t, entry[0]);
	high = entry[1];
	if (!high)
		return RULE_NONE;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if ((rows[middle] & 0xffff) <= (address & 0xfff))
			low = middle;
		else
			high = middle;
	}
	return t->rules[rows[low] >> 16];
}
