/* A program that has what it needs from the two headers, as with the original's. */
#include <guasi_syscalls.h>

GEXTC GAPI int exported(uint64_t number);

int exported(uint64_t number)
{
	return printf("%" PRIu64 "\n", number);
}

int main(void)
{
	ssize_t (*send)(int, int, off_t *, size_t) = sendfile;
	time_t now = time(NULL);

	return send == NULL || now == 0 || getpid() == 0 || exported(7) != 2 ? EXIT_FAILURE
									      : EXIT_SUCCESS;
}
