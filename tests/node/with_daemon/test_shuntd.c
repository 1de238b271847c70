/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* The daemon as a whole: main's loop between the channel and the index, both real. What the single operations
 * mean is tested with ops/. */

#include <dirent.h>

#include "base/sys.h"
#include "served.h"
#include "session/session.h"

static struct names_root root;
static struct dirid out;

static struct dirid id_of(const char *path)
{
    struct statx stat;
    cr_assert_eq(sys_statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &stat), 0, "%s", path);
    return dirid_of(&stat);
}

static void shuntd_init(void)
{
    place_init();
    place_directory("r/out");
    cr_assert_eq(names_process_init(), 0);
    served_start(&root, "branch", "1000");
    out = id_of(place_path("r/out"));
    cr_assert_eq(names_load(&root, out, "out"), 0);
}

static void shuntd_finish(void)
{
    served_stop(SIGKILL);
    place_finish();
}

TestSuite(shuntd, .init = shuntd_init, .fini = shuntd_finish, .timeout = 120);

static struct message shuntd_named(uint16_t type, const char *name)
{
    return (struct message){.type = type, .dir = out, .name = message_text(name, strlen(name))};
}

static struct message shuntd_reserve(const char *name)
{
    struct message message = shuntd_named(MESSAGE_CREATE, name);
    message.create.entry = (struct record_entry){.type = DT_REG, .state = RECORD_PENDING};
    return message;
}

static struct message shuntd_renaming(uint16_t type, const char *from, const char *to)
{
    struct message message = shuntd_named(type, from);
    message.rename.to_dir = out;
    message.rename.to_name = message_text(to, strlen(to));
    return message;
}

static struct request_answer answer;

/* What the daemon says, or -errno; `answer` is filled. No assertion: it is used in children, too. */
static int shuntd_ask(struct message message)
{
    int code = names_ask(&root, &message, &answer);
    return code == 0 ? answer.message.result : code;
}

static void shuntd_tell(struct message message)
{
    names_tell(&root, &message);
}

/* Where the last answer says that a name is. */
static const char *place_of(int which, const char *name)
{
    return place_path("r/.shunt/b/%.*s/%s", answer.message.answer.place[which].length, answer.message.answer.place[which].text,
                      name);
}

static int make_at(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd >= 0 ? close(fd) : -1;
}

static void shuntd_confirm(const char *name, uint64_t ino)
{
    struct message message = shuntd_named(MESSAGE_COMMIT, name);
    message.commit.entry = (struct record_entry){.type = DT_REG, .state = RECORD_LIVE, .ino = ino};
    shuntd_tell(message);
}

static uint64_t ino_at(const char *path)
{
    struct stat stat;
    cr_assert_eq(lstat(path, &stat), 0, "%s: %m", path);
    return stat.st_ino;
}

static uint64_t shuntd_born(const char *name)
{
    cr_assert_eq(shuntd_ask(shuntd_reserve(name)), 0);
    cr_assert_eq(make_at(place_of(0, name)), 0, "%s: %m", place_of(0, name));
    uint64_t ino = ino_at(place_of(0, name));
    shuntd_confirm(name, ino);
    return ino;
}

/* As a reader sees it. */
static struct view_found shuntd_found(const char *name)
{
    struct view_found found;
    cr_assert_eq(names_find(&root, out, name, strlen(name), &found), 0);
    return found;
}

static uint64_t count_of(const char *key)
{
    char text[4096], line[64];
    cr_assert_eq(shuntd_ask((struct message){.type = MESSAGE_STATUS}), 0);
    snprintf(text, sizeof text, "\n%.*s", answer.message.text_answer.text.length, answer.message.text_answer.text.text);
    snprintf(line, sizeof line, "\n%s ", key);
    const char *at = strstr(text, line);
    cr_assert(at, "no %s in the status", key);
    return strtoull(at + strlen(line), NULL, 10);
}

/* Another process of the node: it does its part and ends without another word. */
static pid_t shuntd_client(void (*part)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        names_process_check(&root, 1);
        part();
        _exit(0);
    }
    return pid;
}

static void client_ends(void (*part)(void))
{
    int status;
    pid_t pid = shuntd_client(part);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
}

static void shuntd_must(bool it)
{
    if (!it)
        _exit(1);
}

/* What was answered is in the index. */

Test(shuntd, an_answer_comes_after_its_commit)
{
    char name[16];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "f%d", i * i); /* no sequence, of which more would be asked for */
        cr_assert_eq(shuntd_ask(shuntd_reserve(name)), 0);
        struct view_found seen = shuntd_found(name);
        cr_assert(seen.known && seen.entry.state == RECORD_PENDING, "%s", name);
        cr_assert_str_eq(seen.branch, "n1.1");
        shuntd_tell(shuntd_named(i % 2 ? MESSAGE_ABORT : MESSAGE_UNLINKED, name));
    }
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "f249001")), MESSAGE_ABSENT, "what was told is heard before");
    cr_assert_not(shuntd_found("f249001").known);
    cr_assert(count_of("creates") == 500 && count_of("in_flight") == 250);
}

Test(shuntd, what_makes_no_sense_is_dropped_and_counted)
{
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a/b")), -EBADMSG);
    cr_assert_eq(shuntd_ask((struct message){.type = MESSAGE_LOAD, .dir = out}), -EBADMSG);
    shuntd_tell(shuntd_named(MESSAGE_COMMIT, ".."));
    shuntd_tell((struct message){.type = MESSAGE_ANSWER});
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_ABSENT);
    cr_assert_eq(count_of("malformed"), 4);
}

/* Clients that end in between. A question about the name waits until that is settled. */

static void reserve_a(void)
{
    shuntd_must(shuntd_ask(shuntd_reserve("a")) == 0);
}

static void reserve_and_make_a(void)
{
    reserve_a();
    shuntd_must(make_at(place_of(0, "a")) == 0);
}

Test(shuntd, a_client_ends_with_a_create)
{
    client_ends(reserve_a);
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_ABSENT);
    client_ends(reserve_and_make_a);
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_EXISTS);
    struct view_found seen = shuntd_found("a");
    cr_assert_eq(seen.entry.state, RECORD_LIVE);
    cr_assert_eq(seen.entry.ino, ino_at(place_of(0, "a")));
    cr_assert(count_of("client_exits") == 2 && count_of("in_flight") == 0);
}

static void reserve_make_and_tell(void)
{
    reserve_and_make_a();
    shuntd_confirm("a", 4711);
}

Test(shuntd, the_last_words_of_a_client_are_heard)
{
    client_ends(reserve_make_and_tell);
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_EXISTS);
    cr_assert_eq(shuntd_found("a").entry.ino, 4711);
}

static void hold_a(void)
{
    shuntd_must(shuntd_ask(shuntd_named(MESSAGE_UNLINK, "a")) == 0);
}

static void unlink_a(void)
{
    hold_a();
    shuntd_must(unlink(place_of(0, "a")) == 0);
}

Test(shuntd, a_client_ends_with_an_unlink)
{
    uint64_t ino = shuntd_born("a");
    client_ends(hold_a);
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_EXISTS);
    cr_assert(shuntd_found("a").entry.state == RECORD_LIVE && shuntd_found("a").entry.ino == ino);
    client_ends(unlink_a);
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_ABSENT);
}

static void hold_both(void)
{
    shuntd_must(shuntd_ask(shuntd_renaming(MESSAGE_RENAME, "a", "b")) == MESSAGE_EXISTS);
}

static void rename_both(void)
{
    hold_both();
    shuntd_must(rename(place_of(0, "a"), place_of(1, "b")) == 0);
}

Test(shuntd, a_client_ends_with_a_rename)
{
    uint64_t first = shuntd_born("a"), second = shuntd_born("b");
    client_ends(hold_both);
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_EXISTS);
    cr_assert(shuntd_found("a").entry.ino == first && shuntd_found("b").entry.ino == second);
    client_ends(rename_both);
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_ABSENT);
    cr_assert(shuntd_found("b").entry.state == RECORD_LIVE && shuntd_found("b").entry.ino == first);
}

/* A request that still waits when its process ends must not be granted to it later: nobody would end that. */
Test(shuntd, a_client_ends_while_it_waits)
{
    cr_assert_eq(shuntd_ask(shuntd_reserve("a")), 0);
    uint64_t before = count_of("blocked");
    pid_t pid = shuntd_client(reserve_a);
    while (count_of("blocked") == before)
        usleep(1000);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    while (count_of("client_exits") == 0)
        usleep(1000);
    shuntd_tell(shuntd_named(MESSAGE_ABORT, "a"));
    cr_assert_eq(shuntd_ask(shuntd_reserve("a")), 0);
    cr_assert_eq(count_of("creates"), 2);
}

/* One that was given up and then granted: nobody knows of it, so the disk says how it ended. */
Test(shuntd, a_request_given_up)
{
    struct message again = shuntd_reserve("a");
    cr_assert_eq(shuntd_ask(shuntd_reserve("a")), 0);
    cr_assert_eq(request_ask(root.channel, &again, &answer, 20 * CLOCK_MILLISECOND), -ETIMEDOUT);
    shuntd_tell(shuntd_named(MESSAGE_ABORT, "a"));
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_ABSENT);
    cr_assert(count_of("creates") == 2 && count_of("in_flight") == 0);
}

/* Its queue pair is free when the answer has come, though nobody took it: what it began is settled all the same. */
Test(shuntd, a_request_given_up_whose_qp_is_used_again)
{
    struct message again = shuntd_reserve("a");
    cr_assert_eq(shuntd_ask(shuntd_reserve("a")), 0);
    cr_assert_eq(request_ask(root.channel, &again, &answer, 20 * CLOCK_MILLISECOND), -ETIMEDOUT);
    shuntd_tell(shuntd_named(MESSAGE_ABORT, "a"));
    for (int i = 0; i < 50; i++)
        count_of("in_flight");
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_ABSENT);
    cr_assert_eq(count_of("in_flight"), 0);
}

/* Many at once: a name is born once. */

#define RACERS 8
#define RACES 60

static int won;

static void shuntd_race(void)
{
    char name[16];
    int fd = open(place_path("go"), O_RDONLY); /* all at once: it is a FIFO */
    shuntd_must(fd >= 0);
    for (int i = 0; i < RACES; i++) {
        snprintf(name, sizeof name, "r%d", i);
        int code = shuntd_ask(shuntd_reserve(name));
        shuntd_must(code == 0 || code == MESSAGE_EXISTS);
        if (code != 0)
            continue;
        shuntd_must(make_at(place_of(0, name)) == 0);
        shuntd_confirm(name, 1000u + (unsigned)i);
        shuntd_must(write(won, "", 1) == 1);
    }
}

Test(shuntd, o_excl_is_exact)
{
    char bytes[RACERS * RACES + 1];
    int ends[2], status;
    pid_t pids[RACERS];
    cr_assert(pipe2(ends, O_NONBLOCK) == 0 && mkfifo(place_path("go"), 0600) == 0);
    won = ends[1];
    for (int i = 0; i < RACERS; i++)
        pids[i] = shuntd_client(shuntd_race);
    int go = open(place_path("go"), O_WRONLY);
    for (int i = 0; i < RACERS; i++) {
        waitpid(pids[i], &status, 0);
        cr_assert_eq(status, 0);
    }
    close(go);
    cr_assert_eq(read(ends[0], bytes, sizeof bytes), RACES);
    cr_assert_eq(count_of("creates"), RACES);
}

/* Times. */

Test(shuntd, the_trunk_is_given_its_times_when_it_is_quiet)
{
    struct stat stat;
    shuntd_born("a");
    uint64_t last = clock_of(CLOCK_REALTIME); /* the trunk's may be a fine one */
    while (clock_files() <= last)
        usleep(1000);
    shuntd_born("b");
    uint64_t changed = shuntd_found("").dir.changed, begun = clock_monotonic();
    cr_assert_gt(changed, last);
    while (!(shuntd_found("").dir.flags & RECORD_WRITTEN))
        usleep(10000);
    cr_assert_geq(clock_monotonic() - begun, CLOCK_SECOND / 2, "not at once");
    cr_assert_eq(lstat(place_path("r/out"), &stat), 0);
    cr_assert_eq((uint64_t)stat.st_mtim.tv_sec * CLOCK_SECOND + (uint64_t)stat.st_mtim.tv_nsec, changed);
}

/* The end. */

Test(shuntd, it_ends_and_leaves_no_trace)
{
    struct session session;
    char run_dir[PATH_MAX];
    cr_assert_eq(session_read(root.path, &session), 0);
    cr_assert(session.count == 1 && session.members[0].pid == served_pid && session.members[0].home);
    cr_assert_str_eq(session.members[0].run_dir, root.run_dir);
    session_finish(&session);
    strcpy(run_dir, root.run_dir);
    cr_assert_eq(served_stop(SIGTERM), 0);
    cr_assert_eq(session_read(root.path, &session), -ENOENT);
    cr_assert_neq(access(run_dir, F_OK), 0);
    cr_assert_eq(place_count("r/.shunt/b"), 0, "nothing was redirected");
    cr_assert_not(names_is_attached(&root));
}

Test(shuntd, at_the_end_times_are_written_and_files_stay)
{
    struct stat stat;
    shuntd_born("a");
    uint64_t last = clock_of(CLOCK_REALTIME); /* the trunk's may be a fine one */
    while (clock_files() <= last)
        usleep(1000);
    shuntd_born("b");
    uint64_t changed = shuntd_found("").dir.changed;
    cr_assert_eq(served_stop(SIGTERM), 0);
    cr_assert_eq(lstat(place_path("r/out"), &stat), 0);
    cr_assert_eq((uint64_t)stat.st_mtim.tv_sec * CLOCK_SECOND + (uint64_t)stat.st_mtim.tv_nsec, changed);
    cr_assert_eq(access(place_of(0, "b"), F_OK), 0);
}

Test(shuntd, after_a_crash_the_next_one_reads_the_disk)
{
    uint64_t ino = shuntd_born("a");
    cr_assert_eq(shuntd_ask(shuntd_reserve("b")), 0);
    cr_assert(WIFSIGNALED(served_stop(SIGKILL)));
    cr_assert_not(names_is_attached(&root));
    served_start(&root, "branch", "1000");
    cr_assert_eq(shuntd_ask(shuntd_named(MESSAGE_LOOKUP, "a")), MESSAGE_NOT_LOADED);
    cr_assert_eq(names_load(&root, out, "out"), 0);
    struct view_found seen = shuntd_found("a");
    cr_assert(seen.known && seen.entry.state == RECORD_LIVE && seen.entry.ino == ino);
    cr_assert_str_eq(seen.branch, "n1.1");
    cr_assert_not(shuntd_found("b").known, "it was never made");
    cr_assert_eq(shuntd_ask(shuntd_reserve("b")), 0);
    cr_assert_eq(strncmp(answer.message.answer.place[0].text, "n1.3/", 5), 0, "a new incarnation");
}
