/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/options.h"
#include "bench/transport.h"
#include "lib/text.h"
#include <stdio.h>
#include <string.h>

#define POST_LIST_MAX 64

#define DAY_S 86400.0

#define OPTION(name, type, lowest, highest, honours)                                                                   \
    {                                                                                                                  \
#name, offsetof(struct OF, name), GTOPO_OPTION_##type, lowest, highest, honours                                \
    }
#define NUMBER(name, type, lowest, highest) OPTION(name, type, lowest, highest, 0)
#define CHOICE(name, type, lowest, highest, bit) OPTION(name, type, lowest, highest, GTOPO_HONOURS_##bit)

#define OF gtopo_probe_options /* the struct whose members the next table names */
const struct gtopo_option gtopo_probe_numbers[] = {
    NUMBER(operation, U32, 0, GTOPO_OPERATIONS - 1),
    NUMBER(metric, U32, 0, GTOPO_METRICS - 1),
    NUMBER(message_B, U64, 1, (double)GTOPO_MESSAGE_MAX_B),
    CHOICE(queue_pairs, U32, 1, 64, QUEUE_PAIRS),
    CHOICE(depth, U32, 0, 8192, DEPTH),
    CHOICE(moderation, U32, 0, 8192, MODERATION),
    CHOICE(post_list, U32, 0, POST_LIST_MAX, POST_LIST),
    CHOICE(inline_B, I32, GTOPO_AUTO, 4096, INLINE),
    CHOICE(relaxed_ordering, I32, GTOPO_AUTO, 1, RELAXED_ORDERING),
    CHOICE(mtu_B, U32, 0, 4096, MTU),
    CHOICE(traffic_class, U32, 0, 255, TRAFFIC_CLASS),
    CHOICE(service_level, U32, 0, 15, SERVICE_LEVEL),
    CHOICE(two_way, I32, 0, 1, TWO_WAY),
    CHOICE(connection_manager, I32, 0, 1, CONNECTION_MANAGER),
    CHOICE(flush, I32, 0, 1, FLUSH),
    CHOICE(verify_every, I32, 0, 1, VERIFY_EVERY),
    NUMBER(iterations, U64, 0, (double)GTOPO_MESSAGES_MAX),
    NUMBER(precision, REAL, 0, 1),
    NUMBER(seconds, REAL, 0.001, DAY_S),
    NUMBER(deadline_s, REAL, 0.001, DAY_S),
    {NULL, 0, 0, 0, 0, 0},
};
#undef OF

#define OF gtopo_probe_end
const struct gtopo_option gtopo_end_numbers[] = {
    NUMBER(port, U32, 0, 255),
    NUMBER(numa, I32, GTOPO_AUTO, 65535),
    CHOICE(gid, I32, GTOPO_AUTO, 255, GID),
    {NULL, 0, 0, 0, 0, 0},
};
#undef OF

#define OF gtopo_probe_used
const struct gtopo_option gtopo_used_numbers[] = {
    NUMBER(queue_pairs, I32, GTOPO_AUTO, 64),    NUMBER(depth, I32, GTOPO_AUTO, 8192),
    NUMBER(moderation, I32, GTOPO_AUTO, 8192),   NUMBER(post_list, I32, GTOPO_AUTO, POST_LIST_MAX),
    NUMBER(inline_B, I32, GTOPO_AUTO, 4096),     NUMBER(relaxed_ordering, I32, GTOPO_AUTO, 1),
    NUMBER(mtu_B, I32, GTOPO_AUTO, 4096),        NUMBER(gid, I32, GTOPO_AUTO, 255),
    NUMBER(traffic_class, I32, GTOPO_AUTO, 255), NUMBER(service_level, I32, GTOPO_AUTO, 15),
    NUMBER(page_B, I32, GTOPO_AUTO, 1 << 30),    {NULL, 0, 0, 0, 0, 0},
};
#undef OF
#undef OPTION
#undef NUMBER
#undef CHOICE

static const char *const operation_names[GTOPO_OPERATIONS] = {
    [GTOPO_WRITE] = "write",         [GTOPO_READ] = "read",           [GTOPO_SEND] = "send",
    [GTOPO_WRITE_IMM] = "write-imm", [GTOPO_FETCH_ADD] = "fetch-add", [GTOPO_COMPARE_SWAP] = "compare-swap",
    [GTOPO_COPY] = "copy",
};

const char *gtopo_operation_name(uint32_t operation)
{
    return operation < GTOPO_OPERATIONS ? operation_names[operation] : NULL;
}

uint32_t gtopo_operation_of_name(const char *name)
{
    uint32_t operation = 0;

    while (operation < GTOPO_OPERATIONS && strcmp(operation_names[operation], name))
        operation++;
    return operation;
}

double gtopo_option_get(const struct gtopo_option *option, const void *options)
{
    const void *place = (const char *)options + option->offset;

    switch (option->type) {
    case GTOPO_OPTION_U32:
        return *(const uint32_t *)place;
    case GTOPO_OPTION_I32:
        return *(const int32_t *)place;
    case GTOPO_OPTION_U64:
        return (double)*(const uint64_t *)place;
    case GTOPO_OPTION_REAL:
        break;
    }
    return *(const double *)place;
}

void gtopo_option_set(const struct gtopo_option *option, void *options, double value)
{
    void *place = (char *)options + option->offset;

    switch (option->type) {
    case GTOPO_OPTION_U32:
        *(uint32_t *)place = (uint32_t)value;
        break;
    case GTOPO_OPTION_I32:
        *(int32_t *)place = (int32_t)value;
        break;
    case GTOPO_OPTION_U64:
        *(uint64_t *)place = (uint64_t)value;
        break;
    case GTOPO_OPTION_REAL:
        *(double *)place = value;
        break;
    }
}

void gtopo_probe_options_init(struct gtopo_probe_options *options)
{
    static const struct gtopo_probe_end end = {"", 1, "host", NULL, GTOPO_AUTO, GTOPO_AUTO};

    *options = (struct gtopo_probe_options){
        .size = sizeof *options,
        .transport = "verbs",
        .from = end,
        .to = end,
        .operation = GTOPO_WRITE,
        .metric = GTOPO_BANDWIDTH_Bps,
        .message_B = 65536,
        .queue_pairs = 1,
        .inline_B = GTOPO_AUTO,
        .relaxed_ordering = GTOPO_AUTO,
        .precision = 0.01,
        .seconds = 2,
        .deadline_s = 5,
    };
}

/* ---- the check ---- */

static int check_numbers(const struct gtopo_option *table, const void *options, struct gtopo_error *error)
{
    for (const struct gtopo_option *option = table; option->key; option++) {
        double value = gtopo_option_get(option, options);

        if (!(value >= option->lowest && value <= option->highest))
            return gtopo_fail(error, GTOPO_EUSAGE, NULL, "%s of a probe has to be from %.10g to %.10g, and is %.10g",
                              option->key, option->lowest, option->highest, value);
    }
    return 0;
}

static int check_end(const struct gtopo_transport_facts *facts, const struct gtopo_probe_end *end,
                     struct gtopo_error *error)
{
    static const char *const ways[] = {"dma-buf", "peer-memory", "staged"};
    struct gtopo_region region;
    size_t i = 0;
    int status;

    if (!end->device || !end->memory || strlen(end->device) > 63)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "an end of a probe needs the names of a device and a memory");
    if (!gtopo_text_is_clean(end->device) || !gtopo_text_is_clean(end->memory))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a name of a device or a memory is no clean UTF-8 text");
    status = check_numbers(gtopo_end_numbers, end, error);
    if (!status)
        status = gtopo_memory_find(end->memory, &region, error);
    if (status)
        return status;
    if (!region.memory->is_host && !facts->gpu_memory)
        return gtopo_fail(error, GTOPO_EUSAGE, "use verbs or copy, or host memory",
                          "transport %s cannot reach memory \"%s\"", facts->name, end->memory);
    if (!end->way)
        return 0;
    while (i < sizeof ways / sizeof *ways && strcmp(ways[i], end->way))
        i++;
    if (i == sizeof ways / sizeof *ways)
        return gtopo_fail(error, GTOPO_EUSAGE, "dma-buf, peer-memory and staged are known",
                          "there is no way \"%.40s\" to register memory", end->way);
    if (!facts->is_rdma || region.memory->is_host)
        return gtopo_fail(error, GTOPO_EUSAGE, "leave it out, or name a GPU's memory",
                          "a way to register (\"%s\") is for GPU memory over RDMA", end->way);
    return 0;
}

static int check_operation(const struct gtopo_transport_facts *facts, const struct gtopo_probe_options *options,
                           struct gtopo_error *error)
{
    char known[128] = "it can:";
    uint32_t i;

    if (facts->operations & 1u << options->operation)
        return 0;
    for (i = 0; i < GTOPO_OPERATIONS; i++)
        if (facts->operations & 1u << i)
            snprintf(known + strlen(known), sizeof known - strlen(known), " %s", gtopo_operation_name(i));
    return gtopo_fail(error, GTOPO_EUSAGE, known, "transport %s has no operation \"%s\"", facts->name,
                      gtopo_operation_name(options->operation));
}

static int is_power_of_two(uint32_t number)
{
    return number && !(number & (number - 1));
}

static int fail_ignored(const struct gtopo_transport_facts *facts, const struct gtopo_option *option,
                        struct gtopo_error *error)
{
    const struct gtopo_transport_facts *other;
    char hint[128];
    size_t i = 0;

    while ((other = gtopo_transport_facts_at(i)) && !(other->honours & option->honours))
        i++;
    snprintf(hint, sizeof hint, "leave %s out, or use transport %s", option->key, other ? other->name : "?");
    return gtopo_fail(error, GTOPO_EUSAGE, hint, "option %s is not honoured by transport %s", option->key, facts->name);
}

/* What is not as gtopo_probe_options_init() left it was asked for. */
static int check_honoured(const struct gtopo_transport_facts *facts, const struct gtopo_option *table,
                          const void *options, const void *defaults, struct gtopo_error *error)
{
    for (const struct gtopo_option *option = table; option->key; option++)
        if ((option->honours & ~facts->honours) &&
            gtopo_option_get(option, options) != gtopo_option_get(option, defaults))
            return fail_ignored(facts, option, error);
    return 0;
}

static int check_transport(const struct gtopo_transport_facts *facts, const struct gtopo_probe_options *options,
                           struct gtopo_error *error)
{
    struct gtopo_probe_options defaults;
    int status;

    gtopo_probe_options_init(&defaults);
    status = check_honoured(facts, gtopo_probe_numbers, options, &defaults, error);
    if (!status)
        status = check_honoured(facts, gtopo_end_numbers, &options->from, &defaults.from, error);
    return status ? status : check_honoured(facts, gtopo_end_numbers, &options->to, &defaults.to, error);
}

/* What does not go together. */
static int check_pairs(const struct gtopo_probe_options *o, struct gtopo_error *error)
{
    int latency = o->metric == GTOPO_LATENCY_ns, atomic = gtopo_operation_is_atomic(o->operation);
    int answers = latency || o->two_way; /* both ends send */
    const struct {
        int is_wrong;
        const char *text, *hint;
    } rules[] = {
        {atomic && o->message_B != 8, "atomic operations are on 8 bytes", "say message_B 8"},
        {latency && o->two_way, "latency is measured one way", "leave two_way out"},
        {latency && o->queue_pairs != 1, "latency is measured on one queue pair", "say queue_pairs 1"},
        {o->flush && (!latency || !strcmp(o->to.memory, "host")), "a flush is part of latency into GPU memory",
         "leave flush out"},
        {o->inline_B > 0 && gtopo_operation_is_round_trip(o->operation),
         "a read or an atomic operation takes no data along, inside its work request or elsewhere",
         "leave inline_B out"},
        {o->inline_B > 0 && (strcmp(o->from.memory, "host") || (answers && strcmp(o->to.memory, "host"))),
         "the processor puts a message into its work request, and it cannot read GPU memory", "leave inline_B out"},
        {o->mtu_B && (o->mtu_B < 256 || !is_power_of_two(o->mtu_B)), "an RDMA MTU is 256, 512, 1024, 2048 or 4096",
         NULL},
        {o->verify_every && (latency || atomic), "each message is checked for bandwidth of data only",
         "leave verify_every out: the last messages are checked all the same"},
        {o->verify_every && o->two_way, "each message can be checked in one direction only", "leave two_way out"},
        {o->iterations && o->iterations < 16, "fewer than 16 iterations say nothing", "use more"},
        {o->iterations * o->queue_pairs > GTOPO_MESSAGES_MAX, "there are too many iterations to trace each",
         "use --seconds instead"},
        {o->iterations && o->two_way, "a two-way probe runs by time", "leave iterations out"},
    };

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].is_wrong)
            return gtopo_fail(error, GTOPO_EUSAGE, rules[i].hint, "%s", rules[i].text);
    return 0;
}

int gtopo_probe_options_check(const struct gtopo_probe_options *options, struct gtopo_error *error)
{
    const struct gtopo_transport_facts *facts;
    int status;

    if (options->size != sizeof *options || !options->transport)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_probe_options_init()", "the options are not initialised");
    if ((status = gtopo_transport_facts(options->transport, &facts, error)) ||
        (status = check_numbers(gtopo_probe_numbers, options, error)) ||
        (status = check_operation(facts, options, error)) || (status = check_end(facts, &options->from, error)) ||
        (status = check_end(facts, &options->to, error)) || (status = check_transport(facts, options, error)))
        return status;
    return check_pairs(options, error);
}
