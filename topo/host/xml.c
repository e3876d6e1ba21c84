/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/host/xml.h"
#include <expat.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "lib/text.h"

#define DEPTH_MAX 256
#define TEXT_MAX ((size_t)1 << 30)

struct reading {
    struct gtopo_xml *xml;
    XML_Parser parser;
    uint32_t open, last; /* the element that is open, and its last child so far */
    uint32_t depth;
    const char *trouble; /* why we stopped the parser, or NULL */
};

static void stop(struct reading *r, const char *trouble)
{
    r->trouble = trouble;
    XML_StopParser(r->parser, XML_FALSE);
}

/* Keep a text; returns its place, or SIZE_MAX. */
static size_t keep(struct gtopo_xml *xml, const char *text)
{
    size_t size = strlen(text) + 1, place = xml->text_B;

    if (place + size > TEXT_MAX || gtopo_grow((void **)&xml->text, &xml->text_capacity, place + size, 1))
        return SIZE_MAX;
    memcpy(xml->text + place, text, size);
    xml->text_B += size;
    return place;
}

static int keep_attributes(struct gtopo_xml *xml, struct gtopo_xml_element *element, const XML_Char **pairs)
{
    element->first_attribute = (uint32_t)xml->attribute_count;
    for (; *pairs; pairs += 2) {
        struct gtopo_xml_attribute attribute = {keep(xml, pairs[0]), keep(xml, pairs[1])};

        if (attribute.key == SIZE_MAX || attribute.value == SIZE_MAX ||
            gtopo_grow((void **)&xml->attributes, &xml->attribute_capacity, xml->attribute_count + 1,
                       sizeof *xml->attributes))
            return GTOPO_ENOMEM;
        xml->attributes[xml->attribute_count++] = attribute;
        element->attribute_count++;
    }
    return 0;
}

static void on_start(void *context, const XML_Char *name, const XML_Char **pairs)
{
    struct reading *r = context;
    struct gtopo_xml *xml = r->xml;
    struct gtopo_xml_element element = {.name = keep(xml, name),
                                        .line = (uint32_t)XML_GetCurrentLineNumber(r->parser),
                                        .parent = r->open,
                                        .first_child = GTOPO_XML_NONE,
                                        .next = GTOPO_XML_NONE};
    uint32_t id = (uint32_t)xml->element_count;

    if (r->depth++ == DEPTH_MAX) {
        stop(r, "elements are nested too deeply");
        return;
    }
    if (element.name == SIZE_MAX || keep_attributes(xml, &element, pairs) ||
        gtopo_grow((void **)&xml->elements, &xml->element_capacity, xml->element_count + 1, sizeof *xml->elements)) {
        stop(r, NULL);
        return;
    }
    if (r->last != GTOPO_XML_NONE)
        xml->elements[r->last].next = id;
    else if (r->open != GTOPO_XML_NONE)
        xml->elements[r->open].first_child = id;
    xml->elements[xml->element_count++] = element;
    r->open = id;
    r->last = GTOPO_XML_NONE;
}

static void on_end(void *context, const XML_Char *name)
{
    struct reading *r = context;

    (void)name;
    r->depth--;
    r->last = r->open;
    r->open = r->xml->elements[r->open].parent;
}

static void on_doctype(void *context, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                       int internal)
{
    (void)name, (void)system, (void)public, (void)internal;
    stop(context, "a document type is not taken");
}

static int fail(const struct reading *r, const char *name, struct gtopo_error *error)
{
    enum XML_Error code = XML_GetErrorCode(r->parser);

    if (code == XML_ERROR_NO_MEMORY || (code == XML_ERROR_ABORTED && !r->trouble))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory while reading %s", name);
    return gtopo_fail(error, GTOPO_EFORMAT, "is the file whole, and XML?", "%s:%lu: %s", name,
                      (unsigned long)XML_GetCurrentLineNumber(r->parser),
                      r->trouble ? r->trouble : XML_ErrorString(code));
}

int gtopo_xml_read(const char *name, const char *data, size_t size, struct gtopo_xml *xml, struct gtopo_error *error)
{
    struct reading r = {.xml = xml, .open = GTOPO_XML_NONE, .last = GTOPO_XML_NONE};
    int status = 0;

    memset(xml, 0, sizeof *xml);
    if (size > INT_MAX)
        return gtopo_fail(error, GTOPO_EFORMAT, NULL, "%s is too large for a machine", name);
    r.parser = XML_ParserCreate(NULL);
    if (!r.parser)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory while reading %s", name);
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    if (XML_Parse(r.parser, data, (int)size, 1) != XML_STATUS_OK)
        status = fail(&r, name, error);
    XML_ParserFree(r.parser);
    return status;
}

void gtopo_xml_clear(struct gtopo_xml *xml)
{
    free(xml->elements);
    free(xml->attributes);
    free(xml->text);
    memset(xml, 0, sizeof *xml);
}

const char *gtopo_xml_name(const struct gtopo_xml *xml, uint32_t element)
{
    return xml->text + xml->elements[element].name;
}

const char *gtopo_xml_get(const struct gtopo_xml *xml, uint32_t element, const char *key)
{
    const struct gtopo_xml_element *e = &xml->elements[element];

    for (uint32_t i = e->first_attribute; i < e->first_attribute + e->attribute_count; i++)
        if (!strcmp(xml->text + xml->attributes[i].key, key))
            return xml->text + xml->attributes[i].value;
    return NULL;
}
