/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a JSON document that nobody trusts: each is of the type that is asked for, or the file is
 * refused. */
#ifndef GTOPO_LIB_JSON_MEMBER_H
#define GTOPO_LIB_JSON_MEMBER_H

#include <gputopo/map.h>
#include <jansson.h>

struct gtopo_reader {
    struct gtopo_map *map;
    const char *name; /* of the source, for messages */
    char place[128];  /* in the document: "shapes[0].objects[3]" */
    struct gtopo_error *error;
    json_t *shapes;
    uint32_t *first_host; /* of each shape in the file: who has it, or GTOPO_NONE */
};

/* All return 0 or a status with the reader's error filled. */

/* Words for gtopo_get_word(), which takes a plain function. */
#define GTOPO_WORDS(function, type)                                                                                    \
    static const char *function##_(unsigned value)                                                                     \
    {                                                                                                                  \
        return function((enum type)value);                                                                             \
    }

/* GTOPO_EFORMAT at the reader's place. */
GTOPO_PRINTF(2, 3) int gtopo_bad(struct gtopo_reader *r, const char *format, ...);
/* A failure of a function that fills the map becomes one of the file, at its place. */
int gtopo_refused(struct gtopo_reader *r, int status, const struct gtopo_error *cause);
/* Set the place: section[i] or section[i].part[j]. */
void gtopo_at(struct gtopo_reader *r, const char *section, size_t i, const char *part, size_t j);

int gtopo_get_text(struct gtopo_reader *r, const json_t *object, const char *key, const char **text);
int gtopo_get_text_or_null(struct gtopo_reader *r, const json_t *object, const char *key, const char **text);
/* A whole number from 0 to `highest`; null counts as 0 where `nullable`. */
int gtopo_get_number(struct gtopo_reader *r, const json_t *object, const char *key, uint64_t highest, int nullable,
                     uint64_t *number);
int gtopo_get_uint32(struct gtopo_reader *r, const json_t *object, const char *key, int nullable, uint32_t *number);
/* One of the words that name_of gives for 0 … count - 1. */
int gtopo_get_word(struct gtopo_reader *r, const json_t *object, const char *key, unsigned count,
                   const char *(*name_of)(unsigned), uint32_t *value);
int gtopo_get_array(struct gtopo_reader *r, const json_t *object, const char *key, json_t **array);
/* "0x" and 16 hexadecimal digits in lower case. */
int gtopo_get_identifier(struct gtopo_reader *r, const char *key, const json_t *value, uint64_t *number);
/* Refuse what is not among the keys, a list closed by NULL. */
int gtopo_check_keys(struct gtopo_reader *r, json_t *object, const char *const *keys);

/* Elements of the sections "measurements" and "findings"; lib/json_read_record.c. */
int gtopo_read_measurement(struct gtopo_reader *r, json_t *object, size_t index);
int gtopo_read_finding(struct gtopo_reader *r, json_t *object, size_t index);

#endif
