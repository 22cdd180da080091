/*
 * Reads and writes blocks of a file in the way of fio's engines guasi and libaio: one request is
 * submitted at a time; when DEPTH are in flight, one completion is fetched.
 *
 * engine FILE DEPTH REQUESTS ROUNDS CALLS ENGINE...
 *   CALLS is any of d (O_DIRECT), w (every other request is a write); - is neither
 *   ENGINE is libaio, sync, or what GUASI_BACKEND can be
 *
 * A round is REQUESTS requests by each engine in turn. Prints for each engine and round the name,
 * ns and ns of CPU time of the process per request, and the requests that did not transfer their
 * block.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <guasi.h>
#include <guasi_syscalls.h>

#include "check.h"

#define BLOCK 4096

static struct request {
	struct iocb iocb;
	char *memory;
	struct request *next_free;
} *requests, *free_requests;

static int file, depth, writes;
static long long blocks;
static guasi_t context;
static aio_context_t kernel;
static long long failures;

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* xorshift64: the same blocks for each engine and round. */
static long long next_block(unsigned long long *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (long long)(*seed % (unsigned long long)blocks) * BLOCK;
}

static void ended(struct request *request, long result)
{
	failures += result != BLOCK;
	request->next_free = free_requests;
	free_requests = request;
}

static void submit(struct request *request, int write, long long offset)
{
	struct iocb *iocb = &request->iocb;

	if (context) {
		guasi_req_t submitted;

		if (write)
			submitted = guasi__pwrite(context, NULL, request, 0, file, request->memory,
			                          BLOCK, offset);
		else
			submitted = guasi__pread(context, NULL, request, 0, file, request->memory,
			                         BLOCK, offset);
		CHECK(submitted);
		return;
	}
	if (!kernel) {
		if (write)
			ended(request, pwrite(file, request->memory, BLOCK, offset));
		else
			ended(request, pread(file, request->memory, BLOCK, offset));
		return;
	}
	memset(iocb, 0, sizeof(*iocb));
	iocb->aio_data = (unsigned long)request;
	iocb->aio_lio_opcode = write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
	iocb->aio_fildes = file;
	iocb->aio_buf = (unsigned long)request->memory;
	iocb->aio_nbytes = BLOCK;
	iocb->aio_offset = offset;
	CHECK(syscall(SYS_io_submit, kernel, 1, &iocb) == 1);
}

static void fetch(void)
{
	if (context) {
		guasi_req_t fetched;
		struct guasi_reqinfo info;

		CHECK(guasi_fetch(context, &fetched, 1, 1, -1) == 1);
		CHECK(guasi_req_info(fetched, &info) == 0);
		CHECK(info.status == GUASI_STATUS_COMPLETE);
		guasi_req_free(fetched);
		ended(info.asid, info.result);
	} else if (kernel) {
		struct io_event event;

		long got;

		do
			got = syscall(SYS_io_getevents, kernel, 1, 1, &event, NULL);
		while (got == -1 && errno == EINTR);
		CHECK(got == 1);
		ended((struct request *)(unsigned long)event.data, event.res);
	}
}

static void run(long long count)
{
	unsigned long long seed = 88172645463325252ull;
	long long done, in_flight = 0;
	int is_sync = !context && !kernel;

	for (done = 0; done < count; done++) {
		struct request *request = free_requests;

		free_requests = request->next_free;
		submit(request, writes && done % 2, next_block(&seed));
		in_flight += !is_sync;
		if (in_flight == depth) {
			fetch();
			in_flight--;
		}
	}
	while (in_flight-- > 0)
		fetch();
}

static void measure(const char *engine, long long count)
{
	double start, cpu;

	if (!strcmp(engine, "libaio")) {
		CHECK(syscall(SYS_io_setup, depth, &kernel) == 0);
	} else if (strcmp(engine, "sync")) {
		setenv("GUASI_BACKEND", engine, 1);
		context = guasi_create(0, depth, 1);
		CHECK(context);
	}
	failures = 0;
	/* Workers start, and memory is touched. */
	run(depth);
	start = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	run(count);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%s %.1f %.1f %lld\n", engine, (seconds(CLOCK_MONOTONIC) - start) * 1e9 / count,
	       cpu * 1e9 / count, failures);
	if (kernel)
		syscall(SYS_io_destroy, kernel);
	kernel = 0;
	guasi_free(context);
	context = NULL;
}

int main(int count, char **words)
{
	int number, rounds, engine;

	CHECK(count > 6);
	depth = atoi(words[2]);
	rounds = atoi(words[4]);
	writes = strchr(words[5], 'w') != NULL;
	file = open(words[1], O_RDWR | (strchr(words[5], 'd') ? O_DIRECT : 0));
	CHECK(file >= 0 && depth > 0 && rounds > 0);
	blocks = lseek(file, 0, SEEK_END) / BLOCK;
	CHECK(blocks > 0);
	requests = calloc(depth, sizeof(*requests));
	for (number = 0; number < depth; number++) {
		void *memory;

		CHECK(posix_memalign(&memory, BLOCK, BLOCK) == 0);
		memset(memory, number, BLOCK);
		requests[number].memory = memory;
		requests[number].next_free = free_requests;
		free_requests = &requests[number];
	}
	for (; rounds > 0; rounds--)
		for (engine = 6; engine < count; engine++)
			measure(words[engine], atoll(words[3]));
	return 0;
}
