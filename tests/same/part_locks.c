/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* What processes share in a file besides its bytes: locks, leases, mappings, the end that all append to. A
 * lock is the file's, whatever name it was opened by; and no call by a name may lose it, as the closing of
 * any descriptor of the file would. */
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <wchar.h>

#include "fixture.h"
#include "scenario.h"

static int locks_opened(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);
    if (fd < 0)
        give_up("cannot open", path);
    return fd;
}

/* One file by all its names, and another. */
static const char *const names_of_file[] = {"file", "hard", "lfile", "labs", "../w/./file", "dir/../hard", "../../out/to-file",
                                            "empty"};
#define NAMES (sizeof names_of_file / sizeof *names_of_file)

static long flocked_by_names(void)
{
    int held = locks_opened("file", O_RDONLY);
    if (flock(held, LOCK_EX) < 0)
        return -1;
    for (size_t i = 0; i < NAMES; i++) {
        int fd = locks_opened(names_of_file[i], O_RDONLY);
        detail(" %s %s", names_of_file[i], ended(flock(fd, LOCK_SH | LOCK_NB)));
        close(fd);
    }
    return close(held);
}

static long try_flock(void *path)
{
    int fd = open(path, O_RDONLY);
    return fd < 0 ? -1 : flock(fd, LOCK_EX | LOCK_NB);
}

static long flocked_in_a_child(void)
{
    int held = locks_opened("dir/inner", O_RDWR), copy = dup(held);
    flock(held, LOCK_EX);
    close(held);
    detail(" by a copy %s", ended(in_child(try_flock, "dir/inner")));
    rename("dir/inner", "bare/moved");
    detail(" renamed %s", ended(in_child(try_flock, "bare/moved")));
    make_file("dir/inner", 0644, "new", 3);
    detail(" another %s", ended(in_child(try_flock, "dir/inner")));
    rename("dir/inner", "bare/moved");
    detail(" replaced %s", ended(in_child(try_flock, "bare/moved")));
    flock(copy, LOCK_UN);
    close(copy);
    return 0;
}

static struct flock locks_range(short type, off_t start, off_t length)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

static long locks_lock(int fd, int command, short type, off_t start, off_t length)
{
    struct flock wanted = locks_range(type, start, length);
    return fcntl(fd, command, &wanted);
}

/* The holders of parts of the file, seen from another process: the first byte of the range, or 1000 if nobody. */
static long held_from(void *path)
{
    struct flock found = locks_range(F_WRLCK, 0, 0);
    int fd = open(path, O_RDWR);
    if (fd < 0 || fcntl(fd, F_GETLK, &found) < 0)
        return -1;
    if (found.l_type == F_UNLCK)
        return 1000;
    return found.l_pid == getppid() || found.l_pid == -1 ? found.l_start : -2;
}

static long locked_by_names(void)
{
    int held = locks_opened("file", O_RDWR);
    if (locks_lock(held, F_SETLK, F_WRLCK, 3, 5) < 0)
        return -1;
    for (size_t i = 0; i < NAMES; i++)
        detail(" %s %ld", names_of_file[i], in_child(held_from, (void *)names_of_file[i]));
    close(locks_opened("hard", O_RDONLY)); /* any descriptor of the file */
    detail(" closed another %ld", in_child(held_from, "file"));
    return close(held);
}

static void still_held(const char *after)
{
    detail(" %s %ld", after, in_child(held_from, "dir/held"));
}

static void use_by_name(const char *path)
{
    struct stat st;
    struct statvfs fs;
    char bytes[64];
    stat(path, &st);
    still_held("stat");
    access(path, R_OK);
    still_held("access");
    chmod(path, 0600);
    still_held("chmod");
    chown(path, getuid(), getgid());
    still_held("chown");
    utimensat(AT_FDCWD, path, NULL, 0);
    still_held("utimensat");
    truncate(path, 100);
    still_held("truncate");
    getxattr(path, "user.any", bytes, sizeof bytes);
    setxattr(path, "user.any", "any", 3, 0);
    still_held("xattr");
    statvfs(path, &fs);
    free(realpath(path, NULL));
    still_held("realpath");
    readlink(path, bytes, sizeof bytes);
    close(open(path, O_PATH));
    still_held("O_PATH");
    close(open(path, O_RDWR | O_CREAT | O_EXCL, 0600));
    still_held("O_EXCL");
}

static void move_by_name(void)
{
    link("dir/held", "bare/link");
    still_held("link");
    rename("bare/link", "bare/again");
    still_held("rename of a link");
    unlink("bare/again");
    still_held("unlink of a link");
    rename("dir/held", "bare/held");
    rename("bare/held", "dir/held");
    still_held("rename");
    renameat2(AT_FDCWD, "dir/held", AT_FDCWD, "file", RENAME_EXCHANGE);
    renameat2(AT_FDCWD, "dir/held", AT_FDCWD, "file", RENAME_EXCHANGE);
    still_held("exchange");
    renameat2(AT_FDCWD, "dir/held", AT_FDCWD, "fifo", RENAME_EXCHANGE);
    renameat2(AT_FDCWD, "dir/held", AT_FDCWD, "fifo", RENAME_EXCHANGE);
    still_held("exchange with a FIFO");
}

static long locked_through_all_calls(void)
{
    int held = locks_opened("dir/held", O_RDWR | O_CREAT | O_EXCL);
    if (locks_lock(held, F_SETLK, F_WRLCK, 7, 1) < 0)
        return -1;
    still_held("at first");
    use_by_name("dir/held");
    move_by_name();
    rename("dir", "renamed");
    detail(" rename of its directory %ld", in_child(held_from, "renamed/held"));
    return close(held);
}

/* A stream with a character set is opened once, as any other: with the next number, and nothing is closed. */
static long locked_through_streams(void)
{
    static const char *const modes[] = {"r", "r,ccs=UTF-8", "r+,ccs=UTF-8", "a,ccs=UTF-8", "ae,ccs=UTF-8"};
    int held = locks_opened("dir/held", O_RDWR | O_CREAT | O_EXCL);
    if (write(held, "text\n", 5) != 5 || locks_lock(held, F_SETLK, F_WRLCK, 7, 1) < 0)
        return -1;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        FILE *stream = fopen("dir/held", modes[i]);
        if (stream == NULL)
            return -1;
        detail(" %s: next %d, flags %d, at %lld,", modes[i], fileno(stream) - held, fcntl(fileno(stream), F_GETFD),
               (long long)lseek(fileno(stream), 0, SEEK_CUR));
        still_held("still");
        if (modes[i][0] == 'r')
            detail(" reads %d", fgetwc(stream));
        else
            detail(" writes %d", fputwc(L'x', stream) == L'x' && fflush(stream) == 0);
        fclose(stream);
        locks_lock(held, F_SETLK, F_WRLCK, 7, 1);
    }
    return close(held);
}

/* A lock of the open file description is in the way of the same process, too. */
static long locked_descriptions(void)
{
    int one = locks_opened("file", O_RDWR), two = locks_opened("hard", O_RDWR);
    struct flock found = locks_range(F_WRLCK, 0, 0);
    detail(" first %s", ended(locks_lock(one, F_OFD_SETLK, F_WRLCK, 0, 10)));
    detail(" second %s", ended(locks_lock(two, F_OFD_SETLK, F_WRLCK, 5, 1)));
    detail(" beside it %s", ended(locks_lock(two, F_OFD_SETLK, F_WRLCK, 10, 1)));
    long result = fcntl(two, F_OFD_GETLK, &found);
    detail(" found %d of %lld, %lld by %d", found.l_type, (long long)found.l_start, (long long)found.l_len, found.l_pid);
    close(locks_opened("lfile", O_RDWR));
    detail(" closed another %ld", in_child(held_from, "file"));
    close(one);
    detail(" then %s", ended(locks_lock(two, F_OFD_SETLK, F_WRLCK, 5, 1)));
    close(two);
    return result;
}

static long wait_for_lock(void *ready)
{
    int fd = open("hard", O_RDWR);
    if (fd < 0 || write(*(int *)ready, "", 1) != 1 || locks_lock(fd, F_SETLKW, F_WRLCK, 0, 0) < 0)
        return -1;
    return pwrite(fd, "waited\n", 7, 0);
}

static long unlock_when_told(void *ends)
{
    char byte;
    int fd = locks_opened("file", O_RDWR), *told = ends;
    locks_lock(fd, F_SETLK, F_WRLCK, 0, 0);
    if (write(told[1], "", 1) != 1 || read(told[2], &byte, 1) != 1)
        return -1;
    return pwrite(fd, "before ", 7, 0);
}

/* A waiting process goes on when the holder is gone. */
static long waited_for(void)
{
    int first[2], second[2], ends[3], status;
    char byte, text[8] = "";
    if (pipe(first) < 0 || pipe(second) < 0)
        return -1;
    memcpy(ends, (int[]){first[0], first[1], second[0]}, sizeof ends);
    pid_t holder = fork();
    if (holder == 0)
        _exit(unlock_when_told(ends) < 0);
    if (read(first[0], &byte, 1) != 1)
        return -1;
    pid_t waiter = fork();
    if (waiter == 0)
        _exit(wait_for_lock(&second[1]) < 0);
    waitpid(holder, &status, 0);
    detail(" holder %d", status);
    waitpid(waiter, &status, 0);
    detail(" waiter %d", status);
    int fd = locks_opened("file", O_RDONLY);
    long result = read(fd, text, 7);
    detail_bytes(text, 7);
    for (int i = 0; i < 2; i++)
        close(first[i]), close(second[i]);
    close(fd);
    return result;
}

static volatile sig_atomic_t breaks;

static void count_break(int number)
{
    breaks++;
}

static long open_to_write(void *path)
{
    return open(path, O_WRONLY | O_NONBLOCK);
}

static long open_to_read(void *path)
{
    return open(path, O_RDONLY | O_NONBLOCK);
}

/* A lease is given only while nobody else has the file open, and an open breaks it. */
static long locks_leased(void)
{
    struct stat st;
    int fd = locks_opened("dir/inner", O_RDONLY);
    breaks = 0;
    signal(SIGIO, count_break);
    detail(" read lease %s", ended(fcntl(fd, F_SETLEASE, F_RDLCK)));
    detail(" is %d", fcntl(fd, F_GETLEASE));
    stat("dir/inner", &st);
    access("dir/inner", R_OK);
    detail(" reader %s, %d breaks", ended(in_child(open_to_read, "ldir/inner")), (int)breaks);
    detail(" writer %s, %d breaks", ended(in_child(open_to_write, "ldir/inner")), (int)breaks);
    detail(" given back %s", ended(fcntl(fd, F_SETLEASE, F_UNLCK)));
    detail(" writer %s", ended(in_child(open_to_write, "dir/inner")));
    close(fd);
    fd = locks_opened("dir/inner", O_RDWR);
    detail(" write lease %s", ended(fcntl(fd, F_SETLEASE, F_WRLCK)));
    detail(" reader %s, %d breaks", ended(in_child(open_to_read, "dir/inner")), (int)breaks);
    fcntl(fd, F_SETLEASE, F_UNLCK);
    int other = locks_opened("dir/inner", O_RDWR);
    detail(" with another %s", ended(fcntl(fd, F_SETLEASE, F_WRLCK)));
    signal(SIGIO, SIG_DFL);
    close(other);
    return close(fd);
}

static char *locks_mapped(const char *path, int flags, size_t size)
{
    int fd = locks_opened(path, O_RDWR | O_CREAT);
    if (ftruncate(fd, (off_t)size) < 0)
        give_up("cannot truncate", path);
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (at == MAP_FAILED)
        give_up("cannot map", path);
    close(fd);
    return at;
}

static long write_mapped(void *path)
{
    char *at = locks_mapped(path, MAP_SHARED, 8192);
    memcpy(at + 4096, "by the child", 12);
    return at[0];
}

/* Mappings of one file by different names are the same memory, also when the names are gone. */
static long mapped_by_two(void)
{
    char *shared = locks_mapped("bare/map", MAP_SHARED, 8192), *private = locks_mapped("bare/map", MAP_PRIVATE, 8192);
    char text[13] = "";
    shared[0] = 'A';
    private[4095] = 'P';
    detail(" the child saw %c", (char)in_child(write_mapped, "../../out/to-bare/map"));
    detail_bytes(shared + 4096, 12);
    link("bare/map", "dir/map");
    rename("bare/map", "bare/other");
    unlink("bare/other");
    memcpy(shared + 100, "unlinked", 8);
    msync(shared, 8192, MS_SYNC);
    int fd = locks_opened("dir/map", O_RDONLY);
    long result = pread(fd, text, 8, 100);
    detail_bytes(text, 8);
    pread(fd, text, 1, 4095);
    detail(" private %d", text[0]);
    close(fd);
    munmap(shared, 8192);
    munmap(private, 8192);
    return result;
}

#define WRITERS 6
#define RECORDS 60
#define RECORD 24

static void append_records(int writer)
{
    char record[RECORD + 1];
    for (int i = 0; i < RECORDS; i++) {
        const char *path = writer % 2 ? "bare/log" : "../../out/to-bare/log";
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
        snprintf(record, sizeof record, "writer %d record %6d\n", writer, i);
        if (fd < 0 || write(fd, record, strlen(record)) != (ssize_t)strlen(record))
            _exit(1);
        close(fd);
    }
    _exit(0);
}

static long whole_records(const char *path, long *in_order)
{
    int next[WRITERS] = {0}, writer, number, length;
    long whole = 0;
    FILE *log = fopen(path, "r");
    char line[128];
    while (log && fgets(line, sizeof line, log))
        if (sscanf(line, "writer %d record %d%n", &writer, &number, &length) == 2 && (size_t)length + 1 == strlen(line) &&
            writer >= 0 && writer < WRITERS) {
            whole++;
            *in_order += next[writer]++ == number;
        }
    if (log)
        fclose(log);
    return whole;
}

/* All of them make the file, which is made once, and every record lands whole after the others. */
static long appended_by_many(void)
{
    long in_order = 0, failed = 0;
    int status;
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0)
            append_records(i);
    for (int i = 0; i < WRITERS; i++)
        failed += wait(&status) < 0 || status != 0;
    long whole = whole_records("bare/log", &in_order);
    detail(" %ld whole, %ld in order, %ld failed", whole, in_order, failed);
    unlink("bare/log"); /* in whichever order they came */
    return whole;
}

static long write_fifo(void *path)
{
    int fd = open(path, O_WRONLY);
    return fd < 0 ? -1 : write(fd, "through", 7);
}

static long by_fifo(void)
{
    char text[8] = "";
    detail(" nobody reads %s", ended(open("dir/pipe", O_WRONLY | O_NONBLOCK)));
    if (mkfifo("dir/pipe", 0600) < 0)
        return -1;
    detail(" nobody reads %s", ended(open("dir/pipe", O_WRONLY | O_NONBLOCK)));
    int fd = locks_opened("dir/pipe", O_RDONLY | O_NONBLOCK);
    detail(" wrote %ld", in_child(write_fifo, "ldir/pipe"));
    rename("dir/pipe", "bare/pipe");
    detail(" wrote %ld", in_child(write_fifo, "bare/pipe"));
    long result = read(fd, text, 7);
    detail_bytes(text, 7);
    unlink("bare/pipe");
    detail(" left %ld", (long)read(fd, text, 8));
    close(fd);
    return result;
}

/* An open file that another process is given is the one that the name leads to. */
static long locks_receive(int from)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(from, &message, 0) != 1)
        return -1;
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static long locks_give(void *to)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec bytes = {"", 1};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd = locks_opened("bare/given", O_RDWR | O_CREAT | O_EXCL);
    *CMSG_FIRSTHDR(&message) =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof fd);
    return sendmsg(*(int *)to, &message, 0);
}

static long given_to_another(void)
{
    struct stat by_name, by_descriptor;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || in_child(locks_give, &ends[0]) < 0)
        return -1;
    int fd = (int)locks_receive(ends[1]);
    if (fd < 0 || fstat(fd, &by_descriptor) < 0 || stat("bare/given", &by_name) < 0)
        return -1;
    detail(" %s, wrote %ld",
           by_name.st_ino == by_descriptor.st_ino && by_name.st_dev == by_descriptor.st_dev ? "the same" : "another",
           (long)write(fd, "given", 5));
    close(ends[0]);
    close(ends[1]);
    return close(fd);
}

static const struct scenario scenarios[] = {
    {"flock, by all names", flocked_by_names},
    {"flock, in a child", flocked_in_a_child},
    {"fcntl, by all names", locked_by_names},
    {"fcntl, through all calls", locked_through_all_calls},
    {"fcntl, through streams", locked_through_streams},
    {"fcntl, of descriptions", locked_descriptions},
    {"fcntl, waited for", waited_for},
    {"lease", locks_leased},
    {"mmap", mapped_by_two},
    {"O_APPEND", appended_by_many},
    {"FIFO", by_fifo},
    {"SCM_RIGHTS", given_to_another},
};

void part_locks(void)
{
    SCENARIOS("locks", scenarios);
}
