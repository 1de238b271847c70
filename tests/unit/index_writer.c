/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* An index and its one writer, for the tests of a view: as in life it is another process.
 *
 *     index_writer DIRECTORY
 *
 * makes an index of session 77 and root 2/3 there. Commands come on standard input, a line each, and are
 * answered with a number on a line: 0, a positive answer or -errno. It ends with its input.
 *
 *     put INO BIRTH NAME CHILD BRANCH LEAF   del INO BIRTH NAME   dir INO BIRTH FLAGS   branch NUMBER NAME
 *     many INO BIRTH COUNT ROUND   n0 to nCOUNT-1, all with the inode number ROUND
 *     fewer INO BIRTH FROM COUNT   nFROM to nCOUNT-1 go
 *     keep INO BIRTH COUNT CHILD BRANCH   the same, in a branch
 *     stir INO BIRTH ROUNDS        everything changes next to them, ROUNDS * 20000 times
 *     flip INO BIRTH TIMES         one name comes and goes
 *     deldir INO BIRTH             delnames INO BIRTH */

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/index.h"

static int index_writer_put(struct index *index, const char *arguments)
{
    struct dirid dir;
    struct record_entry entry = {.type = DT_REG, .state = RECORD_LIVE};
    char name[RECORD_NAME_MAX + 1];
    if (sscanf(arguments, "%" SCNu64 " %" SCNu64 " %255s %" SCNu64 " %" SCNu16 " %" SCNu32, &dir.ino, &dir.birth, name,
               &entry.ino, &entry.branch, &entry.leaf) != 6)
        return -1;
    return index_put_entry(index, dir, name, strlen(name), &entry);
}

static int index_writer_del(struct index *index, const char *arguments)
{
    struct dirid dir;
    char name[RECORD_NAME_MAX + 1];
    if (sscanf(arguments, "%" SCNu64 " %" SCNu64 " %255s", &dir.ino, &dir.birth, name) != 3)
        return -1;
    return index_del_entry(index, dir, name, strlen(name));
}

static int put_dir(struct index *index, const char *arguments)
{
    struct dirid dir;
    struct record_dir record = {0};
    if (sscanf(arguments, "%" SCNu64 " %" SCNu64 " %" SCNu32, &dir.ino, &dir.birth, &record.flags) != 3)
        return -1;
    return index_put_dir(index, dir, &record);
}

static int put_branch(struct index *index, const char *arguments)
{
    uint16_t number;
    char branch[RECORD_BRANCH_MAX];
    if (sscanf(arguments, "%" SCNu16 " %71s", &number, branch) != 2)
        return -1;
    return index_put_branch(index, number, branch);
}

static int put_many(struct index *index, const char *arguments)
{
    struct dirid dir;
    struct record_entry entry = {.type = DT_REG, .state = RECORD_LIVE};
    unsigned count;
    int code = 0;
    if (sscanf(arguments, "%" SCNu64 " %" SCNu64 " %u %" SCNu64, &dir.ino, &dir.birth, &count, &entry.ino) != 4)
        return -1;
    for (unsigned i = 0; i < count && code == 0; i++) {
        char name[16];
        code = index_put_entry(index, dir, name, (size_t)snprintf(name, sizeof name, "n%u", i), &entry);
    }
    return code;
}

static int del_many(struct index *index, const char *arguments)
{
    struct dirid dir;
    unsigned from, count;
    int code = 0;
    if (sscanf(arguments, "%" SCNu64 " %" SCNu64 " %u %u", &dir.ino, &dir.birth, &from, &count) != 4)
        return -1;
    for (unsigned i = from; i < count && code == 0; i++) {
        char name[16];
        code = index_del_entry(index, dir, name, (size_t)snprintf(name, sizeof name, "n%u", i));
    }
    return code;
}

/* With branch and inode number. */
static int index_writer_keep(struct index *index, const char *arguments)
{
    struct dirid dir;
    struct record_entry entry = {.type = DT_REG, .state = RECORD_LIVE};
    unsigned count;
    int code = 0;
    if (sscanf(arguments, "%" SCNu64 " %" SCNu64 " %u %" SCNu64 " %" SCNu16, &dir.ino, &dir.birth, &count, &entry.ino,
               &entry.branch) != 5)
        return -1;
    for (unsigned i = 0; i < count && code == 0; i++) {
        char name[16];
        code = index_put_entry(index, dir, name, (size_t)snprintf(name, sizeof name, "n%u", i), &entry);
    }
    return code;
}

static int stir_once(struct index *index, struct dirid dir, unsigned i, bool grows)
{
    const struct record_entry entry = {.type = DT_REG, .state = RECORD_LIVE, .ino = 5};
    const struct dirid other = {dir.ino, dir.birth + 1}, new = {7000 + i % 64, 1};
    const struct record_dir record = {.flags = RECORD_LOADED};
    char name[300], branch[16];
    size_t length = (size_t)snprintf(name, sizeof name, "t%0*u", (int)(1 + i % 90), i);
    int code = grows ? index_put_entry(index, dir, name, length, &entry) : index_del_entry(index, dir, name, length);
    snprintf(branch, sizeof branch, "n017.%u", i % 97);
    if (code == 0 && i % 50 == 0)
        code = index_put_branch(index, 1, branch);
    if (code == 0 && i % 20 == 0)
        code = grows ? index_put_entry(index, other, "a", 1, &entry) : index_del_dir(index, other);
    if (code == 0 && i % 20 == 1)
        code = grows ? index_put_dir(index, new, &record) : index_del_dir(index, new);
    return code == 0 && i % 30 == 0 ? index_put_dir(index, dir, &record) : code;
}

/* Grows and shrinks; what begins with n stays. */
static int index_writer_stir(struct index *index, const char *arguments)
{
    struct dirid dir;
    unsigned rounds;
    int code = 0;
    if (sscanf(arguments, "%" SCNu64 " %" SCNu64 " %u", &dir.ino, &dir.birth, &rounds) != 3)
        return -1;
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = 0; i < 20000 && code == 0; i++)
            code = stir_once(index, dir, i, round % 2 == 0);
    return code;
}

/* A name comes and goes. */
static int index_writer_flip(struct index *index, const char *arguments)
{
    const struct record_entry entry = {.type = DT_REG, .state = RECORD_LIVE, .ino = 5};
    struct dirid dir;
    unsigned times;
    int code = 0;
    if (sscanf(arguments, "%" SCNu64 " %" SCNu64 " %u", &dir.ino, &dir.birth, &times) != 3)
        return -1;
    for (unsigned i = 0; i < times && code == 0; i++)
        code = i % 2 ? index_del_entry(index, dir, "flip", 4) : index_put_entry(index, dir, "flip", 4, &entry);
    return code;
}

static int del_dir(struct index *index, const char *arguments)
{
    struct dirid dir;
    return sscanf(arguments, "%" SCNu64 " %" SCNu64, &dir.ino, &dir.birth) == 2 ? index_del_dir(index, dir) : -1;
}

static int del_names(struct index *index, const char *arguments)
{
    struct dirid dir;
    return sscanf(arguments, "%" SCNu64 " %" SCNu64, &dir.ino, &dir.birth) == 2 ? index_del_names(index, dir, NULL, NULL) : -1;
}

static const struct {
    const char *word;
    int (*command)(struct index *, const char *arguments);
} commands[] = {{"put", index_writer_put},   {"del", index_writer_del},   {"dir", put_dir},           {"branch", put_branch},
                {"many", put_many},          {"fewer", del_many},         {"deldir", del_dir},        {"delnames", del_names},
                {"keep", index_writer_keep}, {"stir", index_writer_stir}, {"flip", index_writer_flip}};

static int carry_out(struct index *index, const char *line)
{
    size_t length = strcspn(line, " \n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strlen(commands[i].word) == length && strncmp(commands[i].word, line, length) == 0)
            return commands[i].command(index, line + length);
    return -1;
}

int main(int argc, char *argv[])
{
    const struct index_stamp stamp = {.session = 77, .root = {2, 3}};
    struct index *index;
    char line[1024];
    if (argc != 2)
        return 2;
    int code = index_create(&index, argv[1], 256u << 20, &stamp);
    printf("%d\n", code);
    fflush(stdout);
    while (code == 0 && fgets(line, sizeof line, stdin) != NULL) {
        printf("%d\n", carry_out(index, line));
        fflush(stdout);
    }
    if (code == 0)
        index_destroy(index);
    return code != 0;
}
