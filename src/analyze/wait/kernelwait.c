#include "analyze/wait/kernelwait.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

static const char *const keys[KERNEL_WAIT_COUNT] = {
	[KERNEL_UNKNOWN] = "unknown",       [KERNEL_FUTEX] = "futex",
	[KERNEL_LOCK] = "kernel-lock",      [KERNEL_EPOLL] = "epoll",
	[KERNEL_POLL] = "poll",             [KERNEL_ACCEPT] = "accept",
	[KERNEL_SIGNAL] = "signal",         [KERNEL_NETWORK] = "network",
	[KERNEL_SLEEP] = "sleep",           [KERNEL_PIPE] = "pipe",
	[KERNEL_PROCESS] = "process",       [KERNEL_DISK_READ] = "disk-read",
	[KERNEL_DISK_WRITE] = "disk-write", [KERNEL_FAULT] = "fault",
	[KERNEL_RECLAIM] = "reclaim",       [KERNEL_QUEUE] = "queue",
};

const char *kernel_wait_key(enum kernel_wait w)
{
	return keys[w];
}

struct rule {
	const char *text; /* beginning of the name; "*x": x is its end; "=x": it is x */
	enum kernel_wait wait;
};

/*
 * The innermost function that is listed here decides: a write that must first
 * free memory waits for memory, a fault that must take a lock waits for the lock.
 */
static const struct rule deciding[] = {
	{ "futex_lock_pi", KERNEL_LOCK },
	{ "rt_mutex_", KERNEL_LOCK },
	{ "__rt_mutex_", KERNEL_LOCK },
	{ "futex_", KERNEL_FUTEX },
	{ "do_futex", KERNEL_FUTEX },
	{ "__futex_", KERNEL_FUTEX },
	{ "__x64_sys_futex", KERNEL_FUTEX },
	{ "__arm64_sys_futex", KERNEL_FUTEX },
	{ "do_semtimedop", KERNEL_LOCK },
	{ "__do_semtimedop", KERNEL_LOCK },
	{ "rwsem_down_", KERNEL_LOCK },
	{ "__mutex_lock", KERNEL_LOCK },
	{ "mutex_lock", KERNEL_LOCK },
	{ "__down_", KERNEL_LOCK },
	{ "percpu_down_", KERNEL_LOCK },
	{ "__percpu_down_", KERNEL_LOCK },
	{ "percpu_rwsem_wait", KERNEL_LOCK },
	{ "posix_lock_inode", KERNEL_LOCK },
	{ "flock_lock_inode", KERNEL_LOCK },
	{ "locks_lock_inode", KERNEL_LOCK },
	{ "fcntl_setlk", KERNEL_LOCK },
	{ "do_lock_file_wait", KERNEL_LOCK },
	{ "ep_poll", KERNEL_EPOLL },
	{ "do_epoll_wait", KERNEL_EPOLL },
	{ "io_cqring_wait", KERNEL_EPOLL },
	{ "do_poll", KERNEL_POLL },
	{ "do_sys_poll", KERNEL_POLL },
	{ "do_select", KERNEL_POLL },
	{ "core_sys_select", KERNEL_POLL },
	{ "poll_schedule_timeout", KERNEL_POLL },
	{ "inet_csk_accept", KERNEL_ACCEPT },
	{ "inet_csk_wait_for_connect", KERNEL_ACCEPT },
	{ "unix_accept", KERNEL_ACCEPT },
	{ "vsock_accept", KERNEL_ACCEPT },
	{ "do_sigtimedwait", KERNEL_SIGNAL },
	{ "sigsuspend", KERNEL_SIGNAL },
	{ "__do_sys_pause", KERNEL_SIGNAL },
	{ "__x64_sys_pause", KERNEL_SIGNAL },
	{ "signalfd_", KERNEL_SIGNAL },
	{ "hrtimer_nanosleep", KERNEL_SLEEP },
	{ "do_nanosleep", KERNEL_SLEEP },
	{ "common_nsleep", KERNEL_SLEEP },
	{ "timerfd_read", KERNEL_SLEEP },
	{ "msleep", KERNEL_SLEEP },
	{ "sk_wait_", KERNEL_NETWORK },
	{ "sk_stream_wait_", KERNEL_NETWORK },
	{ "__skb_wait_for_more_packets", KERNEL_NETWORK },
	{ "__skb_recv_", KERNEL_NETWORK },
	{ "sock_alloc_send_", KERNEL_NETWORK },
	{ "tcp_", KERNEL_NETWORK },
	{ "udp_", KERNEL_NETWORK },
	{ "udpv6_", KERNEL_NETWORK },
	{ "inet_", KERNEL_NETWORK },
	{ "inet6_", KERNEL_NETWORK },
	{ "unix_", KERNEL_NETWORK },
	{ "vsock_", KERNEL_NETWORK },
	{ "netlink_", KERNEL_NETWORK },
	{ "sock_", KERNEL_NETWORK },
	{ "__sys_recv", KERNEL_NETWORK },
	{ "__sys_send", KERNEL_NETWORK },
	{ "__sys_connect", KERNEL_NETWORK },
	{ "pipe_", KERNEL_PIPE },
	{ "anon_pipe_", KERNEL_PIPE },
	{ "wait_for_partner", KERNEL_PIPE }, /* opening a fifo */
	{ "fifo_open", KERNEL_PIPE },
	{ "eventfd_read", KERNEL_PIPE },
	{ "eventfd_write", KERNEL_PIPE },
	{ "inotify_read", KERNEL_PIPE },
	{ "n_tty_", KERNEL_PIPE },
	{ "tty_", KERNEL_PIPE },
	{ "do_msgrcv", KERNEL_PIPE },
	{ "do_msgsnd", KERNEL_PIPE },
	{ "do_mq_timed", KERNEL_PIPE },
	{ "wq_sleep", KERNEL_PIPE }, /* POSIX message queues */
	{ "=do_wait", KERNEL_PROCESS },
	{ "__do_wait", KERNEL_PROCESS },
	{ "kernel_wait4", KERNEL_PROCESS },
	{ "kernel_waitid", KERNEL_PROCESS },
	{ "wait_for_vfork_done", KERNEL_PROCESS },
	{ "do_exit", KERNEL_PROCESS },
	{ "exit_mm", KERNEL_PROCESS },
	{ "do_group_exit", KERNEL_PROCESS },
	{ "coredump_", KERNEL_PROCESS },
	{ "do_coredump", KERNEL_PROCESS },
	{ "vfs_coredump", KERNEL_PROCESS },
	{ "ptrace_", KERNEL_PROCESS },
	{ "do_signal_stop", KERNEL_PROCESS },
	{ "do_freezer_trap", KERNEL_PROCESS },
	{ "__refrigerator", KERNEL_PROCESS },
	{ "try_to_free_", KERNEL_RECLAIM },
	{ "do_try_to_free_", KERNEL_RECLAIM },
	{ "__alloc_pages_slowpath", KERNEL_RECLAIM },
	{ "__alloc_pages_direct_", KERNEL_RECLAIM },
	{ "mem_cgroup_handle_over_high", KERNEL_RECLAIM },
	{ "__mem_cgroup_handle_over_high", KERNEL_RECLAIM },
	{ "mem_cgroup_oom", KERNEL_RECLAIM },
	{ "reclaim_throttle", KERNEL_RECLAIM },
	{ "throttle_direct_reclaim", KERNEL_RECLAIM },
	{ "shrink_node", KERNEL_RECLAIM },
	{ "shrink_slab", KERNEL_RECLAIM },
	{ "shrink_lruvec", KERNEL_RECLAIM },
	{ "shrink_folio_list", KERNEL_RECLAIM },
	{ "shrink_page_list", KERNEL_RECLAIM },
	{ "compact_zone", KERNEL_RECLAIM },
	{ "out_of_memory", KERNEL_RECLAIM },
	{ "lru_add_drain_all", KERNEL_RECLAIM }, /* pages are dropped: posix_fadvise, mlock */
	{ "__lru_add_drain_all", KERNEL_RECLAIM },
	{ "filemap_fault", KERNEL_FAULT },
	{ "*_filemap_fault", KERNEL_FAULT },
	{ "do_swap_page", KERNEL_FAULT },
	{ "swapin_", KERNEL_FAULT },
	{ "swap_readpage", KERNEL_FAULT },
	{ "swap_read_folio", KERNEL_FAULT },
	{ "__folio_lock_or_retry", KERNEL_FAULT },
	{ "migration_entry_wait", KERNEL_FAULT },
	{ "balance_dirty_pages", KERNEL_DISK_WRITE },
	{ "*_sync_file", KERNEL_DISK_WRITE },
	{ "*_fsync", KERNEL_DISK_WRITE },
	{ "*_file_fsync", KERNEL_DISK_WRITE },
	{ "*_fsync_node", KERNEL_DISK_WRITE },
	{ "vfs_fsync", KERNEL_DISK_WRITE },
	{ "jbd2_log_wait_commit", KERNEL_DISK_WRITE },
	{ "jbd2_complete_transaction", KERNEL_DISK_WRITE },
	{ "jbd2_journal_", KERNEL_DISK_WRITE },
	{ "jbd2__journal_", KERNEL_DISK_WRITE },
	{ "wait_transaction_", KERNEL_DISK_WRITE },
	{ "start_this_handle", KERNEL_DISK_WRITE },
	{ "add_transaction_credits", KERNEL_DISK_WRITE },
	{ "xlog_", KERNEL_DISK_WRITE },
	{ "xfs_log_", KERNEL_DISK_WRITE },
	{ "xfs_trans_", KERNEL_DISK_WRITE },
	{ "btrfs_commit_transaction", KERNEL_DISK_WRITE },
	{ "btrfs_sync_", KERNEL_DISK_WRITE },
	{ "btrfs_wait_", KERNEL_DISK_WRITE },
	{ "zil_commit", KERNEL_DISK_WRITE },
	{ "txg_wait_", KERNEL_DISK_WRITE },
	{ "folio_wait_writeback", KERNEL_DISK_WRITE },
	{ "wait_on_page_writeback", KERNEL_DISK_WRITE },
	{ "folio_wait_stable", KERNEL_DISK_WRITE },
	{ "__filemap_fdatawait_range", KERNEL_DISK_WRITE },
	{ "filemap_fdatawait_", KERNEL_DISK_WRITE },
	{ "file_write_and_wait_range", KERNEL_DISK_WRITE },
	{ "filemap_write_and_wait", KERNEL_DISK_WRITE },
	{ "blkdev_issue_flush", KERNEL_DISK_WRITE },
	{ "blkdev_issue_discard", KERNEL_DISK_WRITE },
	{ "*_file_write_iter", KERNEL_DISK_WRITE },
	{ "*_buffered_write_iter", KERNEL_DISK_WRITE },
	{ "generic_perform_write", KERNEL_DISK_WRITE },
	{ "writeback_", KERNEL_DISK_WRITE },
	{ "sync_inodes_sb", KERNEL_DISK_WRITE },
	{ "ksys_sync", KERNEL_DISK_WRITE },
	{ "read_events", KERNEL_DISK_READ }, /* Linux aio */
	{ "*_file_read_iter", KERNEL_DISK_READ },
	{ "=filemap_read", KERNEL_DISK_READ },
	{ "generic_file_read_iter", KERNEL_DISK_READ },
	{ "generic_file_buffered_read", KERNEL_DISK_READ },
	{ "filemap_splice_read", KERNEL_DISK_READ },
	{ "request_wait_answer", KERNEL_DISK_READ }, /* fuse */
	{ "nfs_wait_", KERNEL_DISK_READ },
	{ "rpc_wait_", KERNEL_DISK_READ },
	{ "p9_client_rpc", KERNEL_DISK_READ },
};

/* A block device is waited for; further out it shows whether to read, to write or for a fault. */
static const char *const disk[] = {
	"io_schedule", "folio_wait_bit", "__folio_lock", "folio_lock", "wait_on_page_bit",
	"__lock_page", "folio_put_wait_locked", "put_and_wait_on_page_locked", "wait_on_buffer",
	"__wait_on_buffer", "bit_wait_io", "submit_bio_wait", "bio_wait_", "bio_await", "blk_",
	"__blk_", "blkdev_", "rq_qos_wait", "wbt_wait", "__rq_qos_", "iomap_dio_", "__iomap_dio_",
	"dio_", "__blockdev_direct_IO", "dm_", "md_", "raid", "ext4_bread", "ext4_read_",
	"ext4_sb_bread", "xfs_buf_", "btrfs_", "read_cache_folio", "page_cache_ra_",
	"force_page_cache_ra", "mpage_read", "*_readahead", "nvme_",
};

/* System calls and paths that tell the direction where the above did not. */
static const struct rule outer[] = {
	{ "asm_exc_page_fault", KERNEL_FAULT },
	{ "exc_page_fault", KERNEL_FAULT },
	{ "do_user_addr_fault", KERNEL_FAULT },
	{ "do_page_fault", KERNEL_FAULT }, /* arm64 */
	{ "handle_mm_fault", KERNEL_FAULT },
	{ "vfs_write", KERNEL_DISK_WRITE },
	{ "do_iter_write", KERNEL_DISK_WRITE },
	{ "ksys_write", KERNEL_DISK_WRITE },
	{ "ksys_pwrite64", KERNEL_DISK_WRITE },
	{ "do_writev", KERNEL_DISK_WRITE },
	{ "do_pwritev", KERNEL_DISK_WRITE },
	{ "vfs_fallocate", KERNEL_DISK_WRITE },
	{ "vfs_truncate", KERNEL_DISK_WRITE },
	{ "do_truncate", KERNEL_DISK_WRITE },
	{ "do_unlinkat", KERNEL_DISK_WRITE },
	{ "vfs_unlink", KERNEL_DISK_WRITE },
	{ "vfs_rename", KERNEL_DISK_WRITE },
	{ "vfs_mkdir", KERNEL_DISK_WRITE },
	{ "do_fsync", KERNEL_DISK_WRITE },
	{ "__do_sys_msync", KERNEL_DISK_WRITE },
	{ "__x64_sys_msync", KERNEL_DISK_WRITE },
	{ "__x64_sys_fsync", KERNEL_DISK_WRITE },
	{ "__x64_sys_fdatasync", KERNEL_DISK_WRITE },
	{ "__arm64_sys_fsync", KERNEL_DISK_WRITE },
	{ "__arm64_sys_fdatasync", KERNEL_DISK_WRITE },
	{ "ksys_sync_file_range", KERNEL_DISK_WRITE },
};

static const char *const machinery[] = {
	"__traceiter_", "trace_", "__trace_", "perf_trace_", "bpf_", "__bpf_", "__schedule",
	"schedule", "preempt_schedule", "__cond_resched", "cond_resched", "do_sched_yield",
};

static const char *const waking[] = {
	"try_to_wake_up", "ttwu_", "wake_up", "__wake_up", "default_wake_function",
	"autoremove_wake_function", "woken_wake_function", "pollwake", "ep_poll_callback",
	"ep_autoremove_wake_function", "swake_up", "complete", "__complete", "hrtimer_wakeup",
	"process_timeout", "wake_bit_function", "wake_page_function", "do_futex", "__x64_sys_futex",
	"futex_wake", "do_syscall_64", "x64_sys_call", "entry_SYSCALL_64", "el0_", "el0t_",
	"invoke_syscall", "mark_wake_futex", "__futex_wake_mark",
};

/* Does a function's name match? Compilers' suffixes (".isra.0") are no part of it. */
static bool matches(const char *name, const char *text)
{
	size_t n, k;

	if (*text != '*' && *text != '=')
		return *name == *text && str_starts(name, text);
	n = strcspn(name, ".");
	k = strlen(text + 1);
	if (*text++ == '=')
		return n == k && !memcmp(name, text, k);
	return n >= k && !memcmp(name + n - k, text, k);
}

static bool in(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (matches(name, list[i]))
			return true;
	return false;
}

static enum kernel_wait find(const struct rule *rules, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (matches(name, rules[i].text))
			return rules[i].wait;
	return KERNEL_UNKNOWN;
}

bool kernel_is_machinery(const char *name)
{
	return in(machinery, ARRAY_LEN(machinery), name);
}

bool kernel_is_waking(const char *name)
{
	return in(waking, ARRAY_LEN(waking), name) || kernel_is_machinery(name);
}

void kernel_read(struct kernel_reader *r, const char *name)
{
	/* A write or a lock that reclaim waits for is a wait for reclaim. */
	if (r->decided && find(deciding, ARRAY_LEN(deciding), name) == KERNEL_RECLAIM)
		r->decided = KERNEL_RECLAIM;
	if (r->decided)
		return;
	r->decided = find(deciding, ARRAY_LEN(deciding), name);
	/* Preempted, or gave way, in the middle of something else. */
	if (!r->decided && (str_starts(name, "preempt_schedule") || str_starts(name, "__cond_resched") ||
			    str_starts(name, "do_sched_yield") || str_starts(name, "exit_to_user_mode_loop")))
		r->decided = KERNEL_QUEUE;
	if (r->decided)
		return;
	if (in(disk, ARRAY_LEN(disk), name))
		r->disk = true;
	else if (r->disk)
		r->decided = find(outer, ARRAY_LEN(outer), name);
}

enum kernel_wait kernel_wait_of(const struct kernel_reader *r)
{
	/* Opening, looking up or listing files, and all unknown functions, read. */
	return r->decided ? r->decided : r->disk ? KERNEL_DISK_READ : KERNEL_UNKNOWN;
}
