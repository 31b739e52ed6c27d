/*
 * taskname.h - the name of a unit of work (a task, a job, a thread's function) from the symbols of its future or closure.
 *
 * Runtimes run what programs give them inside wrappers: pinned boxes, futures with a tracing span, maps, guards against
 * panics. A person means what is inside. Both the symbols on a stack and the types in a symbol's arguments lead there:
 *
 *	taskname_of_function("<a::Node<N> as core::future::future::Future>::poll")        "a::Node"
 *	taskname_of_function("a::serve::{{closure}}::{{closure}}")                         "a::serve"
 *	taskname_of_function("<core::pin::Pin<P> as core::future::future::Future>::poll")  NULL: look at its callee
 *	taskname_of_type("tracing::instrument::Instrumented<a::serve::{{closure}}>")       "a::serve"
 *
 * Arguments of types are left out: the older mangling of Rust has letters in their place, and a name would depend on it.
 * Pure functions of any bytes.
 */
#pragma once

#include <stdbool.h>

/* Returns the name of the unit whose future or closure a demangled function is; NULL: it is a wrapper or a runtime's, and
 * says nothing. Caller frees. */
char *taskname_of_function(const char *function);

/* The same for a type, with its arguments: the outermost part of it that is no wrapper. NULL: all of it is wrappers. */
char *taskname_of_type(const char *type);

/* Is the function part of a language's library, a runtime or a wrapper of futures, which all units run through? */
bool taskname_is_wrapper(const char *function);
