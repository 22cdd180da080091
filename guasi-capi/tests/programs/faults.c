/* What the original library got wrong, one function each: `faults NAME` runs one and exits with 0
 * when this library does it right; else it names the line. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <guasi.h>
#include <guasi_syscalls.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

/* Allocations of the whole process: the library's come here as well. */
static int allocations;

extern void *__libc_malloc(size_t size);

void *malloc(size_t size)
{
	__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_malloc(size);
}

static guasi_param_t doze(void *priv, guasi_param_t const *params)
{
	struct timespec time = {0, 3000000};

	(void) priv;
	(void) params;
	return nanosleep(&time, NULL);
}

static guasi_param_t stack_bytes(void *priv, guasi_param_t const *params)
{
	pthread_attr_t attr;
	size_t size = 0;

	(void) priv;
	(void) params;
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return -1;
	pthread_attr_getstacksize(&attr, &size);
	pthread_attr_destroy(&attr);
	return (guasi_param_t) size;
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int count = 0;

	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count - 2; /* . and .. */
}

static void pause_ms(int ms)
{
	struct timespec time;

	time.tv_sec = 0;
	time.tv_nsec = ms * 1000000;
	nanosleep(&time, NULL);
}

/* Waits until there are so many threads, however long this machine takes. */
static void until_threads(int count)
{
	int tries;

	for (tries = 0; tries < 30000 && threads() != count; tries++)
		pause_ms(1);
	CHECK(threads() == count);
}

/* Waits until every other thread sleeps in the kernel: a worker does so only without work. */
static void until_asleep(void)
{
	int tries, awake = 1;

	for (tries = 0; tries < 30000 && awake > 0; tries++) {
		DIR *dir = opendir("/proc/self/task");
		struct dirent *entry;

		pause_ms(1);
		CHECK(dir != NULL);
		for (awake = 0; (entry = readdir(dir)) != NULL;) {
			char path[300], state = '?';
			FILE *stat;

			if (entry->d_name[0] == '.' || atoi(entry->d_name) == (int) getpid())
				continue;
			snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
			stat = fopen(path, "r");
			if (stat == NULL || fscanf(stat, "%*d %*s %c", &state) != 1 || state != 'S')
				awake++;
			if (stat != NULL)
				fclose(stat);
		}
		closedir(dir);
	}
	CHECK(awake == 0);
}

static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int c, lines = 0;

	CHECK(maps != NULL);
	while ((c = getc(maps)) != EOF)
		lines += c == '\n';
	fclose(maps);
	return lines;
}

static guasi_param_t result_of(guasi_t context, guasi_req_t req)
{
	struct guasi_reqinfo info = end_of(context, req);

	errno = (int) info.error;
	return info.result;
}

/* The sum of now and the time passes a second at every possible now. */
static void timeout(void)
{
	guasi_t context = made(0, 1);
	guasi_req_t got;
	int i;

	for (i = 0; i < 8; i++)
		CHECK(guasi_fetch(context, &got, 1, 1, 130) == 0);
	CHECK(result_of(context, guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0)) == 0);
	guasi_free(context);
}

static void idle(void)
{
	guasi_t context = made(1, 8);
	int i;

	until_threads(2);
	for (i = 0; i < 50; i++) {
		until_asleep();
		result_of(context, guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0));
	}
	CHECK(threads() == 2);
	guasi_free(context);
}

static guasi_t shared;

static void *submitter(void *base)
{
	guasi_param_t i;

	for (i = 0; i < 2000; i++) {
		struct guasi_reqinfo info;
		void *mine = (char *) base + i;
		guasi_req_t req = guasi_submit(shared, mine, mine, 0, nothing, NULL, 0);

		CHECK(req != NULL && guasi_req_info(req, &info) == 0);
		CHECK(info.priv == mine && info.asid == mine);
	}
	return NULL;
}

static void submitters(void)
{
	static char bases[3][2000], seen[3 * 2000];
	pthread_t thread[3];
	guasi_req_t got[64];
	int i, count, left = 3 * 2000;

	shared = made(2, 2);
	for (i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, submitter, bases[i]) == 0);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (; left > 0; left -= count) {
		count = guasi_fetch(shared, got, 1, 64, 30000);
		CHECK(count > 0);
		for (i = 0; i < count; i++) {
			struct guasi_reqinfo info;
			long at;

			CHECK(guasi_req_info(got[i], &info) == 0);
			at = (char *) info.asid - &bases[0][0];
			CHECK(at >= 0 && at < 3 * 2000 && !seen[at]);
			CHECK(info.result == (guasi_param_t) info.asid);
			seen[at] = 1;
			guasi_req_free(got[i]);
		}
	}
	guasi_free(shared);
}

/* As nobody, since root has no limit. */
static void no_thread(void)
{
	struct rlimit limit, none;
	guasi_req_t got;
	guasi_t context;

	if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
		puts("cannot become nobody");
		exit(77);
	}
	CHECK(getrlimit(RLIMIT_NPROC, &limit) == 0);
	none = limit;
	none.rlim_cur = 0;
	context = made(0, 4);
	CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
	CHECK(guasi_create(1, 4, 1) == NULL && errno == EAGAIN);
	errno = 0;
	CHECK(guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0) == NULL && errno == EAGAIN);
	CHECK(guasi_fetch(context, &got, 0, 1, 0) == 0);
	CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
	CHECK(result_of(context, guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0)) == 0);
	CHECK(guasi_fetch(context, &got, 0, 1, 0) == 0);
	guasi_free(context);
}

static void least(void)
{
	guasi_t context = made(5, 9);

	until_threads(6);
	guasi_free(context);
}

/* A thread that nobody joins keeps its stack: at least a mapping each. */
static void joined(void)
{
	int i, before = 0;

	for (i = 0; i < 50; i++) {
		guasi_t context = made(4, 4);

		result_of(context, guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0));
		guasi_free(context);
		until_threads(1);
		if (i == 9)
			before = mappings();
	}
	CHECK(mappings() < before + 40);
}

static void unlimited(void)
{
	guasi_t context = made(0, 0);
	guasi_req_t got[40];
	char bytes[40];
	int i, pipes[2];

	CHECK(pipe(pipes) == 0);
	for (i = 0; i < 40; i++)
		CHECK(guasi__read(context, NULL, NULL, 0, pipes[0], &bytes[i], 1) != NULL);
	until_threads(41);
	CHECK(write(pipes[1], bytes, 40) == 40);
	CHECK(guasi_fetch(context, got, 40, 40, 30000) == 40);
	guasi_free(context);
}

static void stacks(void)
{
	guasi_t context = made(1, 1);
	guasi_param_t bytes;

	bytes = result_of(context, guasi_submit(context, NULL, NULL, 0, stack_bytes, NULL, 0));
	CHECK(bytes >= 8 << 20 && bytes <= 9 << 20);
	guasi_free(context);
	CHECK(setenv("GUASI_STACK", "128k", 1) == 0);
	context = made(1, 1);
	bytes = result_of(context, guasi_submit(context, NULL, NULL, 0, stack_bytes, NULL, 0));
	CHECK(bytes > 0 && bytes <= 256 << 10);
	guasi_free(context);
	CHECK(setenv("GUASI_STACK", "much", 1) == 0);
	CHECK(guasi_create(1, 1, 1) == NULL && errno == EINVAL);
}

static void memory(void)
{
	guasi_t context = made(1, 1);
	guasi_req_t got[100];
	int round, i, before = 0;

	for (round = 0; round < 20; round++) {
		if (round == 10)
			before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
		for (i = 0; i < 100; i++)
			CHECK(guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0) != NULL);
		CHECK(guasi_fetch(context, got, 100, 100, 30000) == 100);
		for (i = 0; i < 100; i++)
			guasi_req_free(got[i]);
	}
	CHECK(__atomic_load_n(&allocations, __ATOMIC_RELAXED) == before);
	guasi_free(context);
}

static void next(void)
{
	guasi_t context = made(1, 1);
	struct guasi_reqinfo info;
	guasi_req_t got[2], waits, sleeps;
	int i, pipes[2];
	char byte;

	CHECK(pipe(pipes) == 0);
	for (i = 0; i < 100; i++) {
		waits = guasi__read(context, NULL, NULL, 0, pipes[0], &byte, 1);
		sleeps = guasi_submit(context, NULL, NULL, 0, doze, NULL, 0);
		do
			CHECK(guasi_req_info(waits, &info) == 0);
		while (i % 2 == 0 && info.status == GUASI_STATUS_PENDING);
		guasi_req_cancel(waits);
		CHECK(guasi_fetch(context, got, 2, 2, 30000) == 2);
		CHECK(guasi_req_info(sleeps, &info) == 0 && info.result == 0);
		guasi_req_free(got[0]);
		guasi_req_free(got[1]);
	}
	guasi_free(context);
}

int main(int argc, char **argv)
{
	static const struct test_case faults[] = {
		{"timeout", timeout}, {"idle", idle},           {"submitters", submitters},
		{"no_thread", no_thread}, {"least", least},     {"joined", joined},
		{"unlimited", unlimited}, {"stacks", stacks},   {"memory", memory},
		{"next", next},
	};

	return run_case(argc, argv, faults, sizeof faults / sizeof *faults);
}
