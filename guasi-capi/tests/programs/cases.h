/* Programs of many cases: `PROGRAM NAME` runs one and exits with 0 when it is right. */
#include <guasi.h>
#include <string.h>

#include "check.h"

struct test_case {
	const char *name;
	void (*run)(void);
};

static int run_case(int argc, char **argv, const struct test_case *cases, size_t count)
{
	size_t i;

	for (i = 0; argc == 2 && i < count; i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			puts("right");
			return 0;
		}
	}
	return 2;
}

static guasi_t made(int min, int max)
{
	guasi_t context = guasi_create(min, max, 1);

	CHECK(context != NULL);
	return context;
}

/* The end of the only request in flight. */
static struct guasi_reqinfo end_of(guasi_t context, guasi_req_t req)
{
	guasi_req_t got = NULL;
	struct guasi_reqinfo info;

	CHECK(req != NULL);
	CHECK(guasi_fetch(context, &got, 1, 1, 30000) == 1 && got == req);
	CHECK(guasi_req_info(req, &info) == 0);
	guasi_req_free(req);
	return info;
}

static guasi_param_t nothing(void *priv, guasi_param_t const *params)
{
	(void) params;
	return (guasi_param_t) priv;
}
