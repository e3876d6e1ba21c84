/* SPDX-License-Identifier: Apache-2.0 */
/* The pattern of the data in regions of any memory: written and compared in pieces. */
#include <stdlib.h>
#include <string.h>
#include "bench/transport.h"

#define PIECE_B ((size_t)1 << 20)

/* `position` is a multiple of 8. */
static void generate(uint8_t *data, size_t position, size_t size, uint64_t seed, uint64_t mask)
{
    size_t i;

    for (i = 0; i + 8 <= size; i += 8) {
        uint64_t word = gtopo_pattern_word(seed, position + i) ^ mask;

        for (size_t byte = 0; byte < 8; byte++)
            data[i + byte] = (uint8_t)(word >> (8 * byte));
    }
    for (; i < size; i++)
        data[i] = (uint8_t)(gtopo_pattern_byte(seed, position + i) ^ mask);
}

static int store(const struct gtopo_region *region, size_t offset, size_t size, uint64_t seed, uint64_t mask,
                 struct gtopo_error *error)
{
    uint8_t *piece = malloc(size < PIECE_B ? size + 1 : PIECE_B);
    int status = piece ? 0 : gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");

    for (size_t done = 0, part; !status && done < size; done += part) {
        part = size - done < PIECE_B ? size - done : PIECE_B;
        generate(piece, done, part, seed, mask);
        status = region->memory->store(region, offset + done, piece, part, error);
    }
    free(piece);
    return status;
}

int gtopo_pattern_store(const struct gtopo_region *region, size_t offset, size_t size, uint64_t seed,
                        struct gtopo_error *error)
{
    return store(region, offset, size, seed, 0, error);
}

int gtopo_pattern_poison(const struct gtopo_region *region, size_t offset, size_t size, uint64_t seed,
                         struct gtopo_error *error)
{
    return store(region, offset, size, seed, UINT64_MAX, error);
}

int gtopo_pattern_compare(const struct gtopo_region *region, size_t offset, size_t size, uint64_t seed, size_t *wrong,
                          uint8_t *is, uint8_t *should, struct gtopo_error *error)
{
    size_t room = size < PIECE_B ? size + 1 : PIECE_B;
    uint8_t *found = malloc(room), *expected = malloc(room);
    int status = found && expected ? 0 : gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");

    *wrong = size;
    for (size_t done = 0, part; !status && done < size && *wrong == size; done += part) {
        part = size - done < PIECE_B ? size - done : PIECE_B;
        generate(expected, done, part, seed, 0);
        status = region->memory->load(region, offset + done, found, part, error);
        if (status || !memcmp(found, expected, part))
            continue;
        for (size_t i = 0; i < part && *wrong == size; i++)
            if (found[i] != expected[i]) {
                *wrong = done + i;
                *is = found[i];
                *should = expected[i];
            }
    }
    free(found);
    free(expected);
    return status;
}
