/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What only the trunk can hold: a working directory, a socket. The original call finds it there by the
 * caller's own path, which getcwd and getsockname then give back. A file in a branch is in its way as it is
 * natively. */

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/sys.h"
#include "shim/wrap.h"

/* The original call goes first. OURS is the error that a redirected file gives where the trunk has none. */
#define TRUNK(PATH, REAL, OURS)                                                                                                \
    ({                                                                                                                         \
        bool roots_ = process_has_roots();                                                                                     \
        long answer_ = (REAL);                                                                                                 \
        if (answer_ == -1 && errno == ENOENT && roots_ && !target_is_dead_end(AT_FDCWD, PATH, TARGET_FOLLOW)) {                \
            struct target *t = TARGET_ROOM;                                                                                    \
            int how_ = target_find_alias(t, AT_FDCWD, PATH, TARGET_FOLLOW);                                                    \
            if (how_ == TARGET_MANAGED)                                                                                        \
                answer_ = wrap_answer(OURS);                                                                                   \
            else if (how_ < 0)                                                                                                 \
                answer_ = wrap_answer(how_);                                                                                   \
        }                                                                                                                      \
        answer_;                                                                                                               \
    })

WRAPPER int chdir(const char *path)
{
    WRAPPER_LAUNDER(path);
    target_come_to(AT_FDCWD, path);
    return (int)TRUNK(path, REAL(chdir)(path), WRAPPER_THERE(SYS1(SYS_chdir, t->real_path)));
}

WRAPPER int chroot(const char *path)
{
    process_attach_roots();
    WRAPPER_LAUNDER(path);
    target_come_to(AT_FDCWD, path);
    return (int)TRUNK(path, REAL(chroot)(path), WRAPPER_THERE(SYS1(SYS_chroot, t->real_path)));
}

#define PATH_START offsetof(struct sockaddr_un, sun_path)
#define WORDS_SIZE (sizeof(struct sockaddr_un) - PATH_START + 1)

/* The path that an address is, with the zero that it may lack; NULL if it is none, or none that the kernel
 * takes. */
static const char *wrap_trunk_words_of(const struct sockaddr *address, socklen_t length, char to[WORDS_SIZE])
{
    const struct sockaddr_un *here = (const struct sockaddr_un *)address;
    if (!process_has_roots() || length <= PATH_START || length > sizeof *here || !process_can_read(address, length) ||
        here->sun_family != AF_UNIX || here->sun_path[0] == '\0')
        return NULL;
    memcpy(to, here->sun_path, length - PATH_START);
    to[length - PATH_START] = '\0';
    return to;
}

/* Others the kernel refuses before it looks at the path. */
static bool wrap_trunk_takes_paths(int fd)
{
    int domain = AF_UNSPEC;
    socklen_t size = sizeof domain;
    return SYS5(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

WRAPPER int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    char words[WORDS_SIZE];
    const struct sockaddr *at = address.__sockaddr__;
    const char *path = wrap_trunk_words_of(at, length, words);
    if (path == NULL || !wrap_trunk_takes_paths(fd))
        return REAL(bind)(fd, at, length);
    return (int)WRAPPER_PATH(AT_FDCWD, path, TARGET_MAKES, REAL(bind)(fd, at, length), operate_bind(t, fd, at, length));
}

/* A caller that may not write to it is told that first, and then that it is no socket. A kernel without faccessat2 has no
 * better answer for a program whose real and effective users differ. */
static long wrap_trunk_refusal(const struct target *t)
{
    long code = SYS4(SYS_faccessat2, t->real_at, t->real_path, W_OK, AT_EACCESS);
    if (code == -ENOSYS)
        code = SYS3(SYS_faccessat, t->real_at, t->real_path, W_OK);
    return code == 0 ? -ECONNREFUSED : code;
}

static int wrap_trunk_connect_by(int (*original)(int, const void *, unsigned), int fd, const struct sockaddr *address,
                                 socklen_t length)
{
    char words[WORDS_SIZE];
    const char *path = wrap_trunk_words_of(address, length, words);
    return (int)TRUNK(path, original(fd, address, length), WRAPPER_THERE(wrap_trunk_refusal(t)));
}

WRAPPER int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    process_has_roots();
    return wrap_trunk_connect_by(REAL(connect), fd, address.__sockaddr__, length);
}

int __connect(int fd, const struct sockaddr *address, socklen_t length);
WRAPPER int __connect(int fd, const struct sockaddr *address, socklen_t length)
{
    process_has_roots();
    return wrap_trunk_connect_by(REAL(__connect), fd, address, length);
}
