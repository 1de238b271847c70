/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/magic.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/faults.h"
#include "base/sys.h"
#include "base/clock.h"
#include "base/hook.h"
#include "base/log.h"
#include "base/program_signals.h"
#include "config/settings.h"
#include "coordinator/coordinator.h"
#include "coordinator/evict.h"
#include "coordinator/rename_fence.h"
#include "disk/disk.h"
#include "home/home.h"
#include "listen/listen.h"
#include "listen/predecessor.h"
#include "membership/failure_detector.h"
#include "membership/heartbeat.h"
#include "membership/homes.h"
#include "membership/root_watch.h"
#include "membership/session_view.h"
#include "name_cache.h"
#include "ops/ops.h"
#include "peer/addresses.h"
#include "prefetch/grant.h"
#include "prefetch/prefetch.h"
#include "recorder/recorder.h"
#include "reply/answer_queue.h"
#include "rpc/collective.h"
#include "rpc/deferred.h"
#include "rooms.h"
#include "session/job.h"
#include "session/run_dirs.h"
#include "union/placement.h"
#include "user_watch.h"

#define INDEX_SIZE (64ull << 30) /* the most it may grow to; about 200 bytes a name are used */
#define INDEX_LEAST (16ull << 20)
#define DISK_THREADS 4
#define PULSE_THREADS 2      /* one heartbeats, one looks at others, which may take long where one of them hangs */
#define NO_NETWORK (-ENONET) /* of start_join: it cannot be opened, which was said */
#define HOME_OPENS (10 * CLOCK_SECOND)
#define HOME_ANSWERS (10 * CLOCK_SECOND)

static struct shuntd *running; /* for the signal handler */

/* Every failure to start is one sentence on standard error. */
__attribute__((format(printf, 2, 3))) static int start_fail(int code, const char *format, ...)
{
    va_list more;
    va_start(more, format);
    fputs("shuntd: ", stderr);
    vfprintf(stderr, format, more);
    fputc('\n', stderr);
    va_end(more);
    return code;
}

int start_interrupted(void)
{
    return start_fail(-EINTR, "interrupted before it served (start it again)");
}

static const struct option long_options[] = {
    {"root", required_argument, NULL, 'r'},      {"node", required_argument, NULL, 'n'},
    {"placement", required_argument, NULL, 'p'}, {"leaf-full", required_argument, NULL, 'l'},
    {"alone", no_argument, NULL, 'a'},           {"foreground", no_argument, NULL, 'f'},
    {"again", no_argument, NULL, 'A'},           {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},         {0},
};

static const char help[] = "usage: shuntd --root DIR [--node NAME] [--placement auto|branch] [--leaf-full N] [--alone]\n"
                           "              [--again] [--foreground]\n"
                           "Serves the files under DIR on this node until SIGTERM. Usually started by `shunt start` or `shunt "
                           "run`.\n";

static int start_option(struct shuntd_options *options, int which, const char *value)
{
    uint64_t number;
    switch (which) {
    case 'r':
        if (options->root[0] != '\0')
            return start_fail(-EINVAL, "%s: a shuntd serves one root (start another shuntd for this one)", value);
        if (strlen(value) >= sizeof options->root)
            return start_fail(-EINVAL, "--root: the path is too long (give one of less than %zu bytes)", sizeof options->root);
        strcpy(options->root, value);
        return 0;
    case 'n':
        if (!layout_node_is_valid(value, strlen(value)))
            return start_fail(
                -EINVAL, "node name '%s': invalid (use at most %d letters, digits, '-', '_' and '.', a letter or digit first)",
                value, LAYOUT_NODE_MAX);
        strcpy(options->node, value);
        return 0;
    case 'p':
        if (config_placement_parse(value, &options->placement) != 0)
            return start_fail(-EINVAL, "--placement '%s': neither auto nor branch (give one of them)", value);
        return 0;
    case 'l':
        if (config_number_parse(value, UINT32_MAX, &number) != 0)
            return start_fail(-EINVAL, "--leaf-full '%s': not a number from 1 to %u (give one)", value, UINT32_MAX);
        options->leaf_full = (uint32_t)number;
        return 0;
    case 'a':
        options->fabric = "none";
        return 0;
    case 'f':
        options->foreground = true;
        return 0;
    case 'A':
        options->again = true;
        return 0;
    case 'h':
        fputs(help, stdout);
        return 1;
    case 'V':
        puts("shuntd " SHUNT_VERSION);
        return 1;
    default:
        return start_fail(-EINVAL, "usage error (see 'shuntd --help')");
    }
}

static void start_default_node(char node[LAYOUT_NODE_MAX + 1])
{
    char host[LAYOUT_NODE_MAX + 1] = "";
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    strcpy(node, layout_node_is_valid(host, strlen(host)) ? host : "node");
}

static struct settings settings;

static void start_say_about_settings(bool is_error, const char *sentence)
{
    if (is_error) /* what is only doubtful, the tool that started this one says */
        start_fail(-EINVAL, "%s", sentence);
}

/* Of the site's own directory for configuration, which is found from that of this program. */
static const char *start_tree_file(char to[PATH_MAX])
{
    const ssize_t length = SHUNT_CONF_FROM_LIBEXEC[0] == '/' ? 0 : readlink("/proc/self/exe", to, PATH_MAX - 1);
    if (length < 0)
        return NULL;
    to[length] = '\0';
    char *slash = strrchr(to, '/');
    const size_t before = slash != NULL ? (size_t)(slash - to) + 1 : 0;
    return snprintf(to + before, PATH_MAX - before, "%s", SHUNT_CONF_FROM_LIBEXEC) < (int)(PATH_MAX - before) ? to : NULL;
}

static int start_read_settings(void)
{
    char tree_file[PATH_MAX];
    const int code = settings_read(&settings, environ, start_tree_file(tree_file), start_say_about_settings);
    return code == 0 ? settings_to_environment(&settings) : code;
}

static int start_from_environment(struct shuntd_options *options)
{
    struct config config;
    const int code = start_read_settings();
    if (code != 0)
        return code;
    config_read(&config, environ);
    const char *bad = config.bad != NULL ? config.bad : settings_bad_variable(&settings);
    if (bad != NULL)
        return start_fail(-EINVAL, "%s: invalid value (correct it or unset it)", bad);
    options->job = config.job;
    options->run_base = config.run_base;
    options->catalogue_base = config.catalogue_base;
    options->catalogue_quiet = config.catalogue_quiet;
    options->placement = config.placement;
    options->leaf_full = config.leaf_full;
    options->index_limit = config.index_limit;
    options->stale = config.stale;
    options->deadline = config.deadline;
    options->fabric = config.fabric;
    options->logs_to_syslog = strcmp(settings_text(&settings, SETTINGS_LOG), "syslog") == 0;
    if (!settings_log_dir(&settings, environ, options->log_dir))
        options->log_dir[0] = '\0';
    start_default_node(options->node);
    return config.node != NULL ? start_option(options, 'n', config.node) : 0;
}

int start_options(struct shuntd_options *options, int argc, char *argv[])
{
    int code = start_from_environment(options);
    for (int which; code == 0 && (which = getopt_long(argc, argv, "", long_options, NULL)) != -1;)
        code = start_option(options, which, optarg);
    if (code == 0 && (options->root[0] == '\0' || optind < argc))
        code = start_fail(-EINVAL, "no root is given (name the shared directory with --root DIR)");
    return code;
}

/* Of the process that waits: the child, and whether that was told to end. */
static struct {
    volatile pid_t child;
    volatile sig_atomic_t told;
} waits;

static const int ending_signals[] = {SIGTERM, SIGINT, SIGHUP};
#define ENDING_SIGNALS (sizeof ending_signals / sizeof *ending_signals)

static void start_pass_on(int number)
{
    if (!waits.told)
        kill(waits.child, SIGTERM);
    waits.told = 1;
}

static void start_block_ending(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ENDING_SIGNALS; i++)
        sigaddset(&set, ending_signals[i]);
    sigprocmask(SIG_BLOCK, &set, before);
}

/* A signal that is ignored, as by nohup, stays so. */
static void start_catch_ending(void)
{
    const struct sigaction action = {.sa_handler = start_pass_on};
    struct sigaction now;
    for (size_t i = 0; i < ENDING_SIGNALS; i++)
        if (sigaction(ending_signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(ending_signals[i], &action, NULL);
}

/* Told to end, it ends once the child has, whatever that said before. Its status. */
static int start_wait_for_child(int ready, const sigset_t *before)
{
    char word = 0;
    ssize_t got;
    sigset_t mask;
    start_catch_ending();
    sigprocmask(SIG_SETMASK, before, NULL);
    while ((got = read(ready, &word, 1)) < 0 && errno == EINTR)
        continue;
    start_block_ending(&mask);
    if (got == 1 && word == 'y' && !waits.told)
        return 0;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    int status = 0;
    while (waitpid(waits.child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (got == 1 && word == START_WORD_AGAIN)
        return SHUNTD_AGAIN;
    if (WIFSIGNALED(status) || WEXITSTATUS(status) == 0) /* else it has said why */
        start_interrupted();
    return 1;
}

/* A lock, or a pipe, that a script holds would last as long as the daemon. */
static void start_close_inherited(void)
{
    if (SYS3(SYS_close_range, STDERR_FILENO + 1, ~0u, 0) != -ENOSYS)
        return;
    for (long fd = sysconf(_SC_OPEN_MAX); fd > STDERR_FILENO; fd--)
        close((int)fd);
}

int start_background(void)
{
    int ends[2];
    sigset_t before;
    start_close_inherited();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return start_fail(-1, "cannot make a pipe: %s (raise the limit on open files with 'ulimit -n')", strerror(errno));
    start_block_ending(&before);
    waits.child = fork();
    if (waits.child < 0)
        return start_fail(-1, "cannot start a process: %s (end other processes and run this again)", strerror(errno));
    if (waits.child > 0) {
        close(ends[1]);
        _exit(start_wait_for_child(ends[0], &before));
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    setsid();
    return ends[1];
}

void start_detach(const char *run_dir)
{
    char log[PATH_MAX + 8];
    snprintf(log, sizeof log, "%s/log", run_dir);
    int to = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (none >= 0) {
        dup2(none, STDIN_FILENO);
        dup2(none, STDOUT_FILENO);
    }
    if (to >= 0 || none >= 0)
        dup2(to >= 0 ? to : none, STDERR_FILENO);
    if (none >= 0)
        close(none);
    if (to >= 0)
        close(to);
    if (chdir("/") != 0)
        log_line("/: cannot be made the working directory");
}

void start_ready(int ready, int code)
{
    char words[1 + SESSION_RUN_MAX] = {code == START_AGAIN ? START_WORD_AGAIN : 'n', '\0'};
    if (ready < 0)
        return;
    if (code == 0) {
        snprintf(words, sizeof words, "y%s", running->run_dir);
        start_detach(running->run_dir);
    }
    if (write(ready, words, strlen(words)) < 0)
        log_line("shuntd: the process that started it has ended");
    close(ready);
}

/* A batch system tells all processes, and the supervisor passes on what it was told: that is one request. */
static void start_on_signal(int signal, siginfo_t *info, void *context)
{
    static volatile int told[2];
    bool passed_on = running->supervisor != 0 && info->si_pid == running->supervisor;
    told[passed_on] = told[passed_on] + 1;
    running->stop = told[0] > told[1] ? told[0] : told[1];
    if (running->listen != NULL)
        listen_ring(running->listen);
}

/* The daemon ends: one more request to end changes nothing. All other threads block these signals, so the handler is not at
 * work anywhere. */
static void start_ignore_signals(void)
{
    const struct sigaction action = {.sa_handler = SIG_IGN};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

static void start_take_signals(struct shuntd *shuntd)
{
    struct sigaction action = {.sa_sigaction = start_on_signal, .sa_flags = SA_SIGINFO};
    running = shuntd;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    action = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); /* EFBIG, of the index or the log, will do */
    program_signals_ignore();
}

/* The daemon before this one crashed, and the root is not there any more: what is left is to take away its files. */
static int start_end_former(struct shuntd *shuntd)
{
    strcpy(shuntd->run_dir, shuntd->former_run_dir);
    root_watch_tell(shuntd);
    return -ENOENT;
}

/* What the site forbids. */
static int start_check_policy(const char *path, const char *canonical)
{
    char origin[PATH_MAX + 32];
    const char *message = settings_text(&settings, SETTINGS_MESSAGE);
    enum settings_key key;
    if (settings_are_off(&settings))
        return start_fail(-EPERM, "off on this host%s%s (%s says 'enabled = no')", *message != '\0' ? ": " : "", message,
                          settings_origin(&settings, SETTINGS_ENABLED, origin));
    if (!settings_allow_root(&settings, canonical, &key))
        return start_fail(-EPERM, "%s: no root is allowed there on this host (see '%s' in %s)", path, settings_name(key),
                          settings_origin(&settings, key, origin));
    return 0;
}

static bool start_is_directory(const char *path)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, path, 0, STATX_TYPE, &stat) == 0 && S_ISDIR(stat.stx_mode);
}

static int start_open_root(struct shuntd *shuntd)
{
    const char *path = shuntd->options.root;
    int code = union_root_init(&shuntd->root, path, 0);
    if ((code == -ENOENT || code == -ENOTDIR) && shuntd->former_run_dir != NULL)
        return start_end_former(shuntd);
    if (code == -ENOENT)
        return start_fail(code, "%s: does not exist (make the directory first)", path);
    if (code == -ENOTDIR && start_is_directory(path))
        return start_fail(code, "%s/" LAYOUT_OWN ": not a directory (it is not shunt's: move it away)", path);
    if (code == -ENOTDIR)
        return start_fail(code, "%s: not a directory (give the directory to be shared)", path);
    if (code != 0)
        return start_fail(code, "%s: cannot be opened: %s (check its path and permissions)", path, strerror(-code));
    return start_check_policy(path, shuntd->root.path);
}

static int start_name_run_dir(struct shuntd *shuntd)
{
    struct text t;
    text_init(&t, shuntd->run_dir, sizeof shuntd->run_dir);
    session_run_dir(&t, shuntd->options.run_base, geteuid(), shuntd->root.device, shuntd->root.id.ino, shuntd->options.node);
    if (!text_ok(&t))
        return start_fail(-ENAMETOOLONG, "SHUNT_RUN_DIR: the path is too long (name a shorter one)");
    const bool is_same = shuntd->former_run_dir == NULL || (strcmp(shuntd->former_run_dir, shuntd->run_dir) == 0 &&
                                                            predecessor_served_root(shuntd->run_dir, shuntd->root.id));
    return is_same ? 0 : start_end_former(shuntd); /* another directory is at that path now, maybe with its inode number */
}

static int start_refuse_root(const struct shuntd *shuntd, int code)
{
    const char *path = shuntd->root.path;
    switch (code) {
    case -EMEDIUMTYPE:
        return start_fail(
            code,
            "%s: cannot be served, the inode numbers of its file system are not stable (use a directory on another "
            "file system, which 'shunt doctor --root DIR' checks)",
            path);
    case -EOPNOTSUPP:
        return start_fail(code,
                          "%s: cannot be served, its file system has no hard links (use a directory on another file system, "
                          "which 'shunt doctor --root DIR' checks)",
                          path);
    case -ELOOP:
        return start_fail(code, "%s: lies inside another root (give that root instead)", path);
    case -EBUSY:
        return start_fail(code, "%s: cannot be a root, all other roots are below it (give the directory to be shared)", path);
    case -EROFS:
        return start_fail(code, "%s: the file system is read-only (remount it writable, or read with 'shunt ls')", path);
    default:
        return start_fail(code, "%s: cannot be made a root: %s (check permissions, quota and space there)", path,
                          strerror(-code));
    }
}

static int start_prepare_root(struct shuntd *shuntd)
{
    bool restamped;
    int code = session_prepare_root(shuntd->root.path, &restamped);
    if (code == -ENOENT && shuntd->options.again) /* an export removes what it makes */
        return START_AGAIN;
    if (code != 0)
        return start_refuse_root(shuntd, code);
    if (restamped)
        log_line("%s: a copy of another root, it now has a stamp of its own", shuntd->root.path);
    return 0;
}

/* A user that can do neither. */
static int start_refuse_user(const struct shuntd *shuntd, const struct session *session, const struct session_member *member)
{
    char words[1024];
    const char *root = shuntd->root.path;
    session_describe(session, member, words, sizeof words);
    return start_fail(-EBUSY, "%s: %s (ask that user to run 'shunt stop --root %s', or read with 'shunt ls %s')", root, words,
                      root, root);
}

static int start_refuse_session(const struct shuntd *shuntd, const struct session *session)
{
    char words[1024];
    const char *root = shuntd->root.path;
    const struct session_member *member = session_living(session);
    if (session->uid != geteuid())
        return start_refuse_user(shuntd, session, member);
    session_describe(session, member, words, sizeof words);
    if (member != NULL && session_lives(member) == -EREMOTE)
        return start_fail(-EBUSY, "%s: %s (run 'shunt stop --root %s' on that host, or wait for its end)", root, words, root);
    return start_fail(-EBUSY, "%s: %s (run 'shunt stop --root %s', or use it with 'shunt exec')", root, words, root);
}

/* A tool of the same user's has it, which ends: a tool that starts this daemon waits for that, and starts it again. */
static bool start_is_for_later(const struct shuntd *shuntd, const struct session *session)
{
    return shuntd->options.again && session_is_held(session) && session->uid == geteuid();
}

static int start_refuse(const struct shuntd *shuntd, const struct session *session)
{
    return start_is_for_later(shuntd, session) ? START_AGAIN : start_refuse_session(shuntd, session);
}

/* A daemon of the same user joins, under a name that nobody goes by. A tool that holds the root serves nobody. */
static bool start_can_join(const struct shuntd *shuntd, const struct session *session)
{
    const struct session_member *same = session_find_node(session, shuntd->options.node);
    return !session_is_held(session) && session->uid == geteuid() && strcmp(shuntd->options.fabric, "none") != 0 &&
           (same == NULL || session_lives(same) == 0);
}

/* Before anything is written under the root: a start that is refused leaves no trace. What else may be wrong
 * with a session, the claim finds out. */
static int start_check_session(struct shuntd *shuntd)
{
    struct session session;
    int code = session_read(shuntd->root.path, &session);
    if (code == 0 && session_living(&session) != NULL)
        code = start_can_join(shuntd, &session) ? 0 : start_refuse(shuntd, &session);
    session_finish(&session);
    return code == -EBUSY || code == START_AGAIN ? code : 0;
}

static void start_ring_for_peers(void *context)
{
    struct shuntd *shuntd = context;
    struct listen *listen = __atomic_load_n(&shuntd->listen, __ATOMIC_ACQUIRE);
    bool (*serve_frames)(struct shuntd *) = __atomic_load_n(&shuntd->serve_frames, __ATOMIC_ACQUIRE);
    if (listen != NULL && (serve_frames == NULL || !serve_frames(shuntd)))
        listen_ring(listen);
}

/* Where this daemon is reached is told once it can be joined (session_view_publish_address), also if it tried to join before.
 */
static int start_found(struct shuntd *shuntd)
{
    struct passwd *user = getpwuid(geteuid());
    shuntd->me.address_size = 0;
    shuntd->joined = clock_boot();
    return session_found(shuntd->root.path, user != NULL ? user->pw_name : "unknown", &shuntd->me, 0, shuntd->options.stale,
                         &shuntd->session);
}

static int start_try_to_join(struct shuntd *shuntd)
{
    shuntd->joined = clock_boot();
    return session_join(shuntd->root.path, &shuntd->me, &shuntd->session);
}

/* If this node was taken for lost, the daemon that fences its old branch drops its old member; that takes no longer than a
 * lease, unless that one is lost itself. */
static int start_join_when_dropped(struct shuntd *shuntd)
{
    const struct timespec pause = clock_split(SESSION_BEAT / 20);
    uint64_t until = clock_monotonic() + 4 * shuntd->options.stale + SESSION_STALE;
    int code = start_try_to_join(shuntd);
    if (code == -EINPROGRESS)
        log_line("node %s: taken for lost, it joins again once its old branch is fenced", shuntd->me.node);
    while (code == -EINPROGRESS && shuntd->stop == 0 && clock_monotonic() < until) {
        clock_sleep(&pause);
        code = start_try_to_join(shuntd);
    }
    return code;
}

/* Others must know where to reach a daemon from the moment on that it is a member. */
static int start_join(struct shuntd *shuntd)
{
    size_t size = sizeof shuntd->me.address;
    int code =
        peers_is_open(shuntd->peers) ? 0 : peers_open(shuntd->peers, shuntd->options.fabric, start_ring_for_peers, shuntd);
    if (code == 0)
        code = peers_address(shuntd->peers, shuntd->me.address, &size);
    if (code != 0)
        return start_fail(
            NO_NETWORK,
            "SHUNT_FABRIC '%s': the network cannot be opened: %s (run 'shunt doctor', which names the interfaces of this host)",
            shuntd->options.fabric, strerror(-code));
    shuntd->me.address_size = (uint8_t)size;
    shuntd->me.home = SESSION_GUEST; /* it may have tried to found a session before */
    return start_join_when_dropped(shuntd);
}

/* Many daemons may start at once: one of them founds the session, and it may end meanwhile. */
static int start_found_or_join(struct shuntd *shuntd)
{
    int code = start_found(shuntd);
    for (int i = 0; i < 10 && code == -EBUSY && start_can_join(shuntd, &shuntd->session); i++) {
        session_finish(&shuntd->session);
        code = start_join(shuntd);
        if (code == -ENOENT) {
            session_finish(&shuntd->session);
            code = start_found(shuntd);
        }
    }
    return code;
}

/* An export may have removed it before this daemon had the root. */
static int start_has_branch(const struct shuntd *shuntd)
{
    if (access(shuntd->branch_path, F_OK) == 0)
        return 0;
    if (shuntd->options.again)
        return START_AGAIN;
    return start_fail(-ENOENT, "%s: was removed while shuntd started (run this again)", shuntd->branch_path);
}

static int start_claim_session(struct shuntd *shuntd)
{
    int code = start_found_or_join(shuntd);
    if (code == 0)
        return start_has_branch(shuntd);
    shuntd->me.number = 0;
    if (code == NO_NETWORK)
        return code;
    if (code == -ENOENT && shuntd->options.again)
        return START_AGAIN;
    if (code == -EBUSY || code == -EACCES)
        return start_refuse(shuntd, &shuntd->session);
    if (code == -EINPROGRESS)
        return start_fail(
            code,
            "node %s: was silent for so long that the others went on without it, and they do not let it in again yet (run this "
            "again, or run 'shunt stop --all --root %s' on another host)",
            shuntd->options.node, shuntd->root.path);
    if (code == -EXDEV)
        return start_fail(code, "%s: another file system than the one of its session (mount that one here)", shuntd->root.path);
    if (code == -EBADMSG)
        return start_fail(
            code,
            "%s: its session is of another version of shunt (run 'shunt stop --root %s' of that version, or 'shunt "
            "export %s' of it if its job was killed)",
            shuntd->root.path, shuntd->root.path, shuntd->root.path);
    return start_fail(code, "%s: the session cannot be written: %s (check permissions, quota and space of %s/.shunt)",
                      shuntd->root.path, strerror(-code), shuntd->root.path);
}

/* The home of the names may be just about to open its end. */
static int start_find_home(struct shuntd *shuntd)
{
    const struct timespec pause = clock_split(20 * CLOCK_MILLISECOND);
    const struct session_member *home;
    uint64_t until = clock_monotonic() + HOME_OPENS;
    int code = 0;
    while (code == 0 && shuntd->stop == 0 && (home = session_home(&shuntd->session)) != NULL && home->address_size == 0) {
        if (clock_monotonic() > until)
            return start_fail(
                -EHOSTUNREACH,
                "%s: in use on host %s by a session that no other host can join (wait for the end of its 'shunt run', or run "
                "'shunt stop --root %s' there and start it with SHUNT_FABRIC=tcp)",
                shuntd->root.path, home->host, shuntd->root.path);
        clock_sleep(&pause);
        session_finish(&shuntd->session);
        code = session_read(shuntd->root.path, &shuntd->session);
    }
    return code == 0
               ? 0
               : start_fail(code, "%s: the session cannot be read: %s (run this again)", shuntd->root.path, strerror(-code));
}

static int start_fail_join(const struct shuntd *shuntd, int code)
{
    return start_fail(code, "%s: the session cannot be joined: %s (run this again)", shuntd->root.path, strerror(-code));
}

static int start_adopt(struct shuntd *shuntd)
{
    int code = session_view_adopt(shuntd);
    return code == 0 ? 0 : start_fail_join(shuntd, code);
}

static int start_ask_home(struct shuntd *shuntd)
{
    int code = session_view_join(shuntd, HOME_ANSWERS);
    const struct session_member *home = session_home(&shuntd->session);
    if (code == 0)
        return 0;
    if (shuntd->stop != 0)
        return start_interrupted();
    if (code == -ETIMEDOUT && shuntd->options.again) /* its job may have ended meanwhile */
        return START_AGAIN;
    if (code != -ETIMEDOUT || home == NULL)
        return start_fail_join(shuntd, code);
    char addresses[ADDRESSES_TEXT_MAX], job[SESSION_JOB_MAX + sizeof " job "];
    struct text t;
    text_init(&t, job, sizeof job);
    session_job_describe(&t, home->job);
    addresses_text(home->address, home->address_size, addresses);
    return start_fail(
        code,
        "%s: in use by a session whose daemon on host %s%s%s does not answer%s%s (if that job has ended, run 'shunt start "
        "--takeover --root %s', else 'shunt doctor --host %s'; SHUNT_FABRIC=tcp:INTERFACE names the network that the hosts "
        "share)",
        shuntd->root.path, home->host, t.length > 0 ? " for " : "", job, addresses[0] != '\0' ? " at " : "", addresses,
        shuntd->root.path, home->host);
}

static void *start_open_fabric(void *context)
{
    struct shuntd *shuntd = context;
    HOOK("fabric-opens");
    int code = peers_open(shuntd->peers, shuntd->options.fabric, start_ring_for_peers, shuntd);
    if (code != 0)
        log_warning("SHUNT_FABRIC '%s': the network cannot be opened, so no other node can join: %s", shuntd->options.fabric,
                    strerror(-code));
    return NULL;
}

/* It takes a while, and nobody needs it yet: see session_view_publish_address. */
static int start_open_fabric_meanwhile(struct shuntd *shuntd)
{
    homes_found(shuntd);
    heartbeat_adopt(shuntd);
    if (strcmp(shuntd->options.fabric, "none") == 0 || peers_is_open(shuntd->peers))
        return 0;
    /* As all threads but main's: the handler is not at work while main's thread takes down what it touches. */
    sigset_t all, before;
    faults_excepted(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&shuntd->fabric_thread, NULL, start_open_fabric, shuntd);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    shuntd->fabric_opens = code == 0;
    return -code;
}

static int start_enter_session(struct shuntd *shuntd)
{
    const struct session_member *home = session_home(&shuntd->session);
    if (home != NULL && home->number == shuntd->me.number)
        return start_open_fabric_meanwhile(shuntd);
    int code = start_find_home(shuntd);
    if (code == 0)
        code = start_adopt(shuntd);
    return code == 0 ? start_ask_home(shuntd) : code;
}

static int start_describe_self(struct shuntd *shuntd)
{
    int code = peers_create(&shuntd->peers);
    shuntd->branch_of = calloc(UINT16_MAX + 1, sizeof *shuntd->branch_of);
    if (code != 0 || shuntd->branch_of == NULL)
        return start_fail(-ENOMEM, "not enough memory (free some and run this again)");
    session_self(&shuntd->me, shuntd->options.node);
    strcpy(shuntd->me.run_dir, shuntd->run_dir);
    strcpy(shuntd->me.job, shuntd->options.job);
    return 0;
}

static int start_claim_branch(struct shuntd *shuntd)
{
    int code = session_claim_branch(shuntd->root.path, shuntd->options.node, shuntd->me.branch);
    if (code == -ENOENT && shuntd->options.again)
        return START_AGAIN;
    if (code != 0)
        return start_fail(code, "%s: no directory for this host's files can be made: %s (check quota and space of %s/.shunt)",
                          shuntd->root.path, strerror(-code), shuntd->root.path);
    int number = union_root_add(&shuntd->root, shuntd->me.branch);
    if (number < 0)
        return start_fail(number, "not enough memory (free some and run this again)");
    shuntd->branch = (uint16_t)number;
    snprintf(shuntd->branch_path, sizeof shuntd->branch_path, "%s/" LAYOUT_BRANCHES "/%s", shuntd->root.path,
             shuntd->me.branch);
    return 0;
}

/* Something cannot be made in the run directory. */
static int start_fail_run_dir(const struct shuntd *shuntd, int code)
{
    if (code == -ENOSPC || code == -EDQUOT)
        return start_fail(
            code,
            "%s: the run directory is full (make room there, 'shunt cleanup' removes what ended jobs left, or set "
            "SHUNT_RUN_DIR to another local directory)",
            shuntd->run_dir);
    return start_fail(code, "%s: cannot be made: %s (set SHUNT_RUN_DIR to a local directory)", shuntd->run_dir,
                      strerror(-code));
}

static int start_make_run_dir(struct shuntd *shuntd)
{
    char parent[PATH_MAX];
    struct stat stat;
    strcpy(parent, shuntd->run_dir);
    *strrchr(parent, '/') = '\0';
    if ((mkdir(parent, 0700) != 0 && errno != EEXIST) || (mkdir(shuntd->run_dir, 0700) != 0 && errno != EEXIST))
        return start_fail_run_dir(shuntd, -errno);
    if (lstat(parent, &stat) != 0 || !S_ISDIR(stat.st_mode) || stat.st_uid != geteuid())
        return start_fail(-EPERM, "%s: not a directory that you own (set SHUNT_RUN_DIR to another directory)", parent);
    if ((stat.st_mode & 077) != 0)
        return start_fail(-EPERM,
                          "%s: not a directory that you alone may use (run 'chmod 700 %s', or set SHUNT_RUN_DIR to another "
                          "directory)",
                          parent, parent);
    return 0;
}

static int start_await(struct shuntd *shuntd, pid_t (*holder)(const char *), const char *where)
{
    const struct timespec pause = clock_split(5 * CLOCK_MILLISECOND);
    uint64_t began = clock_monotonic();
    bool told = false;
    pid_t pid;
    while ((pid = holder(where)) != 0 && shuntd->stop == 0 && !BROKEN("former-unawaited")) {
        if (!told && clock_monotonic() - began > CLOCK_SECOND) {
            log_line("process %d: waits for the end of a call that began under an earlier daemon (if it is stopped, run 'kill "
                     "-CONT %d')",
                     (int)pid, (int)pid);
            told = true;
        }
        clock_sleep(&pause);
    }
    return shuntd->stop == 0 ? 0 : start_interrupted();
}

/* A daemon that served here before may have crashed, and processes be at what it let them begin. Until they are done,
 * nothing is looked at, nor is its place in the session taken, since others would look then. */
static int start_await_former(struct shuntd *shuntd)
{
    return start_await(shuntd, predecessor_holder, shuntd->run_dir);
}

/* A daemon that founds a session again, since no member of the one before lives, waits for the processes of its other nodes,
 * too. */
static int start_await_others(struct shuntd *shuntd)
{
    char beginning[SESSION_RUN_MAX];
    struct text t;
    HOOK("session-claimed");
    const struct session_member *home = session_home(&shuntd->session);
    if (home == NULL || home->number != shuntd->me.number)
        return 0;
    text_init(&t, beginning, sizeof beginning);
    session_run_dir(&t, shuntd->options.run_base, geteuid(), shuntd->root.device, shuntd->root.id.ino, "");
    return text_ok(&t) ? start_await(shuntd, predecessor_holder_of_any, beginning) : -ENAMETOOLONG;
}

/* The map takes no memory, but address space, of which half is for the rest. */
static size_t start_index_size(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur / 2 > INDEX_SIZE)
        return INDEX_SIZE;
    uint64_t size = limit.rlim_cur / 2;
    return size > INDEX_LEAST ? size / INDEX_LEAST * INDEX_LEAST : INDEX_LEAST;
}

static int start_open_index(struct shuntd *shuntd)
{
    struct index_stamp stamp = {.session = shuntd->session.id, .root = shuntd->root.id};
    const uint64_t most = settings_limit(&settings, SETTINGS_INDEX_LIMIT_MAX);
    shuntd->options.index_limit = evict_limit(shuntd->options.index_limit, shuntd->run_dir);
    shuntd->options.index_limit = shuntd->options.index_limit < most ? shuntd->options.index_limit : most;
    int code = union_root_look(&shuntd->root); /* others may have come and gone since it was opened */
    if (code == 0)
        code = index_create(&shuntd->index, shuntd->run_dir, start_index_size(), &stamp);
    for (size_t i = 0; code == 0 && i < shuntd->root.branch_count; i++)
        code = index_put_branch(shuntd->index, (uint16_t)(i + 1), shuntd->root.branches[i]);
    if (code == 0) /* a root that can take no name is not served */
        code = index_make_room_for(shuntd->index, 1, 0);
    if (code != 0)
        return start_fail_run_dir(shuntd, code);
    return 0;
}

static void start_ring(struct shuntd *shuntd)
{
    listen_ring(shuntd->listen);
}

/* The kernel keeps no names of a file system in user space, unless that one promises that they hold for a time. */
static bool start_is_far(const struct shuntd *shuntd)
{
    struct statfs filesystem;
    const bool is_fuse = statfs(shuntd->root.path, &filesystem) == 0 && filesystem.f_type == FUSE_SUPER_MAGIC;
    return (is_fuse && !BROKEN("far")) || BROKEN("near");
}

/* What is promised there, and what would change that. */
static void start_judge_names(struct shuntd *shuntd)
{
    shuntd->root.keeps_names = name_cache_is_kept(shuntd->root.path);
    if (shuntd->root.keeps_names)
        log_line("%s: names of another time may be kept by NFS, so each call asks the server for its directory first: "
                 "names that nodes use at once may be missed for a moment, attributes of files are as old as NFS keeps them "
                 "(mount it with lookupcache=none to have names strict)",
                 shuntd->root.path);
}

static int start_open_rooms(struct shuntd *shuntd)
{
    int code = answer_queue_create(&shuntd->answers);
    if (code == 0)
        code = prefetch_create(&shuntd->prefetch);
    if (code == 0)
        code = grant_create(&shuntd->grants);
    if (code == 0)
        code = listen_create(&shuntd->listen, shuntd->run_dir, shuntd->session.id, shuntd->root.id, shuntd->supervisor);
    const struct home_uses uses = {.index = shuntd->index,
                                   .listen = shuntd->listen,
                                   .now = &shuntd->now,
                                   .blocked = &shuntd->counts.blocked,
                                   .waited = &shuntd->counts.waited};
    if (code == 0)
        code = home_create(&shuntd->home, &uses);
    if (code == 0)
        listen_set_branch(shuntd->listen, shuntd->branch);
    if (code == 0 && start_is_far(shuntd))
        listen_set_slow_lookup(shuntd->listen);
    start_judge_names(shuntd);
    if (code == 0)
        code = disk_create(&shuntd->disk, shuntd, DISK_THREADS, start_ring);
    if (code == 0)
        code = disk_create(&shuntd->heartbeat_disk, shuntd, PULSE_THREADS, start_ring);
    if (code == 0)
        code = failure_detector_create(shuntd);
    if (code == 0)
        code = recorder_create(shuntd);
    if (code != 0)
        return start_fail_run_dir(shuntd, code);
    return 0;
}

/* For whoever finds the run directory; a daemon for which there is no room serves without it. */
static int start_describe_run_dir(struct shuntd *shuntd)
{
    struct run_dirs_about about = {.since = shuntd->me.since};
    struct session_job job;
    strcpy(about.root, shuntd->root.path);
    strcpy(about.node, shuntd->options.node);
    if (session_job_read(&job, environ)) {
        snprintf(about.scheduler, sizeof about.scheduler, "%s", job.scheduler);
        strcpy(about.job, job.id);
        strcpy(about.step, job.step);
    }
    int code = run_dirs_about_write(shuntd->run_dir, &about);
    if (code != 0)
        log_line("%s/" RUN_DIRS_ABOUT ": cannot be written: %s", shuntd->run_dir, strerror(-code));
    return 0;
}

static void start_choose_leaf_full(struct shuntd *shuntd)
{
    struct statfs filesystem;
    if (shuntd->options.leaf_full == 0 && statfs(shuntd->root.path, &filesystem) == 0)
        shuntd->options.leaf_full = placement_leaf_full((uint64_t)filesystem.f_type);
    if (shuntd->options.leaf_full >
        settings_limit(&settings, SETTINGS_LEAF_FULL_MAX)) /* of the command line, or that default */
        shuntd->options.leaf_full = (uint32_t)settings_limit(&settings, SETTINGS_LEAF_FULL_MAX);
}

/* What was meant for the programs of a job. A pidfd is taken for every process that uses the channel. */
static void start_raise_limits(void)
{
    static const int limits[] = {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE};
    struct rlimit limit;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (getrlimit(limits[i], &limit) != 0)
            continue;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(limits[i], &limit);
    }
}

int start(struct shuntd *shuntd)
{
    static int (*const steps[])(struct shuntd *) = {
        start_open_root,    start_name_run_dir,  start_check_session,    start_prepare_root,  start_make_run_dir,
        start_await_former, start_describe_self, start_claim_branch,     start_claim_session, start_await_others,
        start_open_index,   start_open_rooms,    start_describe_run_dir, start_enter_session};
    shuntd_init(shuntd);
    rooms_connect(shuntd);
    umask(022);
    start_raise_limits();
    start_take_signals(shuntd);
    int code = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == 0; i++)
        code = shuntd->stop == 0 ? steps[i](shuntd) : start_interrupted();
    start_choose_leaf_full(shuntd);
    return code;
}

static void start_remove_run_dir(const struct shuntd *shuntd, bool with_log)
{
    static const char *const files[] = {"index", "channel", "channel.new", RUN_DIRS_ABOUT, "log"};
    char path[PATH_MAX + 16];
    if (shuntd->root_gone && predecessor_is_served(shuntd->run_dir)) /* a new root has the inode number of that one */
        return;
    recorder_remove_files(shuntd);
    for (size_t i = 0; i < sizeof files / sizeof *files - !with_log; i++) {
        snprintf(path, sizeof path, "%s/%s", shuntd->run_dir, files[i]);
        unlink(path);
    }
    rmdir(shuntd->run_dir);
}

/* The order: no signal handler runs any more (main's thread alone takes the signals); then the threads end, all of which ring
 * the channel's doorbell or serve from the index (the fabric's, the disk's, those of heartbeats, the recorder's; the one that
 * waits for the end of clients is joined by listen_destroy); then the channel, what only main's thread uses, the index, and the
 * files of the run directory. */
void start_undo(struct shuntd *shuntd, bool failed)
{
    bool served = shuntd->index != NULL;
    /* After a crash, and told to end before it served: nobody holds anything of the crashed one's channel any more. */
    const bool follows = shuntd->former_run_dir != NULL && shuntd->me.number != 0;
    shuntd->root_gone |= served && root_watch_misses(shuntd);
    start_ignore_signals();
    if (shuntd->fabric_opens)
        pthread_join(shuntd->fabric_thread, NULL);
    peers_destroy(shuntd->peers);
    disk_destroy(shuntd->disk);
    disk_destroy(shuntd->heartbeat_disk);
    recorder_destroy(shuntd);
    failure_detector_free(shuntd);
    listen_destroy(shuntd->listen);
    collective_free(shuntd);
    rename_fence_free(shuntd);
    coordinator_free(shuntd);
    list_free(shuntd);
    for (struct evict_unrecorded *one; (one = evict_take_unrecorded(shuntd)) != NULL;)
        free(one);
    rpc_deferred_free(shuntd);
    home_destroy(shuntd->home);
    answer_queue_destroy(shuntd->answers);
    prefetch_destroy(shuntd->prefetch);
    grant_destroy(shuntd->grants);
    index_destroy(shuntd->index);
    if (served || follows || shuntd->root_gone)
        start_remove_run_dir(shuntd, !failed);
    else
        rmdir(shuntd->run_dir);                                        /* if it is empty: nobody else's */
    if (shuntd->branch != 0 && !shuntd->cut_off && !shuntd->root_gone) /* else it is to be fenced */
        rmdir(shuntd->branch_path);                                    /* if nothing was redirected */
    if (shuntd->me.number != 0 && !shuntd->root_gone)
        session_leave(shuntd->root.path, shuntd->session.id, shuntd->me.number);
    user_watch_finish();
    session_finish(&shuntd->session);
    free(shuntd->branch_of);
    union_root_finish(&shuntd->root);
}
