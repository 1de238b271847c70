/* SPDX-License-Identifier: BSD-3-Clause
 * SPDX-FileCopyrightText: The shunt authors */

#include "peer/provider.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "peer/addresses.h"

#define API FI_VERSION(1, 17)
#define NAME_MAX_HERE 63 /* of a provider or an interface */

/* Of libfabric these four are called by name; all else goes through tables that they hand out.
 *
 * The library is loaded, not linked, because of what comes with it: Debian links libfabric with libpsm2 and
 * libinfinipath, and a constructor of each calibrates the processor's clock for 100 ms, whatever hardware
 * there is. A daemon that needs no fabric would wait for that at every start. (The first fi_getinfo takes
 * another 80 ms: libfabric's subcommands looks through /proc/kallsyms, twice.) */
struct library {
    int (*get_info)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
    struct fi_info *(*duplicate_info)(const struct fi_info *);
    void (*free_info)(struct fi_info *);
    int (*open_fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
};

/* libinfinipath would catch SIGTERM and others for its backtraces. With ofi_rxm a connection outlives the
 * removal of its peer unless it is told. A user who set these knows better. */
static void provider_set_environment(void)
{
    setenv("IPATH_NO_BACKTRACE", "1", 0);
    setenv("FI_AV_REMOVE_CLEANUP", "1", 0);
}

/* Never unloaded: its threads and handlers at exit are its own. */
static int provider_load(struct library *to)
{
    provider_set_environment();
    void *library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return -ELIBACC;
    *(void **)&to->get_info = dlsym(library, "fi_getinfo");
    *(void **)&to->duplicate_info = dlsym(library, "fi_dupinfo");
    *(void **)&to->free_info = dlsym(library, "fi_freeinfo");
    *(void **)&to->open_fabric = dlsym(library, "fi_fabric");
    bool whole = to->get_info != NULL && to->duplicate_info != NULL && to->free_info != NULL && to->open_fabric != NULL;
    return whole ? 0 : -ELIBACC;
}

#ifdef SANITIZER_IS_ADDRESS
/* Release 1.17 loses some 600 bytes for each endpoint and each connection that it accepts, and some 80 for
 * each that it makes (mended in 1.18). */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:libfabric.so\n";
}

const char *__lsan_default_options(void);
__attribute__((visibility("default"))) const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
#endif

/* PROVIDER[:WHERE] */
struct wanted {
    char provider[NAME_MAX_HERE + 1];
    char where[NAME_MAX_HERE + 1];
    char address[NAME_MAX_HERE + 1]; /* numeric; empty: the provider's choice */
};

static int provider_parse(struct wanted *wanted, const char *setting)
{
    setting = setting != NULL && setting[0] != '\0' ? setting : "tcp";
    size_t length = strcspn(setting, ":");
    const char *where = setting[length] == ':' ? setting + length + 1 : "";
    if (length == 0 || length > NAME_MAX_HERE || strlen(where) > NAME_MAX_HERE)
        return -EINVAL;
    if (setting[length] == ':' && where[0] == '\0')
        return -EINVAL;
    memcpy(wanted->provider, setting, length);
    memcpy(wanted->where, where, strlen(where) + 1);
    return 0;
}

static bool provider_is_address(const char *text)
{
    uint8_t bytes[16];
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Sockets of IPv6 serve IPv4, too, unless the kernel has no IPv6, or is told to keep them apart (net.ipv6.bindv6only). */
static bool provider_can_serve_both(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), apart = 1;
    socklen_t size = sizeof apart;
    if (fd < 0)
        return false;
    bool can = getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &apart, &size) == 0 && !apart;
    close(fd);
    return can;
}

/* The best address of the interface; without one all of this host, but the loopback alone if there is nothing else. 1, 0: there
 * is none, or -errno. */
static int provider_find_address(char to[ADDRESS_TEXT_MAX], const char *interface)
{
    struct own_address own[ADDRESSES_OWN_MAX];
    int count = addresses_find_own(own, interface[0] != '\0' ? interface : NULL);
    if (count <= 0)
        return count;
    if (interface[0] != '\0' || !own_address_is_reachable(&own[0]))
        address_text(own[0].ip, to);
    else if (provider_can_serve_both() || !address_is_ipv4(own[0].ip))
        strcpy(to, "::");
    else
        strcpy(to, "0.0.0.0");
    return 1;
}

/* Where to bind. Providers other than those over IP are left alone unless they are told. */
static int provider_find_where(struct wanted *wanted)
{
    bool ip = strncmp(wanted->provider, "tcp", 3) == 0 || strcmp(wanted->provider, "net") == 0;
    if (provider_is_address(wanted->where)) {
        memcpy(wanted->address, wanted->where, sizeof wanted->where);
        wanted->where[0] = '\0';
        return 0;
    }
    if (!ip && wanted->where[0] == '\0')
        return 0;
    int found = provider_find_address(wanted->address, wanted->where);
    if (found < 0)
        return found;
    if (found == 1)
        wanted->where[0] = '\0';
    return found == 1 || !ip ? 0 : -ENODEV;
}

static int provider_set_hints(struct fi_info *hints, const char *provider, const struct wanted *wanted)
{
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->mr_mode = 0;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->av_type = FI_AV_TABLE;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->name = wanted->where[0] != '\0' ? strdup(wanted->where) : NULL;
    hints->fabric_attr->prov_name = strdup(provider);
    bool whole = hints->fabric_attr->prov_name != NULL && (wanted->where[0] == '\0' || hints->domain_attr->name != NULL);
    return whole ? 0 : -ENOMEM;
}

static int provider_ask(struct provider *to, const struct library *library, const char *name, const struct wanted *wanted)
{
    const char *address = wanted->address[0] != '\0' ? wanted->address : NULL;
    struct fi_info *hints = library->duplicate_info(NULL);
    if (hints == NULL)
        return -ENOMEM;
    int code = provider_set_hints(hints, name, wanted);
    if (code == 0)
        code = library->get_info(API, address, NULL, address != NULL ? FI_SOURCE : 0, hints, &to->info);
    library->free_info(hints);
    return code == -FI_ENODATA ? -ENODEV : (int)provider_code(code);
}

/* TCP without the layer ofi_rxm is `net` in libfabric 1.17, and what `tcp` itself does in later releases. */
static int provider_choose(struct provider *to, const struct library *library, const struct wanted *wanted)
{
    int code = -ENODEV;
    if (strcmp(wanted->provider, "tcp") == 0)
        code = provider_ask(to, library, "net", wanted);
    return code != -ENODEV ? code : provider_ask(to, library, wanted->provider, wanted);
}

static int provider_open_all(struct provider *to, const struct library *library, size_t completions)
{
    struct fi_cq_attr received = {.size = completions, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC};
    struct fi_cq_attr sent = {.size = completions, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    int code = library->open_fabric(to->info->fabric_attr, &to->fabric, NULL);
    if (code == 0)
        code = fi_domain(to->fabric, to->info, &to->domain, NULL);
    if (code == 0)
        code = fi_av_open(to->domain, &av, &to->peers, NULL);
    if (code == 0)
        code = fi_cq_open(to->domain, &received, &to->received, NULL);
    if (code == 0)
        code = fi_cq_open(to->domain, &sent, &to->sent, NULL);
    if (code == 0)
        code = fi_endpoint(to->domain, to->info, &to->endpoint, NULL);
    if (code == 0)
        code = fi_ep_bind(to->endpoint, &to->peers->fid, 0);
    if (code == 0)
        code = fi_ep_bind(to->endpoint, &to->received->fid, FI_RECV);
    if (code == 0)
        code = fi_ep_bind(to->endpoint, &to->sent->fid, FI_SEND);
    if (code == 0)
        code = fi_enable(to->endpoint);
    return (int)provider_code(code);
}

int provider_open(struct provider *to, const char *setting, size_t completions)
{
    struct wanted wanted = {0};
    struct library library;
    *to = (struct provider){0};
    int code = provider_parse(&wanted, setting);
    if (code == 0)
        code = provider_find_where(&wanted);
    if (code == 0)
        code = provider_load(&library);
    if (code == 0)
        code = provider_choose(to, &library, &wanted);
    if (code != 0)
        return code;
    to->free_info = library.free_info;
    code = provider_open_all(to, &library, completions);
    if (code != 0)
        provider_close(to);
    return code;
}

static void provider_close_one(struct fid *fid)
{
    if (fid != NULL)
        fi_close(fid);
}

void provider_close(struct provider *provider)
{
    provider_close_one(provider->endpoint != NULL ? &provider->endpoint->fid : NULL);
    provider_close_one(provider->received != NULL ? &provider->received->fid : NULL);
    provider_close_one(provider->sent != NULL ? &provider->sent->fid : NULL);
    provider_close_one(provider->peers != NULL ? &provider->peers->fid : NULL);
    provider_close_one(provider->domain != NULL ? &provider->domain->fid : NULL);
    provider_close_one(provider->fabric != NULL ? &provider->fabric->fid : NULL);
    if (provider->info != NULL)
        provider->free_info(provider->info);
    *provider = (struct provider){0};
}
