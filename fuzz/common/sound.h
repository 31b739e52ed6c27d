/*
 * sound.h - is every id of a profile that was read from hostile bytes one that points at something?
 */
#pragma once

#include <stdlib.h>

#include "profile/profile.h"

static inline void sound(bool right)
{
	if (!right)
		abort();
}

static inline void sound_profile(const struct profile *p)
{
	for (size_t i = 0; i < p->processes.n; i++)
		sound(p->processes.v[i].owner <= p->owners.n && p->processes.v[i].command < p->strings.n);
	for (size_t i = 0; i < p->threads.n; i++)
		sound(p->threads.v[i].process < p->processes.n && p->threads.v[i].name < p->strings.n);
	for (size_t i = 0; i < p->mappings.n; i++)
		sound(p->mappings.v[i].process < p->processes.n && p->mappings.v[i].module < p->modules.n);
	for (size_t i = 0; i < p->modules.n; i++)
		sound(p->modules.v[i].path < p->strings.n && p->modules.v[i].build_id_size <= 20 &&
		      (p->modules.v[i].process == PROFILE_NONE || p->modules.v[i].process < p->processes.n));
	for (size_t i = 0; i < p->functions.n; i++)
		sound(p->functions.v[i].name < p->strings.n && p->functions.v[i].file < p->strings.n &&
		      (p->functions.v[i].module == PROFILE_NONE || p->functions.v[i].module < p->modules.n));
	for (size_t i = 0; i < p->frames.n; i++)
		sound((p->frames.v[i].module == PROFILE_NONE || p->frames.v[i].module < p->modules.n) &&
		      (size_t)p->frames.v[i].first_line + p->frames.v[i].line_count <= p->lines.n);
	for (size_t i = 0; i < p->lines.n; i++)
		sound(p->lines.v[i].function < p->functions.n);
	for (size_t i = 1; i < p->stacks.n; i++)
		sound(p->stacks.v[i].parent < i && p->stacks.v[i].frame < p->frames.n);
	for (size_t i = 0; i < p->samples.n; i++)
		sound(p->samples.v[i].event < p->events.n && p->samples.v[i].thread < p->threads.n &&
		      p->samples.v[i].stack < p->stacks.n);
	for (size_t i = 0; i < p->wakes.n; i++)
		sound(p->wakes.v[i].thread < p->threads.n && p->wakes.v[i].stack < p->stacks.n &&
		      p->wakes.v[i].waker_stack < p->stacks.n &&
		      (p->wakes.v[i].waker == PROFILE_NONE || p->wakes.v[i].waker < p->threads.n));
	for (size_t i = 0; i < p->marks.n; i++)
		sound(p->marks.v[i].end_ns >= p->marks.v[i].start_ns &&
		      (p->marks.v[i].thread == PROFILE_NONE || p->marks.v[i].thread < p->threads.n));
	for (size_t i = 0; i < p->points.n; i++)
		sound(p->points.v[i].series < p->series.n);
}
