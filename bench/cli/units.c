/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them, always with the unit. */
#include "cli.h"

/* Scale by 1000 until the number is below 1000, three digits. */
static const char *scaled(double value, const char *unit, char text[CLI_TEXT])
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    size_t i = 0;

    while (value >= 999.5 && i < 4) {
        value /= 1000;
        i++;
    }
    snprintf(text, CLI_TEXT,
             value < 10    ? "%.2f %s%s"
             : value < 100 ? "%.1f %s%s"
                           : "%.0f %s%s",
             value, prefixes[i], unit);
    return text;
}

const char *cli_rate(double Bps, char text[CLI_TEXT])
{
    return scaled(Bps, "B/s", text);
}

const char *cli_network_rate(double Bps, char text[CLI_TEXT])
{
    return scaled(Bps * 8, "b/s", text);
}

const char *cli_capacity(uint64_t bytes, char text[CLI_TEXT])
{
    return scaled((double)bytes, "B", text);
}

const char *cli_bytes(uint64_t bytes, char text[CLI_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t i = 0;

    while (bytes >= 1024 && bytes % 1024 == 0 && i < 3) {
        bytes /= 1024;
        i++;
    }
    snprintf(text, CLI_TEXT, "%llu %s", (unsigned long long)bytes, units[i]);
    return text;
}

const char *cli_count_rate(double per_s, char text[CLI_TEXT])
{
    return scaled(per_s, "/s", text);
}

struct cli_scale cli_scale(uint32_t metric, int is_network, double quantity)
{
    static const struct cli_scale microseconds = {1e-3, "us"};
    static const struct cli_scale bytes[] = {{1, "B/s"}, {1e-3, "kB/s"}, {1e-6, "MB/s"}, {1e-9, "GB/s"}};
    static const struct cli_scale bits[] = {{8, "b/s"}, {8e-3, "kb/s"}, {8e-6, "Mb/s"}, {8e-9, "Gb/s"}};
    const struct cli_scale *scales = is_network ? bits : bytes;
    size_t i = 3;

    if (metric == GTOPO_LATENCY_ns)
        return microseconds;
    while (i && quantity * scales[i].factor < 1)
        i--;
    return scales[i];
}

static struct cli_scale scale_of(const struct gtopo_map *map, const struct gtopo_measurement *m)
{
    struct gtopo_object via;

    return cli_scale(m->metric, !gtopo_map_object(map, m->from.via, &via, NULL) && via.kind == GTOPO_PORT, m->median);
}

const char *cli_quantity(const struct gtopo_map *map, const struct gtopo_measurement *m, double quantity,
                         char text[CLI_TEXT])
{
    struct cli_scale scale = scale_of(map, m);

    snprintf(text, CLI_TEXT, "%.4g %s", quantity * scale.factor, scale.unit);
    return text;
}

const char *cli_measured_value(const struct gtopo_map *map, uint32_t index, char text[CLI_TEXT])
{
    struct gtopo_measurement m;
    struct cli_scale scale;

    text[0] = 0;
    if (gtopo_map_measurement(map, index, &m, NULL))
        return text;
    scale = scale_of(map, &m);
    snprintf(text, CLI_TEXT, "%s %.4g %s", gtopo_provenance_name(m.provenance), m.median * scale.factor, scale.unit);
    return text;
}

const char *cli_measurement(const struct gtopo_map *map, uint32_t index, char text[CLI_LINE])
{
    struct gtopo_measurement m;
    struct cli_scale scale;
    char bytes[CLI_TEXT];

    text[0] = 0;
    if (gtopo_map_measurement(map, index, &m, NULL))
        return text;
    scale = scale_of(map, &m);
    snprintf(text, CLI_LINE, "%s%s%.4g %s [%.4g .. %.4g] n=%llu, %.100s %.40s %s",
             m.provenance == GTOPO_MEASURED ? "" : gtopo_provenance_name(m.provenance),
             m.provenance == GTOPO_MEASURED ? "" : " ", m.median * scale.factor, scale.unit, m.low * scale.factor,
             m.high * scale.factor, (unsigned long long)m.samples, m.transport, m.operation,
             cli_bytes(m.message_B, bytes));
    return text;
}
