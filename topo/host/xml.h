/* SPDX-License-Identifier: Apache-2.0 */
/* An XML document as a tree of elements with attributes, each with its line. Text between elements is not kept. */
#ifndef GTOPO_TOPO_HOST_XML_H
#define GTOPO_TOPO_HOST_XML_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>

/* No element. */
#define GTOPO_XML_NONE UINT32_MAX

struct gtopo_xml_attribute {
    size_t key, value; /* places in the text */
};

struct gtopo_xml_element {
    size_t name; /* place in the text */
    uint32_t line;
    uint32_t parent, first_child, next; /* elements, or GTOPO_XML_NONE */
    uint32_t first_attribute, attribute_count;
};

struct gtopo_xml {
    struct gtopo_xml_element *elements; /* in document order; the first is the root */
    struct gtopo_xml_attribute *attributes;
    char *text;
    size_t element_count, element_capacity, attribute_count, attribute_capacity, text_B, text_capacity;
};

/*
 * Read a whole document. `name` stands for it in messages. A document type is refused, as it could name other files or
 * grow without bounds; so is nesting that no machine has. Errors: GTOPO_EFORMAT with name:line, GTOPO_ENOMEM.
 * O(size). Release with gtopo_xml_clear(), also after an error.
 */
int gtopo_xml_read(const char *name, const char *data, size_t size, struct gtopo_xml *xml, struct gtopo_error *error);
void gtopo_xml_clear(struct gtopo_xml *xml);

const char *gtopo_xml_name(const struct gtopo_xml *xml, uint32_t element);
/* The value of an attribute, or NULL. */
const char *gtopo_xml_get(const struct gtopo_xml *xml, uint32_t element, const char *key);

#endif
