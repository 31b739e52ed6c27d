/*
 * taskname.h - the name of a unit of work (a task, a job, a thread's function) from the symbols of its future or closure.
 *
 * Runtimes run what programs give them inside wrappers: pinned boxes, futures with a tracing span, maps, guards against
 * panics. A person means what is inside. Both the functions on a stack and the types in a symbol's arguments lead there:
 *
 *	taskname_of_function("<a::Node<N> as core::future::future::Future>::poll")        "a::Node"
 *	taskname_of_function("a::serve::{{closure}}::{{closure}}")                         "a::serve"
 *	taskname_of_function("<core::pin::Pin<P> as core::future::future::Future>::poll")  NULL: look at its callee
 *	taskname_of_type("tracing::instrument::Instrumented<a::serve::{{closure}}>")       "a::serve"
 *
 * Arguments of types are left out: the older mangling of Rust has letters in their place, and a name would depend on it.
 * Of closures the number stays where it is not 0: a function may have several.
 *
 * Pure functions of any bytes.
 */
#pragma once

#include <stdbool.h>

/* How much a function says about the unit that calls it. */
enum taskname_rank {
	TASKNAME_NOTHING,  /* a wrapper or a runtime, which every unit may run through */
	TASKNAME_LIBRARY,  /* of a language's or a runtime's library, which is called for its own sake */
	TASKNAME_FUNCTION, /* of a program */
	TASKNAME_UNIT,     /* of a program, and a future or a closure */
};

enum taskname_rank taskname_rank(const char *function);

/* Returns the name of the unit whose future, closure or function this is. NULL: it is a wrapper. Caller frees. */
char *taskname_of_function(const char *function);

/* Returns the name of the unit of a type: the outermost part that is no wrapper, closures first. NULL: all of it is wrappers,
 * or letters in place of types. Caller frees. */
char *taskname_of_type(const char *type);

/* Returns the name of the unit that a wrapper is an instance for, by the types among its arguments:
 * `tokio::runtime::task::raw::poll::<a::serve::{closure#0}, S>`. NULL: they say nothing. Caller frees. */
char *taskname_of_arguments(const char *function);
