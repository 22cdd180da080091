/* What requests and programs may do, one function each: `limits NAME` runs one and exits with 0 when
 * the library takes it; else it names the line. */
#define _GNU_SOURCE
#include <errno.h>
#include <guasi.h>
#include <guasi_syscalls.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cases.h"

/* Touches so many bytes of its own stack. */
static guasi_param_t variables(void *priv, guasi_param_t const *params)
{
	volatile char *room = __builtin_alloca((size_t) params[0]);
	guasi_param_t i, sum = 0;

	(void) priv;
	for (i = params[0] - 1; i >= 0; i -= 1024) {
		room[i] = 1;
		sum += room[i];
	}
	return sum;
}

static void stack(void)
{
	guasi_t context = made(1, 1);
	guasi_param_t bytes = 7 << 20;
	guasi_req_t req = guasi_submit(context, NULL, NULL, 0, variables, NULL, 1, bytes);

	CHECK(end_of(context, req).result == bytes / 1024);
	guasi_free(context);
}

/* Named, so that the dynamic linker knows it. */
guasi_param_t endless(void *priv, guasi_param_t const *params);

static volatile int deeper = 1;

guasi_param_t endless(void *priv, guasi_param_t const *params)
{
	volatile char room[3000];

	memset((char *) room, 1, sizeof room);
	return deeper ? endless(priv, params) + room[17] : 0;
}

static void guard(void)
{
	struct rlimit none = {0, 0};
	guasi_t context = made(1, 1);
	guasi_req_t got;

	setrlimit(RLIMIT_CORE, &none);
	guasi_submit(context, NULL, NULL, 0, endless, NULL, 0);
	guasi_fetch(context, &got, 1, 1, 30000);
	CHECK(!"the stack has no end");
}

static int cleanups;

static void cleanup(void *priv, guasi_param_t const *params)
{
	(void) priv;
	(void) params;
	__atomic_fetch_add(&cleanups, 1, __ATOMIC_SEQ_CST);
}

static guasi_param_t leave(void *priv, guasi_param_t const *params)
{
	(void) params;
	pthread_exit(priv);
}

/* The only worker, and one of several; its requests end, and so do those behind them. */
static void leaving(void)
{
	int max, i;

	for (max = 1; max <= 4; max += 3) {
		guasi_t context = made(1, max);

		cleanups = 0;
		for (i = 0; i < 20; i++) {
			struct guasi_reqinfo info =
				end_of(context, guasi_submit(context, NULL, NULL, 0, leave, cleanup, 0));

			CHECK(info.status == GUASI_STATUS_COMPLETE);
			CHECK(info.result == -1 && info.error == ECANCELED);
			info = end_of(context,
				      guasi_submit(context, &max, NULL, 0, nothing, NULL, 0));
			CHECK(info.result == (guasi_param_t) &max);
		}
		CHECK(cleanups == 20);
		guasi_free(context);
	}
}

static void in_child(guasi_t context, guasi_req_t ended, guasi_req_t waits)
{
	struct guasi_reqinfo info;
	guasi_req_t got[4];
	guasi_t another;
	int i;

	errno = 0;
	CHECK(guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0) == NULL && errno == EPERM);
	CHECK(guasi__fsync(context, NULL, NULL, 0, 0) == NULL && errno == EPERM);
	CHECK(guasi_fetch(context, got, 1, 4, -1) == 1 && got[0] == ended);
	CHECK(guasi_req_info(ended, &info) == 0 && info.status == GUASI_STATUS_COMPLETE);
	CHECK(guasi_req_info(waits, &info) == 0);
	guasi_req_cancel(waits);
	guasi_req_free(ended);
	guasi_free(context);
	guasi_free(context);
	CHECK(errno == EINVAL);
	for (i = 0; i < 3; i++) {
		another = made(i, 2);
		CHECK(end_of(another, guasi__fsync(another, NULL, NULL, 0, -1)).error == EBADF);
		CHECK(end_of(another, guasi_submit(another, NULL, NULL, 0, nothing, NULL, 0)).result
		      == 0);
		guasi_free(another);
	}
}

static void child(void)
{
	guasi_t context = made(1, 4);
	guasi_req_t ended, waits;
	struct guasi_reqinfo info;
	int round, pipes[2];

	CHECK(pipe(pipes) == 0);
	for (round = 0; round < 20; round++) {
		int status;
		pid_t pid;
		char byte;

		waits = guasi__read(context, NULL, NULL, 0, pipes[0], &byte, 1);
		ended = guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0);
		do
			CHECK(guasi_req_info(ended, &info) == 0);
		while (info.status != GUASI_STATUS_COMPLETE);
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			alarm(60);
			in_child(context, ended, waits);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		/* Nothing has happened to the parent's. */
		CHECK(write(pipes[1], "x", 1) == 1);
		CHECK(end_of(context, ended).result == 0);
		CHECK(end_of(context, waits).result == 1 && byte == 'x');
	}
	guasi_free(context);
}

static void many(void)
{
	enum { COUNT = 300000, PRIORITIES = 5000 };
	guasi_t context = guasi_create(1, 1, PRIORITIES);
	static guasi_req_t got[COUNT + 1];
	guasi_req_t first;
	int i, pipes[2];
	char byte;

	CHECK(context != NULL);
	CHECK(guasi_create(1, 1, 0) == NULL && errno == EINVAL);
	CHECK(pipe(pipes) == 0);
	first = guasi__read(context, NULL, NULL, 0, pipes[0], &byte, 1);
	CHECK(first != NULL);
	for (i = 0; i < COUNT; i++) {
		int priority = i % 1000 == 0 ? PRIORITIES - 1 : 0;

		CHECK(guasi_submit(context, NULL, NULL, priority, nothing, NULL, 0) != NULL);
	}
	CHECK(write(pipes[1], "x", 1) == 1);
	CHECK(guasi_fetch(context, got, COUNT + 1, COUNT + 1, 120000) == COUNT + 1);
	for (i = 0; i <= COUNT; i++)
		guasi_req_free(got[i]);
	guasi_free(context);
}

/* Without address space a context is refused, and the program goes on. */
static void memory(void)
{
	struct rlimit limit;
	guasi_t context = made(1, 1);

	/* The worker is there. */
	CHECK(end_of(context, guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0)).result == 0);
	CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
	limit.rlim_cur = 64 << 20;
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	CHECK(guasi_create(1, 1, 1) == NULL && errno == ENOMEM);
	CHECK(end_of(context, guasi_submit(context, NULL, NULL, 0, nothing, NULL, 0)).result == 0);
	guasi_free(context);
}

int main(int argc, char **argv)
{
	static const struct test_case limits[] = {
		{"stack", stack}, {"guard", guard}, {"leaving", leaving},
		{"child", child}, {"many", many},   {"memory", memory},
	};

	return run_case(argc, argv, limits, sizeof limits / sizeof *limits);
}
