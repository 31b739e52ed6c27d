/*
 * sampler.c - the slow half of the hooks: who is sampled, and which samples are alive (blob.h).
 *
 * Runs in the target, within its malloc and free: no libc, no locks, no system
 * calls, no floating point, little stack. Whatever is wrong in the shared memory, it
 * must neither loop nor write elsewhere.
 */
#include "blob.h"

#include "blobcode.h"
#include "collect/inject/blobdraw.h"

static void restart(struct blob_thread *t)
{
	t->bytes += t->drawn - t->countdown;
	t->interval = *(const volatile uint64_t *)&blob_fixed.interval_bytes;
	t->drawn = t->countdown = blob_draw(&t->random, t->interval);
}

/* The state of this thread. One that another thread had is taken over as it is: a countdown knows no past. */
static struct blob_thread *state_of(uint64_t pointer)
{
	struct blob_thread *t = &blob_shared.threads[blob_thread_of(pointer)];

	if (!t->random) {
		t->random = (pointer ^ blob_fixed.seed) * 0x9e3779b97f4a7c15ULL | 1;
		blob_random(&t->random);
		restart(t);
	}
	t->owner = pointer;
	return t;
}

static uint64_t stamp_of(const struct blob_thread *t)
{
	return (uint64_t)(t - blob_shared.threads) << 48 | (t->count & 0xffffffffffff);
}

static void set_bit(uint32_t *bits, uint32_t i)
{
	__atomic_fetch_or(&bits[i / 32], 1U << i % 32, __ATOMIC_RELEASE);
}

static void unset_bit(uint32_t *bits, uint32_t i)
{
	__atomic_fetch_and(&bits[i / 32], ~(1U << i % 32), __ATOMIC_ACQ_REL);
}

/* Bits of the fine filter that stand for the same bit of the coarse one. */
static uint32_t near_bits(uint32_t home)
{
	return *(volatile uint32_t *)&blob_shared.filter[home / 32] >> (home & 16) & 0xffff;
}

static int taken(uint32_t home)
{
	const volatile struct blob_object *o = blob_shared.objects[home];

	return o[0].address || o[1].address;
}

static uint32_t keep(uint64_t address, uint64_t stamp)
{
	uint32_t home = blob_home(address);

	for (int i = 0; i < BLOB_WAYS; i++) {
		struct blob_object *o = &blob_shared.objects[home][i];
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(&o->address, &none, address, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		o->stamp = stamp;
		set_bit(blob_shared.filter, home);
		set_bit(blob_shared.coarse, home / BLOB_NEAR);
		return 1;
	}
	__atomic_fetch_add(&blob_shared.full, 1, __ATOMIC_RELAXED);
	return 0;
}

typedef int blob_control(const char *, void *, uint64_t *, void *, uint64_t);

static uint32_t put_text(char *to, uint32_t n, const char *text, uint32_t size)
{
	for (uint32_t i = 0; i < size && text[i]; i++)
		to[n++] = text[i];
	return n;
}

static uint32_t put_number(char *to, uint32_t n, uint32_t number)
{
	uint32_t digit = 1000000000;

	while (digit > 1 && number < digit)
		digit /= 10;
	for (; digit; digit /= 10)
		to[n++] = '0' + number / digit % 10;
	return n;
}

/* Statistics have one name for each size class: all of them at once, for the same moment. */
static int32_t answer_many(const struct blob_order *o, blob_control *control, struct blob_answer *a)
{
	uint32_t many = o->many < BLOB_MANY ? o->many : BLOB_MANY, n;
	char name[sizeof(o->name) + 10 + sizeof(o->rest) + 1];
	int32_t result = 0;

	for (uint32_t i = 0; i < many && !result; i++) {
		uint64_t value = 0, size = o->old_size == 4 ? 4 : 8;

		n = put_text(name, 0, o->name, sizeof(o->name));
		n = put_number(name, n, o->first + i);
		n = put_text(name, n, o->rest, sizeof(o->rest));
		name[n] = 0;
		result = control(name, &value, &size, 0, 0);
		a->values[i] = value;
	}
	return result;
}

static int32_t answer_one(const struct blob_order *o, blob_control *control, struct blob_answer *a)
{
	const char *text = o->text;
	uint64_t size = o->old_size < BLOB_VALUE ? o->old_size : BLOB_VALUE;
	void *old = size ? a->old_value : 0, *new = o->new_size ? (void *)o->new_value : 0;
	int32_t result;

	if (o->new_is_text)
		result = control(o->name, old, old ? &size : 0, (void *)&text, sizeof(text));
	else
		result = control(o->name, old, old ? &size : 0, new, o->new_size);
	a->old_size = size;
	return result;
}

/* The first thread answers, the others go on; so do allocations by mallctl() itself. */
static void answer(void)
{
	const struct blob_order *o = &blob_fixed.order;
	struct blob_answer *a = &blob_shared.answer;
	uint32_t asked = BLOB_ASKED;
	blob_control *control;

	if (!__atomic_compare_exchange_n(&a->state, &asked, BLOB_TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	/* Not before: it may be another order by now than the one that was seen. */
	control = (blob_control *)*(const volatile uint64_t *)&o->function;
	if (control)
		a->result = o->many ? answer_many(o, control, a) : answer_one(o, control, a);
	__atomic_store_n(&a->state, BLOB_ANSWERED, __ATOMIC_RELEASE);
}

/* A sample was drawn by the interval that its thread had until then, and is told with it. */
static struct blob_said sample(uint64_t address, uint64_t size)
{
	uint64_t pointer = blob_thread_pointer();
	struct blob_thread *t = &blob_shared.threads[blob_thread_of(pointer)];
	uint64_t interval;

	if (t->owner != pointer) {
		t = state_of(pointer);
		t->count++;
		t->countdown -= size;
		if (t->countdown >= 0)
			return (struct blob_said){ 0, 0 };
	}
	interval = t->interval;
	restart(t);
	if (!address)
		return (struct blob_said){ 0, 0 };
	t->samples++;
	if (__atomic_add_fetch(&blob_shared.silence, 1, __ATOMIC_RELAXED) > BLOB_PATIENCE)
		blob_local.active = BLOB_PASS_ON;
	return (struct blob_said){ keep(address, stamp_of(t)), interval };
}

/* After an allocation whose countdown fell below zero, or whose thread was not known; or any, where each is seen. */
struct blob_said blob_alloc(uint64_t address, uint64_t size, uint64_t sp, uint64_t bp, uint64_t pc)
{
	if (blob_local.active == BLOB_EXACT)
		return exact_alloc(address, size, sp, bp, pc);
	if (__atomic_load_n(&blob_shared.answer.state, __ATOMIC_RELAXED) == BLOB_ASKED)
		answer();
	return sample(address, size);
}

/* Each time somebody may have moved in meanwhile. */
static void clear_bits(uint32_t home)
{
	if (taken(home))
		return;
	unset_bit(blob_shared.filter, home);
	if (taken(home))
		set_bit(blob_shared.filter, home);
	if (near_bits(home))
		return;
	unset_bit(blob_shared.coarse, home / BLOB_NEAR);
	if (near_bits(home))
		set_bit(blob_shared.coarse, home / BLOB_NEAR);
}

/* Before a free. 1: it was a sample; 3: of this thread's last allocation. */
uint32_t blob_free(uint64_t address)
{
	uint32_t home = blob_home(address);

	if (!address)
		return 0;
	if (blob_local.active == BLOB_EXACT) {
		exact_free(address);
		return 0;
	}
	if (!(blob_shared.filter[home / 32] & 1U << home % 32))
		return 0;
	for (int i = 0; i < BLOB_WAYS; i++) {
		struct blob_object *o = &blob_shared.objects[home][i];
		uint64_t expected = address, pointer = blob_thread_pointer(), stamp = o->stamp;
		const struct blob_thread *t = &blob_shared.threads[blob_thread_of(pointer)];

		if (!__atomic_compare_exchange_n(&o->address, &expected, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		clear_bits(home);
		return t->owner == pointer && stamp == stamp_of(t) ? 3 : 1;
	}
	return 0;
}
