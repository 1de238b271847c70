/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "names/origin.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/sys.h"
#include "names/mounts.h"
#include "names/names.h"
#include "union/identity.h"

/* Goes on after the number and the `-` that follows it. */
static bool origin_take_number(const char **at, char end, uint64_t *number)
{
    const char *begin = *at;
    *number = 0;
    for (; (**at >= '0' && **at <= '9') || (**at >= 'a' && **at <= 'f'); ++*at)
        *number = *number << 4 | (uint64_t)(**at <= '9' ? **at - '0' : **at - 'a' + 10);
    const bool is_number = *at > begin && *at - begin <= 16 && (end == '\0' || **at == end);
    *at += is_number && end != '\0';
    return is_number;
}

bool origin_read(struct origin *origin, const char *text, unsigned number)
{
    for (; number > 0 && *text != '\0'; text++)
        number -= *text == ':';
    bool is_known = origin_take_number(&text, '-', &origin->device) && origin_take_number(&text, '-', &origin->id.ino) &&
                    origin_take_number(&text, '-', &origin->id.birth) && origin_take_number(&text, '-', &origin->user) &&
                    origin_take_number(&text, '-', &origin->namespace) && origin_take_number(&text, '\0', &origin->boot);
    origin->within = text;
    origin->within_length = strcspn(text, ":");
    return is_known && (origin->within_length == 0 || text[0] == '/');
}

static uint64_t origin_namespace(void)
{
    struct statx stat;
    return sys_statx(AT_FDCWD, "/proc/self/ns/mnt", 0, STATX_INO, &stat) == 0 ? stat.stx_ino : 0;
}

/* 0: it cannot be told. */
static uint64_t origin_boot(void)
{
    char id[64];
    int fd = sys_openat(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    ssize_t length = sys_read(fd, id, sizeof id);
    sys_close(fd);
    return length > 0 ? record_hash(id, (size_t)length) | 1 : 0;
}

void origin_write(struct text *t, int directory, char *room)
{
    struct statx stat;
    if (identity_stat_root(directory, &stat) != 0)
        return;
    const struct dirid id = dirid_of(&stat);
    const uint64_t numbers[] = {names_device(&stat), id.ino,       id.birth, (uint64_t)SYS0(SYS_geteuid),
                                origin_namespace(),  origin_boot()};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        text_add(t, i > 0 ? "-" : "");
        text_number(t, numbers[i], 16);
    }
    if (names_read_place(directory, room) == 0 && mounts_within(directory, room) == 1 && strchr(room, ':') == NULL)
        text_add(t, room);
}

static bool origin_is_other_namespace(uint64_t namespace)
{
    const uint64_t own = origin_namespace();
    return own == 0 || own != namespace;
}

bool origin_is_elsewhere(const struct origin *origin)
{
    if (!origin_is_other_namespace(origin->namespace))
        return false;
    const uint64_t boot = origin_boot();
    return boot == 0 || origin->boot == 0 || boot == origin->boot;
}
