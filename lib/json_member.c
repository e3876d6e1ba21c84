/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json_member.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

int gtopo_bad(struct gtopo_reader *r, const char *format, ...)
{
    char what[300];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return gtopo_fail(r->error, GTOPO_EFORMAT, "doc/map.schema.json describes the format", "%.120s: %s: %s", r->name,
                      r->place, what);
}

/* A failure of a function that fills the map becomes one of the file, at its place. */
int gtopo_refused(struct gtopo_reader *r, int status, const struct gtopo_error *cause)
{
    if (status == GTOPO_ENOMEM)
        return gtopo_fail(r->error, GTOPO_ENOMEM, NULL, "out of memory while reading %.200s", r->name);
    return gtopo_bad(r, "%.200s", cause->message);
}

void gtopo_at(struct gtopo_reader *r, const char *section, size_t i, const char *part, size_t j)
{
    if (part)
        snprintf(r->place, sizeof r->place, "%s[%zu].%s[%zu]", section, i, part, j);
    else
        snprintf(r->place, sizeof r->place, "%s[%zu]", section, i);
}

/* ---- typed members ---- */

int gtopo_get_text(struct gtopo_reader *r, const json_t *object, const char *key, const char **text)
{
    *text = json_string_value(json_object_get(object, key));
    return *text ? 0 : gtopo_bad(r, "\"%s\" has to be a text", key);
}

int gtopo_get_text_or_null(struct gtopo_reader *r, const json_t *object, const char *key, const char **text)
{
    *text = NULL;
    return json_is_null(json_object_get(object, key)) ? 0 : gtopo_get_text(r, object, key, text);
}

/* A whole number from 0 to `highest`; null counts as 0 where `nullable`. */
int gtopo_get_number(struct gtopo_reader *r, const json_t *object, const char *key, uint64_t highest, int nullable,
                     uint64_t *number)
{
    const json_t *value = json_object_get(object, key);

    *number = 0;
    if (nullable && json_is_null(value))
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > highest)
        return gtopo_bad(r, "\"%s\" has to be a whole number from 0 to %llu%s", key, (unsigned long long)highest,
                         nullable ? ", or null" : "");
    *number = (uint64_t)json_integer_value(value);
    return 0;
}

int gtopo_get_uint32(struct gtopo_reader *r, const json_t *object, const char *key, int nullable, uint32_t *number)
{
    uint64_t wide;
    int status = gtopo_get_number(r, object, key, UINT32_MAX, nullable, &wide);

    *number = (uint32_t)wide;
    return status;
}

/* One of the words that name_of gives for 0 … count - 1. */
int gtopo_get_word(struct gtopo_reader *r, const json_t *object, const char *key, unsigned count,
                   const char *(*name_of)(unsigned), uint32_t *value)
{
    const char *word = NULL;
    int status = gtopo_get_text(r, object, key, &word);

    if (status)
        return status;
    for (*value = 0; *value < count; ++*value)
        if (!strcmp(name_of(*value), word))
            return 0;
    return gtopo_bad(r, "\"%s\" cannot be \"%.60s\"", key, word);
}

int gtopo_get_array(struct gtopo_reader *r, const json_t *object, const char *key, json_t **array)
{
    *array = json_object_get(object, key);
    return json_is_array(*array) ? 0 : gtopo_bad(r, "\"%s\" has to be an array", key);
}

/* Refuse what is not among the keys, a list closed by NULL. */
int gtopo_check_keys(struct gtopo_reader *r, json_t *object, const char *const *keys)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return gtopo_bad(r, "has to be an object");
    json_object_foreach(object, key, value)
    {
        size_t i = 0;

        while (keys[i] && strcmp(keys[i], key))
            i++;
        if (!keys[i])
            return gtopo_bad(r, "\"%.60s\" is not known here", key);
    }
    return 0;
}

/* "0x" and 16 hexadecimal digits in lower case. */
int gtopo_get_identifier(struct gtopo_reader *r, const char *key, const json_t *value, uint64_t *number)
{
    const char *text = json_string_value(value);

    if (!text || strlen(text) != 18 || strncmp(text, "0x", 2) || strspn(text + 2, "0123456789abcdef") != 16)
        return gtopo_bad(r, "\"%s\" has to be a text of \"0x\" and 16 hexadecimal digits", key);
    *number = strtoull(text + 2, NULL, 16);
    return 0;
}
