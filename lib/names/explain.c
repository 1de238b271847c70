/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Why a root cannot be served to a process, in words. */

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/sys.h"
#include "base/text.h"
#include "names/origin.h"
#include "names/state.h"
#include "session/session.h"

/* What a user can do about it stands in parentheses: `before`, the root if `of_root`, `after`. */
struct explain_failure {
    const char *failure, *before;
    bool of_root;
    const char *after;
};

static struct explain_failure explain_code(int code)
{
    switch (code) {
    case -ENOENT:
        return (struct explain_failure){"no daemon is running for this root", " (run 'shunt start --root ", true, "')"};
    case -EHOSTDOWN:
        return (struct explain_failure){"the daemon of this node has ended", " (run 'shunt start --root ", true, "')"};
    case -EACCES:
    case -EPERM:
        return (struct explain_failure){"the daemon belongs to another user", " (run 'shunt status --root ", true,
                                        "' to see which)"};
    case -ESTALE:
    case -EBADMSG:
        return (struct explain_failure){"the index of the daemon is damaged or of another session", " (run 'shunt stop --root ",
                                        true, "', then 'shunt start')"};
    case -EPROTO:
        return (struct explain_failure){"the daemon is of another version of shunt", " (run 'shunt stop --root ", true,
                                        "', then 'shunt start')"};
    case -EMFILE:
    case -ENFILE:
        return (struct explain_failure){"too many open files to map the index", " (raise the limit with 'ulimit -n')", false,
                                        ""};
    case -EUSERS:
        return (struct explain_failure){"too many threads of this node use it", " (run fewer processes on this node)", false,
                                        ""};
    case -ENOSPC:
        return (struct explain_failure){"the run directory is full, so this process cannot reach the daemon",
                                        " (make room where SHUNT_RUN_DIR is, by default in /dev/shm)", false, ""};
    case -EXDEV:
        return (struct explain_failure){"the daemon is in another PID namespace",
                                        " (start the container with the host's, or run 'shunt start --root ", true,
                                        "' inside the container)"};
    case -ESRCH:
        return (struct explain_failure){"/proc is not mounted, so it cannot be told where files and processes are",
                                        " (mount /proc)", false, ""};
    case -EREMOTE:
        return (struct explain_failure){"the root is hidden in this mount namespace",
                                        " (bind all of it, here or at another path)", false, ""};
    case -EREMOTEIO:
        return (struct explain_failure){"the file system did not say what is there when this process began",
                                        " (run the program again)", false, ""};
    case -EROFS:
        return (struct explain_failure){"the run directory is read-only in this mount namespace",
                                        " (bind it writable; it is where SHUNT_RUN_DIR is, by default in /dev/shm)", false, ""};
    case -EADDRNOTAVAIL:
        return (struct explain_failure){"no daemon can be seen in this mount namespace",
                                        " (bind the host's run directory, by default /dev/shm, or run 'shunt start --root ",
                                        true, "')"};
    case -EINPROGRESS:
        return (struct explain_failure){"the daemon crashed and was not started again in time", " (run 'shunt status --root ",
                                        true, "', and see the log in its run dir)"};
    case -ETIMEDOUT:
        return (struct explain_failure){"the daemon did not answer within SHUNT_DEADLINE", " (run 'shunt status --root ", true,
                                        "' to see whether another node is silent)"};
    case -ENOLINK:
        return (struct explain_failure){"the daemon cannot reach the session on the file system", " (run 'shunt status --root ",
                                        true, "' on another node)"};
    case -EOPNOTSUPP:
        return (struct explain_failure){"this process is not allowed the system calls that tell what is beneath it",
                                        " (let its filter allow statx, openat and readlinkat, see shunt(7))", false, ""};
    case -ENOMEM:
        return (struct explain_failure){"not enough memory to map the index", " (raise the limit with 'ulimit -v')", false, ""};
    default:
        return (struct explain_failure){"the daemon cannot be reached", " (run 'shunt status --root ", true, "')"};
    }
}

static struct iovec explain_words(const char *text)
{
    return (struct iovec){(void *)text, strlen(text)};
}

/* No daemon is there for this process, but a session may be. Another user's: a program that became somebody else looks for that
 * one's daemon. The same user's: on other hosts, or under another name or run directory. */
static struct explain_failure explain_session(const struct names_root *root, int code, char *user, size_t size)
{
    struct text t;
    uid_t uid;
    if (session_user(root->path, &uid) != 0 || (uid == (uid_t)SYS0(SYS_geteuid) && code != -ENOENT))
        return explain_code(code);
    if (uid == (uid_t)SYS0(SYS_geteuid))
        return (struct explain_failure){"no daemon is running for this root on this host, while a session of yours serves it "
                                        "elsewhere",
                                        " (give this host to shunt-launch, or run 'shunt start --root ", true, "' on it)"};
    text_init(&t, user, size);
    text_number(&t, uid, 10);
    return (struct explain_failure){"served for another user, number ",
                                    " (run the program as that user, or read with 'shunt ls ", true, "')"};
}

/* Fail closed, and say why once: in one write, from where the words are, since the stack may be a signal's.
 */
int names_fail(struct names_root *root, int code)
{
    const struct origin given = {.namespace = root->namespace, .boot = root->boot};
    const bool is_elsewhere = code == -ENOENT && root->namespace != 0 && origin_is_elsewhere(&given);
    struct explain_failure failure = explain_code(is_elsewhere ? -EADDRNOTAVAIL : code);
    char user[16] = "";
    if (!is_elsewhere && (code == -ENOENT || code == -EACCES || code == -EPERM))
        failure = explain_session(root, code, user, sizeof user);
    const struct iovec line[] = {explain_words("shunt: "),
                                 explain_words(root->path),
                                 explain_words(": "),
                                 explain_words(failure.failure),
                                 explain_words(user),
                                 explain_words(failure.before),
                                 explain_words(failure.of_root ? root->path : ""),
                                 explain_words(failure.after),
                                 explain_words("\n")};
    if (__atomic_exchange_n(&root->told, 1, __ATOMIC_RELAXED) == 0)
        SYS3(SYS_writev, 2, line, sizeof line / sizeof *line);
    return -EIO;
}
