#include "collect/kernel/kernelmap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "collect/kernel/kernelclass.h"
#include "profile/kernelname.h"
#include "profile/profile.h"
#include "target/kernelplaces.h"

/* Modules are loaded now and then; code without a place is common, and no reason to look each time. */
static const uint64_t look_again_ns = 5ULL * 1000000000;

/* A function of our programs. */
struct own {
	uint64_t start, end;
	char *name;
};

struct kernelmap {
	struct profile *profile;
	struct kernelplaces places;
	uint64_t looked_ns, secret;
	uint32_t kernel, jit; /* modules; jit PROFILE_NONE = not needed yet */
	struct map modules;   /* string id of "[ext4]" to module */
	struct kernelclass classes;
	uint32_t gasflame;    /* module, PROFILE_NONE = nothing of it was seen yet */
	VEC(struct own) own;  /* sorted */
};

static uint32_t add_module(struct kernelmap *k, const char *name, uint64_t base)
{
	uint32_t module = profile_add_module(k->profile,
		&(struct profile_module){ .kind = MODULE_KERNEL, .process = PROFILE_NONE,
					  .path = profile_string(k->profile, name) });

	profile_set_kernel_base(k->profile, module, base);
	return module;
}

struct kernelmap *kernelmap_new(struct profile *p)
{
	struct kernelmap *k = mem_alloc(sizeof(*k));
	const struct kernelplace *kernel;

	k->profile = p;
	k->jit = k->gasflame = PROFILE_NONE;
	kernelplaces_read(&k->places);
	k->looked_ns = clock_mono_ns();
	/* In the middle of the kernel's half, so that distances in both directions stay within 47 bits. */
	if (getrandom(&k->secret, sizeof(k->secret), 0) != sizeof(k->secret))
		k->secret = map_hash(clock_wall_ns() ^ (uintptr_t)k);
	k->secret = PROFILE_KERNEL_HALF | (k->secret & ~PROFILE_KERNEL_HALF);
	kernel = kernelplaces_named(&k->places, "[kernel]");
	k->kernel = add_module(k, "[kernel]", kernel ? kernel->start : k->secret);
	return k;
}

void kernelmap_free(struct kernelmap *k)
{
	if (!k)
		return;
	kernelplaces_done(&k->places);
	map_done(&k->modules);
	kernelclass_done(&k->classes);
	vec_done_each(&k->own, e, free(e->name));
	vec_done(&k->own);
	free(k);
}

/* Its module and where that begins. */
static uint32_t place_of(struct kernelmap *k, uint64_t address, uint64_t *ret_base)
{
	const struct kernelplace *place = kernelplaces_find(&k->places, address);
	uint64_t *module;

	if (!place && k->places.list.n && clock_mono_ns() - k->looked_ns > look_again_ns) {
		kernelplaces_look_again(&k->places);
		k->looked_ns = clock_mono_ns();
		place = kernelplaces_find(&k->places, address);
	}
	*ret_base = place ? place->start : k->secret;
	/* Nothing is to be seen: all of it is the kernel's, as far as we know. */
	if (!k->places.list.n || (place && !strcmp(place->name, "[kernel]")))
		return k->kernel;
	if (!place) {
		if (k->jit == PROFILE_NONE)
			k->jit = add_module(k, "[kernel jit]", k->secret);
		return k->jit;
	}
	module = map_put(&k->modules, profile_string(k->profile, place->name), PROFILE_NONE);
	if (*module == PROFILE_NONE)
		*module = add_module(k, place->name, place->start);
	return *module;
}

static int by_start(const void *a, const void *b)
{
	const struct own *x = a, *y = b;

	return ORDER(x->start, y->start);
}

void kernelmap_add_own(struct kernelmap *k, uint64_t start, uint64_t bytes, const char *name)
{
	vec_push(&k->own, (struct own){ start, start + bytes, mem_printf("[gasflame] %s", name) });
	vec_sort(&k->own, by_start);
}

static const struct own *own_at(const struct kernelmap *k, uint64_t address)
{
	size_t low = vec_search(i, 0, k->own.n, k->own.v[i].start <= address);

	return low && address < k->own.v[low - 1].end ? &k->own.v[low - 1] : NULL;
}

uint32_t kernelmap_frame(struct kernelmap *k, uint64_t address)
{
	const struct own *own = own_at(k, address);
	uint64_t base, distance;
	uint32_t module;

	if (own) {
		if (k->gasflame == PROFILE_NONE)
			k->gasflame = add_module(k, PROFILE_OWN_MODULE, k->secret);
		return profile_named_frame(k->profile, k->gasflame, FRAME_KERNEL, own->name);
	}
	module = place_of(k, address, &base);
	/* 0 would be a frame that has only a name. */
	distance = (address - base) & ~PROFILE_KERNEL_HALF;
	return profile_frame(k->profile, module, FRAME_KERNEL, distance ? distance : 1);
}

uint32_t kernelmap_own_frames(struct kernelmap *k, const uint64_t *frames, uint32_t count)
{
	uint32_t n = 0;

	/* A return address may be the first byte of the next function: look one byte before it. */
	while (n < count && (own_at(k, frames[n] - 1) || kernelclass_of(&k->classes, frames[n] - 1) & KERNELNAME_TRACING))
		n++;
	return n;
}

uint8_t kernelmap_class(struct kernelmap *k, uint32_t frame)
{
	const struct profile_frame *f = &k->profile->frames.v[frame];
	uint64_t base = f->address ? profile_kernel_base(k->profile, f->module) : 0;

	return base ? kernelclass_of(&k->classes, (base + f->address) | PROFILE_KERNEL_HALF) : 0;
}

struct kallsyms *kernelmap_take_symbols(struct kernelmap *k)
{
	return kernelclass_take(&k->classes);
}
