/* guasi.h: make any call asynchronous. See guasi(3).
 *
 * Compatible with libguasi 0.25: a program that was built for it runs with this library.
 */
#ifndef GUASI_H
#define GUASI_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* How a function with C's calling convention is declared, and one that a library exports. */
#ifndef GEXTC
#ifdef __cplusplus
#define GEXTC extern "C"
#else
#define GEXTC extern
#endif
#endif
#ifndef GAPI
#ifdef __GNUC__
#define GAPI __attribute__((visibility("default")))
#else
#define GAPI
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The most parameters of a request. */
#define GUASI_MAX_PARAMS 16

/* Where a request is: cancelled before it ran, waiting, running, over. */
#define GUASI_STATUS_CANCELED 0
#define GUASI_STATUS_PENDING 1
#define GUASI_STATUS_ACTIVE 2
#define GUASI_STATUS_COMPLETE 3

/* A parameter: wide enough for an integer or a pointer. */
typedef intptr_t guasi_param_t;

/* What a request calls, with the priv of its submission and its parameters. */
typedef guasi_param_t (*guasi_syscall_t)(void *priv, guasi_param_t const *params);

/* What is called afterwards, or instead of it when the request was cancelled before it ran. */
typedef void (*guasi_cleanup_t)(void *priv, guasi_param_t const *params);

/* A context and a request. They are names, not addresses of memory: an old one is recognised. */
typedef struct s_guasi *guasi_t;
typedef struct s_guasi_req *guasi_req_t;

/* What is known about a request. */
struct guasi_reqinfo {
	void *priv;           /* as given to guasi_submit */
	void *asid;           /* as given to guasi_submit */
	guasi_param_t result; /* what the call returned */
	long error;           /* errno after it */
	int status;           /* GUASI_STATUS_... */
};

guasi_t guasi_create(int min_threads, int max_threads, int max_priority);
void guasi_free(guasi_t hctx);
guasi_req_t guasi_submit(guasi_t hctx, void *priv, void *asid, int prio, guasi_syscall_t proc,
                         guasi_cleanup_t cleanup, int nparams, ...);
int guasi_fetch(guasi_t hctx, guasi_req_t *reqs, int minreqs, int maxreqs, long timeo);
int guasi_req_cancel(guasi_req_t hreq);
int guasi_req_info(guasi_req_t hreq, struct guasi_reqinfo *rinf);
void guasi_req_free(guasi_req_t hreq);

#ifdef __cplusplus
}
#endif

#endif
