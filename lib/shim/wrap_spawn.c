/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* posix_spawn and pidfd_spawn. The child goes through its file actions inside libc, where no wrapper is: so before it starts,
 * the actions are gone through here, and libc is given a copy whose paths lead to where the files really are.
 * A program, and a path that is relative, mean what they mean from the directory that the child is in by
 * then.
 *
 * libc keeps the actions in an array of a structure of its own, which is the same since glibc 2.1 but for
 * kinds of actions that came later. That it still is, is seen from two actions that are added to a list. */

#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "shim/state.h"
#include "shim/wrap.h"
#include "shim/wrap_exec.h"
#include "shim/wrap_open.h"

enum step_kind { STEP_CLOSE, STEP_DUP2, STEP_OPEN, STEP_CHDIR, STEP_FCHDIR, STEP_CLOSE_FROM, STEP_TERMINAL };

struct step {
    int kind;
    union {
        int fd; /* of all that have one */
        struct {
            int fd, to;
        } dup2;
        struct {
            int fd;
            char *path;
            int flags;
            mode_t mode;
        } open;
        struct {
            char *path;
        } chdir;
    };
};

static bool wrap_spawn_reads_back(const posix_spawn_file_actions_t *sample, char *path)
{
    const struct step *steps = (const struct step *)sample->__actions;
    return sample->__used == 2 && steps[0].kind == STEP_OPEN && steps[0].open.fd == 5 &&
           strcmp(steps[0].open.path, path) == 0 && steps[0].open.flags == O_APPEND && steps[0].open.mode == 0642 &&
           steps[1].kind == STEP_CHDIR && strcmp(steps[1].chdir.path, path) == 0;
}

/* Is the array what this file takes it for? What was seen once holds. */
static bool wrap_spawn_is_readable(void)
{
    int *seen = &shim_state.abilities.reads_spawn_actions;
    int readable = __atomic_load_n(seen, __ATOMIC_RELAXED);
    posix_spawn_file_actions_t sample;
    char path[] = "/a path";
    if (readable != 0)
        return readable > 0;
    if (posix_spawn_file_actions_init(&sample) != 0)
        return false;
    if (REAL(posix_spawn_file_actions_addopen)(&sample, 5, path, O_APPEND, 0642) == 0 &&
        REAL(posix_spawn_file_actions_addchdir_np)(&sample, path) == 0)
        readable = wrap_spawn_reads_back(&sample, path) ? 1 : -1;
    posix_spawn_file_actions_destroy(&sample);
    __atomic_store_n(seen, readable, __ATOMIC_RELAXED);
    return readable > 0;
}

/* What is done for one child. */
struct plan {
    const posix_spawn_file_actions_t *actions; /* what libc is given: the caller's, or `copy` */
    int directory;                             /* the child's at the end: AT_FDCWD, or a descriptor of ours */
    posix_spawn_file_actions_t copy;
    struct step *steps; /* of the copy */
    const struct step *given;
};

static int wrap_spawn_duplicate(int fd)
{
    return (int)SYS3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
}

static void wrap_spawn_drop(int directory)
{
    if (directory >= 0)
        sys_close(directory);
}

static int wrap_spawn_directory_before(const struct step *steps, int count, int *directory);

/* What a descriptor of the child is after so many steps, as one of ours in *fd. 0 or -errno. */
static int wrap_spawn_descriptor_before(const struct step *steps, int count, int wanted, int *fd)
{
    while (count-- > 0) {
        const struct step *step = &steps[count];
        int base, code;
        if (step->kind == STEP_DUP2 && step->dup2.to == wanted)
            return wrap_spawn_descriptor_before(steps, count, step->dup2.fd, fd);
        if (step->kind == STEP_CLOSE && step->fd == wanted)
            return -EBADF;
        if (step->kind != STEP_OPEN || step->open.fd != wanted)
            continue;
        code = wrap_spawn_directory_before(steps, count, &base);
        if (code != 0)
            return code;
        *fd = sys_openat(base, step->open.path, O_PATH | O_CLOEXEC, 0);
        wrap_spawn_drop(base);
        return *fd < 0 ? *fd : 0;
    }
    *fd = wrap_spawn_duplicate(wanted);
    return *fd < 0 ? *fd : 0;
}

/* The child's working directory after so many steps. 0 or -errno: the child will meet that error itself. */
static int wrap_spawn_directory_before(const struct step *steps, int count, int *directory)
{
    *directory = AT_FDCWD;
    while (count-- > 0) {
        const struct step *step = &steps[count];
        if (step->kind == STEP_FCHDIR)
            return wrap_spawn_descriptor_before(steps, count, step->fd, directory);
        if (step->kind != STEP_CHDIR)
            continue;
        int base, code = wrap_spawn_directory_before(steps, count, &base);
        if (code != 0)
            return code;
        *directory = sys_openat(base, step->chdir.path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        wrap_spawn_drop(base);
        return *directory < 0 ? *directory : 0;
    }
    return 0;
}

/* Gives a step the place of a file that is in a branch; what is in the trunk the child finds itself. */
static int wrap_spawn_lead_there(struct target *t, char **path)
{
    int code = target_is_away(t) ? target_place(t) : 0;
    char *place = code == 0 && target_is_away(t) ? strdup(t->real_path) : NULL;
    if (code == 0 && target_is_away(t)) {
        *path = place;
        code = place != NULL ? 0 : -ENOMEM;
    }
    target_done(t);
    return code;
}

static int wrap_spawn_plan_chdir(struct step *step, int base)
{
    struct target t;
    target_come_to(base, step->chdir.path);
    int how = target_find(&t, base, step->chdir.path, TARGET_FOLLOW | TARGET_ALIAS);
    return how == TARGET_MANAGED ? wrap_spawn_lead_there(&t, &step->chdir.path) : how < 0 ? how : 0;
}

/* A file that is to be made is made now: an error is that of posix_spawn, whatever an earlier step would have
 * come to. */
static int wrap_spawn_plan_open(struct step *step, int base)
{
    struct target t;
    const int flags = step->open.flags, creates = flags & O_CREAT;
    unsigned want = (wrap_open_want(flags) & ~(TARGET_ASKS | TARGET_LATER | TARGET_LOOKS)) | (creates ? 0 : TARGET_ALIAS);
    int how = target_find(&t, base, step->open.path, want);
    const int settled = how == TARGET_MANAGED && creates ? target_settled(&t) : 0;
    if (settled != 0) {
        target_done(&t);
        return settled;
    }
    if (how == TARGET_MANAGED && creates && (!t.found.known || (flags & O_EXCL))) {
        int made = operate_open(&t, O_WRONLY | O_CREAT | O_CLOEXEC | (flags & (O_EXCL | O_NOFOLLOW)), step->open.mode);
        if (made < 0)
            return made;
        sys_close(made);
        step->open.flags &= ~O_EXCL;
        how = target_find(&t, base, step->open.path, want);
    }
    if (how != TARGET_MANAGED)
        return how < 0 ? how : 0;
    if (target_is_away(&t))
        step->open.flags &= ~O_CREAT;
    return wrap_spawn_lead_there(&t, &step->open.path);
}

static int wrap_spawn_plan_steps(struct plan *plan, int count)
{
    for (int i = 0; i < count; i++) {
        struct step *step = &plan->steps[i];
        int base, code;
        if (step->kind != STEP_CHDIR && step->kind != STEP_OPEN)
            continue;
        if (wrap_spawn_directory_before(plan->steps, i, &base) != 0)
            return 0; /* the child comes no further */
        code = step->kind == STEP_CHDIR ? wrap_spawn_plan_chdir(step, base) : wrap_spawn_plan_open(step, base);
        wrap_spawn_drop(base);
        if (code != 0)
            return code;
    }
    if (wrap_spawn_directory_before(plan->steps, count, &plan->directory) != 0)
        plan->directory = AT_FDCWD;
    return 0;
}

/* 0 or a positive error, as posix_spawn has it. */
static int wrap_spawn_plan_make(struct plan *plan, const posix_spawn_file_actions_t *actions)
{
    *plan = (struct plan){.actions = actions, .directory = AT_FDCWD};
    if (!process_has_roots() || actions == NULL || actions->__used == 0 || !wrap_spawn_is_readable())
        return 0;
    size_t size = (size_t)actions->__used * sizeof *plan->steps;
    plan->steps = malloc(size);
    if (plan->steps == NULL)
        return ENOMEM;
    memcpy(plan->steps, actions->__actions, size);
    plan->given = (const struct step *)actions->__actions;
    plan->copy = *actions;
    plan->copy.__actions = (struct __spawn_action *)plan->steps;
    plan->actions = &plan->copy;
    return -wrap_spawn_plan_steps(plan, actions->__used);
}

static void wrap_spawn_plan_finish(struct plan *plan)
{
    for (int i = 0; plan->steps != NULL && i < plan->copy.__used; i++) {
        if (plan->steps[i].kind == STEP_OPEN && plan->steps[i].open.path != plan->given[i].open.path)
            free(plan->steps[i].open.path);
        if (plan->steps[i].kind == STEP_CHDIR && plan->steps[i].chdir.path != plan->given[i].chdir.path)
            free(plan->steps[i].chdir.path);
    }
    free(plan->steps);
    wrap_spawn_drop(plan->directory);
}

/* posix_spawn, or pidfd_spawn (glibc 2.39), which gives a descriptor where that gives a process id. */
typedef int spawn_function(int *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                           char *const[]);

/* The program, or the helper that executes it; the latter by its path, with the same meaning for either original. */
static int wrap_spawn_carrying(spawn_function *original, int *child, const struct plan *plan,
                               const posix_spawnattr_t *attributes, char *const environment[], const struct exec_helped *helped)
{
    struct exec_carrying carrying;
    if (exec_refused(helped->way) != 0)
        return exec_refused(helped->way);
    char *const *carried_on = exec_carry_begin(&carrying, environment, helped);
    if (carried_on == NULL && environment != NULL)
        return ENOMEM;
    const char *path = carrying.words != NULL ? carrying.words[0] : helped->path;
    char *const *arguments = carrying.words != NULL ? carrying.words : helped->arguments;
    const int code = original(child, path, plan->actions, attributes, (char **)arguments, carried_on);
    exec_carry_end(&carrying);
    return code;
}

static int wrap_spawn_by(spawn_function *original, int *child, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    struct plan plan;
    int code = wrap_spawn_plan_make(&plan, actions);
    if (code == 0) {
        const enum program_way way = exec_prepare(plan.directory, path, plan.directory, arguments);
        const struct exec_helped helped = {way, path, false, plan.directory, arguments};
        code = wrap_spawn_carrying(original, child, &plan, attributes, environment, &helped);
        code = exec_error(plan.directory, path, code);
    }
    wrap_spawn_plan_finish(&plan);
    return code;
}

static int wrap_spawn_along_path_by(spawn_function *original, int *child, const char *file,
                                    const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                                    char *const arguments[], char *const environment[])
{
    struct plan plan;
    int code = wrap_spawn_plan_make(&plan, actions);
    if (code == 0) {
        const enum program_way way = exec_prepare_along_path(file, plan.directory, arguments);
        const struct exec_helped helped = {way, file, true, plan.directory, arguments};
        code = wrap_spawn_carrying(original, child, &plan, attributes, environment, &helped);
        code = exec_error(plan.directory, file, code);
    }
    wrap_spawn_plan_finish(&plan);
    return code;
}

WRAPPER int posix_spawn(pid_t *restrict child, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
                        const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                        char *const environment[restrict])
{
    return wrap_spawn_by(REAL(posix_spawn), child, path, actions, attributes, arguments, environment);
}

WRAPPER int posix_spawnp(pid_t *restrict child, const char *restrict file, const posix_spawn_file_actions_t *restrict actions,
                         const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                         char *const environment[restrict])
{
    return wrap_spawn_along_path_by(REAL(posix_spawnp), child, file, actions, attributes, arguments, environment);
}

int pidfd_spawn(int *restrict child, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                char *const environment[restrict]);
WRAPPER int pidfd_spawn(int *restrict child, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
                        const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                        char *const environment[restrict])
{
    return wrap_spawn_by(REAL(pidfd_spawn), child, path, actions, attributes, arguments, environment);
}

int pidfd_spawnp(int *restrict child, const char *restrict file, const posix_spawn_file_actions_t *restrict actions,
                 const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                 char *const environment[restrict]);
WRAPPER int pidfd_spawnp(int *restrict child, const char *restrict file, const posix_spawn_file_actions_t *restrict actions,
                         const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                         char *const environment[restrict])
{
    return wrap_spawn_along_path_by(REAL(pidfd_spawnp), child, file, actions, attributes, arguments, environment);
}

/* With a libc whose actions cannot be read, a path under a root is refused rather than left to mean the trunk
 * alone. */
static bool wrap_spawn_is_beyond_us(const char *path, unsigned want)
{
    struct target t;
    if (!process_has_roots() || wrap_spawn_is_readable())
        return false;
    int how = target_find(&t, AT_FDCWD, path, want | TARGET_ALIAS);
    if (how == TARGET_MANAGED)
        target_done(&t);
    return how != TARGET_FOREIGN;
}

WRAPPER int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *restrict actions, int fd, const char *restrict path,
                                             int flags, mode_t mode)
{
    if (wrap_spawn_is_beyond_us(path, wrap_open_want(flags)))
        return ENOTSUP;
    return REAL(posix_spawn_file_actions_addopen)(actions, fd, path, flags, mode);
}

WRAPPER int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *restrict actions, const char *restrict path)
{
    if (wrap_spawn_is_beyond_us(path, TARGET_FOLLOW))
        return ENOTSUP;
    return REAL(posix_spawn_file_actions_addchdir_np)(actions, path);
}
