/* SPDX-License-Identifier: Apache-2.0 */
/* All transports. To add one: a file beside this one, and a line in the table. */
#include "bench/transport.h"
#include "bench/module.h"
#include "bench/transport/copy.h"
#include <stdio.h>
#include <string.h>

/* A module that is built into the library is called, another is loaded, and one that configure left out is neither. */
#ifdef GTOPO_STATIC_MODULES
#define MODULE(name) NULL, gtopo_module_transport_##name
#else
#define MODULE(name) "gtopo_module_transport_" #name, NULL
#endif
#define NOT_BUILT NULL, NULL

#ifdef GTOPO_HAVE_VERBS
GTOPO_MODULE_TRANSPORT(verbs);
#define VERBS MODULE(verbs)
#else
#define VERBS NOT_BUILT
#endif
#ifdef GTOPO_HAVE_OFI
GTOPO_MODULE_TRANSPORT(ofi);
#define OFI MODULE(ofi)
#else
#define OFI NOT_BUILT
#endif

/* Part of the library on every machine: what it needs comes with the driver. */
static const struct gtopo_transport *copy(void)
{
    return &gtopo_transport_copy;
}

#define RDMA_OPERATIONS                                                                                                \
    (1u << GTOPO_WRITE | 1u << GTOPO_READ | 1u << GTOPO_SEND | 1u << GTOPO_WRITE_IMM | 1u << GTOPO_FETCH_ADD |         \
     1u << GTOPO_COMPARE_SWAP)

static const struct gtopo_transport_provider ofi_providers[] = {
    {"shm", "ofi:shm", 1}, {"tcp", "ofi:tcp", 0}, {NULL, NULL, 0}};

static const struct entry {
    struct gtopo_transport_facts facts;
    const char *needs; /* library and where it comes from, for people */
    const char *symbol;
    gtopo_module_transport_function *linked;
} entries[] = {
    {{.name = "verbs",
      .usual = GTOPO_WRITE,
      .operations = RDMA_OPERATIONS,
      .honours = GTOPO_HONOURS_ALL,
      .is_rdma = 1,
      .gpu_memory = 1},
     "libibverbs and librdmacm (Debian: libibverbs1, librdmacm1, ibverbs-providers; Red Hat: libibverbs, librdmacm)",
     VERBS},
    {{.name = "ofi",
      .usual = GTOPO_SEND,
      .operations = 1u << GTOPO_SEND,
      .providers = ofi_providers,
      .honours = GTOPO_HONOURS_DEPTH},
     "libfabric (Debian: libfabric1; Red Hat: libfabric)",
     OFI},
    {{.name = "copy",
      .usual = GTOPO_COPY,
      .operations = 1u << GTOPO_COPY,
      .alone = 1,
      .honours = GTOPO_HONOURS_QUEUE_PAIRS | GTOPO_HONOURS_DEPTH | GTOPO_HONOURS_TWO_WAY | GTOPO_HONOURS_VERIFY_EVERY,
      .gpu_memory = 1},
     NULL,
     NULL,
     copy},
};
#define ENTRIES (sizeof entries / sizeof *entries)

static int load(const struct entry *entry, gtopo_module_transport_function **function, struct gtopo_error *error)
{
    void *address = NULL;
    int status;

    if (entry->linked) {
        *function = entry->linked;
        return 0;
    }
    if (!entry->symbol)
        return gtopo_fail(error, GTOPO_EMISSING,
                          "install its development package (Debian: libibverbs-dev, libfabric-dev) and configure again",
                          "transport %s was left out when gputopo was built", entry->facts.name);
    status = gtopo_module_load(entry->facts.name, entry->symbol, &address, error);
    if (status == GTOPO_EMISSING && error)
        snprintf(error->hint, sizeof error->hint, "install gputopo again if its own file is missing, else %s",
                 entry->needs);
    memcpy(function, &address, sizeof *function); /* C has no cast from an object's address to a function's */
    return status;
}

static void list_name(char *known, size_t size, const char *name)
{
    strncat(known, *known ? ", " : "known: ", size - strlen(known) - 1);
    strncat(known, name, size - strlen(known) - 1);
}

static int unknown(const char *name, struct gtopo_error *error)
{
    char known[128] = "";

    for (size_t i = 0; i < ENTRIES; i++) {
        const struct gtopo_transport_provider *provider = entries[i].facts.providers;

        if (!provider)
            list_name(known, sizeof known, entries[i].facts.name);
        for (; provider && provider->name; provider++)
            list_name(known, sizeof known, provider->full_name);
    }
    return gtopo_fail(error, GTOPO_EUSAGE, known, "there is no transport \"%.40s\"", name);
}

static const struct entry *find(const char *name)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (!strcmp(entries[i].facts.name, name))
            return &entries[i];
    return NULL;
}

int gtopo_transport_facts(const char *name, const struct gtopo_transport_facts **facts, struct gtopo_error *error)
{
    const struct entry *entry = find(name);

    if (!entry)
        return unknown(name, error);
    *facts = &entry->facts;
    return 0;
}

const struct gtopo_transport_facts *gtopo_transport_facts_at(size_t index)
{
    return index < ENTRIES ? &entries[index].facts : NULL;
}

const char *gtopo_probe_transport(int through_ports, int gpu_memory)
{
    for (size_t i = 0; i < ENTRIES; i++) {
        const struct gtopo_transport_facts *facts = &entries[i].facts;

        if (facts->is_rdma == !!through_ports && (through_ports || facts->gpu_memory == !!gpu_memory))
            return facts->providers ? facts->providers->full_name : facts->name;
    }
    return NULL;
}

int gtopo_transport_find(const char *name, const struct gtopo_transport **transport, struct gtopo_error *error)
{
    gtopo_module_transport_function *function = NULL;
    const struct entry *entry = find(name);
    int status;

    if (!entry)
        return unknown(name, error);
    status = load(entry, &function, error);
    if (status)
        return status;
    *transport = function();
    if ((*transport)->abi != GTOPO_TRANSPORT_ABI)
        return gtopo_fail(error, GTOPO_EVERSION, "install gputopo again: library and modules belong together",
                          "module %s is of another version (%u, not %u)", name, (*transport)->abi, GTOPO_TRANSPORT_ABI);
    return 0;
}
