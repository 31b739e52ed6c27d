/*
 * sendwindow.c - `sendwindow URL CAPTURE [KEY=VALUE]...` sends a capture as one window to a sink, as an agent would, and says "sent" or what
 * sink_send() returned. Several captures are windows one after the other. The URL "-" prints the page of metrics instead.
 *
 * Keys: token, user, password, tenant, ca, region, keep_bytes, keep_s, timeout_ms of the sink; target, release, label, sequence of the window;
 * times: how often each one is sent; capture: one more.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/quality.h"
#include "analyze/select.h"
#include "analyze/wait/account.h"
#include "analyze/wait/cause.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "capture/capture.h"
#include "export/export.h"
#include "fleet/sink/metrics.h"
#include "fleet/sink/sink.h"
#include "profile/profile.h"

struct run {
	struct sink_options o;
	struct sink_window w;
	VEC(const char *) labels, captures;
	unsigned times;
	struct sink *sink;
	struct metrics *metrics;
};

static int send_window(struct run *run, struct err *err)
{
	int r = 0;

	metrics_add_window(run->metrics, &run->w);
	for (unsigned i = 0; i < run->times && run->sink; i++) {
		r = sink_send(run->sink, &run->w, err);
		if (r)
			printf("%s: %s\n", strerrorname_np(-r), err->text);
		else
			puts("sent");
		fflush(stdout);
	}
	return r;
}

static int send_capture(struct run *run, const char *path, struct err *err)
{
	struct patterns patterns;
	struct causes causes;
	struct select_options select = { .causes = &causes };
	struct selection selection;
	struct account account = { 0 };
	struct quality quality;
	struct profile *p;
	struct export_job job;
	struct stat st;
	int r = capture_read(path, &p, err);

	if (r)
		return r;
	patterns_init(&patterns);
	patterns_add_builtin(&patterns);
	causes_init(&causes, p, &patterns);
	r = select_event(p, NULL, &select.event, err);
	if (!r)
		r = selection_make(p, &select, &selection, err);
	if (r)
		return r;
	quality_measure(&quality, p, &selection);
	job = (struct export_job){ p, &selection, &quality };
	if (account_make(&account, p, &select, &causes))
		job.account = &account;
	run->w.job = &job;
	run->w.start_wall_ns = p->start_wall_ns;
	run->w.duration_ns = select_duration_ns(p);
	run->w.fd = open(path, O_RDONLY | O_CLOEXEC);
	run->w.bytes = fstat(run->w.fd, &st) ? 0 : st.st_size;
	r = send_window(run, err);
	close(run->w.fd);
	run->w.sequence++;
	account_done(&account);
	quality_done(&quality);
	selection_done(&selection);
	causes_done(&causes);
	patterns_done(&patterns);
	profile_free(p);
	return r;
}

static int take(struct run *run, const char *arg)
{
	const struct {
		const char *key, **text;
		uint64_t *number;
	} keys[] = {
		{ "token=", &run->o.token, NULL }, { "user=", &run->o.user, NULL }, { "password=", &run->o.password, NULL },
		{ "tenant=", &run->o.tenant, NULL }, { "ca=", &run->o.ca_file, NULL }, { "region=", &run->o.region, NULL },
		{ "keep_bytes=", NULL, &run->o.keep_bytes }, { "target=", &run->w.target, NULL }, { "release=", &run->w.release, NULL },
		{ "sequence=", NULL, &run->w.sequence },
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		size_t n = strlen(keys[i].key);

		if (strncmp(arg, keys[i].key, n))
			continue;
		if (keys[i].text)
			*keys[i].text = arg + n;
		else
			*keys[i].number = strtoull(arg + n, NULL, 10);
		return 0;
	}
	if (!strncmp(arg, "keep_s=", 7))
		run->o.keep_ns = strtoull(arg + 7, NULL, 10) * 1000000000;
	else if (!strncmp(arg, "timeout_ms=", 11))
		run->o.timeout_ms = strtoul(arg + 11, NULL, 10);
	else if (!strncmp(arg, "times=", 6))
		run->times = strtoul(arg + 6, NULL, 10);
	else if (!strncmp(arg, "label=", 6))
		vec_push(&run->labels, arg + 6);
	else if (!strncmp(arg, "capture=", 8))
		vec_push(&run->captures, arg + 8);
	else
		return -EINVAL;
	return 0;
}

int main(int argc, char **argv)
{
	struct run run = { .o = { .name = "test" }, .w = { .target = "made up" }, .times = 1 };
	struct buf page = { 0 };
	struct err err = { 0 };
	int r = argc < 3 ? -EINVAL : 0;

	if (!r)
		vec_push(&run.captures, argv[2]);
	for (int i = 3; i < argc && !r; i++)
		r = take(&run, argv[i]);
	if (r) {
		fputs("sendwindow URL CAPTURE [KEY=VALUE]...\n", stderr);
		return 2;
	}
	vec_push(&run.labels, NULL);
	run.w.labels = run.labels.v;
	run.metrics = metrics_new();
	metrics_set(run.metrics, "gasflame_agent_target_up", (const char *const[]){ "target=made up", NULL }, 1);
	run.o.metrics = run.metrics;
	run.o.url = argv[1];
	r = strcmp(argv[1], "-") ? sink_open(&run.o, &run.sink, &err) : 0;
	if (r)
		printf("open: %s: %s\n", strerrorname_np(-r), err.text);
	for (size_t i = 0; i < run.captures.n && (!r || run.sink); i++) {
		r = send_capture(&run, run.captures.v[i], &err);
		if (r && !run.sink)
			printf("%s\n", err.text);
	}
	if (!r && !run.sink) {
		metrics_put_text(run.metrics, &page);
		fwrite(page.data, 1, page.n, stdout);
	}
	buf_done(&page);
	sink_close(run.sink);
	metrics_free(run.metrics);
	vec_done(&run.labels);
	vec_done(&run.captures);
	return r != 0;
}
