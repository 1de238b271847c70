/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "shim/program.h"

#include <errno.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/text.h"
#include "index/record.h"
#include "path/path.h"
#include "shim/process.h"
#include "shim/scratch.h"
#include "shim/state.h"

#define TOLD 256  /* programs that were warned about; beyond that no warning is remembered */
#define KNOWN 128 /* a power of two */
#define KNOWN_BUSY 1
#define KNOWN_TEXT 54
#define KNOWN_OLD (3 * CLOCK_SECOND)
#define PROGRAM_HEAD 1024
#define PROGRAM_IDENTITY (STATX_TYPE | STATX_MODE | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME | STATX_BTIME)
#define LOADER "ld-linux"
#define PROGRAM_ASK 0x53485354 /* as tools/static/calls.h has it */
#define CAPABILITIES "security.capability"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define VALGRIND_TOOL "-amd64-linux"
#else
#define MACHINE EM_AARCH64
#define VALGRIND_TOOL "-arm64-linux"
#endif

enum program_why { WHY_NOT = 0, WHY_MACHINE, WHY_STATIC, WHY_LIBRARY, WHY_GO, WHY_USER, WHY_CAPABLE };

static const char *const program_reasons[] = {
    [WHY_MACHINE] = "built for another kind of machine than shunt",
    [WHY_STATIC] = "statically linked",
    [WHY_LIBRARY] = "linked with another C library",
    [WHY_GO] = "written in Go, which makes its system calls without a library",
    [WHY_USER] = "changes its user or group",
    [WHY_CAPABLE] = "has capabilities of its own",
};

/* What was read of a program: its interpreter, or why the shim will not be in it. The key is its file's identity, size and
 * times, and its name. */
struct program_known {
    uint64_t key; /* 0: free; KNOWN_BUSY: being written, for good if its writer was killed then */
    uint8_t kind, why;
    char interpreter[KNOWN_TEXT];
};

struct program_shared {
    uint64_t told[TOLD];
    struct program_known known[KNOWN];
};

static struct program_shared *program_share_all(void)
{
    struct program_shared *shared = shim_state.program.shared;
    if (shared != NULL)
        return shared;
    shared = sys_mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shim_state.program.shared = sys_is_error(shared) ? NULL : shared;
}

void program_share(void)
{
    program_share_all();
}

static bool program_was_told(const char *path)
{
    uint64_t word = record_hash(path, strlen(path)) | 1;
    struct program_shared *shared = program_share_all();
    return shared != NULL && __atomic_exchange_n(&shared->told[word >> 1 & (TOLD - 1)], word, __ATOMIC_RELAXED) == word;
}

static const char *program_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* 0: nothing is to be remembered of it: a change within a tick of its file system's clock would leave the times as they are. */
__attribute__((noinline)) static uint64_t program_key(const struct statx *stat, const char *path)
{
    const uint64_t modified = clock_stamp(stat->stx_mtime), changed = clock_stamp(stat->stx_ctime), now = clock_files();
    const uint64_t all[] = {(uint64_t)stat->stx_dev_major << 32 | stat->stx_dev_minor,
                            stat->stx_ino,
                            clock_stamp(stat->stx_btime),
                            stat->stx_size,
                            modified,
                            changed};
    if (changed + KNOWN_OLD > now || modified + KNOWN_OLD > now)
        return 0;
    const char *name = program_base_name(path);
    return record_sum(all, sizeof all, record_hash(name, strlen(name))) | 2;
}

static struct program_known *program_known_at(uint64_t key)
{
    struct program_shared *shared = key != 0 ? program_share_all() : NULL;
    return shared != NULL ? &shared->known[key >> 8 & (KNOWN - 1)] : NULL;
}

static bool program_recall(uint64_t key, struct program_look *look)
{
    const struct program_known *known = program_known_at(key);
    if (known == NULL || __atomic_load_n(&known->key, __ATOMIC_ACQUIRE) != key)
        return false;
    look->kind = known->kind;
    look->why = known->why;
    memcpy(look->interpreter, known->interpreter, KNOWN_TEXT);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&known->key, __ATOMIC_RELAXED) == key;
}

static void program_remember(uint64_t key, const struct program_look *look)
{
    struct program_known *known = program_known_at(key);
    uint64_t before = known != NULL ? __atomic_load_n(&known->key, __ATOMIC_RELAXED) : KNOWN_BUSY;
    if (before == KNOWN_BUSY || strlen(look->interpreter) >= KNOWN_TEXT ||
        !__atomic_compare_exchange_n(&known->key, &before, KNOWN_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    known->kind = look->kind;
    known->why = look->why;
    strcpy(known->interpreter, look->interpreter);
    __atomic_store_n(&known->key, key, __ATOMIC_RELEASE);
}

/* The interpreter that a script's first line names, else an empty text. */
static void program_read_line(const char *head, size_t length, char interpreter[PROGRAM_LINE_MAX + 1])
{
    length = length < PROGRAM_LINE_MAX ? length : PROGRAM_LINE_MAX;
    interpreter[0] = '\0';
    if (length < 2 || memcmp(head, "#!", 2) != 0)
        return;
    memcpy(interpreter, head, length);
    interpreter[length] = '\0';
    const size_t start = 2 + strspn(interpreter + 2, " \t"), end = start + strcspn(interpreter + start, " \t\n");
    memmove(interpreter, interpreter + start, end - start);
    interpreter[end - start] = '\0';
}

static bool program_read_at(const struct program_head *head, void *to, size_t size, uint64_t offset)
{
    if (offset <= head->length && size <= head->length - offset) {
        memcpy(to, head->bytes + offset, size);
        return true;
    }
    return SYS4(SYS_pread64, head->fd, to, size, offset) == (long)size;
}

static bool program_read_part(const struct program_head *from, unsigned which, Elf64_Phdr *to)
{
    return program_read_at(from, to, sizeof *to, from->elf->header.e_phoff + which * sizeof *to);
}

/* The loader that a program asks for, i.e. its C library's. An empty text: it asks for none. False: it cannot
 * be read. */
__attribute__((noinline)) static bool program_loader_of(const struct program_head *from, char loader[PROGRAM_LINE_MAX + 1])
{
    const Elf64_Phdr *part = &from->elf->part;
    loader[0] = '\0';
    for (unsigned i = 0; i < from->elf->header.e_phnum; i++) {
        if (!program_read_part(from, i, &from->elf->part))
            return false;
        if (part->p_type != PT_INTERP)
            continue;
        if (part->p_filesz > PROGRAM_LINE_MAX || !program_read_at(from, loader, part->p_filesz, part->p_offset))
            return false;
        loader[part->p_filesz] = '\0';
        return true;
    }
    return true;
}

#define GO_NAME "Go"
#define GO_BUILD_ID 4

/* Go's compiler leaves a note. What it links with libc for, it still makes its system calls itself. */
static bool program_is_note_of_go(const struct program_head *from, const Elf64_Phdr *part)
{
    struct {
        Elf64_Nhdr head;
        char name[4];
    } note;
    for (uint64_t at = 0; at + sizeof note <= part->p_filesz;) {
        if (!program_read_at(from, &note, sizeof note, part->p_offset + at))
            return false;
        if (note.head.n_type == GO_BUILD_ID && note.head.n_namesz == 4 && strncmp(note.name, GO_NAME, sizeof note.name) == 0)
            return true;
        at += sizeof note.head + (note.head.n_namesz + 3ull) / 4 * 4 + (note.head.n_descsz + 3ull) / 4 * 4;
    }
    return false;
}

__attribute__((noinline)) static bool program_is_go(const struct program_head *from)
{
    const Elf64_Phdr *part = &from->elf->part;
    for (unsigned i = 0; i < from->elf->header.e_phnum; i++)
        if (program_read_part(from, i, &from->elf->part) && part->p_type == PT_NOTE && program_is_note_of_go(from, part))
            return true;
    return false;
}

static bool program_ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

bool program_is_loader(const char *path)
{
    const char *name = program_base_name(path);
    return strncmp(name, "ld", 2) == 0 && text_find(name, ".so") != NULL;
}

bool program_is_analyser(const char *path)
{
    return program_ends_with(program_base_name(path), VALGRIND_TOOL);
}

/* Where in the file an address of a loader's is; 0: nowhere. */
static uint64_t program_offset_of(const struct program_head *from, uint64_t address)
{
    const Elf64_Phdr *part = &from->elf->other_part;
    for (unsigned i = 0; i < from->elf->header.e_phnum; i++)
        if (program_read_part(from, i, &from->elf->other_part) && part->p_type == PT_LOAD && address >= part->p_vaddr &&
            address - part->p_vaddr < part->p_filesz)
            return address - part->p_vaddr + part->p_offset;
    return 0;
}

static bool program_read_dynamic_part(const struct program_head *from)
{
    for (unsigned i = 0; i < from->elf->header.e_phnum; i++)
        if (program_read_part(from, i, &from->elf->part) && from->elf->part.p_type == PT_DYNAMIC)
            return true;
    return false;
}

/* By the name that a shared object has for itself. */
static bool program_is_named_loader(const struct program_head *from)
{
    const Elf64_Phdr *part = &from->elf->part;
    Elf64_Dyn *entry = &from->elf->entry;
    uint64_t strings = 0, own = 0;
    char name[sizeof LOADER] = "";
    if (!program_read_dynamic_part(from))
        return false;
    for (uint64_t at = 0; at + sizeof *entry <= part->p_filesz; at += sizeof *entry) {
        if (!program_read_at(from, entry, sizeof *entry, part->p_offset + at) || entry->d_tag == DT_NULL)
            break;
        strings = entry->d_tag == DT_STRTAB ? entry->d_un.d_ptr : strings;
        own = entry->d_tag == DT_SONAME ? entry->d_un.d_val : own;
    }
    strings = program_offset_of(from, strings);
    return strings != 0 && own != 0 && program_read_at(from, name, sizeof name - 1, strings + own) && strcmp(name, LOADER) == 0;
}

/* Is it glibc's, which loads what LD_PRELOAD names? Most say so by the path. */
static bool program_is_called_glibcs(const char *loader)
{
    return strncmp(program_base_name(loader), LOADER, sizeof LOADER - 1) == 0;
}

/* ... and others by what is in the file. */
static bool program_is_glibcs(const char *loader)
{
    struct program_elf elf;
    const Elf64_Ehdr *head = &elf.header;
    const struct program_head from = {.fd = sys_openat(AT_FDCWD, loader, O_RDONLY | O_CLOEXEC, 0), .elf = &elf};
    if (from.fd < 0)
        return false;
    bool is_it = program_read_at(&from, &elf.header, sizeof elf.header, 0) && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
                 head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_phentsize == sizeof(Elf64_Phdr) &&
                 program_is_named_loader(&from);
    sys_close(from.fd);
    return is_it;
}

/* A static program that loads others, and the shim with them: the loader itself, or a tool of valgrind (memcheck-amd64-linux).
 */
static bool program_loads(const struct program_head *from, const char *name)
{
    return program_is_loader(name) || program_is_analyser(name) || program_is_named_loader(from);
}

/* Which loader it asks for is noted. */
__attribute__((noinline)) static enum program_why program_about_elf(const struct program_head *from, const char *name,
                                                                    struct program_look *look)
{
    const Elf64_Ehdr *head = &from->elf->header;
    char *loader = look->interpreter;
    if (!program_read_at(from, &from->elf->header, sizeof *head, 0) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return WHY_NOT;
    if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != MACHINE)
        return WHY_MACHINE;
    if (head->e_phentsize != sizeof(Elf64_Phdr) || !program_loader_of(from, loader)) {
        loader[0] = '\0';
        return WHY_NOT;
    }
    if (loader[0] == '\0')
        return program_loads(from, name) ? WHY_NOT : WHY_STATIC;
    look->kind = PROGRAM_ELF;
    return program_is_go(from) ? WHY_GO : program_is_called_glibcs(loader) ? WHY_NOT : WHY_LIBRARY;
}

static bool program_changes_user(const struct statx *stat)
{
    bool user = (stat->stx_mode & S_ISUID) && stat->stx_uid != (uid_t)SYS0(SYS_geteuid);
    bool group = (stat->stx_mode & S_ISGID) && (stat->stx_mode & S_IXGRP) && stat->stx_gid != (gid_t)SYS0(SYS_getegid);
    return (user || group) && SYS1(SYS_prctl, PR_GET_NO_NEW_PRIVS) != 1;
}

/* The loader takes nothing from the environment of a program that has more rights than its caller; or would
 * have them, but for PR_SET_NO_NEW_PRIVS, in the case of capabilities. */
__attribute__((noinline)) static enum program_why program_about_rights(int fd)
{
    struct statx stat;
    struct statfs fs;
    char path[40];
    if (SYS2(SYS_fstatfs, fd, &fs) != 0 || (fs.f_flags & ST_NOSUID) ||
        sys_statx(fd, "", AT_EMPTY_PATH, STATX_MODE | STATX_UID | STATX_GID, &stat) != 0)
        return WHY_NOT;
    if (program_changes_user(&stat))
        return WHY_USER;
    if (SYS0(SYS_geteuid) == 0)
        return WHY_NOT;
    struct text text;
    text_init(&text, path, sizeof path);
    text_descriptor(&text, fd);
    return SYS4(SYS_getxattr, path, CAPABILITIES, NULL, 0) > 0 ? WHY_CAPABLE : WHY_NOT;
}

/* A loader of another name may still be glibc's: it is looked into by now, when it is in the trunk if it is in a root. Whether
 * the program changes rights depends on who executes it, and is asked without opening it: by a descriptor of its path. */
static enum program_why program_why_not(int at, const char *path, const struct program_look *look)
{
    int why = look->why;
    if (why == WHY_LIBRARY && program_is_glibcs(look->interpreter))
        why = WHY_NOT;
    if (why == WHY_NOT) {
        int fd = path[0] == '\0' ? at : sys_openat(at, path, O_PATH | O_CLOEXEC, 0);
        if (fd < 0)
            return WHY_NOT;
        why = program_about_rights(fd);
        if (fd != at)
            sys_close(fd);
    }
    return why;
}

static void program_read(struct scratch *scratch, int fd, const char *path, struct program_look *look)
{
    struct statx *stat = &scratch->program.seen;
    const long length = SYS4(SYS_pread64, fd, scratch->real, PROGRAM_HEAD, 0);
    struct program_head *head = &scratch->program.head;
    *head = (struct program_head){fd, scratch->real, length > 0 ? (size_t)length : 0, &scratch->program.elf};
    program_read_line(head->bytes, head->length, look->interpreter);
    if (look->interpreter[0] != '\0')
        look->kind = PROGRAM_SCRIPT;
    else
        look->why = program_about_elf(head, program_base_name(path), look);
    if (length > 0 && sys_statx(fd, "", AT_EMPTY_PATH, PROGRAM_IDENTITY, stat) == 0)
        program_remember(program_key(stat, path), look);
}

/* To be read; `at` itself where it is that. */
__attribute__((noinline)) static int program_open(int at, const char *path)
{
    char link[40];
    struct text text;
    if (path[0] != '\0')
        return sys_openat(at, path, O_RDONLY | O_CLOEXEC, 0);
    if (!(SYS3(SYS_fcntl, at, F_GETFL, 0) & O_PATH))
        return at;
    text_init(&text, link, sizeof link);
    text_descriptor(&text, at);
    return sys_openat(AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
}

bool program_look(struct scratch *scratch, int at, const char *path, struct program_look *look)
{
    struct statx *stat = &scratch->program.seen;
    look->kind = PROGRAM_OTHER;
    look->why = WHY_NOT;
    look->interpreter[0] = '\0';
    const int flags = AT_STATX_FORCE_SYNC | (path != NULL && path[0] == '\0' ? AT_EMPTY_PATH : 0); /* as an open is told */
    if (path == NULL || sys_statx(at, path, flags, PROGRAM_IDENTITY, stat) != 0 || !S_ISREG(stat->stx_mode))
        return false;
    if (program_recall(program_key(stat, path), look))
        return true;
    int fd = program_open(at, path);
    if (fd < 0)
        return true; /* it may be executed, but not read */
    program_read(scratch, fd, path, look);
    if (fd != at)
        sys_close(fd);
    return true;
}

/* The root that a word may stand for: by itself, or somewhere in it (--output=PATH). */
static const struct names_root *program_root_in(const char *word, const char *directory)
{
    for (unsigned i = 0; i < shim_state.process.count; i++) {
        const struct names_root *root = &shim_state.roots[i];
        if (text_find(word, root->path) != NULL || (root->given[0] != '\0' && text_find(word, root->given) != NULL))
            return root;
        if (directory != NULL && word[0] != '/' && word[0] != '-' && path_verdict(root->path, directory, word) != PATH_FOREIGN)
            return root;
    }
    return NULL;
}

const struct names_root *program_root_handed(int directory, char *const arguments[])
{
    const struct names_root *root = NULL;
    struct scratch *scratch = scratch_take();
    bool here = scratch != NULL && directory == AT_FDCWD && process_working_directory(scratch->text[0]);
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

static void program_say(const char *path, const char *why, const struct names_root *root, bool is_refused)
{
    const struct iovec line[] = {program_words("shunt: "),
                                 program_words(path[0] != '\0' ? path : "a program that is executed by a descriptor"),
                                 program_words(is_refused ? ": is not executed: " : ": warning: "),
                                 program_words(why),
                                 program_words(is_refused ? ", so shunt would not see what it does with files under "
                                                          : ", so shunt does not see what it does with files under "),
                                 program_words(root->path),
                                 program_words(is_refused ? " (set SHUNT_STATIC=warn to run it all the same)\n" : "\n")};
    SYS3(SYS_writev, 2, line, sizeof line / sizeof *line);
}

/* Does the helper of a program that started this one answer its calls already? */
static bool program_is_helped(void)
{
    return SYS5(SYS_prctl, PROGRAM_ASK, shim_state.process.config.roots, 0, 0, 0) == 0;
}

static bool program_has_helper(void)
{
    const struct config *config = &shim_state.process.config;
    return config->statics == CONFIG_STATIC_SERVE && config->static_helper != NULL &&
           SYS3(SYS_faccessat, AT_FDCWD, config->static_helper, X_OK) == 0;
}

enum program_way program_judge(int at, const char *path, const struct program_look *look, const struct names_root *root,
                               bool helps)
{
    const enum program_why why = root != NULL ? program_why_not(at, path, look) : WHY_NOT;
    const bool is_helpable = why == WHY_STATIC || why == WHY_LIBRARY || why == WHY_GO;
    if (why == WHY_NOT || (is_helpable && program_is_helped()))
        return PROGRAM_GOES;
    if (is_helpable && helps && program_has_helper())
        return PROGRAM_HELPED;
    const bool is_refused = shim_state.process.config.statics == CONFIG_STATIC_REFUSE;
    if (is_refused || !program_was_told(path))
        program_say(path, program_reasons[why], root, is_refused);
    return is_refused ? PROGRAM_REFUSED : PROGRAM_GOES;
}

enum program_way program_refusal(int at, const char *path)
{
    char *const words[] = {(char *)path, NULL};
    const int flags = path[0] == '\0' ? AT_EMPTY_PATH : 0;
    if (SYS5(SYS_execveat, at, path, words, words + 1, flags | AT_EXECVE_CHECK) == -ETXTBSY)
        return PROGRAM_BUSY;
    return SYS4(SYS_faccessat2, at, path, X_OK, flags | AT_EACCESS) == -EACCES ? PROGRAM_REFUSED : PROGRAM_HELPED;
}

void program_warn_of_library(const char *path, const char *why)
{
    int saved = errno;
    if (!program_was_told(path))
        program_say(path, why, &shim_state.roots[0], false);
    errno = saved;
}
