/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a map, each stored once, so that equal texts have equal numbers. And growing arrays. */
#ifndef GTOPO_LIB_TEXT_H
#define GTOPO_LIB_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Make room for `need` items of `item_B` bytes; doubles. 0, or GTOPO_ENOMEM with the array as it was. */
int gtopo_grow(void **items, size_t *capacity, size_t need, size_t item_B);

struct gtopo_texts {
    char *bytes; /* zero-terminated texts, one after the other; offset 0 is "" */
    size_t size, capacity;
    uint32_t *slots; /* open addressing; 0 is free */
    size_t slot_count, used;
};

/* Text number 0 is "" and stands for "no text" where a text is optional. */
int gtopo_texts_init(struct gtopo_texts *texts);
void gtopo_texts_clear(struct gtopo_texts *texts);
/* 0 or GTOPO_ENOMEM. Expected O(length). */
int gtopo_texts_add(struct gtopo_texts *texts, const char *text, uint32_t *number);
/* The number of a text that is there already, or UINT32_MAX. */
uint32_t gtopo_texts_find(const struct gtopo_texts *texts, const char *text);

static inline const char *gtopo_texts_get(const struct gtopo_texts *texts, uint32_t number)
{
    return texts->bytes + number;
}

/* Is the text UTF-8 without control characters (Unicode 15, table 3-7: no surrogates, no overlong forms)? */
int gtopo_text_is_clean(const char *text);
/* Put a question mark in the place of every byte that makes it not so. */
void gtopo_text_clean(char *text);

/* Mixing for hashes: FNV-1a over bytes, and the finaliser of splitmix64 (Steele, Lea, Flood 2014). */
uint64_t gtopo_hash_bytes(uint64_t hash, const void *data, size_t size);
uint64_t gtopo_hash_number(uint64_t hash, uint64_t value);
#define GTOPO_HASH_START UINT64_C(0xcbf29ce484222325)

#endif
