#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does doc/map.schema.json say what the library does? Usage: check.py PRINT_MAP SCHEMA [MAP...]

PRINT_MAP is the built tests/schema/print_map. Further maps are validated too. Prints a TAP line a check.
"""

import copy
import json
import sys

import jsonschema

from tap import check, finish, printed


def words(schema):
    """The enumerations of the schema, named as print_map names them."""
    defs = schema["$defs"]
    properties = {name: defs[name]["properties"] for name in ("measurement", "finding", "link", "cable", "gid")}
    metrics = [alternative["required"][0] for alternative in defs["measurement"]["oneOf"]]
    return {"object_kind": defs["shape_object"]["properties"]["kind"]["enum"],
            "link_kind": properties["link"]["kind"]["enum"],
            "cable_kind": [properties["cable"]["kind"]["const"]],
            "gid_type": properties["gid"]["type"]["enum"],
            "provenance": properties["measurement"]["provenance"]["enum"],
            "metric": metrics,
            "severity": properties["finding"]["severity"]["enum"]}


def type_of(value):
    """The library's type of an attribute, from its entry in the schema."""
    reference = value.get("$ref", "")
    if reference.endswith("/text_or_null"):
        return "text"
    if reference.endswith("/identifier_or_null"):
        return "id"
    return "gids" if "anyOf" in value else "number"


def attribute_problems(schema):
    ours = {}
    for identity, part in ((0, "shape_attributes"), (1, "host_attributes")):
        for key, value in schema["$defs"][part]["properties"].items():
            ours[key] = (type_of(value), identity)
    library = {}
    for line in printed("attributes").splitlines():
        key, kind, identity = line.split()
        library[key] = (kind, int(identity))
    return [f"{key}: the schema says {ours.get(key)}, the library {library.get(key)}"
            for key in sorted(set(ours) | set(library)) if ours.get(key) != library.get(key)]


def word_problems(schema):
    library = {}
    for line in printed("words").splitlines():
        name, word = line.split("\t")
        library.setdefault(name, []).append(word)
    return [f"{name}: the schema says {words(schema).get(name)}, the library {library[name]}"
            for name in library if words(schema).get(name) != library[name]]


def errors(validator, document):
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in validator.iter_errors(document)]


def strictness_problems(validator, document):
    """Add a key, and take one away, everywhere: none of it may pass."""
    problems = []

    def change(place, path):
        if isinstance(place, dict):
            if path[-1:] != ["objects"] and not path[-1:] == [""]:
                place["colour"] = 1
                if not errors(validator, document):
                    problems.append(f"{path}: an unknown key passes")
                del place["colour"]
            for key in list(place):
                change(place[key], path + [key])
        elif isinstance(place, list):
            for i, element in enumerate(place[:3]):
                change(element, path + [i])

    change(document, [])
    for key in list(document):
        kept = document.pop(key)
        if not errors(validator, document):
            problems.append(f"it passes without {key}")
        document[key] = kept
    return problems


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    check("the schema and the library know the same attributes", attribute_problems(schema))
    check("the schema and the library know the same words", word_problems(schema))
    for name in ("empty", "host", "cluster", "full"):
        check(f"the {name} map is valid", errors(validator, json.loads(printed(name))))
    check("the schema is strict", strictness_problems(validator, copy.deepcopy(json.loads(printed("full")))))
    for path in sys.argv[3:]:
        with open(path, encoding="utf-8") as file:
            check(f"{path} is valid", errors(validator, json.load(file)))
    finish()


if __name__ == "__main__":
    main()
