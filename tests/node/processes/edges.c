/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* edges WHAT [ARGUMENT]...: calls of a program at the edge of what it may do, in its working directory. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void edges_say(const char *what, long code)
{
    printf("%s: %s\n", what, code < 0 ? strerror(errno) : "done");
}

static int edges_make(const char *name)
{
    return open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
}

static void edges_say_size(const char *name)
{
    struct stat stat_of;
    printf("%s: %ld bytes\n", name, stat(name, &stat_of) == 0 ? (long)stat_of.st_size : -1L);
}

static void edges_hidden(char **words)
{
    edges_say("hides", prctl(PR_SET_DUMPABLE, 0));
    edges_say("open", open("file", O_RDONLY));
    edges_say("make", edges_make("file"));
    edges_say("open elsewhere", open("/etc/passwd", O_RDONLY));
}

static void edges_descriptors(char **words)
{
    struct rlimit before, none;
    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    edges_say("empty it", open("file", O_WRONLY | O_TRUNC));
    edges_say_size("file");
    edges_say("make", edges_make("lock"));
    close(0);
    edges_say("make, where one is free", edges_make("free"));
    setrlimit(RLIMIT_NOFILE, &before);
    edges_say("make, with room", edges_make("lock"));
}

static int step;

static void edges_await_step(int wanted)
{
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != wanted)
        usleep(1000);
}

static void *edges_own_descriptors(void *unused)
{
    unshare(CLONE_FILES);
    const int fd = open("one", O_RDONLY | O_DIRECTORY);
    __atomic_store_n(&step, 1, __ATOMIC_RELEASE);
    edges_await_step(2);
    edges_say("fchmod", fchmod(fd, 0700));
    DIR *stream = fdopendir(fd);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (entry->d_name[0] != '.')
            printf("in one: %s\n", entry->d_name);
    return NULL;
}

static void edges_threads(char **words)
{
    struct stat one, two;
    pthread_t thread;
    mkdir("one", 0755);
    mkdir("two", 0755);
    close(edges_make("one/first"));
    close(edges_make("two/second"));
    pthread_create(&thread, NULL, edges_own_descriptors, NULL);
    edges_await_step(1);
    open("two", O_RDONLY | O_DIRECTORY);
    __atomic_store_n(&step, 2, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    stat("one", &one);
    stat("two", &two);
    printf("%o %o\n", one.st_mode & 0777, two.st_mode & 0777);
}

static void *edges_after_its_leader(void *unused)
{
    int names = 0;
    usleep(50000);
    DIR *stream = opendir(".");
    while (stream != NULL && readdir(stream) != NULL)
        names++;
    printf("%d names\n", names);
    edges_say("fchmod", fchmod(open("d", O_RDONLY | O_DIRECTORY), 0700));
    exit(0);
}

static void edges_leader(char **words)
{
    pthread_t thread;
    mkdir("d", 0755);
    pthread_create(&thread, NULL, edges_after_its_leader, NULL);
    pthread_exit(NULL);
}

static void edges_open_within(int at, const char *path, unsigned long flags, unsigned long resolve)
{
    struct open_how how = {.flags = flags, .mode = flags & O_CREAT ? 0644 : 0, .resolve = resolve};
    edges_say(path, syscall(SYS_openat2, at, path, &how, sizeof how));
}

static void edges_within(char **words)
{
    const int at = open(words[0], O_PATH | O_DIRECTORY), slash = open("/", O_PATH | O_DIRECTORY);
    char path[4096];
    edges_open_within(at, "/file", O_RDONLY, RESOLVE_IN_ROOT);
    edges_open_within(at, "/file", O_CREAT | O_EXCL | O_WRONLY, RESOLVE_IN_ROOT);
    edges_open_within(at, "../../file", O_RDONLY, RESOLVE_IN_ROOT);
    edges_open_within(at, "sub/../../file", O_CREAT | O_WRONLY, RESOLVE_IN_ROOT);
    edges_open_within(at, "/", O_RDONLY, RESOLVE_IN_ROOT);
    snprintf(path, sizeof path, "%s/file", words[0]);
    edges_open_within(slash, path, O_CREAT | O_EXCL | O_WRONLY, RESOLVE_IN_ROOT);
    edges_open_within(slash, "/etc/passwd", O_RDONLY, RESOLVE_IN_ROOT);
    edges_open_within(slash, "/etc/../../etc/passwd", O_RDONLY, RESOLVE_IN_ROOT);
}

static void edges_sandbox(char **words)
{
    struct landlock_ruleset_attr attributes = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE};
    edges_say("sandbox", syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
    edges_say("open", open("file", O_RDONLY));
}

static void edges_capabilities(char **words)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    edges_say("gives them up", syscall(SYS_capset, &header, none));
    edges_say("open", open("secret", O_RDONLY));
}

static void edges_users(char **words)
{
    edges_say("users of its own", unshare(CLONE_NEWUSER));
    edges_say("open", open("secret", O_RDONLY));
}

static void edges_too_large(int signal)
{
    write(1, "SIGXFSZ\n", 8);
}

static void edges_sizes(char **words)
{
    struct rlimit little = {1000, 1000};
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGXFSZ, edges_too_large);
    setrlimit(RLIMIT_FSIZE, &little);
    edges_say("longer than it may be", truncate("file", 1 << 20));
    edges_say("shorter", truncate("file", 2));
    edges_say("not there", truncate("none", 1 << 20));
    edges_say("a directory", truncate(".", 1 << 20));
    edges_say_size("file");
}

/* Starts a PROGRAM so often, each time by a child in this process's memory that opens FILE before; whose code lies below this
 * stack, where the kernel puts it there by chance. */
static void edges_stack(char **words)
{
    char line[256], *program[] = {words[1], words[2], NULL};
    unsigned kilobytes = 0;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 5, words[2], O_RDONLY, 0);
    for (int i = 0, status; i < atoi(words[0]); i++) {
        pid_t child;
        if (posix_spawn(&child, words[1], &actions, NULL, program, environ) == 0)
            waitpid(child, &status, 0);
    }
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status) != NULL)
        sscanf(line, "VmStk: %u kB", &kilobytes);
    fclose(status);
    printf("the stack is %s\n", kilobytes < 1 << 15 ? "as it was" : "large");
}

/* COUNT children one after another, each of which makes FILE, looks at it CALLS times and ends. */
static void edges_children(char **words)
{
    int failed = 0, status;
    for (int i = 0; i < atoi(words[0]); i++) {
        if (fork() == 0) {
            struct stat stat_of;
            int code = edges_make(words[2]) == -1 && errno == EEXIST ? 0 : 1;
            for (int call = 0; call < atoi(words[1]); call++)
                code |= stat(words[2], &stat_of) != 0;
            _exit(code);
        }
        wait(&status);
        failed += status != 0;
    }
    printf("%d failed\n", failed);
}

static void edges_takes_in(char **words)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    execv(words[0], words);
}

static void edges_waits(char **words)
{
    int ended = 0;
    if (fork() == 0)
        _exit(0);
    while (wait(NULL) > 0)
        ended++;
    printf("%d children\n", ended);
}

static void edges_itself(char **words)
{
    dup2(open("file", O_RDONLY), 30);
    symlink("/proc/self/fd/30", "open");
    symlink("/proc/self/cwd/file", "here");
    symlink("/proc/self/cwd/made", "new");
    symlink("/dev/fd/30", "device");
    edges_say("descriptor", open("open", O_RDONLY));
    edges_say("device", open("device", O_RDONLY));
    edges_say("make", open("new", O_RDWR | O_CREAT, 0600));
    edges_say("the link itself", open("open", O_RDONLY | O_NOFOLLOW));
    edges_open_within(AT_FDCWD, "open", O_RDONLY, 0);
    edges_open_within(AT_FDCWD, "open", O_RDONLY | O_NOFOLLOW, 0);
    edges_say_size("made");
}

static void edges_say_text(const char *name)
{
    char text[64] = "";
    const int fd = open(name, O_RDONLY);
    edges_say(name, fd < 0 ? -1 : read(fd, text, sizeof text - 1));
    printf("%s", text);
    close(fd);
}

static void edges_bind(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX}, said = {0};
    socklen_t size = sizeof said;
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(address.sun_path, path);
    edges_say(path, bind(fd, (struct sockaddr *)&address, sizeof address));
    getsockname(fd, (struct sockaddr *)&said, &size);
    printf("says %s\n", said.sun_path);
}

/* Links on the way of a path, not at its end. OUTSIDE: one that is made elsewhere. */
static void edges_on_the_way(char **words)
{
    struct stat stat_of;
    mkdir("sub", 0755);
    close(edges_make("sub/inside"));
    dup2(open("file", O_RDONLY), 30);
    dup2(open("sub", O_RDONLY | O_DIRECTORY), 31);
    symlink("/proc/self/cwd", "cwd");
    symlink("/proc/self/cwd", words[0]);
    symlink("/proc", "proc");
    symlink("proc/self", "own");
    symlink("own/comm", "comm");
    symlink("/dev/fd/31", "there");
    static const char *const read[] = {"cwd/file",       "cwd/cwd/file", "own/comm",           "comm", "proc/thread-self/comm",
                                       "own/fd/31/none", "own/fd/30",    "own/cwd/sub/../file"};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        edges_say_text(read[i]);
    edges_say_size("there/inside");
    edges_say_size("/dev/fd/31/inside");
    edges_say("make", edges_make("cwd/made"));
    edges_say("again", edges_make("own/cwd/made"));
    edges_say("rename", rename("cwd/made", "there/moved"));
    edges_say("link", linkat(AT_FDCWD, "/dev/fd/30", AT_FDCWD, "cwd/linked", AT_SYMLINK_FOLLOW));
    edges_say("chmod", chmod("/dev/fd/31", 0700));
    printf("%o\n", stat("sub", &stat_of) == 0 ? stat_of.st_mode & 0777 : 0);
    edges_say("unlink", unlink("cwd/linked"));
    edges_say("chdir", chdir("cwd/sub"));
    edges_say("back", chdir("/dev/fd/31/.."));
    edges_say("from outside", (chdir(words[0]), open(words[1], O_RDONLY)));
    edges_bind("/proc/self/cwd/file");
    edges_bind("/proc/self/cwd/one");
    edges_bind("cwd/two");
    edges_bind("cwd/file");
}

/* A lease to write is given to the only one that has a file open. */
static void edges_alone(char **words)
{
    int failed = 0;
    for (int i = 0; i < 1000; i++) {
        const int fd = open("file", O_RDONLY);
        failed += fcntl(fd, F_SETLEASE, F_WRLCK) != 0;
        close(fd);
    }
    printf("%d of 1000 failed\n", failed);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*does)(char **);
    } all[] = {{"hidden", edges_hidden},
               {"descriptors", edges_descriptors},
               {"threads", edges_threads},
               {"leader", edges_leader},
               {"within", edges_within},
               {"sandbox", edges_sandbox},
               {"capabilities", edges_capabilities},
               {"users", edges_users},
               {"sizes", edges_sizes},
               {"stack", edges_stack},
               {"children", edges_children},
               {"takes-in", edges_takes_in},
               {"waits", edges_waits},
               {"itself", edges_itself},
               {"on-the-way", edges_on_the_way},
               {"alone", edges_alone}};
    for (size_t i = 0; count > 1 && i < sizeof all / sizeof *all; i++)
        if (strcmp(words[1], all[i].name) == 0)
            all[i].does(words + 2);
    return 0;
}
