/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

/* Daemons reach each other at addresses of this host and at ports that the kernel chooses. Whether another host can be reached
 * shows without a program there: a host refuses a connection to a port where nothing listens. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/config.h"
#include "doctor/doctor.h"

#define DOCTOR_PORT "65021"  /* of those that the kernel gives to nobody unless it was told to */
#define DOCTOR_PATIENCE 3000 /* ms */

static void doctor_address_text(const struct sockaddr *address, char to[NI_MAXHOST])
{
    const socklen_t size = address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (getnameinfo(address, size, to, NI_MAXHOST, NULL, 0, NI_NUMERICHOST) != 0)
        strcpy(to, "?");
}

static bool doctor_is_usable(const struct ifaddrs *one)
{
    return one->ifa_addr != NULL && (one->ifa_flags & IFF_UP) && !(one->ifa_flags & IFF_LOOPBACK) &&
           (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6);
}

/* `wanted`: the interface or address after SHUNT_FABRIC's colon, NULL: any. */
static void doctor_check_interfaces(struct doctor *doctor, const char *wanted)
{
    struct ifaddrs *all = NULL;
    char address[NI_MAXHOST], list[1024] = "";
    size_t length = 0;
    bool has_wanted = false;
    if (getifaddrs(&all) != 0) {
        doctor_say(doctor, DOCTOR_WARNING, "network", "the addresses of this host cannot be listed: %s (%s)", strerror(errno),
                   doctor_remedy(-errno, "allow AF_NETLINK in the container's seccomp profile"));
        return;
    }
    for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
        if (one->ifa_addr == NULL || (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6))
            continue;
        doctor_address_text(one->ifa_addr, address);
        has_wanted |= wanted != NULL && (strcmp(one->ifa_name, wanted) == 0 || strcmp(address, wanted) == 0);
        if (doctor_is_usable(one) && length < sizeof list)
            length += (size_t)snprintf(list + length, sizeof list - length, "%s%s %s", length > 0 ? ", " : "", one->ifa_name,
                                       address);
    }
    freeifaddrs(all);
    if (wanted != NULL && !has_wanted)
        doctor_say(doctor, DOCTOR_PROBLEM, "network",
                   "SHUNT_FABRIC: no interface or address of this host is '%s' (name one of: %s)", wanted, list);
    else if (length == 0 && wanted == NULL)
        doctor_say(doctor, DOCTOR_WARNING, "network",
                   "this host has no address but that of loopback, so that no other host can join");
    else
        doctor_say(doctor, DOCTOR_OK, "network", "addresses of this host: %s", length > 0 ? list : wanted);
}

/* The end of what is under way: 0, or what it says. */
static int doctor_connected(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    struct pollfd done = {.fd = fd, .events = POLLOUT};
    const int ready = poll(&done, 1, DOCTOR_PATIENCE);
    if (ready <= 0)
        return ready == 0 ? ETIMEDOUT : errno;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/* 0: it answers, if only to say that nothing listens there. `was_tried`: else this host is at fault. */
static int doctor_connect(const struct addrinfo *to, bool *was_tried)
{
    int error = 0, fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *was_tried = fd >= 0;
    if (fd < 0)
        return -errno;
    if (connect(fd, to->ai_addr, to->ai_addrlen) != 0)
        error = errno == EINPROGRESS ? doctor_connected(fd) : errno;
    close(fd);
    return error == ECONNREFUSED ? 0 : -error;
}

static void doctor_check_host_named(struct doctor *doctor, const char *host)
{
    struct addrinfo *all = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char address[NI_MAXHOST];
    bool was_tried = false;
    int error = getaddrinfo(host, DOCTOR_PORT, &hints, &all);
    if (error == EAI_SYSTEM || error == EAI_MEMORY) {
        const int code = error == EAI_MEMORY ? -ENOMEM : -errno;
        doctor_say(doctor, DOCTOR_PROBLEM, "network", "host %s: its address cannot be looked for: %s (%s)", host,
                   strerror(-code), doctor_remedy(code, "run this again"));
        return;
    }
    if (error != 0) {
        doctor_say(doctor, DOCTOR_PROBLEM, "network", "host %s: its name has no address: %s (check /etc/hosts and DNS)", host,
                   gai_strerror(error));
        return;
    }
    int code = -EHOSTUNREACH;
    for (const struct addrinfo *one = all; one != NULL && code != 0; one = one->ai_next) {
        doctor_address_text(one->ai_addr, address);
        code = doctor_connect(one, &was_tried);
    }
    if (code == 0)
        doctor_say(doctor, DOCTOR_OK, "network", "host %s: answers at %s", host, address);
    else if (!was_tried)
        doctor_say(doctor, DOCTOR_PROBLEM, "network", "host %s: cannot be tried at %s: %s (%s)", host, address, strerror(-code),
                   doctor_remedy(code, "allow sockets in the container's seccomp profile"));
    else
        doctor_say(doctor, DOCTOR_PROBLEM, "network",
                   "host %s: does not answer at %s: %s (allow TCP between the hosts of a job, at all ports above 1023)", host,
                   address, strerror(-code));
    freeaddrinfo(all);
}

void doctor_check_network(struct doctor *doctor, char *const *hosts, size_t count)
{
    struct config config;
    config_read(&config, environ);
    const char *wanted = strchr(config.fabric, ':');
    if (strcmp(config.fabric, "none") == 0) {
        doctor_say(doctor, DOCTOR_OK, "network", "SHUNT_FABRIC is none, so that daemons serve this host alone");
        return;
    }
    doctor_check_interfaces(doctor, wanted != NULL ? wanted + 1 : NULL);
    for (size_t i = 0; i < count; i++)
        doctor_check_host_named(doctor, hosts[i]);
}
