/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs probes as an embedder does, one for each line of standard input: the initiator in this process, the other end an
 * agent behind a TCP port. For the rigs, which need memories and faults that gtopo-bench has no words for.
 *
 *   prober < requests
 *
 * A request is words: `peer=HOST:PORT` (of the agent), then options of struct gtopo_probe_options by their names, and
 * those of an end behind "from." or "to.": `peer=b:7000 operation=read from.memory=gpu:0 to.way=staged message_B=8`.
 * Operations and metrics are named ("read", "latency_ns"). The answer is one JSON object a line:
 *
 *   {"code": 0, "message": "", "hint": "", "seconds": 1.2, "files": 7, "probe": {…}}
 *
 * code is that of gtopo_probe_run(), files how many are open afterwards, probe the result (null after an error).
 * Exit status 2 for a line that is no request.
 */
#include <dirent.h>
#include <gputopo/probe.h>
#include <jansson.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "bench/clock.h"
#include "bench/options.h"

struct request {
    struct gtopo_probe_options options;
    char peer[256];
};

static void bad(const char *what, const char *word)
{
    fprintf(stderr, "prober: %s: %s\n", what, word);
    exit(2);
}

static int set_number(const struct gtopo_option *numbers, void *options, const char *key, const char *value)
{
    for (; numbers->key; numbers++)
        if (!strcmp(numbers->key, key)) {
            char *end;
            double number = strtod(value, &end);

            if (*end || end == value)
                bad("not a number", value);
            gtopo_option_set(numbers, options, number);
            return 1;
        }
    return 0;
}

static int set_end(struct gtopo_probe_end *end, const char *key, const char *value)
{
    if (!strcmp(key, "device"))
        end->device = value;
    else if (!strcmp(key, "memory"))
        end->memory = value;
    else if (!strcmp(key, "way"))
        end->way = value;
    else
        return set_number(gtopo_end_numbers, end, key, value);
    return 1;
}

static uint32_t metric_of(const char *name)
{
    uint32_t metric = 0;

    while (metric < GTOPO_METRICS && strcmp(gtopo_metric_key(metric), name))
        metric++;
    return metric;
}

/* The texts of the request stay in its line. */
static void set(struct request *request, char *word)
{
    struct gtopo_probe_options *options = &request->options;
    char *value = strchr(word, '=');
    int known = 1;

    if (!value)
        bad("no key=value", word);
    *value++ = 0;
    if (!strcmp(word, "peer"))
        snprintf(request->peer, sizeof request->peer, "%s", value);
    else if (!strcmp(word, "transport"))
        options->transport = value;
    else if (!strcmp(word, "operation"))
        options->operation = gtopo_operation_of_name(value);
    else if (!strcmp(word, "metric"))
        options->metric = metric_of(value);
    else if (!strncmp(word, "from.", 5))
        known = set_end(&options->from, word + 5, value);
    else if (!strncmp(word, "to.", 3))
        known = set_end(&options->to, word + 3, value);
    else
        known = set_number(gtopo_probe_numbers, options, word, value);
    if (!known)
        bad("no option of that name", word);
}

static int dial(const char *peer)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found;
    char host[256];
    char *port;
    int fd;

    snprintf(host, sizeof host, "%s", peer);
    port = strrchr(host, ':');
    if (!port)
        bad("no HOST:PORT", peer);
    *port++ = 0;
    if (getaddrinfo(host, port, &hints, &found))
        bad("no such host", host);
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen))
        bad("nobody listens", peer);
    freeaddrinfo(found);
    return fd;
}

static int open_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = -3; /* ".", ".." and the directory itself */

    if (!directory)
        bad("cannot open", "/proc/self/fd");
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static int append(void *context, const void *data, size_t size)
{
    return fwrite(data, 1, size, context) != size;
}

static json_t *probe_json(const struct gtopo_probe_options *options, const struct gtopo_probe_result *result)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    struct gtopo_error error;
    json_t *json;

    if (!file || gtopo_probe_write_json(options, result, append, file, &error) || fclose(file))
        bad("cannot write the result", error.message);
    json = json_loadb(text, size, 0, NULL);
    free(text);
    return json;
}

static void serve(char *line)
{
    static struct gtopo_probe_result result;
    struct gtopo_probe_stream to = {.name = "the agent"};
    struct gtopo_error error = {0};
    struct request request;
    json_t *answer;
    uint64_t begin_ns;
    int code;

    memset(&request, 0, sizeof request);
    gtopo_probe_options_init(&request.options);
    request.options.from.device = request.options.to.device = "rxe0";
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
        set(&request, word);
    to.input_fd = to.output_fd = dial(request.peer);
    begin_ns = gtopo_clock_ns();
    code = gtopo_probe_run(&request.options, NULL, &to, NULL, &result, &error);
    close(to.input_fd);
    answer = json_pack("{si, ss, ss, sf, si, so}", "code", code, "message", error.message, "hint", error.hint,
                       "seconds", (double)(gtopo_clock_ns() - begin_ns) / 1e9, "files", open_files(), "probe",
                       code ? json_null() : probe_json(&request.options, &result));
    if (!answer || json_dumpf(answer, stdout, JSON_COMPACT))
        bad("cannot write", "the answer");
    json_decref(answer);
    puts("");
    fflush(stdout);
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0)
        serve(line);
    free(line);
    return 0;
}
