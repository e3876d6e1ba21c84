/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/text.h"
#include <gputopo/error.h>
#include <stdlib.h>
#include <string.h>

int gtopo_grow(void **items, size_t *capacity, size_t need, size_t item_B)
{
    size_t wanted = *capacity ? *capacity : 16;
    void *grown;

    if (need <= *capacity)
        return 0;
    while (wanted < need) {
        if (wanted > SIZE_MAX / 2)
            return GTOPO_ENOMEM;
        wanted *= 2;
    }
    grown = reallocarray(*items, wanted, item_B);
    if (!grown)
        return GTOPO_ENOMEM;
    *items = grown;
    *capacity = wanted;
    return 0;
}

uint64_t gtopo_hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *byte = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t gtopo_hash_number(uint64_t hash, uint64_t value)
{
    uint64_t mixed = hash + UINT64_C(0x9e3779b97f4a7c15) * (value + 1);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

static size_t slot_of(const struct gtopo_texts *texts, const char *text)
{
    size_t mask = texts->slot_count - 1;
    size_t slot = gtopo_hash_number(0, gtopo_hash_bytes(GTOPO_HASH_START, text, strlen(text))) & mask;

    while (texts->slots[slot] && strcmp(texts->bytes + texts->slots[slot], text))
        slot = (slot + 1) & mask;
    return slot;
}

static int rehash(struct gtopo_texts *texts, size_t slot_count)
{
    struct gtopo_texts bigger = *texts;

    bigger.slots = calloc(slot_count, sizeof *bigger.slots);
    if (!bigger.slots)
        return GTOPO_ENOMEM;
    bigger.slot_count = slot_count;
    for (size_t i = 0; i < texts->slot_count; i++)
        if (texts->slots[i])
            bigger.slots[slot_of(&bigger, texts->bytes + texts->slots[i])] = texts->slots[i];
    free(texts->slots);
    *texts = bigger;
    return 0;
}

int gtopo_texts_init(struct gtopo_texts *texts)
{
    memset(texts, 0, sizeof *texts);
    texts->bytes = calloc(1, 64);
    texts->slots = calloc(64, sizeof *texts->slots);
    if (!texts->bytes || !texts->slots) {
        gtopo_texts_clear(texts);
        return GTOPO_ENOMEM;
    }
    texts->capacity = 64;
    texts->size = 1;
    texts->slot_count = 64;
    return 0;
}

void gtopo_texts_clear(struct gtopo_texts *texts)
{
    free(texts->bytes);
    free(texts->slots);
    memset(texts, 0, sizeof *texts);
}

int gtopo_texts_add(struct gtopo_texts *texts, const char *text, uint32_t *number)
{
    size_t length = strlen(text);
    size_t slot;

    if (!length) {
        *number = 0;
        return 0;
    }
    if ((texts->used + 1) * 2 > texts->slot_count && rehash(texts, texts->slot_count * 2))
        return GTOPO_ENOMEM;
    slot = slot_of(texts, text);
    if (!texts->slots[slot]) {
        /* The text may be a part of one that is stored here, and would move with it. */
        ptrdiff_t inside = text >= texts->bytes && text < texts->bytes + texts->size ? text - texts->bytes : -1;

        if (length >= UINT32_MAX - texts->size ||
            gtopo_grow((void **)&texts->bytes, &texts->capacity, texts->size + length + 1, 1))
            return GTOPO_ENOMEM;
        memcpy(texts->bytes + texts->size, inside < 0 ? text : texts->bytes + inside, length + 1);
        texts->slots[slot] = (uint32_t)texts->size;
        texts->size += length + 1;
        texts->used++;
    }
    *number = texts->slots[slot];
    return 0;
}

uint32_t gtopo_texts_find(const struct gtopo_texts *texts, const char *text)
{
    uint32_t number;

    if (!*text)
        return 0;
    number = texts->slots[slot_of(texts, text)];
    return number ? number : UINT32_MAX;
}

/* Length of the UTF-8 sequence at p, or 0. */
static size_t utf8_length(const unsigned char *p)
{
    if (p[0] < 0x80)
        return p[0] >= 0x20 && p[0] != 0x7f;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        unsigned char low = p[0] == 0xc2 ? 0xa0 : 0x80; /* U+0080 … U+009F are control characters */

        return p[1] >= low && p[1] <= 0xbf ? 2 : 0;
    }
    if (p[0] >= 0xe0 && p[0] <= 0xef) {
        unsigned char low = p[0] == 0xe0 ? 0xa0 : 0x80;
        unsigned char high = p[0] == 0xed ? 0x9f : 0xbf;

        return p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 ? 3 : 0;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        unsigned char low = p[0] == 0xf0 ? 0x90 : 0x80;
        unsigned char high = p[0] == 0xf4 ? 0x8f : 0xbf;

        return p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 && (p[3] & 0xc0) == 0x80 ? 4 : 0;
    }
    return 0;
}

int gtopo_text_is_clean(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t length;

    for (; *p; p += length) {
        length = utf8_length(p);
        if (!length)
            return 0;
    }
    return 1;
}

void gtopo_text_clean(char *text)
{
    unsigned char *p = (unsigned char *)text;

    while (*p) {
        size_t length = utf8_length(p);

        if (!length)
            *p = '?';
        p += length ? length : 1;
    }
}
