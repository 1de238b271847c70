/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/program.h"

#include <elf.h>
#include <errno.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include "base/sys.h"
#include "index/record.h"
#include "path/path.h"
#include "shim/process.h"
#include "shim/scratch.h"
#include "shim/state.h"

#define TOLD 256 /* programs that were warned about; beyond that no warning is remembered */
#define LOADER "ld-linux"
#define CAPABILITIES "security.capability"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define VALGRIND_TOOL "-amd64-linux"
#else
#define MACHINE EM_AARCH64
#define VALGRIND_TOOL "-arm64-linux"
#endif

void program_share(void)
{
    if (shim_state.program.told != NULL)
        return;
    const size_t size = TOLD * sizeof *shim_state.program.told;
    void *page = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shim_state.program.told = sys_is_error(page) ? NULL : page;
}

static bool program_was_told(const char *path)
{
    program_share();
    uint64_t word = record_hash(path, strlen(path)) | 1;
    uint64_t *told = shim_state.program.told, *at = told == NULL ? NULL : &told[word >> 1 & (TOLD - 1)];
    return at != NULL && __atomic_exchange_n(at, word, __ATOMIC_RELAXED) == word;
}

bool program_interpreter(int at, const char *path, char line[PROGRAM_LINE_MAX + 1])
{
    struct statx stat;
    if (path == NULL || sys_statx(at, path, 0, STATX_TYPE, &stat) != 0 || !S_ISREG(stat.stx_mode))
        return false;
    int fd = sys_openat(at, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    long length = SYS3(SYS_read, fd, line, PROGRAM_LINE_MAX);
    sys_close(fd);
    line[length > 0 ? length : 0] = '\0';
    if (strncmp(line, "#!", 2) != 0)
        return false;
    size_t start = 2 + strspn(line + 2, " \t"), end = start + strcspn(line + start, " \t\n");
    memmove(line, line + start, end - start);
    line[end - start] = '\0';
    return end > start;
}

static const char *program_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool program_read_at(int fd, void *to, size_t size, uint64_t offset)
{
    return SYS4(SYS_pread64, fd, to, size, offset) == (long)size;
}

/* The loader that a program asks for, i.e. its C library's. An empty text: it asks for none. False: it cannot
 * be read. */
static bool program_loader_of(int fd, const Elf64_Ehdr *head, char loader[PROGRAM_LINE_MAX + 1])
{
    Elf64_Phdr part;
    loader[0] = '\0';
    for (unsigned i = 0; i < head->e_phnum; i++) {
        if (!program_read_at(fd, &part, sizeof part, head->e_phoff + i * sizeof part))
            return false;
        if (part.p_type != PT_INTERP)
            continue;
        if (part.p_filesz > PROGRAM_LINE_MAX || !program_read_at(fd, loader, part.p_filesz, part.p_offset))
            return false;
        loader[part.p_filesz] = '\0';
        return true;
    }
    return true;
}

static bool program_ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* A static program that loads others, and the shim with them: the loader itself, or a tool of valgrind (memcheck-amd64-linux).
 */
static bool program_loads(const char *name)
{
    return (strncmp(name, "ld", 2) == 0 && strstr(name, ".so") != NULL) || program_ends_with(name, VALGRIND_TOOL);
}

static const char *program_about_elf(int fd, const char *path)
{
    Elf64_Ehdr head;
    char loader[PROGRAM_LINE_MAX + 1];
    if (!program_read_at(fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return NULL;
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != MACHINE)
        return "built for another kind of machine than shunt";
    if (head.e_phentsize != sizeof(Elf64_Phdr) || !program_loader_of(fd, &head, loader))
        return NULL;
    if (loader[0] == '\0')
        return program_loads(program_base_name(path)) ? NULL : "statically linked";
    return strncmp(program_base_name(loader), LOADER, sizeof LOADER - 1) == 0 ? NULL : "linked with another C library";
}

static bool program_changes_user(const struct statx *stat)
{
    bool user = (stat->stx_mode & S_ISUID) && stat->stx_uid != (uid_t)SYS0(SYS_geteuid);
    bool group = (stat->stx_mode & S_ISGID) && (stat->stx_mode & S_IXGRP) && stat->stx_gid != (gid_t)SYS0(SYS_getegid);
    return (user || group) && SYS1(SYS_prctl, PR_GET_NO_NEW_PRIVS) != 1;
}

/* The loader takes nothing from the environment of a program that has more rights than its caller; or would
 * have them, but for PR_SET_NO_NEW_PRIVS, in the case of capabilities. */
static const char *program_about_rights(int fd)
{
    struct statx stat;
    struct statfs fs;
    if (SYS2(SYS_fstatfs, fd, &fs) != 0 || (fs.f_flags & ST_NOSUID) ||
        sys_statx(fd, "", AT_EMPTY_PATH, STATX_MODE | STATX_UID | STATX_GID, &stat) != 0)
        return NULL;
    if (program_changes_user(&stat))
        return "changes its user or group";
    bool capable = SYS0(SYS_geteuid) != 0 && SYS4(SYS_fgetxattr, fd, CAPABILITIES, NULL, 0) > 0;
    return capable ? "has capabilities of its own" : NULL;
}

/* Why the shim will not be in that program, or NULL. */
static const char *program_about(int at, const char *path)
{
    struct statx stat;
    if (sys_statx(at, path, path[0] == '\0' ? AT_EMPTY_PATH : 0, STATX_TYPE, &stat) != 0 || !S_ISREG(stat.stx_mode))
        return NULL;
    int fd = path[0] == '\0' ? at : sys_openat(at, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    const char *why = program_about_elf(fd, path);
    if (why == NULL)
        why = program_about_rights(fd);
    if (fd != at)
        sys_close(fd);
    return why;
}

/* The root that a word may stand for: by itself, or somewhere in it (--output=PATH). */
static const struct names_root *program_root_in(const char *word, const char *directory)
{
    for (unsigned i = 0; i < shim_state.process.count; i++) {
        const struct names_root *root = &shim_state.roots[i];
        if (strstr(word, root->path) != NULL || (root->given[0] != '\0' && strstr(word, root->given) != NULL))
            return root;
        if (directory != NULL && word[0] != '/' && word[0] != '-' && path_verdict(root->path, directory, word) != PATH_FOREIGN)
            return root;
    }
    return NULL;
}

static const struct names_root *program_root_handed(int directory, char *const arguments[])
{
    const struct names_root *root = NULL;
    struct scratch *scratch = scratch_take();
    bool here = scratch != NULL && directory == AT_FDCWD && sys_getcwd(scratch->text[0], PATH_MAX) > 0;
    if (here)
        root = program_root_in(".", scratch->text[0]);
    for (size_t i = 1; root == NULL && arguments != NULL && arguments[0] != NULL && arguments[i] != NULL; i++)
        root = program_root_in(arguments[i], here ? scratch->text[0] : NULL);
    scratch_give(scratch);
    return root;
}

static struct iovec program_words(const char *text)
{
    return (struct iovec){(void *)text, strlen(text)};
}

static void program_say(const char *path, const char *why, const struct names_root *root)
{
    const struct iovec line[] = {program_words("shunt: "),
                                 program_words(path),
                                 program_words(": warning: "),
                                 program_words(why),
                                 program_words(", so shunt does not see what it does with files under "),
                                 program_words(root->path),
                                 program_words("\n")};
    SYS3(SYS_writev, 2, line, sizeof line / sizeof *line);
}

void program_warn(int at, const char *path, int directory, char *const arguments[])
{
    char lines[2][PROGRAM_LINE_MAX + 1];
    int saved = errno;
    const struct names_root *root = process_has_roots() && path != NULL ? program_root_handed(directory, arguments) : NULL;
    if (root == NULL)
        return;
    for (int i = 0; i < PROGRAM_SCRIPTS_MAX && program_interpreter(at, path, lines[i % 2]); i++) {
        at = directory;
        path = lines[i % 2];
    }
    const char *why = program_about(at, path);
    if (why != NULL && !program_was_told(path))
        program_say(path, why, root);
    errno = saved;
}
