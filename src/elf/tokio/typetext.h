/*
 * typetext.h - types of Rust as demangled symbols write them. Pure functions of any bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct typetext {
	const char *s;
	size_t n;
};

/*
 * Finds the future, and where it is there the scheduler, for which a generic function or type of tokio's was made:
 *
 *	core::ptr::drop_in_place<tokio::runtime::task::core::Stage<a::serve::{{closure}}>>      a::serve::{{closure}}
 *	tokio::runtime::task::raw::poll::<a::serve::{closure#0}, alloc::sync::Arc<…::Handle>>   a::serve::{closure#0}
 *
 * False if the symbol is not of that kind, or has letters in place of types.
 */
bool typetext_task(const char *symbol, struct typetext *ret_future, struct typetext *ret_scheduler);
/* Returns T of "<T as core::future::future::Future>::poll", of n = 0 if it is no such function. */
struct typetext typetext_polled(const char *function);
/* Returns the type inside of boxes, adaptors and spans. */
struct typetext typetext_peel(struct typetext type);
/* Returns a path without arguments, or with the last word of each:
 * "a::Service<b::c::Connect>::spawn::{{closure}}" is "a::Service<Connect>::spawn::{{closure}}". Caller frees. */
char *typetext_short(struct typetext type, bool arguments);
