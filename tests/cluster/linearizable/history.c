/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* history DIRECTORY OUT SEED FIRST COUNT OPERATIONS NODE...: a client on each node makes, removes, renames,
 * links, opens, looks at and lists the same few names at the same time, and writes down what it did when, and
 * what came of it. There are COUNT histories from the number FIRST on, of so many OPERATIONS, each in a
 * directory of its own; SEED, number and client decide what is done. In a third of them directories are removed and made, too.
 *
 * history DIRECTORY OUT SEED FIRST COUNT 0 NODE...: the clients make some names that histories begin with.
 *
 * With HISTORY_PATIENT in the environment, nodes may be out of each other's reach for a time: directories are
 * made, and names looked at in the end, again and again until that does not fail with EIO.
 *
 * With HISTORY_ROWS, a process that makes, removes or renames a name then does the same with those that follow it in its
 * directory; with HISTORY_ROWS=checkpoints one that makes a name renames it, and then does both with those that follow.
 *
 * With HISTORY_MEETING=ADDRESS:PORT, clients are on nodes with kernels of their own, on one machine: each is begun by itself,
 * with its number as HISTORY_ME, and all wait for each other there (tests/kernels/meeting.py). Times are then the processor's,
 * which is the one clock that such kernels share.
 *
 * A NODE is set as SHUNT_NODE; `-` leaves it as it is. Client N writes OUT.N, a line for each operation:
 *
 *     HISTORY CALL RETURN OPERATION A B ERROR FILE LINKS
 *
 * CALL and RETURN in ns of CLOCK_MONOTONIC, or as above; A and B are slots (directory * NAMES + name); FILE is an inode
 * number, of a listing the names seen, a bit for each slot; LINKS are told when nobody is at work any more,
 * else 0. Inode numbers do not come again within a history: its clients keep open what they make. */

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#else
#define __rdtsc() 0 /* there are no such nodes (HISTORY_MEETING) */
#endif

#include "chance.h"

#define DIRECTORIES 2
#define NAMES 3 /* in each */
#define SLOTS (DIRECTORIES * NAMES)
#define FILES_MAX 1024 /* that a client makes in a history */

enum operation {
    CREATE = 'c',
    EXCLUSIVE = 'x',
    UNLINK = 'u',
    RENAME = 'r',
    NOREPLACE = 'n',
    EXCHANGE = 'e',
    LINK = 'l',
    STAT = 's',
    OPEN = 'o',
    LIST = 'd',
    MAKE_DIRECTORY = 'k',
    REMOVE_DIRECTORY = 'z',
    INITIAL = 'i', /* made before the history begins */
};

/* What is done how often. */
static const char deck[] = "cccccxxxxxxuuuuuurrrrrneellsssoooodd";
static const char deck_of_directories[] = "cccxxxuuuuuuurrnelssoddkkkkkzzzzzzz";

struct outcome {
    int error;
    uint64_t file;
    unsigned links;
};

static struct {
    const char *out;
    uint64_t seed;
    unsigned first, count, operations, clients, me;
    unsigned directories, names; /* of this history */
    bool patient, in_rows, of_checkpoints;
    bool removes_directories; /* this history */
    uint64_t random;
    int kept[FILES_MAX];
    unsigned kept_count;
    pthread_barrier_t *barrier;
    int meeting; /* a descriptor, instead of it; 0: none */
    FILE *written;
} run;

static uint64_t history_now(void)
{
    return run.meeting > 0 ? __rdtsc() : now();
}

static unsigned history_below(unsigned limit)
{
    return draw(&run.random, limit);
}

/* All clients of a history draw its shape alike, then each goes its own way. */
static void history_shuffle(unsigned history, unsigned client)
{
    run.random = mix(mix(run.seed) + history);
    run.directories = 1 + history_below(DIRECTORIES);
    run.names = 1 + history_below(NAMES);
    run.removes_directories = history_below(3) == 0;
    run.random += mix(client + 1);
}

static enum operation any_operation(void)
{
    if (run.removes_directories)
        return (enum operation)deck_of_directories[history_below(sizeof deck_of_directories - 1)];
    return (enum operation)deck[history_below(sizeof deck - 1)];
}

static unsigned any_slot(void)
{
    return history_below(run.directories) * NAMES + history_below(run.names);
}

static void directory_text(char *to, size_t size, unsigned history, unsigned directory)
{
    snprintf(to, size, "h%06u/%c", history, 'p' + directory);
}

static const char *path_of(unsigned history, unsigned slot)
{
    static char text[2][32];
    static unsigned turn;
    char *to = text[turn++ % 2];
    directory_text(to, sizeof text[0], history, slot / NAMES);
    snprintf(to + strlen(to), sizeof text[0] - strlen(to), "/n%u", slot % NAMES);
    return to;
}

static void history_end(const char *what, unsigned history)
{
    fprintf(stderr, "client %u, history %u: %s: %s\n", run.me, history, what, strerror(errno));
    _exit(1);
}

static struct outcome history_outcome(int result)
{
    return (struct outcome){.error = result < 0 ? errno : 0};
}

/* What an open has given; kept open if this may have been its birth. */
static struct outcome history_opened(int fd, bool keep)
{
    struct outcome o = history_outcome(fd);
    struct stat stat;
    if (fd < 0)
        return o;
    if (fstat(fd, &stat) != 0 || (keep && run.kept_count == FILES_MAX))
        history_end("fstat", 0);
    o.file = stat.st_ino;
    if (keep)
        run.kept[run.kept_count++] = fd;
    else
        close(fd);
    return o;
}

static struct outcome looked_at(const char *path)
{
    struct stat stat;
    struct outcome o = history_outcome(lstat(path, &stat));
    if (o.error == 0) {
        o.file = stat.st_ino;
        o.links = (unsigned)stat.st_nlink;
    }
    return o;
}

/* The bit of a name that was listed; none if no such name may be there, or it has been listed before. */
static uint64_t bit_of(const char *name, unsigned directory, uint64_t seen)
{
    if (strlen(name) != 2 || name[0] != 'n' || name[1] < '0' || name[1] >= '0' + NAMES)
        return 0;
    return 1ull << (directory * NAMES + (unsigned)(name[1] - '0')) & ~seen;
}

/* A listing with a name that is too much has the error EEXIST, which no listing has in truth: its history is wrong. */
static struct outcome history_listed(unsigned history, unsigned directory)
{
    char path[32];
    directory_text(path, sizeof path, history, directory);
    DIR *stream = opendir(path);
    struct outcome o = history_outcome(stream != NULL ? 0 : -1);
    if (stream == NULL)
        return o;
    bool as_it_may_be = true;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        uint64_t bit = bit_of(entry->d_name, directory, o.file);
        if (bit == 0)
            fprintf(stderr, "client %u, history %u: listed too much: %s\n", run.me, history, entry->d_name);
        as_it_may_be = as_it_may_be && bit != 0;
        o.file |= bit;
    }
    o.error = as_it_may_be ? errno : EEXIST;
    closedir(stream);
    return o;
}

static struct outcome carry_out(enum operation operation, unsigned history, unsigned a, unsigned b)
{
    const char *from = path_of(history, a), *to = path_of(history, b);
    char directory[32];
    directory_text(directory, sizeof directory, history, a / NAMES);
    switch (operation) {
    case CREATE:
        return history_opened(open(from, O_CREAT | O_RDWR, 0644), true);
    case EXCLUSIVE:
        return history_opened(open(from, O_CREAT | O_EXCL | O_RDWR, 0644), true);
    case OPEN:
        return history_opened(open(from, O_RDONLY), false);
    case UNLINK:
        return history_outcome(unlink(from));
    case RENAME:
        return history_outcome(rename(from, to));
    case NOREPLACE:
        return history_outcome(renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
    case EXCHANGE:
        return history_outcome(renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE));
    case LINK:
        return history_outcome(link(from, to));
    case LIST:
        return history_listed(history, a / NAMES);
    case MAKE_DIRECTORY:
        return history_outcome(mkdir(directory, 0755));
    case REMOVE_DIRECTORY:
        return history_outcome(rmdir(directory));
    default:
        return looked_at(from);
    }
}

static int history_operate(enum operation operation, unsigned history, unsigned a, unsigned b, bool quiet)
{
    uint64_t called = history_now();
    struct outcome o = carry_out(operation, history, a, b);
    uint64_t returned = history_now();
    fprintf(run.written, "%u %" PRIu64 " %" PRIu64 " %c %u %u %d %" PRIu64 " %u\n", history, called, returned, operation, a, b,
            o.error, o.file, quiet ? o.links : 0);
    return o.error;
}

/* The answer, a line, is what all have said. */
static void meet_over_there(void)
{
    char byte = '\0';
    if (write(run.meeting, "0\n", 2) != 2)
        history_end("meeting", 0);
    while (byte != '\n')
        if (read(run.meeting, &byte, 1) != 1)
            history_end("another client has ended", 0);
}

static void history_meet(void)
{
    if (run.meeting > 0) {
        meet_over_there();
        return;
    }
    int code = pthread_barrier_wait(run.barrier);
    if (code != 0 && code != PTHREAD_BARRIER_SERIAL_THREAD)
        _exit(1);
}

/* Has it failed because a node is out of reach? Then it is worth another try, soon. */
static bool is_to_be_repeated(int error)
{
    if (!run.patient || error != EIO)
        return false;
    usleep(10000);
    return true;
}

static void make_directory(const char *path, unsigned history)
{
    while (mkdir(path, 0755) != 0 && errno != EEXIST)
        if (!is_to_be_repeated(errno))
            history_end("mkdir", history);
}

static void make_directories(unsigned history)
{
    char path[32];
    snprintf(path, sizeof path, "h%06u", history);
    for (unsigned i = 0; i <= DIRECTORIES; i++) {
        make_directory(path, history);
        directory_text(path, sizeof path, history, i);
    }
}

static void history_look(enum operation operation, unsigned history, unsigned slot)
{
    while (is_to_be_repeated(history_operate(operation, history, slot, slot, true)))
        ;
}

/* Two clients look at all names when everybody else is done. */
static void look_at_all(unsigned history)
{
    if (run.me != history % run.clients && run.me != (history + 1) % run.clients)
        return;
    for (unsigned slot = 0; slot < SLOTS; slot++)
        history_look(STAT, history, slot);
    for (unsigned i = 0; i < DIRECTORIES; i++)
        history_look(LIST, history, i * NAMES);
}

/* What a client does with which slots. */
struct deed {
    enum operation operation;
    unsigned a, b;
};

/* Is there a next one to be made, removed or renamed? */
static bool is_in_row(const struct deed *last)
{
    const bool has_next = last->a % NAMES + 1 < run.names;
    return last->operation == RENAME
               ? has_next && last->b % NAMES + 1 < run.names
               : has_next && (last->operation == CREATE || last->operation == EXCLUSIVE || last->operation == UNLINK);
}

/* The last name was made: its new one is `b` already. */
static bool is_to_be_renamed(const struct deed *last)
{
    return run.of_checkpoints && (last->operation == CREATE || last->operation == EXCLUSIVE);
}

static struct deed history_next(const struct deed *last)
{
    struct deed next = {any_operation(), any_slot(), any_slot()};
    if (is_to_be_renamed(last))
        return (struct deed){RENAME, last->a, last->b};
    if (!run.in_rows || !is_in_row(last))
        return next;
    next.operation = run.of_checkpoints && last->operation == RENAME ? EXCLUSIVE : last->operation;
    next.a = last->a + 1;
    if (last->operation == RENAME)
        next.b = last->b + 1;
    return next;
}

static void take_part(unsigned history)
{
    if (run.me == history % run.clients)
        make_directories(history);
    history_meet();
    struct deed deed = {.operation = LIST};
    for (unsigned i = run.me; i < run.operations; i += run.clients) {
        deed = history_next(&deed);
        history_operate(deed.operation, history, deed.a, deed.b, false);
    }
    history_meet();
    look_at_all(history);
    history_meet();
    while (run.kept_count > 0)
        close(run.kept[--run.kept_count]);
}

/* Another name of each file keeps its inode number from coming again. */
static void make_initial(unsigned history, unsigned slot)
{
    char kept[32];
    if (history_below(3) == 0)
        return;
    struct outcome made = history_opened(open(path_of(history, slot), O_CREAT | O_EXCL | O_RDWR, 0644), false);
    snprintf(kept, sizeof kept, "kept/%u-%u", history, slot);
    if (made.error != 0 || link(path_of(history, slot), kept) != 0)
        history_end("a name to begin with", history);
    fprintf(run.written, "%u 0 0 %c %u 0 0 %" PRIu64 " 2\n", history, INITIAL, slot, made.file);
}

static void make_some(unsigned history)
{
    if (run.me == 0)
        make_directories(history);
    history_meet();
    for (unsigned slot = run.me; slot < SLOTS; slot += run.clients)
        make_initial(history, slot);
}

static void be_client(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%u", run.out, run.me);
    run.written = fopen(path, "a");
    if (run.written == NULL)
        history_end(path, 0);
    for (unsigned i = run.first; i < run.first + run.count; i++) {
        history_shuffle(i, run.me);
        (run.operations > 0 ? take_part : make_some)(i);
    }
    _exit(fclose(run.written) == 0 ? 0 : 1);
}

/* The barrier goes along as a descriptor, named by HISTORY_SHARED; HISTORY_ME is the process's number. */
static void history_share(void)
{
    const char *inherited = getenv("HISTORY_SHARED");
    char number[16];
    int fd = inherited != NULL ? atoi(inherited) : memfd_create("history", 0);
    if (fd < 0 || (inherited == NULL && ftruncate(fd, sizeof *run.barrier) != 0))
        history_end("memfd", 0);
    run.barrier = mmap(NULL, sizeof *run.barrier, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (run.barrier == MAP_FAILED)
        history_end("mmap", 0);
    if (inherited != NULL)
        return;
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(run.barrier, &attributes, run.clients);
    snprintf(number, sizeof number, "%d", fd);
    setenv("HISTORY_SHARED", number, 1);
}

static void go_to_meeting(const char *place)
{
    char address[64] = "";
    const char *colon = strchr(place, ':');
    struct sockaddr_in to = {.sin_family = AF_INET};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (colon != NULL)
        snprintf(address, sizeof address, "%.*s", (int)(colon - place), place);
    to.sin_port = htons((uint16_t)atoi(colon != NULL ? colon + 1 : ""));
    if (fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        history_end(place, 0);
    dprintf(fd, "%u\n", run.me);
    run.meeting = fd;
}

static void history_begin(char *argv[], const char *node)
{
    char number[16];
    snprintf(number, sizeof number, "%u", run.me);
    setenv("HISTORY_ME", number, 1);
    if (strcmp(node, "-") != 0)
        setenv("SHUNT_NODE", node, 1);
    execv("/proc/self/exe", argv);
    history_end("exec", 0);
}

/* One that is missing at the barrier would be waited for without end. */
static int wait_for_all(void)
{
    int status;
    while (wait(&status) > 0)
        if (status != 0) {
            fprintf(stderr, "a client ended with status %x\n", (unsigned)status);
            kill(0, SIGKILL);
        }
    return 0;
}

static void read_words(int argc, char *argv[])
{
    if (argc < 8 || chdir(argv[1]) != 0) {
        perror("history");
        exit(2);
    }
    run.out = argv[2];
    run.seed = strtoull(argv[3], NULL, 10);
    run.first = (unsigned)atoi(argv[4]);
    run.count = (unsigned)atoi(argv[5]);
    run.operations = (unsigned)atoi(argv[6]);
    run.clients = (unsigned)argc - 7;
    run.patient = getenv("HISTORY_PATIENT") != NULL;
    const char *rows = getenv("HISTORY_ROWS");
    run.in_rows = rows != NULL;
    run.of_checkpoints = rows != NULL && strcmp(rows, "checkpoints") == 0;
}

int main(int argc, char *argv[])
{
    read_words(argc, argv);
    const char *me = getenv("HISTORY_ME"), *meeting = getenv("HISTORY_MEETING");
    run.me = me != NULL ? (unsigned)atoi(me) : 0;
    if (meeting != NULL) {
        go_to_meeting(meeting);
        mkdir("kept", 0755);
    } else
        history_share();
    if (me != NULL)
        be_client();
    mkdir("kept", 0755);
    for (run.me = 0; run.me < run.clients; run.me++)
        if (fork() == 0)
            history_begin(argv, argv[7 + run.me]);
    return wait_for_all();
}
