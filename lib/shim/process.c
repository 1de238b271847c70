/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "base/sys.h"
#include "base/valgrind.h"
#include "names/origin.h"
#include "shim/lasting.h"
#include "shim/program.h"
#include "shim/real.h"
#include "union/layout.h"

_Static_assert(PATH_MAX == PROCESS_PAGE, "a path is on two pages at most");

/* The names that a node may go by. */
struct process_names {
    char slurm[LAYOUT_NODE_MAX + 1], host[LAYOUT_NODE_MAX + 1];
};

static void process_name_host(char to[LAYOUT_NODE_MAX + 1])
{
    struct utsname host = {.nodename = ""};
    SYS1(SYS_uname, &host);
    layout_node_of_host(host.nodename, to);
}

/* What the environment calls this node, and the host's name: the first where a daemon is holds. */
static void process_name_node(struct names_settings *settings, struct process_names *names)
{
    const struct config *config = &shim_state.process.config;
    const bool is_slurm = config->slurm_node != NULL && config->slurm_node[0] != '\0';
    if (is_slurm)
        layout_node_of_host(config->slurm_node, names->slurm);
    process_name_host(names->host);
    const char *const all[NAMES_NODES] = {config->node, is_slurm ? names->slurm : NULL, names->host};
    size_t count = 0;
    for (size_t i = 0; i < NAMES_NODES; i++)
        if (all[i] != NULL && (count == 0 || strcmp(settings->nodes[count - 1], all[i]) != 0))
            settings->nodes[count++] = all[i];
}

/* A child of fork learns its process id at once: a shell's first call may be one of a vfork child of its own. */
static void process_in_child(void)
{
    process_forget_readable(); /* MADV_DONTFORK */
    process_has_roots();
}

static void process_add_head(const char *text)
{
    char *head = shim_state.process.heads[shim_state.process.head_count++];
    for (unsigned i = 0; i < PROCESS_HEAD - 1 && text[i] != '\0'; i++)
        head[i] = text[i];
}

/* A root that does not exist is none, unless it is somewhere else: native calls say so themselves. One of which parts may be
 * anywhere has no text. */
static void process_add_root(const char *text, size_t length, unsigned number)
{
    const struct config *config = &shim_state.process.config;
    struct names_root *root = &shim_state.roots[shim_state.process.count];
    struct process_names names;
    struct origin origin;
    const bool is_known = origin_read(&origin, config->root_ids, number);
    struct names_settings settings = {
        .run_base = config->run_base, .deadline = config->deadline, .origin = is_known ? &origin : NULL};
    process_name_node(&settings, &names);
    if (length == 0 || shim_state.process.count == NAMES_ROOTS || names_root_init(root, text, length, &settings) != 0)
        return;
    root->served = config->served;
    process_add_head(root->sight != NAMES_PART ? root->path : "");
    if (root->given[0] != '\0')
        process_add_head(root->given);
    shim_state.process.count++;
}

void process_attach_roots(void)
{
    if (!process_has_roots())
        return;
    for (unsigned i = 0; i < shim_state.process.count; i++)
        names_is_attached(&shim_state.roots[i]);
}

/* With a slash after it: it may be the root itself. */
static bool process_working_way(char room[PATH_MAX])
{
    const size_t length = process_working_directory(room) ? strlen(room) : PATH_MAX;
    if (length + sizeof "/" > PATH_MAX)
        return false;
    memcpy(room + length, "/", sizeof "/");
    return true;
}

bool process_root_has_moved(struct names_root *root, const char *way, char room[PATH_MAX])
{
    if (names_root_is_in_place(root))
        return false;
    names_root_find_again(root, way[0] != '/' && process_working_way(room) ? room : way);
    for (unsigned i = 0; i < shim_state.process.head_count; i++)
        __atomic_store_n(shim_state.process.heads[i], '\0', __ATOMIC_RELAXED);
    return true;
}

static void process_add_roots(const char *roots)
{
    if (names_process_init() != 0 || pthread_atfork(program_share, NULL, process_in_child) != 0)
        return;
    for (unsigned number = 0; *roots != '\0'; number++) {
        const char *end = strchrnul(roots, ':');
        process_add_root(roots, (size_t)(end - roots), number);
        roots = *end == ':' ? end + 1 : end;
    }
    if (shim_state.process.count > 0)
        lasting_start();
}

/* sshd, PostgreSQL and others write their title over the environment that they were executed with. Without memory for a copy
 * the texts stay where they are. */
static void process_keep_texts(struct config *config)
{
    void *room = sys_mmap(NULL, config_texts_size(config), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!sys_is_error(room))
        config_move_texts(config, room);
}

void process_start(char *const environment[])
{
    int saved = errno;
    real_start();
    /* Before our constructor there is no environment to be had: the real functions are all that is needed. */
    if (environment != NULL) {
        shim_state.process.started = true;
        config_read(&shim_state.process.config, environment);
        if (shim_state.process.config.roots != NULL)
            process_keep_texts(&shim_state.process.config);
        shim_state.process.preload = shim_state.process.config.preload;
        if (shim_state.process.config.roots != NULL)
            process_add_roots(shim_state.process.config.roots);
    }
    errno = saved;
}

__attribute__((noinline)) static bool process_kernel_can_read_one(const void *at)
{
    char byte;
    const struct iovec to = {&byte, 1}, from = {(void *)at, 1};
    return SYS6(SYS_process_vm_readv, sys_getpid(), &to, 1, &from, 1, 0) != -EFAULT;
}

#define WORD sizeof(uint64_t)

/* A signal mask to be set in a way that there is none: the kernel reads it first. It reads the bytes around the one that is
 * asked for, too, which valgrind would tell of where nobody has written them; the call that reads one alone is refused by
 * containers. The first word of all would be no mask, and nothing would be read: the next one is on the same page. */
static bool process_kernel_can_read(const void *at)
{
    const uintptr_t word = (uintptr_t)at & ~(uintptr_t)(WORD - 1);
    if (__builtin_expect(valgrind_is_there(), 0))
        return process_kernel_can_read_one(at);
    return SYS4(SYS_rt_sigprocmask, -1, word != 0 ? word : WORD, NULL, WORD) != -EFAULT;
}

/* An addition of nothing by the kernel. valgrind would tell of bytes that nobody has written. */
static bool process_kernel_can_write(void *at)
{
    const uintptr_t word = (uintptr_t)at & ~(uintptr_t)3;
    return valgrind_is_there() ||
           SYS6(SYS_futex, word, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, word, FUTEX_OP_ADD << 28) != -EFAULT;
}

size_t process_writable(void *at, size_t size)
{
    size_t done = 0;
    while (done < size && process_kernel_can_write((char *)at + done))
        done += process_room_in_page((char *)at + done);
    return done < size ? done : size;
}

bool process_can_read(const void *at, size_t size)
{
    if (lasting_room(at) >= size)
        return true;
    if (at == NULL || !process_kernel_can_read(at))
        return false;
    return process_room_in_page(at) >= size || process_kernel_can_read((const char *)at + size - 1);
}

/* Of what goes on on the next page, if `size` is not 0. A function of its own, since the first has little stack. */
__attribute__((noinline)) static int process_check_rest(const char *path, size_t size)
{
    if (size > 0 && !process_kernel_can_read(path))
        return -EFAULT;
    return memchr(path, '\0', size) != NULL ? 0 : -ENAMETOOLONG;
}

int process_check_path(const char *path)
{
    const size_t lasting = lasting_room(path);
    if (lasting > 0 && memchr(path, '\0', lasting < PATH_MAX ? lasting : PATH_MAX) != NULL)
        return 0;
    if (path == NULL || !process_kernel_can_read(path))
        return -EFAULT;
    const size_t first = process_room_in_page(path);
    return memchr(path, '\0', first) != NULL ? 0 : process_check_rest(path + first, PATH_MAX - first);
}

/* The count's part of a word comes again after PROCESS_TAKEN; all words of before are cleared until then. (One that is stored
 * later would be of a thread that stood still between question and store all the while.) */
void process_forget_readable(void)
{
    if (shim_state.process.count == 0)
        return;
    if (__atomic_add_fetch(&shim_state.process.taken, 1, __ATOMIC_SEQ_CST) % (PROCESS_TAKEN / 2) == 0)
        for (unsigned i = 0; i < PROCESS_PAGES; i++)
            __atomic_store_n(&shim_state.process.readable[i], 0, __ATOMIC_RELAXED);
}

static uint32_t *process_filtered(void)
{
    uint32_t *first = shim_state.process.first_is_filtered;
    return first != NULL ? first : &shim_state.process.is_filtered;
}

void process_will_be_filtered(void)
{
    __atomic_store_n(process_filtered(), 1, __ATOMIC_RELAXED);
}

bool process_is_filtered(void)
{
    return __atomic_load_n(process_filtered(), __ATOMIC_RELAXED) != 0;
}

/* Programs that look at files and allow themselves few system calls have readlink(2) among these, not getcwd(2) (file(1)),
 * which takes half as long and needs no /proc. */
bool process_working_directory(char to[PATH_MAX])
{
    if (__builtin_expect(process_is_filtered(), 0)) {
        const long length = sys_readlinkat(AT_FDCWD, "/proc/thread-self/cwd", to, PATH_MAX - 1);
        to[length > 0 ? length : 0] = '\0';
    } else if (sys_getcwd(to, PATH_MAX) <= 0) {
        return false;
    }
    return to[0] == '/'; /* else it is outside the root directory of the process */
}
