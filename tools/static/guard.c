/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "guard.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"
#include "kernel.h"
#include "serve.h"

union guard_room {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static int guard_receive(int socket)
{
    char byte;
    int fd = -1;
    union guard_room room;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room};
    if (SYS3(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC) == 1 && message.msg_controllen >= sizeof room)
        memcpy(&fd, CMSG_DATA(&room.header), sizeof fd);
    return fd;
}

static long guard_send(int socket, int listener)
{
    char byte = 0;
    union guard_room room = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room};
    memcpy(CMSG_DATA(&room.header), &listener, sizeof listener);
    return SYS3(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
}

int guard_hand_over(int socket, int listener)
{
    char byte;
    long code = guard_send(socket, listener);
    sys_close(listener);
    if (code == 1)
        code = sys_read(socket, &byte, 1);
    sys_close(socket);
    return code == 1 ? 0 : code < 0 ? (int)code : -EPIPE;
}

/* Nothing of the program's is kept open: the reader of its output is to see the end of it. The socket is 3 afterwards. False:
 * it cannot be done. */
static bool guard_let_go(int socket)
{
    const int high = (int)SYS3(SYS_fcntl, socket, F_DUPFD_CLOEXEC, 4);
    const int null = sys_openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    bool is_done = high >= 0 && null >= 0;
    for (int fd = 0; fd < 3 && is_done; fd++)
        is_done = fd == null || SYS3(SYS_dup3, null, fd, 0) >= 0;
    return is_done && SYS3(SYS_dup3, high, 3, O_CLOEXEC) >= 0 && SYS3(SYS_close_range, 4, ~0u, 0) == 0 &&
           SYS1(SYS_chdir, "/") == 0;
}

static bool guard_all_have_ended(int listener, int timeout)
{
    struct pollfd state = {listener, POLLIN, 0};
    return poll(&state, 1, timeout) > 0 && (state.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

static void guard_refuse_all(int listener, const struct serve_board *board)
{
    struct seccomp_notif call;
    for (size_t i = 0; i < SERVE_WORKERS; i++)
        if (board->calls[i].id != 0)
            answer_refuse(listener, &board->calls[i]);
    while (!guard_all_have_ended(listener, -1)) {
        memset(&call, 0, sizeof call);
        if (SYS3(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0)
            answer_refuse(listener, &call);
    }
}

/* What the library says in the helper is for the programs' standard error, which the helper does not hold open. False: it could
 * not be heard. */
static bool guard_redirect(void)
{
    int said[2];
    if (SYS2(SYS_pipe2, said, O_CLOEXEC | O_NONBLOCK) != 0 || SYS3(SYS_dup3, said[1], 2, O_CLOEXEC) < 0)
        return false;
    sys_close(said[1]);
    answer_listen(said[0]);
    return true;
}

/* What the program may use is not for all that is done for it and for its children together. The stack's is left: it says as
 * well how far that of another process grows whose memory is read below it (/proc/PID/mem). */
static void guard_raise_limits(void)
{
    struct rlimit limit;
    for (int which = 0; which < RLIM_NLIMITS; which++)
        if (which != RLIMIT_CORE && which != RLIMIT_STACK && getrlimit(which, &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit(which, &limit);
        }
}

/* Answers calls, and ends the process. `socket`: a byte is written there when it is ready; -1: it follows one that was. */
static void guard_serve(int socket, int listener, struct serve_board *board, const struct config *config)
{
    if (!guard_redirect())
        _exit(SERVE_CANNOT);
    where_start(config->roots, config->root_ids);
    if (socket < 0)
        answer_trust_nobody();
    if (!serve_begin(listener, board))
        _exit(SERVE_CANNOT);
    if (socket >= 0) {
        sys_write(socket, "", 1);
        sys_close(socket);
    }
    _exit(serve_wait());
}

/* The status with which the last one that answers has ended. */
static int guard_watch(int socket, int listener, struct serve_board *board, const struct config *config)
{
    for (;;) {
        int status = 0;
        const pid_t server = fork();
        if (server == 0)
            guard_serve(socket, listener, board, config);
        if (socket >= 0)
            sys_close(socket);
        socket = -1;
        if (server < 0)
            return -errno;
        while (waitpid(server, &status, 0) < 0 && errno == EINTR)
            continue;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != SERVE_AGAIN)
            return status;
    }
}

/* It says that it is there once nothing but the listener is missing: a process takes no filter back. */
static void guard_stay(int socket, const struct config *config)
{
    struct serve_board *board = sys_mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sys_is_error(board) || !guard_let_go(socket))
        return;
    guard_raise_limits();
    const int listener = sys_write(3, "", 1) == 1 ? guard_receive(3) : -1;
    if (listener >= 0 && guard_watch(3, listener, board, config) != 0)
        guard_refuse_all(listener, board);
}

/* Nor is it a child of a program that takes in what its children leave, and may wait for all that it has. */
static int guard_take_in(int is_to)
{
    int did = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &did, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, is_to, 0, 0, 0);
    return did;
}

/* It outlasts what is sent to all processes of a job, or of a session: a program may end it by writing a last file. Its group
 * is its own, which a terminal's keys do not reach. It stays in the program's session: where the kernel makes each session a
 * group of tasks (autogroup), it takes 0.9 us longer to change between two. */
static void guard_stand_aside(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setpgid(0, 0);
}

/* Waits until it is there. */
static bool guard_is_there(int socket)
{
    char byte;
    return sys_read(socket, &byte, 1) == 1;
}

int guard_start(const struct config *config)
{
    int ends[2], status;
    const int code = (int)SYS4(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    if (code < 0)
        return code;
    const int takes_in = guard_take_in(0);
    const pid_t child = fork();
    if (child == 0) {
        sys_close(ends[0]);
        guard_stand_aside();
        if (fork() == 0)
            guard_stay(ends[1], config);
        _exit(0);
    }
    sys_close(ends[1]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    guard_take_in(takes_in);
    if (child > 0 && guard_is_there(ends[0]))
        return ends[0];
    sys_close(ends[0]);
    return -EAGAIN;
}
