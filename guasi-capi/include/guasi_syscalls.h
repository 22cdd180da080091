/* guasi_syscalls.h: system calls as requests of a guasi context. See guasi(3).
 *
 * Each takes the context, priv, asid and prio of guasi_submit, then what the system call takes. Those
 * on sockets end with a time in milliseconds; a negative one is no limit.
 */
#ifndef GUASI_SYSCALLS_H
#define GUASI_SYSCALLS_H

#include <dirent.h>
#include <stddef.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "guasi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An offset in a file, of 64 bits however the program is compiled. */
typedef long long goff_t;

guasi_req_t guasi__read(guasi_t hctx, void *priv, void *asid, int prio, int fd, void *buf,
                        size_t size);
guasi_req_t guasi__write(guasi_t hctx, void *priv, void *asid, int prio, int fd, void const *buf,
                         size_t size);
guasi_req_t guasi__pread(guasi_t hctx, void *priv, void *asid, int prio, int fd, void *buf,
                         size_t size, goff_t off);
guasi_req_t guasi__pwrite(guasi_t hctx, void *priv, void *asid, int prio, int fd, void const *buf,
                          size_t size, goff_t off);
guasi_req_t guasi__sendfile(guasi_t hctx, void *priv, void *asid, int prio, int ofd, int ifd,
                            goff_t *off, size_t cnt);
guasi_req_t guasi__fsync(guasi_t hctx, void *priv, void *asid, int prio, int fd);

guasi_req_t guasi__open(guasi_t hctx, void *priv, void *asid, int prio, char const *name,
                        long flags, long mode);
guasi_req_t guasi__opendir(guasi_t hctx, void *priv, void *asid, int prio, char const *name);
guasi_req_t guasi__readdir(guasi_t hctx, void *priv, void *asid, int prio, DIR *dir);
guasi_req_t guasi__stat(guasi_t hctx, void *priv, void *asid, int prio, char const *name,
                        struct stat *sbuf);
guasi_req_t guasi__fstat(guasi_t hctx, void *priv, void *asid, int prio, int fd,
                         struct stat *sbuf);

guasi_req_t guasi__recv(guasi_t hctx, void *priv, void *asid, int prio, int fd, void *buf,
                        size_t size, int flags, long timeo);
guasi_req_t guasi__recvfrom(guasi_t hctx, void *priv, void *asid, int prio, int fd, void *buf,
                            size_t size, int flags, struct sockaddr *from, socklen_t *fromlen,
                            long timeo);
guasi_req_t guasi__send(guasi_t hctx, void *priv, void *asid, int prio, int fd, void const *buf,
                        size_t size, int flags, long timeo);
guasi_req_t guasi__sendto(guasi_t hctx, void *priv, void *asid, int prio, int fd, void const *buf,
                          size_t size, int flags, struct sockaddr const *to, socklen_t tolen,
                          long timeo);
guasi_req_t guasi__accept(guasi_t hctx, void *priv, void *asid, int prio, int fd,
                          struct sockaddr *addr, socklen_t *addrlen, long timeo);
guasi_req_t guasi__connect(guasi_t hctx, void *priv, void *asid, int prio, int fd,
                           struct sockaddr const *addr, socklen_t addrlen, long timeo);

#ifdef __cplusplus
}
#endif

#endif
