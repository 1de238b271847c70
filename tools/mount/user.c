/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Whose rights a thread of root's server has. fsuid, fsgid and supplementary groups are a thread's own; as long as the fsuid is
 * not 0, the kernel takes away the capabilities that are about files. */

#include <errno.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "view.h"

#define USER_NONE ((uid_t)-1) /* what the kernel asks by itself, as when it writes mapped pages */
#define USER_GROUPS 1024

struct user {
    uid_t uid;
    gid_t gid;
    int count;
    gid_t groups[USER_GROUPS];
};

/* A thread begins with what the one that made it had then. */
static __thread struct user user_now;
static __thread bool user_is_known;

static bool user_is_now(const struct user *user)
{
    return user_is_known && user->uid == user_now.uid && user->gid == user_now.gid && user->count == user_now.count &&
           memcmp(user->groups, user_now.groups, (size_t)user->count * sizeof *user->groups) == 0;
}

/* 0 or errno. What setfsuid and setfsgid return is not whether they failed. */
static int user_become(const struct user *user)
{
    if (user_is_now(user))
        return 0;
    user_is_known = false;
    if (syscall(SYS_setgroups, user->count, user->groups) < 0)
        return errno;
    setfsgid(user->gid);
    setfsuid(user->uid);
    if ((uid_t)setfsuid(USER_NONE) != user->uid || (gid_t)setfsgid(USER_NONE) != user->gid)
        return EPERM;
    user_now = *user;
    user_is_known = true;
    return 0;
}

/* Root needs no groups. EPERM: they cannot be read, since the process is in no PID namespace that is seen from here, or it has
 * too many. */
static int user_read(fuse_req_t request, struct user *user)
{
    const struct fuse_ctx *asks = fuse_req_ctx(request);
    *user = (struct user){0};
    if (asks->uid == USER_NONE)
        return 0;
    user->uid = asks->uid;
    user->gid = asks->gid;
    if (user->uid != 0)
        user->count = fuse_req_getgroups(request, USER_GROUPS, user->groups);
    return user->count < 0 || user->count > USER_GROUPS ? EPERM : 0;
}

int view_take_user(fuse_req_t request)
{
    struct user user;
    if (!view_of(request)->is_for_others)
        return 0;
    const int error = user_read(request, &user);
    return error ? error : user_become(&user);
}

int view_take_own(fuse_req_t request)
{
    static const struct user own;
    return view_of(request)->is_for_others ? user_become(&own) : 0;
}

bool view_is_refused(fuse_req_t request)
{
    const int error = view_take_user(request);
    if (error)
        fuse_reply_err(request, error);
    return error != 0;
}
