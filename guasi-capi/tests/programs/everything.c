/* Exercises all 24 functions of the interface, and what they answer to wrong use. Exits with 0 when
 * everything was as guasi(3) says; else it names the line. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <guasi.h>
#include <guasi_syscalls.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static guasi_t context;
static int cleanups;

/* Fetches the one request that was submitted; its result, and its error in errno. */
static guasi_param_t end_of(guasi_req_t req)
{
	guasi_req_t got = NULL;
	struct guasi_reqinfo info;

	CHECK(req != NULL);
	CHECK(guasi_fetch(context, &got, 1, 1, 30000) == 1 && got == req);
	CHECK(guasi_req_info(req, &info) == 0);
	CHECK(info.status == GUASI_STATUS_COMPLETE);
	guasi_req_free(req);
	errno = (int) info.error;
	return info.result;
}

static guasi_param_t sum(void *priv, guasi_param_t const *params)
{
	guasi_param_t total = *(int *) priv;
	int i;

	for (i = 0; i < GUASI_MAX_PARAMS; i++)
		total += params[i];
	return total;
}

/* A function, which a worker runs: a read alone could be the kernel's, and the worker free. */
static guasi_param_t blocking_read(void *priv, guasi_param_t const *params)
{
	(void) priv;
	return read((int) params[0], (void *) params[1], (size_t) params[2]);
}

static void count(void *priv, guasi_param_t const *params)
{
	(void) priv;
	(void) params;
	cleanups++;
}

static void functions(void)
{
	int priv = 1000, asid;
	struct guasi_reqinfo info;
	guasi_req_t got = NULL, req;

	CHECK(sizeof(struct guasi_reqinfo) == 40);
	req = guasi_submit(context, &priv, &asid, 2, sum, count, 16,
	                   (guasi_param_t) 1, (guasi_param_t) 2, (guasi_param_t) 3, (guasi_param_t) 4,
	                   (guasi_param_t) 5, (guasi_param_t) 6, (guasi_param_t) 7, (guasi_param_t) 8,
	                   (guasi_param_t) 9, (guasi_param_t) 10, (guasi_param_t) 11,
	                   (guasi_param_t) 12, (guasi_param_t) 13, (guasi_param_t) 14,
	                   (guasi_param_t) 15, (guasi_param_t) -16);
	CHECK(req != NULL);
	CHECK(guasi_fetch(context, &got, 1, 1, -1) == 1 && got == req);
	CHECK(guasi_req_info(req, &info) == 0);
	CHECK(info.result == 1104 && info.priv == &priv && info.asid == &asid && cleanups == 1);
	guasi_req_free(req);
}

static void files(void)
{
	char name[] = "/tmp/guasi-XXXXXX", read_back[16] = "";
	int fd = mkstemp(name), pipes[2], out;
	struct stat status;
	goff_t off = 6;
	DIR *dir;

	CHECK(fd >= 0 && pipe(pipes) == 0);
	CHECK(end_of(guasi__pwrite(context, NULL, NULL, 0, fd, "asynchronous", 12, 0)) == 12);
	CHECK(end_of(guasi__pread(context, NULL, NULL, 0, fd, read_back, 4, 8)) == 4);
	CHECK(memcmp(read_back, "nous", 4) == 0);
	CHECK(end_of(guasi__fsync(context, NULL, NULL, 0, fd)) == 0);
	CHECK(end_of(guasi__fstat(context, NULL, NULL, 0, fd, &status)) == 0 && status.st_size == 12);
	CHECK(end_of(guasi__stat(context, NULL, NULL, 0, name, &status)) == 0 && status.st_size == 12);
	CHECK(end_of(guasi__sendfile(context, NULL, NULL, 0, pipes[1], fd, &off, 6)) == 6 && off == 12);
	CHECK(end_of(guasi__read(context, NULL, NULL, 0, pipes[0], read_back, 16)) == 6);
	CHECK(memcmp(read_back, "ronous", 6) == 0);
	CHECK(end_of(guasi__write(context, NULL, NULL, 0, pipes[1], "x", 1)) == 1);
	out = (int) end_of(guasi__open(context, NULL, NULL, 0, name, O_RDONLY, 0));
	CHECK(out >= 0 && close(out) == 0);
	CHECK(end_of(guasi__open(context, NULL, NULL, 0, "/none/at/all", O_RDONLY, 0)) == -1);
	CHECK(errno == ENOENT);
	dir = (DIR *) end_of(guasi__opendir(context, NULL, NULL, 0, "/"));
	CHECK(dir != NULL && end_of(guasi__readdir(context, NULL, NULL, 0, dir)) != 0);
	CHECK(closedir(dir) == 0 && close(fd) == 0 && unlink(name) == 0);
	CHECK(end_of(guasi__pread(context, NULL, NULL, 0, fd, read_back, 4, 0)) == -1 && errno == EBADF);
}

static void sockets(void)
{
	struct sockaddr_in address, from;
	socklen_t len = sizeof address, fromlen = sizeof from;
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int server, datagram = socket(AF_INET, SOCK_DGRAM, 0);
	char data[8] = "";

	memset(&address, 0, sizeof address);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(bind(datagram, (struct sockaddr *) &address, len) == 0);
	CHECK(bind(listener, (struct sockaddr *) &address, len) == 0 && listen(listener, 1) == 0);
	CHECK(getsockname(listener, (struct sockaddr *) &address, &len) == 0);
	/* A time whose nanoseconds pass a second when they are added to now. */
	CHECK(end_of(guasi__accept(context, NULL, NULL, 0, listener, NULL, NULL, 20)) == -1);
	CHECK(errno == ETIMEDOUT);
	CHECK(end_of(guasi__connect(context, NULL, NULL, 0, client, (struct sockaddr *) &address, len,
	                            9999)) == 0);
	server = (int) end_of(guasi__accept(context, NULL, NULL, 0, listener,
	                                    (struct sockaddr *) &from, &fromlen, -1));
	CHECK(server >= 0);
	CHECK(end_of(guasi__send(context, NULL, NULL, 0, client, "hello", 5, 0, 999)) == 5);
	CHECK(end_of(guasi__recv(context, NULL, NULL, 0, server, data, 8, 0, 9999)) == 5);
	CHECK(memcmp(data, "hello", 5) == 0);
	CHECK(getsockname(datagram, (struct sockaddr *) &address, &len) == 0);
	CHECK(end_of(guasi__sendto(context, NULL, NULL, 0, datagram, "you", 3, 0,
	                           (struct sockaddr *) &address, len, 999)) == 3);
	CHECK(end_of(guasi__recvfrom(context, NULL, NULL, 0, datagram, data, 8, 0,
	                             (struct sockaddr *) &from, &fromlen, 9999)) == 3);
	CHECK(memcmp(data, "you", 3) == 0 && from.sin_port == address.sin_port);
	close(server), close(client), close(listener), close(datagram);
}

static void cancelling(void)
{
	int pipes[2];
	char byte;
	guasi_t one = guasi_create(1, 1, 1);
	guasi_req_t active, pending, got[2];
	struct guasi_reqinfo info;

	CHECK(one != NULL && pipe(pipes) == 0);
	active = guasi_submit(one, NULL, NULL, 0, blocking_read, NULL, 3, (guasi_param_t) pipes[0],
	                      (guasi_param_t) &byte, (guasi_param_t) 1);
	do
		CHECK(guasi_req_info(active, &info) == 0);
	while (info.status == GUASI_STATUS_PENDING);
	cleanups = 0;
	pending = guasi_submit(one, NULL, NULL, 0, sum, count, 0);
	CHECK(guasi_req_cancel(pending) == GUASI_STATUS_CANCELED && cleanups == 1);
	CHECK(guasi_req_cancel(active) == GUASI_STATUS_ACTIVE);
	CHECK(guasi_fetch(one, got, 2, 2, 30000) == 2);
	CHECK(guasi_req_info(active, &info) == 0);
	CHECK(info.status == GUASI_STATUS_COMPLETE && info.result == -1 && info.error == EINTR);
	CHECK(guasi_req_info(pending, &info) == 0 && info.status == GUASI_STATUS_CANCELED);
	CHECK(guasi_req_cancel(active) == GUASI_STATUS_COMPLETE);
	guasi_free(one);
}

static void wrong_use(void)
{
	struct guasi_reqinfo info;
	guasi_req_t req, got;
	guasi_t gone;
	struct timespec start, end;

	CHECK(guasi_create(-1, 1, 1) == NULL && errno == EINVAL);
	CHECK(guasi_create(0, -1, 1) == NULL && errno == EINVAL);
	CHECK(guasi_create(0, 1, 0) == NULL && errno == EINVAL);
	CHECK(guasi__fsync(context, NULL, NULL, 3, 0) == NULL && errno == EINVAL);
	CHECK(guasi__fsync(context, NULL, NULL, -1, 0) == NULL && errno == EINVAL);
	CHECK(guasi__fsync(NULL, NULL, NULL, 0, 0) == NULL && errno == EINVAL);
	CHECK(guasi_submit(context, NULL, NULL, 0, sum, NULL, 17) == NULL && errno == EINVAL);
	CHECK(guasi_submit(context, NULL, NULL, 0, NULL, NULL, 0) == NULL && errno == EINVAL);
	CHECK(guasi_fetch(NULL, &got, 0, 1, 0) == -1 && errno == EINVAL);
	CHECK(guasi_fetch(context, NULL, 0, 1, 0) == -1 && errno == EINVAL);
	CHECK(guasi_req_info(NULL, &info) == -1 && errno == EINVAL);
	CHECK(guasi_req_cancel(NULL) == -1 && errno == EINVAL);
	errno = 0, guasi_req_free(NULL);
	CHECK(errno == EINVAL);
	errno = 0, guasi_free(NULL);
	CHECK(errno == EINVAL);
	req = guasi__fsync(context, NULL, NULL, 0, 0);
	errno = 0, guasi_req_free(req);
	CHECK(errno == EINVAL); /* not fetched */
	end_of(req);
	errno = 0, guasi_req_free(req);
	CHECK(errno == EINVAL); /* twice */
	CHECK(guasi_req_info(context ? req : NULL, &info) == -1 && errno == EINVAL);
	gone = guasi_create(0, 0, 1);
	CHECK(gone != NULL);
	req = guasi__fsync(gone, NULL, NULL, 0, 0);
	CHECK(req != NULL);
	guasi_free(gone);
	CHECK(guasi__fsync(gone, NULL, NULL, 0, 0) == NULL && errno == EINVAL);
	CHECK(guasi_req_info(req, &info) == -1 && errno == EINVAL);
	errno = 0, guasi_free(gone);
	CHECK(errno == EINVAL);
	clock_gettime(CLOCK_MONOTONIC, &start);
	CHECK(guasi_fetch(context, &got, 1, 1, 999) == 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000 >= 998);
}

int main(void)
{
	context = guasi_create(0, 0, 3);
	CHECK(context != NULL);
	functions();
	files();
	sockets();
	cancelling();
	wrong_use();
	guasi_free(context);
	puts("all as promised");
	return 0;
}
