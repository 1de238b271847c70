/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* shunt-mount: shows a root through FUSE. `shunt mount` begins it under the preload library. This file is the table of
 * contents: the command line, the mount, the end. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/program_signals.h"
#include "base/standard_streams.h"
#include "cli/command.h"
#include "ends.h"
#include "reader.h"
#include "log.h"
#include "view.h"
#include "wake.h"

#define DESCRIPTORS_FOR_OTHERS 128 /* of the library, of FUSE, of locks */
#define THREADS_IDLE 10
#define THREADS_MOST 1000

struct main_words {
    const char *root, *mountpoint, *options;
    int log; /* a descriptor, -1: syslog */
    bool in_foreground;
    bool from_disk;  /* without a session, to be read */
    bool for_others; /* allow_other */
};

static int main_take_log(struct main_words *words, const char *file)
{
    words->log = log_open(file);
    if (words->log >= 0)
        return STATUS_OK;
    error_report("%s: cannot be opened: %s (give another file with --log)", file, strerror(-words->log));
    return STATUS_FAILED;
}

/* A status. */
static int main_read_words(struct main_words *words, int argc, char **argv)
{
    int letter, status = STATUS_OK;
    *words = (struct main_words){.log = -1};
    while (status == STATUS_OK && (letter = getopt(argc, argv, "adfl:o:")) != -1)
        if (letter == 'f')
            words->in_foreground = true;
        else if (letter == 'd')
            words->from_disk = true;
        else if (letter == 'a')
            words->for_others = true;
        else if (letter == 'o')
            words->options = optarg;
        else
            status = letter == 'l' ? main_take_log(words, optarg) : STATUS_USAGE;
    if (status == STATUS_OK && argc - optind != 2) {
        error_report("shunt-mount: not meant to be run by hand (use 'shunt mount')");
        return STATUS_USAGE;
    }
    words->root = argv[optind];
    words->mountpoint = argv[optind + 1];
    return status;
}

/* Each file that the kernel knows takes a descriptor, and each open one two. */
static size_t main_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return DESCRIPTORS_FOR_OTHERS;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > 2 * DESCRIPTORS_FOR_OTHERS ? limit.rlim_cur - DESCRIPTORS_FOR_OTHERS : DESCRIPTORS_FOR_OTHERS;
}

/* Quotas and the blocks that a file system keeps for root bind others here as elsewhere. 0 or -errno. */
static int main_serve_others(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int main_open_root(struct view *view, const struct main_words *words)
{
    const int fd = open(words->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 ? -errno : inode_table_init(&view->inodes, fd, main_descriptors() / 2);
    if (error == 0 && words->from_disk)
        error = reader_create(&view->reader, words->root);
    view->is_for_others = words->for_others;
    pages_dropper_init(&view->dropper);
    if (error == 0 && words->for_others)
        error = main_serve_others();
    if (error < 0)
        error_report("%s: cannot be opened: %s (check the path and its permissions)", words->root, strerror(-error));
    return error;
}

/* The target of a symbolic link never changes, and its number is no other's as long as the kernel knows it. */
static void main_init(void *context, struct fuse_conn_info *connection)
{
    connection->want |= connection->capable & (FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                                               FUSE_CAP_DONT_MASK | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS);
    /* FIFOs, sockets and devices are opened without the server, and `..` is walked without it: the kernel looks at mode and
     * ACL, which it asks for each time. */
    if (((const struct view *)context)->is_for_others)
        connection->want |= connection->capable & FUSE_CAP_POSIX_ACL;
    backing_init(connection);
}

/* What the mount is (its type, that it is only read) comes after the user's options: the last one counts. */
static struct fuse_session *main_session(struct view *view, const struct main_words *words)
{
    static struct fuse_lowlevel_ops operations = {.init = main_init};
    struct fuse_args arguments = FUSE_ARGS_INIT(0, NULL);
    struct fuse_session *session = NULL;
    char *options = NULL, *source = malloc(strlen(words->root) + sizeof "fsname=");
    view_add_names(&operations);
    view_add_attributes(&operations);
    view_add_directories(&operations);
    view_add_files(&operations);
    view_add_locks(&operations);
    if (source)
        stpcpy(stpcpy(source, "fsname="), words->root);
    if (source && fuse_opt_add_opt_escaped(&options, source) == 0 &&
        (!words->options || fuse_opt_add_opt(&options, words->options) == 0) &&
        fuse_opt_add_opt(&options, "subtype=shunt") == 0 && (!words->from_disk || fuse_opt_add_opt(&options, "ro") == 0) &&
        (!words->for_others || fuse_opt_add_opt(&options, "default_permissions") == 0) &&
        fuse_opt_add_arg(&arguments, "shunt") == 0 && fuse_opt_add_arg(&arguments, "-o") == 0 &&
        fuse_opt_add_arg(&arguments, options) == 0)
        session = fuse_session_new(&arguments, &operations, sizeof operations, view);
    fuse_opt_free_args(&arguments);
    free(options);
    free(source);
    return session;
}

static void main_take_from_cache(void *context, uint64_t parent, const char *name)
{
    const struct view *view = context;
    fuse_lowlevel_notify_inval_entry(view->session, parent, name, strlen(name));
}

static void *main_trim_thread(void *context)
{
    struct view *view = context;
    for (;;)
        inode_trim(&view->inodes, main_take_from_cache, view);
    return NULL;
}

static void *main_drop_thread(void *context)
{
    struct view *view = context;
    pages_dropper_run(&view->dropper, view->session);
    return NULL;
}

/* The process that `shunt mount` is ends as soon as the mount is there, and the server is in no group that a terminal
 * interrupts: by a signal, if one came before, which ends the server as well. */
static void main_leave(pid_t server, int apart)
{
    char byte;
    const bool is_there = read(apart, &byte, sizeof byte) == sizeof byte;
    ends_pass_to(server);
    _exit(is_there ? STATUS_OK : STATUS_FAILED);
}

/* 0 in the process that serves, or -errno. */
static int main_go_to_background(const struct main_words *words)
{
    int ends[2];
    const pid_t child = pipe2(ends, O_CLOEXEC) < 0 ? -1 : fork();
    if (child < 0)
        return -errno;
    close(ends[child == 0 ? 0 : 1]);
    if (child > 0)
        main_leave(child, ends[0]);
    const int error = setsid() < 0 ? -errno : log_redirect(words->log);
    const bool is_told = error < 0 || write(ends[1], "", 1) == 1;
    close(ends[1]);
    return is_told ? error : -EPIPE;
}

/* Calls that wait for a daemon hold up no others: of so many at once. 0 or -errno. */
static int main_loop(struct fuse_session *session)
{
#if FUSE_USE_VERSION < 312
    struct fuse_loop_config loop = {.clone_fd = 0, .max_idle_threads = THREADS_IDLE};
    return fuse_session_loop_mt(session, &loop);
#else
    struct fuse_loop_config *loop = fuse_loop_cfg_create();
    if (!loop)
        return -ENOMEM;
    fuse_loop_cfg_set_idle_threads(loop, THREADS_IDLE);
    fuse_loop_cfg_set_max_threads(loop, THREADS_MOST);
    const int error = fuse_session_loop_mt(session, loop);
    fuse_loop_cfg_destroy(loop);
    return error;
#endif
}

static int main_serve(struct view *view, const struct main_words *words)
{
    pthread_t trimmer, dropper;
    int error = chdir("/") < 0 ? -errno : 0; /* not below the mount */
    if (error == 0 && !words->in_foreground)
        error = main_go_to_background(words);
    if (error == 0)
        error = wake_init();
    if (error == 0)
        error = -pthread_create(&trimmer, NULL, main_trim_thread, view);
    if (error == 0)
        error = -pthread_create(&dropper, NULL, main_drop_thread, view);
    if (error == 0)
        error = ends_take(view->session);
    if (error == 0) {
        error = main_loop(view->session);
        ends_are_over();
    }
    if (error < 0)
        error_report("%s: is served no longer: %s (see 'shunt status', then 'shunt mount' it again)", words->mountpoint,
                     strerror(-error));
    return error < 0 ? STATUS_FAILED : STATUS_OK;
}

static int main_refuse_options(const struct main_words *words)
{
    error_report("%s: these options cannot be used: %s (see 'man shunt-mount')", words->mountpoint,
                 words->options ? words->options : "");
    return STATUS_USAGE;
}

/* The kernel's first request is answered here: libfuse sees only then whether it can have what it was told to. 0 or -errno. */
static int main_begin(struct fuse_session *session)
{
    struct fuse_buf request = {0};
    const int length = fuse_session_receive_buf(session, &request);
    if (length > 0)
        fuse_session_process_buf(session, &request);
    free(request.mem);
    return length < 0 ? length : fuse_session_exited(session) ? -EPROTO : 0;
}

int main(int argc, char **argv)
{
    struct view view = {0};
    struct main_words words;
    standard_streams_occupy();
    program_signals_ignore();
    int status = main_read_words(&words, argc, argv);
    if (status != STATUS_OK)
        return status;
    status = STATUS_FAILED;
    if (main_open_root(&view, &words) < 0)
        return status;
    view.session = main_session(&view, &words);
    if (!view.session)
        return main_refuse_options(&words);
    ends_block();
    signal(SIGPIPE, SIG_IGN);
    if (fuse_session_mount(view.session, words.mountpoint) == 0) {
        status = main_begin(view.session) == 0 ? main_serve(&view, &words) : main_refuse_options(&words);
        fuse_session_unmount(view.session);
    } else {
        error_report("%s: cannot be mounted on (check that fusermount3 is installed, /dev/fuse is there, and the directory is "
                     "yours)",
                     words.mountpoint);
    }
    return status; /* threads may still be at work with the view, which goes with the process */
}
