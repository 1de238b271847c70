/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* libshunt as a program links it; the rooms below only make the trees that it reads. */

#include "shunt/shunt.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "base/sys.h"
#include "leaks.h"
#include "place.h"
#include "union/marker.h"

#define OUT "out-5f3a9c01d2e4"

static struct dirid id_of(const char *path)
{
    struct statx stat;
    cr_assert_eq(sys_statx(AT_FDCWD, place_path("%s", path), 0, STATX_INO | STATX_BTIME, &stat), 0);
    return dirid_of(&stat);
}

static void api_mark(const char *directory, const char *said)
{
    struct marker marker = {.id = 0x5f3a9c01d2e4, .mirror = OUT, .directory = id_of(directory)};
    strcpy(marker.path, said);
    int fd = place_open(directory);
    cr_assert_eq(marker_write(fd, &marker), 0);
    close(fd);
}

/* A root `r`: in `out` the trunk holds t and the directory sub, branch n1.1 x, branch n2.1 y. Next to it,
 * plain. */
static void union_init(void)
{
    place_init();
    place_directory("r/.shunt/b/n1.1/" OUT "/0");
    place_directory("r/.shunt/b/n2.1/" OUT "/3");
    place_directory("r/out/sub");
    place_directory("plain");
    api_mark("r/out", "out");
    place_file("r/out/t", "trunk");
    place_file("r/out/sub/.shunt", "a root has a directory of that name");
    place_file("r/.shunt/b/n1.1/" OUT "/0/x", "");
    place_file("r/.shunt/b/n2.1/" OUT "/3/y", "");
    place_file("plain/file", "");
    errno = 77;
}

static void union_finish(void)
{
    place_finish();
    leaks_none();
}

TestSuite(api, .init = union_init, .fini = union_finish, .timeout = 60);

#define LINK(target, at) cr_assert_eq(symlink(target, place_path(at)), 0)

static void assert_where(const char *path, const char *real)
{
    char to[PATH_MAX];
    errno = 77;
    int answer = shunt_where(path, to, sizeof to);
    cr_assert_eq(errno, 77, "errno is the program's own");
    cr_assert_eq(answer, 0, "%s: %d", path, answer);
    cr_assert_str_eq(to, place_path("%s", real), "%s is at %s", path, to);
}

static int api_where(const char *path)
{
    char to[PATH_MAX];
    errno = 77;
    int answer = shunt_where(path, to, sizeof to);
    cr_assert_eq(errno, 77);
    return answer;
}

Test(api, says_its_version)
{
    cr_assert_str_eq(shunt_version(), SHUNT_VERSION);
}

/* Where is it? */

Test(api, where_files_and_directories_are)
{
    static const char *const places[][2] = {
        {"r", "r"},
        {"r/", "r"},
        {"r/.", "r"},
        {"r/out/..", "r"},
        {"r/out", "r/out"},
        {"r/out//", "r/out"},
        {"r/out/t", "r/out/t"},
        {"r/out/sub/", "r/out/sub"},
        {"r/out/sub/.shunt", "r/out/sub/.shunt"},
        {"r/out/x", "r/.shunt/b/n1.1/" OUT "/0/x"},
        {"r//out/sub/..//./y", "r/.shunt/b/n2.1/" OUT "/3/y"},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        assert_where(place_path("%s", places[i][0]), places[i][1]);
    cr_assert_eq(chdir(place_path("r/out/sub")), 0);
    assert_where("../x", "r/.shunt/b/n1.1/" OUT "/0/x");
    assert_where(".", "r/out/sub");
    assert_where("..", "r/out");
    cr_assert_eq(chdir(".."), 0);
    assert_where("y", "r/.shunt/b/n2.1/" OUT "/3/y");
}

Test(api, where_nothing_is)
{
    cr_assert_eq(api_where(""), -ENOENT);
    cr_assert_eq(api_where(place_path("r/out/z")), -ENOENT);
    cr_assert_eq(api_where(place_path("r/x")), -ENOENT, "it is in another directory");
    cr_assert_eq(api_where(place_path("r/nothing/x")), -ENOENT);
    cr_assert_eq(api_where(place_path("r/out/t/x")), -ENOTDIR);
    cr_assert_eq(api_where(place_path("r/out/t/")), -ENOTDIR);
    cr_assert_eq(api_where(place_path("r/out/x/")), -ENOTDIR, "a slash means a directory in a branch, too");
}

/* The kernel resolves what comes before the last component, and does not see the files in branches. */
Test(api, a_path_that_goes_on_after_a_file_in_a_branch)
{
    static const char *const after[] = {"", "/..", "/../t", "/x", "/.", "//.", "/a/b", "/../../plain"};
    LINK("x", "r/out/to-x");
    LINK("x/", "r/out/to-x-slash");
    LINK("out/to-x/in", "r/into");
    LINK("r/out/y", "to-y");
    for (size_t i = 1; i < sizeof after / sizeof *after; i++) {
        cr_assert_eq(api_where(place_path("r/out/x%s", after[i])), -ENOTDIR, "x%s", after[i]);
        cr_assert_eq(api_where(place_path("r/out/to-x%s", after[i])), -ENOTDIR, "to-x%s", after[i]);
        cr_assert_eq(api_where(place_path("to-y%s", after[i])), -ENOTDIR, "to-y%s", after[i]);
        cr_assert_eq(api_where(place_path("r/into%s", after[i])), -ENOTDIR, "into%s", after[i]);
        cr_assert_eq(api_where(place_path("r/out/z%s", after[i])), -ENOENT, "z%s", after[i]);
    }
    cr_assert_eq(shunt_sync(place_path("r/out/x/.")), -ENOTDIR);
    cr_assert_eq(api_where(place_path("r/into")), -ENOTDIR);
    cr_assert_eq(api_where(place_path("r/out/to-x-slash/in")), -ENOTDIR);
    cr_assert_eq(api_where(place_path("r/nothing/x/y")), -ENOENT);
    cr_assert_eq(api_where("nothing/x"), -ENOENT);
    cr_assert_eq(chdir(place_path("r/out")), 0);
    cr_assert_eq(api_where("x/y"), -ENOTDIR);
    cr_assert_eq(api_where("./x/y"), -ENOTDIR);
    cr_assert_eq(api_where("../out/x/../t"), -ENOTDIR);
    cr_assert_eq(api_where("z/y"), -ENOENT);
}

Test(api, outside_of_every_root)
{
    cr_assert_eq(api_where(place_path("plain")), -ENOTUNIQ);
    cr_assert_eq(api_where(place_path("plain/file")), -ENOTUNIQ);
    cr_assert_eq(api_where(place_path("r/..")), -ENOTUNIQ);
    cr_assert_eq(api_where("/"), -ENOTUNIQ);
    cr_assert_eq(api_where(place_path("plain/nothing")), -ENOENT);
}

Test(api, shunts_own_is_not_in_the_union)
{
    cr_assert_eq(api_where(place_path("r/.shunt")), -EINVAL);
    cr_assert_eq(api_where(place_path("r/.shunt/")), -EINVAL);
    cr_assert_eq(api_where(place_path("r/.shunt/b/n1.1/" OUT "/0/x")), -EINVAL);
    cr_assert_eq(api_where(place_path("r/out/.shunt-dir")), -EINVAL);
    cr_assert_eq(api_where(place_path("r/.shunt/b/..")), -EINVAL);
}

Test(api, a_broken_marker)
{
    struct shunt_list *list;
    cr_assert_eq(unlink(place_path("r/out/.shunt-dir")), 0);
    place_file("r/out/.shunt-dir", "shunt-dir 1\nmirror ou");
    cr_assert_eq(api_where(place_path("r/out/t")), -EBADMSG);
    cr_assert_eq(shunt_list_open(&list, place_path("r/out")), -EBADMSG);
    cr_assert_null(list);
    cr_assert_eq(shunt_sync(place_path("r/out")), -EBADMSG);
    assert_where(place_path("r/out/sub/."), "r/out/sub");
}

Test(api, a_place_that_does_not_fit)
{
    const char *real = place_path("r/.shunt/b/n1.1/" OUT "/0/x");
    const char *path = place_path("r/out/x");
    size_t size = strlen(real) + 1;
    for (size_t given = 0; given <= size + 1; given++) {
        char *to = malloc(given ? given : 1); /* of exactly that size: a sanitizer sees what is beyond */
        int answer = shunt_where(path, to, given);
        cr_assert_eq(answer, given < size ? -ENAMETOOLONG : 0, "%zu of %zu: %d", given, size, answer);
        cr_assert(answer < 0 || strcmp(to, real) == 0);
        free(to);
    }
}

Test(api, a_path_that_is_too_long)
{
    char path[PATH_MAX + 10];
    memset(path, '/', sizeof path);
    path[PATH_MAX] = '\0';
    cr_assert_eq(api_where(path), -ENAMETOOLONG);
    memset(path, 'x', sizeof path);
    path[300] = '\0';
    cr_assert_eq(chdir(place_path("r/out")), 0);
    cr_assert_eq(api_where(path), -ENOENT);
}

Test(api, symbolic_links_are_followed)
{
    LINK("x", "r/out/to-x");
    LINK("../to-x", "r/out/sub/to-to-x");
    LINK("sub", "r/out/to-sub");
    LINK("r/out/x", "into");
    LINK("r/out", "into-out");
    assert_where(place_path("r/out/to-x"), "r/.shunt/b/n1.1/" OUT "/0/x");
    assert_where(place_path("r/out/sub/to-to-x"), "r/.shunt/b/n1.1/" OUT "/0/x");
    assert_where(place_path("r/out/to-sub"), "r/out/sub");
    assert_where(place_path("r/out/to-sub/to-to-x"), "r/.shunt/b/n1.1/" OUT "/0/x");
    assert_where(place_path("into"), "r/.shunt/b/n1.1/" OUT "/0/x");
    assert_where(place_path("into-out/y"), "r/.shunt/b/n2.1/" OUT "/3/y");
    assert_where(place_path("into-out"), "r/out");
    cr_assert_eq(symlink(place_path("r/out/y"), place_path("r/out/absolute")), 0);
    assert_where(place_path("r/out/absolute"), "r/.shunt/b/n2.1/" OUT "/3/y");
}

Test(api, symbolic_links_that_lead_nowhere)
{
    LINK("nothing", "r/out/dangling");
    LINK("loop", "r/out/loop");
    LINK("../../plain/file", "r/out/away");
    LINK("x", "r/out/to-x");
    LINK("../.shunt/b", "r/out/own");
    cr_assert_eq(api_where(place_path("r/out/dangling")), -ENOENT);
    cr_assert_eq(api_where(place_path("r/out/loop")), -ELOOP);
    cr_assert_eq(api_where(place_path("r/out/away")), -ENOTUNIQ);
    cr_assert_eq(api_where(place_path("r/out/to-x/")), -ENOTDIR);
    cr_assert_eq(api_where(place_path("r/out/own")), -EINVAL);
}

/* As many as the kernel follows, and no more. */
Test(api, a_chain_of_links)
{
    LINK("x", "r/out/l1");
    for (int i = 2; i <= 41; i++) {
        char target[16];
        snprintf(target, sizeof target, "l%d", i - 1);
        cr_assert_eq(symlink(target, place_path("r/out/l%d", i)), 0);
    }
    assert_where(place_path("r/out/l40"), "r/.shunt/b/n1.1/" OUT "/0/x");
    cr_assert_eq(api_where(place_path("r/out/l41")), -ELOOP);
}

Test(api, a_name_in_two_places)
{
    place_file("r/out/f", "more");
    place_file("r/.shunt/b/n1.1/" OUT "/0/f", "");
    assert_where(place_path("r/out/f"), "r/out/f");
    assert_where(place_path("r/out/f.shunt-conflict-n1"), "r/.shunt/b/n1.1/" OUT "/0/f");
    cr_assert(place_has("r/.shunt/b/n1.1/" OUT "/0/f"), "reading changes nothing");
    cr_assert_not(place_has("r/.shunt/b/n1.1/" OUT "/0/f.shunt-conflict-n1"));
}

/* Lists. */

struct expected {
    const char *name, *branch, *real;
    uint32_t leaf;
};

static void assert_list(const char *path, const struct expected *expected, size_t count)
{
    struct shunt_list *list;
    struct shunt_entry entry;
    cr_assert_eq(shunt_list_open(&list, place_path("%s", path)), 0, "%s", path);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(shunt_list_next(list, &entry), 1, "%s comes", expected[i].name);
        cr_assert_str_eq(entry.name, expected[i].name);
        cr_assert_eq(!entry.branch, !expected[i].branch, "%s", entry.name);
        if (entry.branch)
            cr_assert_str_eq(entry.branch, expected[i].branch);
        struct stat stat = place_stat(expected[i].real);
        cr_assert_eq(entry.leaf, expected[i].leaf, "%s", entry.name);
        cr_assert_eq(entry.ino, stat.st_ino, "%s", entry.name);
        cr_assert_eq(entry.type, IFTODT(stat.st_mode), "%s", entry.name);
    }
    for (int i = 0; i < 3; i++)
        cr_assert_eq(shunt_list_next(list, &entry), 0, "the end stays the end");
    shunt_list_close(list);
}

Test(api, lists_a_union)
{
    LINK("x", "r/out/link");
    place_file("r/out/.shunt-dir.0123456789abcdef", "");
    place_file("r/out/f", "more");
    place_file("r/.shunt/b/n1.1/" OUT "/0/f", "");
    const struct expected out[] = {
        {"f", NULL, "r/out/f", 0},
        {"f.shunt-conflict-n1", "n1.1", "r/.shunt/b/n1.1/" OUT "/0/f", 0},
        {"link", NULL, "r/out/link", 0},
        {"sub", NULL, "r/out/sub", 0},
        {"t", NULL, "r/out/t", 0},
        {"x", "n1.1", "r/.shunt/b/n1.1/" OUT "/0/x", 0},
        {"y", "n2.1", "r/.shunt/b/n2.1/" OUT "/3/y", 3},
    };
    assert_list("r/out", out, sizeof out / sizeof *out);
}

Test(api, lists_what_is_not_redirected)
{
    const struct expected top[] = {{"out", NULL, "r/out", 0}};
    const struct expected sub[] = {{".shunt", NULL, "r/out/sub/.shunt", 0}};
    place_directory("r/empty");
    assert_list("r/empty", NULL, 0);
    cr_assert_eq(rmdir(place_path("r/empty")), 0);
    LINK("out/sub", "r/to-sub");
    assert_list("r/to-sub", sub, 1);
    cr_assert_eq(unlink(place_path("r/to-sub")), 0);
    assert_list("r", top, 1);
    assert_list("r/out/..", top, 1);
}

Test(api, lists_none)
{
    static const struct {
        const char *path;
        int error;
    } cases[] = {{"r/out/t", -ENOTDIR}, {"r/out/x", -ENOTDIR}, {"r/out/z", -ENOENT},     {"plain", -ENOTUNIQ},
                 {"r/.shunt", -EINVAL}, {"nothing", -ENOENT},  {"plain/file", -ENOTUNIQ}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shunt_list *list = (struct shunt_list *)cases;
        errno = 77;
        cr_assert_eq(shunt_list_open(&list, place_path("%s", cases[i].path)), cases[i].error, "%s", cases[i].path);
        cr_assert_null(list, "%s", cases[i].path);
        cr_assert_eq(errno, 77);
    }
    shunt_list_close(NULL);
}

Test(api, a_list_is_as_it_was_when_it_was_opened)
{
    struct shunt_list *list, *later;
    struct shunt_entry first, entry;
    cr_assert_eq(shunt_list_open(&list, place_path("r/out")), 0);
    cr_assert_eq(shunt_list_next(list, &first), 1);
    place_file("r/out/a", "");
    cr_assert_eq(unlink(place_path("r/.shunt/b/n2.1/" OUT "/3/y")), 0);
    cr_assert_eq(shunt_list_open(&later, place_path("r/out")), 0);
    cr_assert_eq(shunt_list_next(later, &entry), 1);
    cr_assert_str_eq(entry.name, "a");
    shunt_list_close(later);
    for (int left = 3; left > 0; left--)
        cr_assert_eq(shunt_list_next(list, &entry), 1);
    cr_assert_str_eq(entry.name, "y");
    cr_assert_str_eq(entry.branch, "n2.1");
    cr_assert_eq(shunt_list_next(list, &entry), 0);
    cr_assert_str_eq(first.name, "sub", "it is valid as long as the list is");
    shunt_list_close(list);
}

Test(api, a_list_that_is_open_at_a_fork_is_open_in_both)
{
    struct shunt_list *list;
    struct shunt_entry entry;
    int names, status;
    cr_assert_eq(shunt_list_open(&list, place_path("r/out")), 0);
    cr_assert_eq(shunt_list_next(list, &entry), 1);
    pid_t child = fork();
    for (names = 1; shunt_list_next(list, &entry) == 1; names++)
        ;
    shunt_list_close(list);
    if (child == 0)
        _exit(names);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == names && names == 4, "%d, %d", status, names);
}

/* Every thread its own list, and paths of one root. */
static void *read_again_and_again(void *unused)
{
    for (int i = 0; i < 100; i++) {
        struct shunt_list *list;
        struct shunt_entry entry;
        char to[PATH_MAX];
        int count = 0;
        if (shunt_where(unused, to, sizeof to) != 0 || !strstr(to, "/n1.1/"))
            return "where";
        *strrchr(strcpy(to, unused), '/') = '\0';
        if (shunt_list_open(&list, to) != 0)
            return "open";
        while (shunt_list_next(list, &entry) == 1)
            count++;
        shunt_list_close(list);
        if (count != 4)
            return "next";
    }
    return NULL;
}

Test(api, threads)
{
    pthread_t threads[4];
    char path[PATH_MAX];
    strcpy(path, place_path("r/out/x"));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, read_again_and_again, path), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong, "%s", (const char *)wrong);
    }
}

/* With 64 KiB of stack, and what a thread needs by itself. Sanitizers need more. */
#ifndef __SANITIZE_ADDRESS__
static void *read_once(void *unused)
{
    struct shunt_list *list;
    char *to = malloc(PATH_MAX);
    const bool is_found = shunt_where(place_path("r/out/to-x"), to, PATH_MAX) == 0 && strstr(to, "/n1.1/") != NULL;
    const bool is_cut = shunt_where(place_path("r/out/to-x/../y"), to, PATH_MAX) == -ENOTDIR;
    const bool is_listed = shunt_list_open(&list, place_path("into")) == 0;
    shunt_list_close(list);
    const bool is_synced = shunt_sync(place_path("r/out")) == 0;
    free(to);
    return is_found && is_cut && is_listed && is_synced ? NULL : unused;
}

Test(api, a_thread_with_a_small_stack)
{
    const size_t guard = 64 << 10, size = (64 << 10) + PTHREAD_STACK_MIN;
    char *stack = mmap(NULL, guard + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    void *wrong;
    LINK("x", "r/out/to-x");
    LINK("r/out", "into");
    cr_assert(stack != MAP_FAILED && mprotect(stack, guard, PROT_NONE) == 0);
    pthread_attr_init(&attributes);
    cr_assert_eq(pthread_attr_setstack(&attributes, stack + guard, size), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, read_once, stack), 0);
    pthread_join(thread, &wrong);
    cr_assert_null(wrong);
    pthread_attr_destroy(&attributes);
    munmap(stack, guard + size);
}
#endif

/* What is made durable: the kernel is asked to tell of each fsync, and carries none out. */

static struct stat synced[32];
static unsigned synced_count;
static long sync_answer;
static unsigned sync_succeeds; /* before it fails */

static void on_sync(int number, siginfo_t *info, void *context)
{
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
#if defined(__x86_64__)
    int fd = (int)machine->gregs[REG_RDI];
    machine->gregs[REG_RAX] = synced_count < sync_succeeds ? 0 : sync_answer;
#else
    int fd = (int)machine->regs[0];
    machine->regs[0] = synced_count < sync_succeeds ? 0 : (unsigned long)sync_answer;
#endif
    if (synced_count < sizeof synced / sizeof *synced)
        fstat(fd, &synced[synced_count++]);
}

static void watch_syncs(void)
{
    struct sigaction action = {.sa_sigaction = on_sync, .sa_flags = SA_SIGINFO};
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    cr_assert_eq(sigaction(SIGSYS, &action, NULL), 0);
    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0, "%m");
}

static bool was_synced(const char *path)
{
    struct stat stat = place_stat(path);
    for (unsigned i = 0; i < synced_count; i++)
        if (synced[i].st_ino == stat.st_ino && synced[i].st_dev == stat.st_dev)
            return true;
    return false;
}

static int sync_of(const char *path)
{
    synced_count = 0;
    errno = 77;
    int answer = shunt_sync(place_path("%s", path));
    cr_assert_eq(errno, 77);
    return answer;
}

static void assert_out_is_synced(void)
{
    cr_assert(was_synced("r/out"));
    cr_assert(was_synced("r/.shunt/b/n1.1/" OUT "/0"));
    cr_assert(was_synced("r/.shunt/b/n2.1/" OUT "/3"));
    cr_assert_not(was_synced("r/out/sub"));
}

Test(api, syncs_a_directory_in_every_branch)
{
    place_directory("r/.shunt/b/n3.1");
    watch_syncs();
    const char *const names_of_it[] = {"r/out", "r/out/t", "r/out/x", "r/out/sub/.."};
    for (size_t i = 0; i < sizeof names_of_it / sizeof *names_of_it; i++) {
        cr_assert_eq(sync_of(names_of_it[i]), 0, "%s", names_of_it[i]);
        assert_out_is_synced();
    }
    cr_assert_eq(sync_of("r/out/sub"), 0);
    cr_assert(was_synced("r/out/sub"));
    cr_assert_eq(synced_count, 1, "it has no mirror");
}

Test(api, a_sync_that_fails)
{
    watch_syncs();
    sync_answer = -EDQUOT;
    cr_assert_eq(sync_of("r/out"), -EDQUOT);
    cr_assert_eq(sync_of("r/out/x"), -EDQUOT);
    sync_succeeds = 1;
    cr_assert_eq(sync_of("r/out"), -EDQUOT);
    assert_out_is_synced();
    sync_succeeds = 1000;
    cr_assert_eq(sync_of("r/out"), 0);
}

Test(api, syncs_nothing)
{
    cr_assert_eq(sync_of("r/out/z"), -ENOENT);
    cr_assert_eq(sync_of("plain"), -ENOTUNIQ);
    cr_assert_eq(sync_of("r/.shunt/b"), -EINVAL);
    cr_assert_eq(sync_of("r/out/t/"), -ENOTDIR);
}

/* As an ordinary user: the superuser may list everything. */
static int api_list_unlisted(void)
{
    char real[PATH_MAX];
    struct shunt_list *list;
    struct shunt_entry entry;
    if (geteuid() == 0 && (setgid(12345) || setuid(12345)))
        return 2;
    const bool is_found =
        shunt_where(place_path("r/out/t"), real, sizeof real) == 0 && strcmp(real, place_path("r/out/t")) == 0;
    const bool is_gone = shunt_where(place_path("r/out/none"), real, sizeof real) == -ENOENT;
    if (!is_found || !is_gone || shunt_list_open(&list, place_path("r/out")) != 0)
        return 1;
    bool is_right = shunt_list_next(list, &entry) == 1 && strcmp(entry.name, "x") == 0;
    is_right = is_right && shunt_list_next(list, &entry) == 1 && strcmp(entry.name, "y") == 0;
    is_right = is_right && shunt_list_next(list, &entry) == -EACCES && shunt_list_next(list, &entry) == -EACCES;
    shunt_list_close(list);
    return !is_right;
}

/* Without the mirrors no name can be told from one that only they have. */
static int api_list_unlisted_mirrors(void)
{
    char real[PATH_MAX];
    struct shunt_list *list;
    if (geteuid() == 0 && (setgid(12345) || setuid(12345)))
        return 2;
    return shunt_where(place_path("r/out/t"), real, sizeof real) != -EACCES ||
           shunt_list_open(&list, place_path("r/out")) != -EACCES || shunt_sync(place_path("r/out")) != -EACCES;
}

static void api_assert_in_child(int (*assertions)(void))
{
    int status;
    cr_assert_eq(chmod(place, 0755), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(assertions());
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

Test(api, a_directory_that_may_be_searched_but_not_read)
{
    cr_assert_eq(chmod(place_path("r/out"), 0311), 0);
    api_assert_in_child(api_list_unlisted);
    cr_assert_eq(chmod(place_path("r/.shunt/b/n1.1/" OUT), 0311), 0);
    api_assert_in_child(api_list_unlisted_mirrors);
    cr_assert_eq(chmod(place_path("r/.shunt/b/n1.1/" OUT), 0755), 0);
    cr_assert_eq(chmod(place_path("r/out"), 0755), 0);
}
