/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Starting programs. The kernel and the loader read a program, its interpreter and its neighbours by
 * themselves, so a file that is executed or loaded is moved to the trunk first: then every path means
 * natively what it means here. The shim goes along: an environment without it gets it back. */

#include <alloca.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/dead_end.h"
#include "shim/prefilter.h"
#include "shim/root_of.h"
#include "shim/scratch.h"
#include "shim/visible_path.h"
#include "shim/wrap.h"
#include "shim/wrap_exec.h"
#include "shim/program.h"

static __attribute__((noinline)) void wrap_exec_promote_found(int at, const char *path)
{
    struct target t;
    if (target_find_text(&t, at, path, TARGET_FOLLOW | TARGET_ALIAS) == TARGET_MANAGED)
        operate_promote(&t); /* if it fails the caller hears of it (exec_error) */
}

static void wrap_exec_promote_one(int at, const char *path)
{
    if (path[0] != '\0' && !target_text_is_foreign(at, path, TARGET_FOLLOW | TARGET_ALIAS))
        wrap_exec_promote_found(at, path);
}

void exec_promote_file(const char *path)
{
    int saved = errno;
    if (process_has_roots())
        wrap_exec_promote_one(AT_FDCWD, path);
    errno = saved;
}

/* A link of /proc leads to the file where it is: its name is what the file is moved by. */
static __attribute__((noinline)) void wrap_exec_promote_open(const char *link)
{
    struct scratch *scratch = scratch_take();
    if (scratch == NULL)
        return;
    ssize_t length = sys_readlinkat(AT_FDCWD, link, scratch->text[0], PATH_MAX - 1);
    scratch->text[0][length > 0 ? length : 0] = '\0';
    if (length > 0 && visible_path_path(scratch->text[0]))
        wrap_exec_promote_one(AT_FDCWD, scratch->text[0]);
    scratch_give(scratch);
}

/* The same for one that is executed by its descriptor. */
static void wrap_exec_promote_descriptor(int fd)
{
    char link[40];
    struct text text;
    int saved = errno;
    text_init(&text, link, sizeof link);
    text_descriptor(&text, fd);
    if (process_has_roots())
        wrap_exec_promote_open(link);
    errno = saved;
}

/* A loader that lies in a root, as a program asks for it. */
__attribute__((noinline)) static void wrap_exec_promote_loader(int directory, const char *path)
{
    struct target t;
    if (target_find_text(&t, directory, path, TARGET_FOLLOW) == TARGET_MANAGED)
        operate_promote(&t);
}

/* Is it closed on exec? */
static bool wrap_exec_is_closed(int fd)
{
    const long flags = SYS3(SYS_fcntl, fd, F_GETFD, 0);
    return flags >= 0 && (flags & FD_CLOEXEC) != 0;
}

/* Of the last look at a program and its interpreters: it is there. */
enum { WRAP_EXEC_MISSING = -1 };

/* As the arguments of a program: what it is handed has been looked at already. */
static char *const nothing_handed[] = {NULL};

/* The root that a path leads to by a link from outside, or through another mount. */
__attribute__((noinline)) static const struct names_root *wrap_exec_root_reached(int directory, const char *path)
{
    struct names_root *root;
    struct dirid id;
    struct target t;
    if (path[0] == '\0')
        return NULL;
    if (root_of_directory(directory, path, 0, &root, &id, NULL) == 1)
        return root;
    if (target_text_is_foreign(directory, path, TARGET_FOLLOW | TARGET_ALIAS) ||
        target_find_text(&t, directory, path, TARGET_FOLLOW | TARGET_ALIAS) != TARGET_MANAGED)
        return NULL;
    root = t.root;
    target_done(&t);
    return root;
}

/* ... or that one of a program's arguments, or its working directory, leads to: many system calls. Not inlined: it is not on
 * the stack of what comes before it. */
__attribute__((noinline)) static const struct names_root *wrap_exec_root_led_to(int directory, char *const arguments[])
{
    const struct names_root *root = wrap_exec_root_reached(directory, ".");
    for (size_t i = 1; root == NULL && arguments != NULL && arguments[0] != NULL && arguments[i] != NULL; i++) {
        const char *word = arguments[i], *value = strchr(word, '=');
        root = wrap_exec_root_reached(directory, word);
        if (root == NULL && value != NULL)
            root = wrap_exec_root_reached(directory, value + 1);
    }
    return root;
}

/* What a program is handed says why it is to be served. Where that leads is looked up only for one that the library will not be
 * in. */
static inline const struct names_root *wrap_exec_root_handed(const struct program_look *look, int directory,
                                                             char *const arguments[])
{
    const struct names_root *root = arguments != nothing_handed ? program_root_handed(directory, arguments) : NULL;
    return root != NULL || look->why == 0 || arguments == nothing_handed ? root : wrap_exec_root_led_to(directory, arguments);
}

/* One that the helper is to execute, with the interpreters that it leads to. Not inlined: most are none. */
__attribute__((noinline)) static int wrap_exec_refusal(struct scratch *scratch, int at, const char *path, int directory)
{
    enum program_way way = program_refusal(at, path);
    for (int i = 0; i < PROGRAM_SCRIPTS_MAX && way == PROGRAM_HELPED; i++) {
        struct program_look *look = &scratch->program.looks[i % 2];
        if (!program_look(scratch, at, path, look) || look->kind != PROGRAM_SCRIPT)
            break;
        at = directory;
        path = look->interpreter;
        way = program_refusal(at, path);
    }
    return way;
}

/* The program and the interpreters and the loader that it leads to are moved to the trunk, and the last of them is looked at on
 * behalf of the user: its program_way; WRAP_EXEC_MISSING: one of them is not there. */
static int wrap_exec_prepare_chain(struct scratch *scratch, int at, const char *path, int directory, char *const arguments[])
{
    const int open = path[0] == '\0' ? at : -1;
    const bool helps = path[0] == '/' || at == directory || open >= 0;
    if (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/fd/", 8) == 0)
        wrap_exec_promote_open(path);
    for (int i = 0;; i++) {
        struct program_look *look = &scratch->program.looks[i % 2];
        wrap_exec_promote_one(at, path);
        if (!program_look(scratch, at, path, look))
            return WRAP_EXEC_MISSING;
        if (look->kind != PROGRAM_SCRIPT || i == PROGRAM_SCRIPTS_MAX) {
            if (look->kind == PROGRAM_ELF && !prefilter_is_plainly_foreign(look->interpreter))
                wrap_exec_promote_loader(directory, look->interpreter);
            if (i > 0 && open >= 0 && wrap_exec_is_closed(open))
                return PROGRAM_GOES; /* but no further: the interpreter could not read the script */
            return program_judge(at, path, look, wrap_exec_root_handed(look, directory, arguments), helps);
        }
        at = directory;
        path = look->interpreter;
    }
}

static int wrap_exec_prepare_one(int at, const char *path, int directory, char *const arguments[])
{
    struct scratch *scratch = scratch_take();
    int way = scratch != NULL ? wrap_exec_prepare_chain(scratch, at, path, directory, arguments) : PROGRAM_GOES;
    if (way == PROGRAM_HELPED)
        way = wrap_exec_refusal(scratch, at, path, directory);
    scratch_give(scratch);
    return way;
}

/* What a child must have in its environment. The first is LD_PRELOAD: a value of the program's own stays, and
 * the shim's library goes after it (a sanitizer's must come first). */
#define LIBRARY "libshunt_preload.so"
static const char *const carried[EXEC_CARRIED] = {"LD_PRELOAD",    "SHUNT_ROOT",   "SHUNT_NODE",         "SHUNT_RUN_DIR",
                                                  "SHUNT_ROOT_ID", "SHUNT_STATIC", "SHUNT_STATIC_HELPER"};

static const char *wrap_exec_value_of(unsigned which)
{
    switch (which) {
    case 0:
        return shim_state.process.preload;
    case 1:
        return shim_state.process.config.roots;
    case 2:
        return shim_state.process.config.node;
    case 3:
        return shim_state.process.config.run_base;
    case 4:
        return shim_state.process.config.root_ids;
    case 5:
        return shim_state.process.config.static_text;
    default:
        return shim_state.process.config.static_helper;
    }
}

/* Where NAME=value stands, or the end of the vector. */
static size_t wrap_exec_find(char *const environment[], const char *name)
{
    size_t length = strlen(name), at = 0;
    while (environment != NULL && environment[at] != NULL &&
           !(strncmp(environment[at], name, length) == 0 && environment[at][length] == '='))
        at++;
    return at;
}

static bool wrap_exec_has(char *const environment[], size_t at)
{
    return environment != NULL && environment[at] != NULL;
}

/* What execvp tries for a name, one after the other; `*at` is where it goes on in PATH. An empty PATH is the
 * working directory, none is execvp's default. False: that was all. */
static bool wrap_exec_next_candidate(const char **at, const char *file, char *to)
{
    while (*at != NULL) {
        const char *start = *at, *end = strchrnul(start, ':');
        struct text text;
        text_init(&text, to, PATH_MAX);
        text_bytes(&text, start, (size_t)(end - start));
        text_add(&text, end > start ? "/" : "");
        text_add(&text, file);
        *at = *end == ':' ? end + 1 : NULL;
        if (text_ok(&text))
            return true;
    }
    return false;
}

static const char *wrap_exec_search_path(void)
{
    size_t at = wrap_exec_find(environ, "PATH");
    return wrap_exec_has(environ, at) ? environ[at] + strlen("PATH=") : "/bin:/usr/bin";
}

/* The kernel goes by the first one that it can execute; until then each candidate may be in a branch. Not inlined: its answer
 * is not on the stack while a candidate is looked at. */
__attribute__((noinline)) static bool wrap_exec_is_executable(int at, const char *path)
{
    struct statx stat;
    return sys_statx(at, path, 0, STATX_TYPE, &stat) == 0 && S_ISREG(stat.stx_mode) && SYS3(SYS_faccessat, at, path, X_OK) == 0;
}

/* One that is looked for as execvp does. */
static int wrap_exec_prepare_searched(const char *file, int directory, char *const arguments[])
{
    struct scratch *scratch = scratch_take();
    int way = PROGRAM_GOES;
    char *candidate = scratch != NULL ? scratch->real : NULL;
    const char *at = strchr(file, '/') != NULL ? NULL : wrap_exec_search_path();
    if (at == NULL)
        way = wrap_exec_prepare_one(directory, file, directory, arguments);
    while (candidate != NULL && wrap_exec_next_candidate(&at, file, candidate)) {
        wrap_exec_promote_one(directory, candidate);
        if (!wrap_exec_is_executable(directory, candidate))
            continue;
        way = wrap_exec_prepare_one(directory, candidate, directory, arguments);
        if (way != WRAP_EXEC_MISSING)
            break;
    }
    scratch_give(scratch);
    return way;
}

/* The dynamic loader, as a program, opens the program that it is told to run: the first argument that is no option. Not
 * inlined: it is not on the stack of what comes before it. */
__attribute__((noinline)) static void wrap_exec_prepare_loaded(int directory, char *const arguments[])
{
    static const char valued[][24] = {"--library-path",         "--inhibit-rpath",    "--audit", "--preload", "--argv0",
                                      "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"};
    size_t at = 1;
    while (arguments[at] != NULL && strncmp(arguments[at], "--", 2) == 0) {
        bool has_value = false;
        for (size_t i = 0; i < sizeof valued / sizeof *valued; i++)
            has_value |= strcmp(arguments[at], valued[i]) == 0;
        at += has_value && arguments[at + 1] != NULL ? 2 : 1;
    }
    if (arguments[at] != NULL)
        wrap_exec_prepare_one(directory, arguments[at], directory, nothing_handed);
}

/* A tool of valgrind does so, too, along PATH, and reads and writes files of its own: .valgrindrc here, and those that its
 * options name (--suppressions=FILE, --log-file=FILE), none of which is a word by itself. */
__attribute__((noinline)) static void wrap_exec_prepare_analysed(int directory, char *const arguments[])
{
    size_t at = 1;
    wrap_exec_promote_one(directory, ".valgrindrc");
    for (; arguments[at] != NULL && arguments[at][0] == '-' && strcmp(arguments[at], "--") != 0; at++) {
        const char *value = strchr(arguments[at], '=');
        if (value != NULL)
            wrap_exec_promote_one(directory, value + 1);
    }
    at += arguments[at] != NULL && strcmp(arguments[at], "--") == 0;
    if (arguments[at] != NULL)
        wrap_exec_prepare_searched(arguments[at], directory, nothing_handed);
}

/* What a program that loads others is told to load. */
static void wrap_exec_prepare_argument(const char *file, int directory, char *const arguments[])
{
    if (arguments == NULL || arguments[0] == NULL)
        return;
    if (program_is_loader(file))
        wrap_exec_prepare_loaded(directory, arguments);
    else if (program_is_analyser(file))
        wrap_exec_prepare_analysed(directory, arguments);
}

static int wrap_exec_prepare_all(int at, const char *path, int directory, char *const arguments[])
{
    const int way = wrap_exec_prepare_one(at, path, directory, arguments);
    if (way != WRAP_EXEC_MISSING)
        wrap_exec_prepare_argument(path, directory, arguments);
    return way;
}

static enum program_way wrap_exec_way(int way)
{
    return way == WRAP_EXEC_MISSING ? PROGRAM_GOES : (enum program_way)way;
}

enum program_way exec_prepare(int at, const char *path, int directory, char *const arguments[])
{
    int saved = errno, way = PROGRAM_GOES;
    if (process_has_roots() && process_check_path(path) == 0)
        way = wrap_exec_prepare_all(at, path, directory, arguments);
    errno = saved;
    return wrap_exec_way(way);
}

enum program_way exec_prepare_along_path(const char *file, int directory, char *const arguments[])
{
    int saved = errno;
    if (!process_has_roots())
        return PROGRAM_GOES;
    const int way = wrap_exec_prepare_searched(file, directory, arguments);
    wrap_exec_prepare_argument(file, directory, arguments);
    errno = saved;
    return wrap_exec_way(way);
}

/* The shim's own entry in the LD_PRELOAD this program was started with. */
static const char *wrap_exec_own_library(size_t *length)
{
    const char *start = shim_state.process.preload, *library = text_find(shim_state.process.preload, LIBRARY);
    if (library == NULL)
        return NULL;
    for (const char *at = start; at < library; at++)
        if (*at == ':' || *at == ' ')
            start = at + 1;
    *length = strcspn(start, ": ");
    return start;
}

/* Must this child be given something? A program that emptied the environment did not mean the shim,
 * which it does not know. */
static bool wrap_exec_lacks(char *const environment[], unsigned which)
{
    size_t at = wrap_exec_find(environment, carried[which]), length;
    if (wrap_exec_value_of(which) == NULL || wrap_exec_value_of(which)[0] == '\0')
        return false;
    if (!wrap_exec_has(environment, at))
        return true;
    return which == 0 && text_find(environment[at], LIBRARY) == NULL && wrap_exec_own_library(&length) != NULL;
}

size_t exec_count(char *const environment[])
{
    size_t count = 0;
    while (environment != NULL && environment[count] != NULL)
        count++;
    return count;
}

size_t exec_room(char *const environment[])
{
    size_t room = 0;
    for (unsigned i = 0; i < EXEC_CARRIED; i++) {
        size_t at = wrap_exec_find(environment, carried[i]);
        if (wrap_exec_lacks(environment, i))
            room += strlen(carried[i]) + strlen(wrap_exec_value_of(i)) + 3 +
                    (wrap_exec_has(environment, at) ? strlen(environment[at]) : 0);
    }
    return room;
}

static char *wrap_exec_write_entry(char *to, unsigned which, const char *theirs)
{
    size_t length;
    if (theirs == NULL)
        return stpcpy(stpcpy(stpcpy(to, carried[which]), "="), wrap_exec_value_of(which)) + 1;
    const char *library = wrap_exec_own_library(&length);
    to = stpcpy(stpcpy(to, theirs), ":");
    memcpy(to, library, length);
    to[length] = '\0';
    return to + length + 1;
}

char *const *exec_carry(char *const environment[], char **to, char *texts)
{
    size_t count = exec_count(environment);
    if (count > 0)
        memcpy(to, environment, count * sizeof *to);
    for (unsigned i = 0; i < EXEC_CARRIED; i++) {
        size_t at = wrap_exec_find(environment, carried[i]);
        if (!wrap_exec_lacks(environment, i))
            continue;
        char *entry = texts;
        texts = wrap_exec_write_entry(texts, i, wrap_exec_has(environment, at) ? environment[at] : NULL);
        to[wrap_exec_has(environment, at) ? at : count++] = entry;
    }
    to[count] = NULL;
    return to;
}

/* The thread's, made as large as that if it is smaller; NULL: no memory. */
static void *wrap_exec_thread_room(size_t size)
{
    if (shim_thread.carrying.size < size) {
        void *fresh = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (sys_is_error(fresh))
            return NULL;
        if (shim_thread.carrying.at != NULL)
            sys_munmap(shim_thread.carrying.at, shim_thread.carrying.size);
        shim_thread.carrying.at = fresh;
        shim_thread.carrying.size = size;
    }
    return shim_thread.carrying.at;
}

/* The command line of the helper: itself, the program's path (or an empty one, and descriptors), and its arguments from the
 * zeroth on. */
static size_t wrap_exec_words_room(const struct exec_helped *helped)
{
    return helped->way == PROGRAM_HELPED ? (exec_count(helped->arguments) + 5) * sizeof(char *) + PATH_MAX : 0;
}

/* FD, or FD:PASSED */
static char *wrap_exec_write_open(int fd, int passed, char *to)
{
    struct text text;
    text_init(&text, to, PATH_MAX);
    text_number(&text, (uint64_t)fd, 10);
    if (passed >= 0) {
        text_add(&text, ":");
        text_number(&text, (uint64_t)passed, 10);
    }
    return to;
}

static char *wrap_exec_write_path(const struct exec_helped *helped, char *path)
{
    const char *at = helped->is_along_path && strchr(helped->path, '/') == NULL ? wrap_exec_search_path() : NULL;
    bool found = false;
    while (!found && wrap_exec_next_candidate(&at, helped->path, path))
        found = wrap_exec_is_executable(helped->directory, path);
    return found ? path : (char *)helped->path;
}

/* Not inlined: it is not on the stack of what comes after it. */
__attribute__((noinline)) static char **wrap_exec_words(const struct exec_helped *helped, int passed, void *room)
{
    const size_t count = exec_count(helped->arguments);
    char **words = room, *text = (char *)(words + count + 5);
    size_t at = 0;
    words[at++] = (char *)shim_state.process.config.static_helper;
    words[at++] = helped->path[0] != '\0' ? wrap_exec_write_path(helped, text) : (char *)helped->path;
    if (helped->path[0] == '\0')
        words[at++] = wrap_exec_write_open(helped->directory, passed, text);
    words[at] = words[1]; /* without a zeroth argument the kernel gives an empty one */
    for (size_t i = 0; i < count; i++)
        words[at + i] = helped->arguments[i];
    words[at + (count > 0 ? count : 1)] = NULL;
    return words;
}

char *const *exec_carry_begin(struct exec_carrying *carrying, char *const environment[], const struct exec_helped *helped)
{
    const size_t texts = process_has_roots() ? exec_room(environment) : 0, count = exec_count(environment) + EXEC_CARRIED + 1;
    const size_t words = wrap_exec_words_room(helped), page = SYS_LEAST_PAGE * 16;
    const size_t size = (words + count * sizeof(char *) + texts + page - 1) / page * page;
    *carrying = (struct exec_carrying){.size = size, .passed = -1};
    if (texts == 0 && words == 0)
        return environment;
    if (shim_thread.carrying.user == sys_getpid()) {
        void *own = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        carrying->at = sys_is_error(own) ? NULL : own;
    } else {
        shim_thread.carrying.user = sys_getpid();
        carrying->at = wrap_exec_thread_room(size);
        if (carrying->at == NULL)
            shim_thread.carrying.user = 0;
    }
    if (carrying->at == NULL)
        return NULL;
    if (words > 0 && helped->path[0] == '\0' && wrap_exec_is_closed(helped->directory))
        carrying->passed = (int)SYS3(SYS_fcntl, helped->directory, F_DUPFD, 0);
    if (words > 0)
        carrying->words = wrap_exec_words(helped, carrying->passed, carrying->at);
    char **to = (char **)((char *)carrying->at + words);
    return exec_carry(environment, to, (char *)(to + count));
}

void exec_carry_end(const struct exec_carrying *carrying)
{
    if (carrying->passed >= 0)
        sys_close(carrying->passed);
    if (carrying->at == NULL)
        return;
    if (carrying->at == shim_thread.carrying.at)
        shim_thread.carrying.user = 0;
    else
        sys_munmap(carrying->at, carrying->size);
}

/* A debugger that sets its breakpoints after so many execs (gdb, after that of a shell and of the program) is told of each by
 * SIGTRAP: of this one it is not. The helper takes the signal in, where it is told by a zeroth argument as a login shell's. */
__attribute__((noinline)) static int wrap_exec_by_helper(char *words[], char *const environment[])
{
    const uint64_t trap = UINT64_C(1) << (SIGTRAP - 1);
    const char *helper = words[0];
    uint64_t before = trap;
    SYS4(SYS_rt_sigprocmask, SIG_BLOCK, &trap, &before, sizeof before);
    if (!(before & trap))
        words[0] = "-shunt-static";
    const int result = REAL(execve)(helper, words, environment);
    if (!(before & trap))
        SYS4(SYS_rt_sigprocmask, SIG_UNBLOCK, &trap, NULL, sizeof trap);
    return result;
}

/* CALL with an environment that carries the shim on, which is ENVIRONMENT there, or the helper instead; -1 with errno. */
#define WRAP_EXEC_CARRYING(ENVIRONMENT, HELPED, CALL)                                                                          \
    ({                                                                                                                         \
        struct exec_carrying carrying;                                                                                         \
        const int refused = exec_refused((HELPED)->way);                                                                       \
        int result = refused != 0 ? (errno = refused, -1) : 0;                                                                 \
        char *const *carried_on = result == 0 ? exec_carry_begin(&carrying, ENVIRONMENT, HELPED) : NULL;                       \
        sanitizer_abandon_frames();                                                                                            \
        if (result == 0 && carried_on == NULL && (ENVIRONMENT) != NULL)                                                        \
            result = (errno = ENOMEM, -1);                                                                                     \
        if (result == 0 && carrying.words != NULL)                                                                             \
            result = wrap_exec_by_helper(carrying.words, carried_on);                                                          \
        else if (result == 0)                                                                                                  \
            result = (CALL);                                                                                                   \
        if (refused == 0)                                                                                                      \
            exec_carry_end(&carrying);                                                                                         \
        result;                                                                                                                \
    })

static __attribute__((noinline)) int wrap_exec_error_found(int at, const char *path)
{
    struct target t;
    int how = target_find_text(&t, at, path, TARGET_FOLLOW | TARGET_ALIAS);
    struct statx stat; /* a program that was moved may want an interpreter that is not there */
    const bool is_kept = how == TARGET_MANAGED && target_is_away(&t) && sys_statx(at, path, 0, STATX_TYPE, &stat) == -ENOENT;
    if (how == TARGET_MANAGED)
        target_done(&t);
    return how == -ENOTDIR || how == -ELOOP ? -how : is_kept ? EACCES : ENOENT;
}

/* It is there, but could not be moved to the trunk: EACCES. */
int exec_error(int at, const char *path, int error)
{
    if (error != ENOENT || strchr(path, '/') == NULL || !process_has_roots() || target_is_dead_end(at, path, TARGET_FOLLOW))
        return error;
    return wrap_exec_error_found(at, path);
}

/* Not inlined: what it needs is not on the stack while the program is looked at. */
static __attribute__((noinline)) int wrap_exec_execute(enum program_way way, const char *path, char *const arguments[],
                                                       char *const environment[])
{
    const struct exec_helped helped = {way, path, false, AT_FDCWD, arguments};
    WRAP_EXEC_CARRYING(environment, &helped, REAL(execve)(path, arguments, carried_on));
    errno = exec_error(AT_FDCWD, path, errno);
    return -1;
}

WRAPPER int execve(const char *path, char *const arguments[], char *const environment[])
{
    WRAPPER_LAUNDER(path);
    return wrap_exec_execute(exec_prepare(AT_FDCWD, path, AT_FDCWD, arguments), path, arguments, environment);
}

WRAPPER int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

WRAPPER int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    const enum program_way way = exec_prepare_along_path(file, AT_FDCWD, arguments);
    const struct exec_helped helped = {way, file, true, AT_FDCWD, arguments};
    WRAP_EXEC_CARRYING(environment, &helped, REAL(execvpe)(file, arguments, carried_on));
    errno = exec_error(AT_FDCWD, file, errno);
    return -1;
}

WRAPPER int execvp(const char *file, char *const arguments[])
{
    return execvpe(file, arguments, environ);
}

WRAPPER int fexecve(int fd, char *const arguments[], char *const environment[])
{
    wrap_exec_promote_descriptor(fd);
    const struct exec_helped helped = {exec_prepare(fd, "", AT_FDCWD, arguments), "", false, fd, arguments};
    return WRAP_EXEC_CARRYING(environment, &helped, REAL(fexecve)(fd, arguments, carried_on));
}

/* By its descriptor, if the path says so. Not inlined: as what comes next, it is not on the stack of the others. */
__attribute__((noinline)) static void wrap_exec_promote_empty(int fd, const char *path)
{
    if (process_has_roots() && process_can_read(path, 1) && path[0] == '\0')
        wrap_exec_promote_descriptor(fd);
}

__attribute__((noinline)) static int wrap_exec_prepared_at(enum program_way way, int at, const char *path,
                                                           char *const arguments[], char *const environment[], int flags)
{
    const bool is_open = way == PROGRAM_HELPED && path[0] == '\0';
    if (way == PROGRAM_HELPED &&
        ((flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) != 0 || (is_open && !(flags & AT_EMPTY_PATH))))
        way = PROGRAM_GOES; /* but no further: the kernel knows no such flag, or no empty path */
    const struct exec_helped helped = {way, path, false, is_open ? at : AT_FDCWD, arguments};
    WRAP_EXEC_CARRYING(environment, &helped, REAL(execveat)(at, path, arguments, carried_on, flags));
    errno = exec_error(at, path, errno);
    return -1;
}

WRAPPER int execveat(int at, const char *path, char *const arguments[], char *const environment[], int flags)
{
    WRAPPER_LAUNDER(path);
    if (at == AT_FDCWD && flags == 0)
        return execve(path, arguments, environment);
    if (flags & AT_EMPTY_PATH)
        wrap_exec_promote_empty(at, path);
    const enum program_way way = exec_prepare(at, path, AT_FDCWD, arguments);
    return wrap_exec_prepared_at(way, at, path, arguments, environment, flags);
}

/* The arguments of a variadic exec as a vector on the stack. */
static size_t wrap_exec_count_arguments(va_list from)
{
    size_t count = 1;
    while (va_arg(from, char *) != NULL)
        count++;
    return count;
}

#define VECTOR(FIRST)                                                                                                          \
    va_list more;                                                                                                              \
    WRAPPER_LAUNDER(FIRST);                                                                                                    \
    va_start(more, FIRST);                                                                                                     \
    size_t count = FIRST != NULL ? wrap_exec_count_arguments(more) : 0;                                                        \
    va_end(more);                                                                                                              \
    char **vector = alloca((count + 1) * sizeof *vector);                                                                      \
    va_start(more, FIRST);                                                                                                     \
    vector[0] = (char *)FIRST;                                                                                                 \
    for (size_t i = 1; i <= count; i++)                                                                                        \
    vector[i] = va_arg(more, char *)

WRAPPER int execl(const char *path, const char *first, ...)
{
    VECTOR(first);
    va_end(more);
    return execve(path, vector, environ);
}

WRAPPER int execle(const char *path, const char *first, ...)
{
    VECTOR(first);
    char *const *environment = va_arg(more, char *const *);
    va_end(more);
    return execve(path, vector, environment);
}

WRAPPER int execlp(const char *file, const char *first, ...)
{
    VECTOR(first);
    va_end(more);
    return execvpe(file, vector, environ);
}
