/*
 * gasflame.h - a program's own marks in its recordings: one header, no library, C and C++.
 *
 *	#include <gasflame.h>
 *
 *	GASFLAME_SPAN_BEGIN("state root", number);
 *	...
 *	GASFLAME_SPAN_END("state root", number);
 *
 *	GASFLAME_MARK("reorg", depth);
 *
 * Each is a nop in the code (on arm64 a branch to the next instruction), two or three moves to registers, and a note in the file that says where the nop is
 * (.note.stapsdt, which bpftrace, perf and others read, too). Nobody looks: it costs a nanosecond. `gasflame record`
 * finds the notes of a program and of its libraries by itself, and takes the time at each nop, for about a microsecond.
 *
 * name: a string, also one that is made at run time; its first 47 bytes count. number: any integer. A span is begun and
 * ended with the same name and number, on any thread; so spans may overlap, nest, and follow a task from thread to
 * thread. Spans called "block" are what `gasflame blocks` lists; GASFLAME_BLOCK_END says what was in it:
 *
 *	GASFLAME_SPAN_BEGIN("block", number);
 *	...
 *	GASFLAME_BLOCK_END(number, gas_used, transactions);
 *
 * For x86-64 and arm64; without effect on other machines, and where GASFLAME_OFF is defined.
 *
 * From Rust: a C file in the crate, built by its build script with the cc crate,
 *
 *	#include <gasflame.h>
 *	void gasflame_span_begin(const char *name, unsigned long number) { GASFLAME_SPAN_BEGIN(name, number); }
 *	void gasflame_span_end(const char *name, unsigned long number) { GASFLAME_SPAN_END(name, number); }
 *
 * and unsafe extern "C" { fn gasflame_span_begin(name: *const c_char, number: u64); ... }, with c"state root".as_ptr().
 */
#ifndef GASFLAME_H
#define GASFLAME_H

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__LP64__) && !defined(GASFLAME_OFF)

/* Kernels emulate a nop of x86-64 where there is a probe; on arm64 they emulate branches, and nops from Linux 6.13 on only: before that
 * the thread goes through a page of the kernel's, where no stack of it is found. */
#ifdef __aarch64__
#define GASFLAME_NOP_ "b .+4"
#else
#define GASFLAME_NOP_ "nop"
#endif

/* The note: where the nop is, where the base was when it was linked, no semaphore, whose it is, what, arguments. The base
 * is one byte, once in a program, however many files have it. */
#define GASFLAME_NOTE_(what, arguments)                                                  \
	"771: " GASFLAME_NOP_ "\n"                                                       \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"                                    \
	".balign 4\n"                                                                    \
	".4byte 773f - 772f, 775f - 774f, 3\n"                                           \
	"772: .asciz \"stapsdt\"\n"                                                      \
	"773: .balign 4\n"                                                               \
	"774: .8byte 771b, _.stapsdt.base, 0\n"                                          \
	".asciz \"gasflame\", \"" what "\", \"" arguments "\"\n"                         \
	"775: .balign 4\n"                                                               \
	".popsection\n"                                                                  \
	".ifndef _.stapsdt.base\n"                                                       \
	".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"          \
	".weak _.stapsdt.base\n"                                                         \
	".hidden _.stapsdt.base\n"                                                       \
	"_.stapsdt.base: .space 1\n"                                                     \
	".size _.stapsdt.base, 1\n"                                                      \
	".popsection\n"                                                                  \
	".endif\n"

/* In registers, whatever the compiler thinks of it; what the program has written before is in memory. */
#define GASFLAME_CALL2_(what, a, b)                                                      \
	__asm__ __volatile__(GASFLAME_NOTE_(what, "8@%0 8@%1")                           \
			     : : "r"(a), "r"((unsigned long)(b)) : "memory")
#define GASFLAME_CALL3_(what, a, b, c)                                                   \
	__asm__ __volatile__(GASFLAME_NOTE_(what, "8@%0 8@%1 8@%2")                      \
			     : : "r"((unsigned long)(a)), "r"((unsigned long)(b)), "r"((unsigned long)(c)) : "memory")

#define GASFLAME_SPAN_BEGIN(name, number) GASFLAME_CALL2_("span_begin", (const char *)(name), number)
#define GASFLAME_SPAN_END(name, number) GASFLAME_CALL2_("span_end", (const char *)(name), number)
#define GASFLAME_MARK(name, number) GASFLAME_CALL2_("mark", (const char *)(name), number)
#define GASFLAME_BLOCK_END(number, gas, transactions) GASFLAME_CALL3_("block_end", number, gas, transactions)

#else

#define GASFLAME_SPAN_BEGIN(name, number) ((void)(name), (void)(number))
#define GASFLAME_SPAN_END(name, number) ((void)(name), (void)(number))
#define GASFLAME_MARK(name, number) ((void)(name), (void)(number))
#define GASFLAME_BLOCK_END(number, gas, transactions) ((void)(number), (void)(gas), (void)(transactions))

#endif

#endif
