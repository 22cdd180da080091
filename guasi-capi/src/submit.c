/* The one function of the interface that takes a variable number of parameters, which Rust cannot
 * define: it collects them and hands them on. The library exports it under the name guasi_submit. */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "guasi.h"

guasi_req_t guasi_submit_params(guasi_t hctx, void *priv, void *asid, int prio,
                                guasi_syscall_t proc, guasi_cleanup_t cleanup,
                                guasi_param_t const *params, int nparams);

guasi_req_t guasi_submit_variadic(guasi_t hctx, void *priv, void *asid, int prio,
                                  guasi_syscall_t proc, guasi_cleanup_t cleanup, int nparams, ...);

guasi_req_t guasi_submit_variadic(guasi_t hctx, void *priv, void *asid, int prio,
                                  guasi_syscall_t proc, guasi_cleanup_t cleanup, int nparams, ...)
{
	guasi_param_t params[GUASI_MAX_PARAMS];
	va_list args;
	int i;

	if (nparams < 0 || nparams > GUASI_MAX_PARAMS) {
		errno = EINVAL;
		return NULL;
	}
	va_start(args, nparams);
	for (i = 0; i < nparams; i++)
		params[i] = va_arg(args, guasi_param_t);
	va_end(args);
	return guasi_submit_params(hctx, priv, asid, prio, proc, cleanup, params, nparams);
}
