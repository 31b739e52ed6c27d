#include "profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"

static bool beside(const char *path, const char *suffix)
{
	_cleanup_free_ char *name = mem_printf("%s%s", path, suffix);

	return access(name, F_OK) == 0;
}

static void assert_one_file(const char *path)
{
	assert_true(beside(path, ""));
	assert_false(beside(path, "-wal"));
	assert_false(beside(path, "-shm"));
	assert_false(beside(path, "-journal"));
}

/* Runs SQL on a closed capture, as somebody who means no good could. */
static void tamper(const char *path, const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, "pragma synchronous = off", NULL, NULL, NULL);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static void write_file(const char *path, const void *data, size_t n)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, n), 0);
}

/* Every id points at something, whatever was lost. */
static void assert_sound(const struct profile *p)
{
	for (size_t i = 0; i < p->threads.n; i++)
		assert_true(p->threads.v[i].process < p->processes.n);
	for (size_t i = 0; i < p->frames.n; i++) {
		const struct profile_frame *f = &p->frames.v[i];

		assert_true(f->module == PROFILE_NONE || f->module < p->modules.n);
		assert_true((size_t)f->first_line + f->line_count <= p->lines.n);
	}
	for (size_t i = 0; i < p->lines.n; i++)
		assert_true(p->lines.v[i].function < p->functions.n);
	for (size_t i = 1; i < p->stacks.n; i++)
		assert_true(p->stacks.v[i].parent < i && p->stacks.v[i].frame < p->frames.n);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		assert_true(s->event < p->events.n && s->thread < p->threads.n && s->stack < p->stacks.n);
	}
}

/* --- writing and reading --- */

static void what_is_written_is_read(void **state)
{
	_cleanup_free_ char *path = in_folder("round");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;

	save(p, path);
	assert_one_file(path);
	q = load(path);
	assert_same(p, q);
	assert_int_equal(profile_counter(q, "capture.dropped"), 0);
	/* Interning goes on where it stopped. */
	assert_int_equal(profile_truncation_frame(q, "no table"), profile_truncation_frame(p, "no table"));
	assert_int_equal(profile_frame(q, 0, FRAME_USER, p->frames.v[1].address),
			 profile_frame(p, 0, FRAME_USER, p->frames.v[1].address));
}

static void names_of_any_bytes_survive(void **state)
{
	_cleanup_free_ char *path = in_folder("odd ?#%41 'name");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;

	p->target = profile_string(p, "\xff\xfe\x01'\";drop table sample;--\n");
	p->threads.v[0].name = profile_string(p, "\xc3(\xa0\xa1");
	p->modules.v[0].path = profile_string(p, "/tmp/\xe2\x28\xa1 (deleted)");
	p->frames.v[3].address = UINT64_MAX;
	save(p, path);
	q = load(path);
	assert_same(p, q);
}

/* As a recorder does it: something new every second, some of it changed, symbols at the end. */
static void many_flushes_are_one_recording(void **state)
{
	_cleanup_free_ char *path = in_folder("flushes");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL, *live = NULL;
	size_t samples = p->samples.n, stacks = p->stacks.n, lines = p->lines.n;
	struct profile_frame last = p->frames.v[p->frames.n - 1];
	struct capture *c;
	struct stat before, after;
	_cleanup_free_ char *wal = mem_printf("%s-wal", path);

	p->finished = false;
	p->lines.n = last.first_line;
	p->frames.v[p->frames.n - 1].line_count = 0;
	assert_int_equal(capture_create(path, &c, NULL), 0);
	for (size_t i = 1; i <= 10; i++) {
		p->samples.n = samples * i / 10;
		p->stacks.n = stacks;
		p->duration_ns = i * 1000000000;
		p->threads.v[1].cpu_ns += 10;
		p->processes.v[0].end_ns = i;
		profile_count(p, "ticks", 1);
		assert_int_equal(capture_flush(c, p, NULL), 0);
	}
	/* Nothing new: not a byte. */
	assert_int_equal(stat(wal, &before), 0);
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(stat(wal, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	/* A file that is still being written can be read. */
	live = load(path);
	assert_same_samples(p, live);
	assert_false(live->finished);
	p->lines.n = lines;
	p->frames.v[p->frames.n - 1] = last;
	p->finished = true;
	p->threads.v[2].name = profile_string(p, "renamed");
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(capture_close(c, NULL), 0);
	assert_one_file(path);
	q = load(path);
	assert_same(p, q);
}

static void samples_on_disk_can_be_dropped(void **state)
{
	_cleanup_free_ char *path = in_folder("dropped");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *whole = profile_new(), *q = NULL;
	struct capture *c;

	assert_int_equal(profile_merge(whole, p, NULL), 0);
	assert_int_equal(capture_create(path, &c, NULL), 0);
	p->samples.n = 100;
	assert_int_equal(capture_flush(c, p, NULL), 0);
	/* Two more that are not on disk yet must stay. */
	vec_push(&p->samples, whole->samples.v[100]);
	vec_push(&p->samples, whole->samples.v[101]);
	capture_drop_samples(c, p);
	assert_int_equal(p->samples.n, 2);
	assert_int_equal(p->samples.v[0].time_ns, whole->samples.v[100].time_ns);
	for (size_t i = 102; i < whole->samples.n; i++)
		vec_push(&p->samples, whole->samples.v[i]);
	assert_int_equal(capture_flush(c, p, NULL), 0);
	capture_drop_samples(c, p);
	assert_int_equal(p->samples.n, 0);
	assert_int_equal(capture_close(c, NULL), 0);
	q = load(path);
	assert_same_samples(whole, q);
}

/* Written in 60 flushes, since that is how pages fill up. */
static void sixty_seconds_take_64_bytes_a_sample(void **state)
{
	_cleanup_free_ char *path = in_folder("large");
	_cleanup_(profile_freep) struct profile *p = make_profile(&large), *q = NULL;
	size_t samples = p->samples.n, stacks = p->stacks.n;
	uint64_t start = clock_mono_ns(), written;
	struct capture *c;
	struct stat st;

	assert_int_equal(capture_create(path, &c, NULL), 0);
	for (size_t i = 1; i <= 60; i++) {
		p->samples.n = samples * i / 60;
		p->stacks.n = stacks * i / 60;
		p->duration_ns = i * 1000000000;
		assert_int_equal(capture_flush(c, p, NULL), 0);
	}
	assert_int_equal(capture_close(c, NULL), 0);
	written = clock_mono_ns();
	assert_int_equal(stat(path, &st), 0);
	q = load(path);
	print_message("%zu samples, %zu stack nodes, %zu frames, %zu lines, %zu functions: %.1f bytes a sample, "
		      "written in %.2f s, read in %.2f s\n", p->samples.n, p->stacks.n, p->frames.n, p->lines.n,
		      p->functions.n, (double)st.st_size / p->samples.n, (written - start) / 1e9,
		      (clock_mono_ns() - written) / 1e9);
	assert_same(p, q);
	assert_true(st.st_size <= 64 * (off_t)p->samples.n);
}

static void symbols_can_be_saved_later(void **state)
{
	_cleanup_free_ char *path = in_folder("symbols");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL, *other = make_profile(&small);
	struct profile_line line = { .line = 7 };
	struct capture *c;
	struct err err;

	save(p, path);
	line.function = add_function(p, 99999, 0);
	for (size_t i = 0; i < p->frames.n; i++)
		if (!p->frames.v[i].line_count)
			profile_set_lines(p, i, &line, 1);
	assert_int_equal(capture_save_symbols(path, p, &err), 0);
	assert_one_file(path);
	q = load(path);
	assert_same(p, q);
	/* Not the profile of this file. */
	other->frames.v[5].address++;
	assert_int_equal(capture_save_symbols(path, other, &err), -EINVAL);
	/* Not while another process records into it; this one's locks would not count. */
	assert_int_equal(capture_create(path, &c, NULL), 0);
	if (fork() == 0)
		_exit(capture_save_symbols(path, p, &err) == -EBUSY &&
		      capture_create(path, &(struct capture *){ NULL }, &err) == -EBUSY ? 0 : 1);
	int status = -1;
	wait(&status);
	assert_int_equal(status, 0);
	assert_int_equal(capture_close(c, NULL), 0);
}

/* --- what is already there --- */

static void only_captures_are_written_over(void **state)
{
	_cleanup_free_ char *path = in_folder("precious"), *data = NULL;
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	struct capture *c = NULL;
	struct err err;
	size_t n;

	write_file(path, "my thesis", 9);
	assert_int_equal(capture_create(path, &c, &err), -EEXIST);
	assert_non_null(strstr(err.text, "not a gasflame capture"));
	assert_int_equal(fd_read_path(path, 100, &data, &n), 0);
	assert_string_equal(data, "my thesis");
	unlink(path);
	tamper(path, "create table x(y); insert into x values (1)");
	assert_int_equal(capture_create(path, &c, &err), -EEXIST);
	unlink(path);
	mkfifo(path, 0600);
	assert_int_equal(capture_create(path, &c, &err), -EEXIST);
	assert_int_equal(capture_read(path, &q, &err), -EBADMSG);
	unlink(path);
	assert_int_equal(capture_create(folder, &c, &err), -EISDIR);
	/* An empty file holds nothing to lose. */
	write_file(path, "", 0);
	save(p, path);
	save(p, path);
	q = load(path);
	assert_same(p, q);
	_cleanup_free_ char *nowhere = in_folder("no/such/folder");
	assert_int_equal(capture_create(nowhere, &c, &err), -ENOENT);
}

static void what_is_no_capture_says_so(void **state)
{
	_cleanup_free_ char *path = in_folder("strange");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	struct profile *q = NULL;
	struct err err;

	assert_int_equal(capture_read(path, &q, &err), -ENOENT);
	write_file(path, "", 0);
	assert_int_equal(capture_read(path, &q, &err), -ENODATA);
	assert_non_null(strstr(err.text, "empty"));
	write_file(path, "\177ELF", 4);
	assert_int_equal(capture_read(path, &q, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "not a gasflame capture"));
	assert_int_equal(capture_read(folder, &q, &err), -EISDIR);
	unlink(path);
	save(p, path);
	tamper(path, "pragma user_version = 77");
	assert_int_equal(capture_read(path, &q, &err), -EPROTO);
	assert_non_null(strstr(err.text, "newer gasflame (schema 77"));
	assert_null(q);
}

/* --- death and full disks --- */

/* Records until it is killed: every flush adds samples of new stacks, new frames and a new name. */
static void record_for_ever(const char *path)
{
	struct profile *p = make_profile(&small);
	struct capture *c;

	p->finished = false;
	if (capture_create(path, &c, NULL) < 0)
		_exit(1);
	for (uint32_t i = 0;; i++) {
		uint32_t frame = profile_frame(p, 0, FRAME_USER, 0x900000 + i), stack;
		struct profile_line line = { .function = add_function(p, 1000 + i, 0) };

		profile_set_lines(p, frame, &line, 1);
		stack = profile_stack(p, p->samples.n ? p->samples.v[0].stack : 0, frame);
		for (int k = 0; k < 100; k++)
			profile_add_sample(p, &(struct profile_sample){ .time_ns = i, .stack = stack, .value = 1 });
		profile_count_set(p, "flushes", i + 1);
		if (capture_flush(c, p, NULL) < 0)
			_exit(1);
		if (i % 3 == 2)
			capture_drop_samples(c, p);
	}
}

/* Kills it so long after its log has so many bytes. */
static void kill_recorder(const char *path, off_t bytes, unsigned after_us)
{
	_cleanup_free_ char *wal = mem_printf("%s-wal", path);
	struct stat st = { 0 };
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		record_for_ever(path);
	for (int i = 0; i < 10000 && (stat(wal, &st) < 0 || st.st_size < bytes); i++)
		usleep(1000);
	usleep(after_us);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_killed_recorder_leaves_a_capture(void **state)
{
	for (unsigned i = 0; i < 10; i++) {
		_cleanup_free_ char *path = in_folder("killed");
		_cleanup_(profile_freep) struct profile *p = NULL;
		uint64_t flushes;

		kill_recorder(path, 0, i * 7000 + random_below(5000));
		p = load(path);
		assert_sound(p);
		assert_false(p->finished);
		assert_int_equal(profile_counter(p, "capture.dropped"), 0);
		/* Flushes are whole: as many samples as the counter of the same transaction says. */
		flushes = profile_counter(p, "flushes");
		assert_int_equal(p->samples.n, flushes ? small.samples + 100 * flushes : 0);
	}
}

/* An ordinary user, a folder that cannot be written, and files that must stay as they are. */
static void a_read_only_folder_is_enough(void **state)
{
	_cleanup_free_ char *inner = in_folder("readonly"), *path = in_folder("readonly/x");
	_cleanup_free_ char *wal = mem_printf("%s-wal", path), *tmp = in_folder("tmp");
	struct stat before[2], after[2];
	int status = -1;

	assert_int_equal(mkdir(inner, 0755), 0);
	kill_recorder(path, 300000, 0);
	assert_true(stat(path, &before[0]) == 0 && stat(wal, &before[1]) == 0);
	assert_true(chmod(inner, 0555) == 0 && chmod(folder, 0755) == 0);
	assert_true(mkdir(tmp, 0700) == 0 && chmod(tmp, 01777) == 0);
	if (fork() == 0) {
		struct profile *p = NULL;

		setenv("TMPDIR", tmp, 1);
		if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		if (capture_read(path, &p, NULL) < 0)
			_exit(3);
		_exit(!p->samples.n);
	}
	wait(&status);
	assert_int_equal(status, 0);
	assert_true(stat(path, &after[0]) == 0 && stat(wal, &after[1]) == 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(before[i].st_size, after[i].st_size);
		assert_int_equal(before[i].st_mtim.tv_sec, after[i].st_mtim.tv_sec);
		assert_int_equal(before[i].st_mtim.tv_nsec, after[i].st_mtim.tv_nsec);
	}
	assert_false(beside(path, "-shm"));
	assert_int_equal(rmdir(tmp), 0); /* the private copy is gone */
	chmod(inner, 0755);
}

/* While one process writes and moves its log into the file, another reads again and again. */
static void a_live_recording_can_be_read(void **state)
{
	_cleanup_free_ char *path = in_folder("live");
	uint64_t seen = 0, until;
	int reads = 0;
	pid_t child = fork();

	if (!child)
		record_for_ever(path);
	while (!beside(path, "-wal"))
		usleep(1000);
	until = clock_mono_ns() + 1000000000;
	while (clock_mono_ns() < until) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct err err = { 0 };
		int r = capture_read(path, &p, &err);

		if (r < 0)
			fail_msg("%s", err.text);
		assert_sound(p);
		assert_int_equal(profile_counter(p, "capture.dropped"), 0);
		assert_true(profile_counter(p, "flushes") >= seen);
		seen = profile_counter(p, "flushes");
		reads++;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(reads > 1 && seen > 1);
}

static void a_full_disk_keeps_what_was_written(void **state)
{
	_cleanup_free_ char *inner = in_folder("tiny"), *path = in_folder("tiny/x");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	size_t kept = p->samples.n;
	struct capture *c;
	struct err err = { 0 };
	int r = 0;

	assert_int_equal(mkdir(inner, 0755), 0);
	if (mount("none", inner, "tmpfs", 0, "size=1m") < 0) {
		print_message("skipped: cannot mount a tmpfs (needs root): %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(capture_create(path, &c, &err), 0);
	assert_int_equal(capture_flush(c, p, &err), 0);
	for (int i = 0; i < 100 && !r; i++) {
		kept = p->samples.n;
		for (int k = 0; k < 5000; k++)
			profile_add_sample(p, &(struct profile_sample){ .time_ns = k, .value = 5 });
		r = capture_flush(c, p, &err);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(capture_flush(c, p, &err), -ENOSPC);
	q = load(path);
	assert_int_equal(q->samples.n, kept);
	r = capture_close(c, &err);
	assert_true(r == 0 || r == -ENOSPC);
	profile_free(q);
	q = load(path);
	assert_int_equal(q->samples.n, kept);
	assert_int_equal(umount(inner), 0);
}

/* More room, and the same flush succeeds. */
static void a_disk_that_has_room_again_goes_on(void **state)
{
	_cleanup_free_ char *inner = in_folder("grow"), *path = in_folder("grow/x");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL;
	struct capture *c;
	int r = 0;

	assert_int_equal(mkdir(inner, 0755), 0);
	if (mount("none", inner, "tmpfs", 0, "size=1m") < 0) {
		print_message("skipped: cannot mount a tmpfs (needs root): %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(capture_create(path, &c, NULL), 0);
	while (!r) {
		for (int k = 0; k < 5000; k++)
			profile_add_sample(p, &(struct profile_sample){ .time_ns = k, .value = 5 });
		r = capture_flush(c, p, NULL);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(mount("none", inner, "tmpfs", MS_REMOUNT, "size=16m"), 0);
	assert_int_equal(capture_flush(c, p, NULL), 0);
	assert_int_equal(capture_close(c, NULL), 0);
	assert_one_file(path);
	q = load(path);
	assert_same(p, q);
	assert_int_equal(umount(inner), 0);
}

/* A limit on the size of files is as good as a full disk, and says what it is. */
static void a_size_limit_keeps_what_was_written(void **state)
{
	_cleanup_free_ char *path = in_folder("limit");
	_cleanup_(profile_freep) struct profile *q = NULL;
	int status = -1;

	if (fork() == 0) {
		struct profile *p = make_profile(&small);
		struct rlimit limit = { 400000, 400000 };
		struct capture *c;
		int r;

		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) < 0 || capture_create(path, &c, NULL) < 0 ||
		    capture_flush(c, p, NULL) < 0)
			_exit(2);
		for (int k = 0; k < 50000; k++)
			profile_add_sample(p, &(struct profile_sample){ .time_ns = k, .value = 5 });
		r = capture_flush(c, p, NULL);
		capture_close(c, NULL);
		_exit(r == -EFBIG ? 0 : -r);
	}
	wait(&status);
	assert_int_equal(status, 0);
	q = load(path);
	assert_int_equal(q->samples.n, small.samples);
	assert_sound(q);
}

/* --- damage --- */

/* Whatever comes out is an error with a sentence, or a sound profile. */
static bool read_damaged(const char *path)
{
	struct profile *p = NULL;
	struct err err = { 0 };
	int r = capture_read(path, &p, &err);

	if (r < 0) {
		assert_null(p);
		assert_true(err.text[0]);
		return false;
	}
	assert_sound(p);
	profile_free(p);
	return true;
}

static void damaged_files_do_no_harm(void **state)
{
	_cleanup_free_ char *path = in_folder("damaged"), *data = NULL;
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	unsigned errors = 0, tries = 0;
	size_t n;

	save(p, path);
	assert_int_equal(fd_read_path(path, 1 << 20, &data, &n), 0);
	for (size_t length = n - 1; length > 0; length = length > 700 ? length - 613 : length / 2, tries++) {
		write_file(path, data, length);
		errors += !read_damaged(path);
	}
	assert_true(errors > tries / 2);
	for (int i = 0; i < 500; i++) {
		size_t at = i < 200 ? random_below(200) : random_below(n);
		char old = data[at];

		data[at] ^= 1 << random_below(8);
		if (i % 3 == 0)
			data[at] = 0xff;
		write_file(path, data, n);
		read_damaged(path);
		data[at] = old;
	}
	/* The journal of a recorder that died. */
	free(data);
	kill_recorder(path, 300000, 0);
	_cleanup_free_ char *wal = mem_printf("%s-wal", path);
	assert_int_equal(fd_read_path(wal, 64 << 20, &data, &n), 0);
	n = MIN(n, (size_t)1 << 19);
	for (int i = 0; i < 60; i++) {
		size_t at = random_below(n), length = i % 2 ? n : random_below(n);

		data[at] ^= 0x55;
		write_file(wal, data, length);
		read_damaged(path);
		data[at] ^= 0x55;
	}
	unlink(wal);
}

static void rows_that_make_no_sense_are_dropped(void **state)
{
	static const struct {
		const char *sql;
		unsigned dropped;
	} cases[] = {
		{ "update stack set parent = 50 where id = 49", 1 },
		{ "update stack set parent = 49 where id = 49", 1 },
		{ "update stack set parent = -1 where id = 49", 1 },
		{ "update stack set frame = 4000000000 where id = 49", 1 },
		{ "delete from stack where id = 49", 1 },
		{ "update sample set stack = 999999 where rowid = 5", 1 },
		{ "update sample set thread = -4 where rowid = 5", 1 },
		{ "update sample set time_ns = -4 where rowid = 5", 1 },
		{ "update sample set value = 'much' where rowid = 5", 1 },
		{ "update sample set value = -9223372036854775808 where rowid = 5", 1 },
		{ "update sample set event = null where rowid = 5", 1 },
		{ "update frame set kind = 17 where id = 3", 1 },
		{ "update frame set module = 12345678901234 where id = 3", 1 },
		{ "update frame set id = 9000000000000000000 where id = 119", 1 },
		{ "update frame_line set function = -1 where frame = 1", 1 },
		{ "update function set name = x'00ff' where id = 1", 1 },
		{ "update thread set process = 8 where id = 2", 1 },
		{ "update module set build_id = 'xyz' where id = 1", 1 },
		{ "update module set build_id = '" "00112233445566778899001122334455667788990011" "' where id = 1", 1 },
		{ "update mapping set start = 9, \"end\" = 8 where rowid = 1", 1 },
		{ "update meta set value = 'soon' where key = 'duration_ns'", 1 },
		{ "update counter set value = -1", 1 },
	};
	_cleanup_free_ char *path = in_folder("hostile"), *data = NULL;
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	size_t n;

	save(p, path);
	assert_int_equal(fd_read_path(path, 1 << 20, &data, &n), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_(profile_freep) struct profile *q = NULL;

		write_file(path, data, n);
		tamper(path, cases[i].sql);
		q = load(path);
		assert_sound(q);
		if (profile_counter(q, "capture.dropped") < cases[i].dropped)
			fail_msg("nothing was dropped after %s", cases[i].sql);
	}
}

/* A view in place of a table could compute for ever; a missing one is an error, too. */
static void tables_must_be_tables(void **state)
{
	_cleanup_free_ char *path = in_folder("bomb");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small);
	struct err err = { 0 };

	save(p, path);
	tamper(path, "drop table counter; create view counter as with recursive n(name, value) as "
		     "(select 'x', 1 union all select name, value + 1 from n) select * from n");
	assert_false(read_damaged(path));
	tamper(path, "drop view counter");
	assert_false(read_damaged(path));
	assert_true(capture_read(path, &(struct profile *){ NULL }, &err) < 0);
	assert_non_null(strstr(err.text, "no such table"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(names_of_any_bytes_survive),
		cmocka_unit_test(many_flushes_are_one_recording),
		cmocka_unit_test(samples_on_disk_can_be_dropped),
		cmocka_unit_test(sixty_seconds_take_64_bytes_a_sample),
		cmocka_unit_test(symbols_can_be_saved_later),
		cmocka_unit_test(only_captures_are_written_over),
		cmocka_unit_test(what_is_no_capture_says_so),
		cmocka_unit_test(a_killed_recorder_leaves_a_capture),
		cmocka_unit_test(a_read_only_folder_is_enough),
		cmocka_unit_test(a_live_recording_can_be_read),
		cmocka_unit_test(a_full_disk_keeps_what_was_written),
		cmocka_unit_test(a_disk_that_has_room_again_goes_on),
		cmocka_unit_test(a_size_limit_keeps_what_was_written),
		cmocka_unit_test(damaged_files_do_no_harm),
		cmocka_unit_test(rows_that_make_no_sense_are_dropped),
		cmocka_unit_test(tables_must_be_tables),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
