/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */
#include "listen/clients.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "place.h"

#define ROUNDS 2000

static void clients_ring(void *context)
{
}

static struct clients *test_clients_create(void)
{
    struct clients *clients;
    cr_assert_eq(clients_create(&clients, clients_ring, NULL), 0);
    return clients;
}

/* One that has ended, and whose number is not given to another before it is reaped. */
static pid_t clients_ended(void)
{
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    return pid;
}

static pid_t wait_for_death(struct clients *clients)
{
    pid_t dead;
    while ((dead = clients_next_death(clients)) == 0) /* ends with the suite's patience */
        usleep(10);
    return dead;
}

TestSuite(clients, .timeout = 60);

Test(clients, who_has_ended_already_dies_once)
{
    struct clients *clients = test_clients_create();
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid = clients_ended();
        clients_watch(clients, pid);
        cr_assert_eq(wait_for_death(clients), pid);
        waitpid(pid, NULL, 0);
    }
    clients_destroy(clients);
}

Test(clients, who_ends_later_dies_then)
{
    struct clients *clients = test_clients_create();
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    clients_watch(clients, pid);
    cr_assert(clients_are_followed(clients));
    cr_assert_eq(clients_next_death(clients), 0);
    kill(pid, SIGKILL);
    cr_assert_eq(wait_for_death(clients), pid);
    waitpid(pid, NULL, 0);
    clients_destroy(clients);
}
