#include "profile/kernelname.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

static const struct {
	const char *prefix;
	uint8_t bits;
} names[] = {
	{ "bpf_trace_run", KERNELNAME_TRACING },
	{ "__bpf_trace_", KERNELNAME_TRACING },
	{ "__traceiter_", KERNELNAME_TRACING },
	{ "perf_trace_", KERNELNAME_TRACING },
	{ "perf_call_bpf_", KERNELNAME_TRACING },
	{ "trace_call_bpf", KERNELNAME_TRACING },
	{ "bpf_get_stack", KERNELNAME_TRACING },
	{ "bpf_prog_", KERNELNAME_TRACING },
	{ "__bpf_prog_", KERNELNAME_TRACING },
	{ "___bpf_prog_", KERNELNAME_TRACING },
	{ "bpf_dispatcher_", KERNELNAME_TRACING },
	{ "bpf_trampoline_", KERNELNAME_TRACING },

	{ "asm_sysvec_", KERNELNAME_ENTRY },
	{ "sysvec_", KERNELNAME_ENTRY },
	{ "__sysvec_", KERNELNAME_ENTRY },
	{ "fred_sysvec_", KERNELNAME_ENTRY },
	{ "fred_extint", KERNELNAME_ENTRY },
	{ "asm_common_interrupt", KERNELNAME_ENTRY },
	{ "common_interrupt", KERNELNAME_ENTRY },
	{ "__common_interrupt", KERNELNAME_ENTRY },
	{ "irq_exit", KERNELNAME_ENTRY },
	{ "__irq_exit", KERNELNAME_ENTRY },
	{ "el1h_64_irq", KERNELNAME_ENTRY },
	{ "el0t_64_irq", KERNELNAME_ENTRY },
	{ "el1_interrupt", KERNELNAME_ENTRY },
	{ "el0_interrupt", KERNELNAME_ENTRY },
	{ "do_interrupt_handler", KERNELNAME_ENTRY },
	{ "asm_call_irq_on_stack", KERNELNAME_ENTRY },
	{ "ret_from_intr", KERNELNAME_ENTRY },
	{ "apic_timer_interrupt", KERNELNAME_ENTRY },
	{ "smp_apic_timer_interrupt", KERNELNAME_ENTRY },
	{ "do_IRQ", KERNELNAME_ENTRY },
	{ "run_ksoftirqd", KERNELNAME_ENTRY | KERNELNAME_THREAD },
	{ "irq_thread", KERNELNAME_ENTRY | KERNELNAME_THREAD },
	{ "run_ktimerd", KERNELNAME_ENTRY | KERNELNAME_THREAD },

	{ "handle_softirqs", KERNELNAME_SOFTIRQ },
	{ "__do_softirq", KERNELNAME_SOFTIRQ },
	{ "do_softirq", KERNELNAME_SOFTIRQ },
	{ "__softirqentry_text_start", KERNELNAME_SOFTIRQ }, /* the name of __do_softirq in older kernels' lists */

	{ "__dev_queue_xmit", KERNELNAME_SENDS | KERNELNAME_NETWORK },
	{ "ip_finish_output", KERNELNAME_SENDS | KERNELNAME_NETWORK },
	{ "__ip_finish_output", KERNELNAME_SENDS | KERNELNAME_NETWORK },
	{ "ip6_finish_output", KERNELNAME_SENDS | KERNELNAME_NETWORK },
	{ "__ip6_finish_output", KERNELNAME_SENDS | KERNELNAME_NETWORK },
	{ "netif_rx", KERNELNAME_SENDS | KERNELNAME_NETWORK },
	{ "tun_get_user", KERNELNAME_SENDS | KERNELNAME_NETWORK },
	{ "tcp_sendmsg", KERNELNAME_SENDS | KERNELNAME_NETWORK },
	{ "udp_sendmsg", KERNELNAME_SENDS | KERNELNAME_NETWORK },

	{ "hrtimer_", KERNELNAME_TIMER },
	{ "__hrtimer_", KERNELNAME_TIMER },
	{ "process_timeout", KERNELNAME_TIMER },
	{ "call_timer_fn", KERNELNAME_TIMER },
	{ "run_timer_", KERNELNAME_TIMER },
	{ "__run_timer", KERNELNAME_TIMER },
	{ "it_real_fn", KERNELNAME_TIMER },
	{ "posix_timer_", KERNELNAME_TIMER },
	{ "timerfd_", KERNELNAME_TIMER },
	{ "tick_", KERNELNAME_TIMER },

	{ "blk_", KERNELNAME_DISK },
	{ "__blk_", KERNELNAME_DISK },
	{ "bio_", KERNELNAME_DISK },
	{ "blkdev_bio_end_io", KERNELNAME_DISK },
	{ "end_page_", KERNELNAME_DISK },
	{ "folio_end_", KERNELNAME_DISK },
	{ "end_buffer_", KERNELNAME_DISK },
	{ "end_bio_", KERNELNAME_DISK },
	{ "mpage_", KERNELNAME_DISK },
	{ "ext4_end_bio", KERNELNAME_DISK },
	{ "iomap_", KERNELNAME_DISK },
	{ "dio_bio_", KERNELNAME_DISK },
	{ "submit_bio_wait_endio", KERNELNAME_DISK },
	{ "nvme_", KERNELNAME_DISK },
	{ "virtblk_", KERNELNAME_DISK },
	{ "scsi_", KERNELNAME_DISK },
	{ "ata_", KERNELNAME_DISK },

	{ "net_rx_action", KERNELNAME_NETWORK },
	{ "__napi_", KERNELNAME_NETWORK },
	{ "napi_", KERNELNAME_NETWORK },
	{ "sock_def_", KERNELNAME_NETWORK },
	{ "tcp_", KERNELNAME_NETWORK },
	{ "udp_", KERNELNAME_NETWORK },
	{ "__netif_receive_", KERNELNAME_NETWORK },
	{ "process_backlog", KERNELNAME_NETWORK },
	{ "virtnet_", KERNELNAME_NETWORK },
};

uint8_t kernelname_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (*names[i].prefix == *name && str_starts(name, names[i].prefix))
			return names[i].bits;
	return 0;
}

static const char *const wakers[] = {
	[INTERRUPT_NONE] = NULL,
	[INTERRUPT_TIMER] = "interrupt (timer)",
	[INTERRUPT_DISK] = "interrupt (block I/O completion)",
	[INTERRUPT_NETWORK] = "interrupt (network)",
	[INTERRUPT_OTHER] = "interrupt (of another kind)",
};

const char *kernel_interrupt_waker(enum kernel_interrupt i)
{
	return wakers[i];
}

bool kernel_interrupt_is_waker(const char *name)
{
	for (size_t i = INTERRUPT_NONE + 1; i < ARRAY_LEN(wakers); i++)
		if (!strcmp(name, wakers[i]))
			return true;
	return false;
}

void interrupt_read(struct interrupt_reader *r, uint8_t name)
{
	if (r->entered)
		return;
	r->entered = name & KERNELNAME_ENTRY;
	r->thread = name & KERNELNAME_THREAD;
	if (r->softirq)
		r->sends |= name & KERNELNAME_SENDS;
	else
		r->softirq = name & KERNELNAME_SOFTIRQ;
	if (r->entered || r->softirq || r->kind)
		return;
	if (name & KERNELNAME_TIMER)
		r->kind = INTERRUPT_TIMER;
	else if (name & KERNELNAME_DISK)
		r->kind = INTERRUPT_DISK;
	else if (name & KERNELNAME_NETWORK)
		r->kind = INTERRUPT_NETWORK;
}

/*
 * Softirqs also run at the end of what a task does in the kernel, where it turns them on again. What it has sent to the same
 * machine is received there: then the task is the waker. A disk or a timer is not of its doing, whatever it did.
 */
enum kernel_interrupt interrupt_of(const struct interrupt_reader *r)
{
	bool own = r->sends && r->kind != INTERRUPT_TIMER && r->kind != INTERRUPT_DISK;

	if (!r->entered && (!r->softirq || own))
		return INTERRUPT_NONE;
	return r->kind ? r->kind : INTERRUPT_OTHER;
}
