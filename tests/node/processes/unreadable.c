/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* unreadable ROOT WAY: uses a path in some memory, takes that memory away in that way, and uses the path again: in the root,
 * beside it, and elsewhere. Prints what each call said. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../../old_libc.h"

#define PAGE 4096
#define LARGE (64 << 20) /* more than libc keeps of the stacks of threads */

static char *map_pages(size_t pages)
{
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED ? at : NULL;
}

/* What takes a page away that was readable. */

static void *take_by_unmapping(void *at)
{
    munmap(at, PAGE);
    return NULL;
}

static void take_by_protecting(void *at)
{
    mprotect(at, PAGE, PROT_NONE);
}

static void take_by_number(void *at)
{
    syscall(SYS_mprotect, at, PAGE, PROT_NONE);
}

static void take_by_mapping(void *at)
{
    mmap(at, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void take_by_moving(void *at)
{
    char *to = map_pages(1);
    mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

static void take_by_number_of_unmapping(void *at)
{
    syscall(SYS_munmap, at, PAGE);
}

static void take_by_key(void *at)
{
    pkey_mprotect(at, PAGE, PROT_NONE, -1);
}

static void take_in_a_thread(void *at)
{
    pthread_t thread;
    pthread_create(&thread, NULL, take_by_unmapping, at);
    pthread_join(thread, NULL);
}

static void take_here(void *at)
{
    take_by_unmapping(at);
}

static void take_in_a_vfork_child(void *at)
{
    if (vfork() == 0) {
        munmap(at, PAGE);
        _exit(0);
    }
}

/* A child does not have it. All that is left to do is the child's. */
static void take_by_forking(void *at)
{
    madvise(at, PAGE, MADV_DONTFORK);
    const pid_t child = fork();
    if (child != 0) {
        waitpid(child, NULL, 0);
        _exit(0);
    }
}

/* Memory that is taken away by other means: each says where it is, and takes it away when it is called again. */

static char *memory_of_malloc(bool there)
{
    static char *at;
    if (there)
        return at = malloc(LARGE);
    free(at);
    return at;
}

static char *memory_of_heap(bool there)
{
    return sbrk(there ? 2 * PAGE : -2 * PAGE);
}

static char *memory_of_lower_heap(bool there)
{
    char *end = sbrk(0);
    brk(there ? end + 2 * PAGE : end - 2 * PAGE);
    return there ? end : end - 2 * PAGE;
}

static char *memory_shared(bool there)
{
    static char *at;
    if (!there) {
        shmdt(at);
        return at;
    }
    int id = shmget(IPC_PRIVATE, PAGE, 0600);
    at = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    return at;
}

static char *memory_of_file(bool there)
{
    static char *at;
    static int fd;
    if (!there) {
        ftruncate(fd, 0);
        return at;
    }
    fd = memfd_create("file", 0);
    ftruncate(fd, PAGE);
    return at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* A page of a file is seen in place of another: one after the file's end. */
static char *memory_of_another_page(bool there)
{
    static char *at;
    if (!there) {
        remap_file_pages(at, PAGE, 0, 1, 0);
        return at;
    }
    const int fd = memfd_create("file", 0);
    ftruncate(fd, PAGE);
    return at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static pthread_barrier_t both;

static void *stand_still(void *to)
{
    char here[LARGE / 2]; /* its beginning is far from where the next one's memory is mapped */
    *(char **)to = here;
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    return NULL;
}

static char *memory_of_stack(bool there)
{
    static pthread_t thread;
    static char *at;
    if (!there) {
        pthread_barrier_wait(&both);
        pthread_join(thread, NULL);
        return at;
    }
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, LARGE);
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, &large, stand_still, &at);
    pthread_barrier_wait(&both);
    return at;
}

/* A page of memory that lasts as long as the process does, which is there again. */
static char *page_again(char *pages, bool *was_taken)
{
    char *at = (char *)(((uintptr_t)pages + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    if (*was_taken)
        mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    *was_taken = true;
    return at;
}

static char *stack_of_main; /* two pages of it */

__attribute__((noinline)) static void use_stack(char *pages)
{
    stack_of_main = pages;
}

static char *page_of_stack(bool there)
{
    static bool was_taken;
    return there ? page_again(stack_of_main, &was_taken) : NULL;
}

static char *page_of_heap(bool there)
{
    static char *pages;
    static bool was_taken;
    if (pages == NULL)
        pages = sbrk(2 * PAGE);
    return there ? page_again(pages, &was_taken) : NULL;
}

static char *page_of_program(bool there)
{
    static char pages[2 * PAGE];
    static bool was_taken;
    return there ? page_again(pages, &was_taken) : NULL;
}

static const struct way {
    const char *name;
    void (*take)(void *);        /* a page, which is mapped for it, or */
    char *(*memory)(bool there); /* which this gives; without `take` it takes it, too */
    bool unseen;                 /* the library does not see it, and remembers of absolute paths outside all roots (shunt(7)) */
} ways[] = {
    {"munmap", take_here, NULL, false},
    {"munmap by its number", take_by_number_of_unmapping, NULL, false},
    {"mprotect", take_by_protecting, NULL, false},
    {"mprotect by its number", take_by_number, NULL, false},
    {"pkey_mprotect", take_by_key, NULL, false},
    {"mmap over it", take_by_mapping, NULL, true},
    {"mremap", take_by_moving, NULL, false},
    {"munmap by a thread", take_in_a_thread, NULL, false},
    {"munmap by a vfork child", take_in_a_vfork_child, NULL, false},
    {"not for children", take_by_forking, NULL, false},
    {"free", NULL, memory_of_malloc, true},
    {"sbrk", NULL, memory_of_heap, false},
    {"brk", NULL, memory_of_lower_heap, false},
    {"shmdt", NULL, memory_shared, false},
    {"another page of a file", NULL, memory_of_another_page, false},
    {"a file that is truncated", NULL, memory_of_file, true},
    {"the stack of a thread", NULL, memory_of_stack, true},
    {"mprotect on the stack", take_by_protecting, page_of_stack, false},
    {"munmap on the stack", take_here, page_of_stack, false},
    {"mremap on the stack", take_by_moving, page_of_stack, false},
    {"not for children, on the stack", take_by_forking, page_of_stack, false},
    {"mprotect on the heap", take_by_protecting, page_of_heap, false},
    {"mprotect by its number on the heap", take_by_number, page_of_heap, false},
    {"munmap on the heap by a thread", take_in_a_thread, page_of_heap, false},
    {"not for children, on the heap", take_by_forking, page_of_heap, false},
    {"mprotect in the program", take_by_protecting, page_of_program, false},
    {"munmap in the program by its number", take_by_number_of_unmapping, page_of_program, false},
    {"pkey_mprotect in the program", take_by_key, page_of_program, false},
    {"not for children, in the program", take_by_forking, page_of_program, false},
};

/* Calls. */

static char other[PATH_MAX]; /* a path that is there */
static int directory;
static const char *place;

static void say_result(const char *what, long result)
{
    printf("%s %s %d %d\n", place, what, result < 0 ? -1 : 0, result < 0 ? errno : 0);
}

static void use_path(const char *path)
{
    struct stat seen;
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    say_result("open O_CREAT", fd);
    close(fd);
    fd = open(path, O_RDONLY);
    say_result("open", fd);
    close(fd);
    say_result("stat", stat(path, &seen));
    say_result("access", access(path, R_OK));
    say_result("chmod", chmod(path, 0600));
    say_result("rename", rename(path, path));
}

static void look_more(const char *path)
{
    struct statx more;
    struct statfs fs;
    char text[16];
    say_result("lstat", lstat(path, (struct stat[1]){}));
    say_result("statx", statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &more));
    say_result("statfs", statfs(path, &fs));
    say_result("readlink", readlink(path, text, sizeof text));
    say_result("getxattr", getxattr(path, "user.none", text, sizeof text));
    say_result("openat", openat(directory, path, O_RDONLY));
    say_result("by its number", syscall(SYS_openat, AT_FDCWD, path, O_RDONLY));
    say_result("chdir", chdir(path));
    say_result("execve", execve(path, (char *[]){"none", NULL}, (char *[]){NULL}));
    say_result("execveat", execveat(directory, path, (char *[]){"none", NULL}, (char *[]){NULL}, AT_EMPTY_PATH));
}

static void change_more(const char *path)
{
    say_result("mkdir", mkdir(path, 0700));
    say_result("mkdirat", mkdirat(directory, path, 0700));
    say_result("rmdir", rmdir(path));
    say_result("unlink", unlink(path));
    say_result("unlinkat", unlinkat(directory, path, 0));
    say_result("truncate", truncate(path, 0));
    say_result("mkfifo", mkfifo(path, 0600));
    say_result("chown", chown(path, -1, -1));
    say_result("rename from it", rename(path, other));
    say_result("rename to it", rename(other, path));
    say_result("link from it", link(path, "new"));
    say_result("link to it", link(other, path));
    say_result("symlink", symlink("text", path));
    say_result("symlink with its text", symlink(path, "new"));
    say_result("utimensat", utimensat(AT_FDCWD, path, NULL, 0));
}

/* What is no path is read, too. `at` is 16 bytes before the end of what can be read. */
static void use_other_things(const char *at)
{
    const socklen_t length = offsetof(struct sockaddr_un, sun_path) + 30;
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    say_result("times", utimensat(AT_FDCWD, other, (const struct timespec *)at, 0));
    say_result("bind", bind(fd, (const struct sockaddr *)at, length));
    say_result("connect", connect(fd, (const struct sockaddr *)at, length));
    say_result("openat2", syscall(SYS_openat2, AT_FDCWD, other, at, 24));
    close(fd);
}

/* Last: what libc allocates may come to be where the path was. */
static void use_streams(const char *path)
{
    FILE *stream = fopen("/dev/null", "r");
    say_result("freopen", freopen(path, "r", stream) != NULL ? 0 : -1);
    say_result("fopen", fopen(path, "r") != NULL ? 0 : -1);
}

static void check_calls(const char *path)
{
    use_path(path);
    look_more(path);
    change_more(path);
}

static void check_way(const struct way *way, const char *path)
{
    char *at = way->memory != NULL ? way->memory(true) : map_pages(1);
    strcpy(at, path);
    use_path(at);
    way->take == NULL ? (void)way->memory(false) : way->take(at);
    check_calls(at);
    use_other_things(at);
    use_streams(at);
}

/* What a listing is written to. `end` is what follows memory that can be written. */
static void list_to(char *end)
{
    for (size_t room = 0; room <= PAGE; room = room == 0 ? 16 : 2 * room) {
        lseek(directory, 0, SEEK_SET);
        const long length = syscall(SYS_getdents64, directory, end - room, 2 * PAGE);
        printf("listed to %zu: %s %d\n", room, length > 0 ? "some" : "none", length < 0 ? errno : 0);
    }
    munmap(end - PAGE, PAGE);
    lseek(directory, 0, SEEK_SET);
    say_result("listed to nothing", syscall(SYS_getdents64, directory, end - PAGE, PAGE));
}

/* A path whose end cannot be read, where its beginning can. */
static void check_ends(const char *path)
{
    char *pages = map_pages(3);
    munmap(pages + 2 * PAGE, PAGE);
    check_calls(memcpy(pages + 2 * PAGE - strlen(path), path, strlen(path)));
    struct sockaddr_un *here = memset(pages + 2 * PAGE - 16, 0, 16);
    here->sun_family = AF_UNIX;
    strcpy(here->sun_path, "name");
    use_other_things((char *)here);
    memset(pages, '/', 2 * PAGE); /* longer than a path can be */
    memcpy(pages + PAGE, path, strlen(path));
    check_calls(pages + PAGE);
    memcpy(pages + 1, path, strlen(path));
    check_calls(pages + 1);
    memcpy(pages + PAGE + 1, path, strlen(path)); /* a byte shorter, without an end */
    check_calls(pages + PAGE + 1);
    list_to(pages + 2 * PAGE);
}

static void check_place(const char *name, const char *path, const char *way, bool remembered)
{
    place = name;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, way) == 0 && !(ways[i].unseen && remembered))
            check_way(&ways[i], path);
    if (strcmp(way, "its end") == 0)
        check_ends(path);
}

int main(int count, char *arguments[])
{
    char path[PATH_MAX], pages[2 * PAGE];
    use_stack(pages);
    if (count != 3 || chdir(arguments[1]) != 0)
        return 1;
    setbuf(stdout, NULL);
    directory = open(".", O_RDONLY | O_DIRECTORY);
    snprintf(other, sizeof other, "%s/other", arguments[1]);
    close(open(other, O_CREAT | O_WRONLY, 0600));
    snprintf(path, sizeof path, "%s/file", arguments[1]);
    check_place("in the root", path, arguments[2], false);
    check_place("by a relative path", "file", arguments[2], false);
    snprintf(path, sizeof path, "%s/../beside", arguments[1]);
    check_place("by the parent", path, arguments[2], false);
    snprintf(path, sizeof path, "%.*s/beside", (int)(strrchr(arguments[1], '/') - arguments[1]), arguments[1]);
    check_place("beside", path, arguments[2], true);
    unlink(path);
    snprintf(path, sizeof path, "/tmp/elsewhere.%d", (int)getpid()); /* by the first few bytes */
    check_place("elsewhere", path, arguments[2], true);
    unlink(path);
    _exit(0); /* a part of the stack may be gone */
}
