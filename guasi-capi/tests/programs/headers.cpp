// The headers from C++, with a request.
#include <guasi.h>
#include <guasi_syscalls.h>

int main()
{
	guasi_t context = guasi_create(0, 1, 1);
	guasi_req_t req = guasi__fsync(context, 0, 0, 0, -1), got = 0;
	int fetched = guasi_fetch(context, &got, 1, 1, -1);
	guasi_free(context);
	return fetched == 1 && got == req ? 0 : 1;
}
