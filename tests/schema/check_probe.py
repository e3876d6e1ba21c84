#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does doc/probe.schema.json say what is written of probes? Usage: check_probe.py PRINT_PROBE SCHEMA [DOCUMENT...]

PRINT_PROBE is the built tests/schema/print_probe. Further documents of `gtopo-bench probe --json` are validated too.
Prints a TAP line a check.
"""

import copy
import json
import sys

import jsonschema

from tap import check, finish, printed


def no_constant(word):
    raise ValueError(f"{word} is no JSON")


def read(text):
    return json.loads(text, parse_constant=no_constant)


def errors(validator, document):
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in validator.iter_errors(document)]


def word_problems(schema):
    defs = schema["$defs"]
    ours = {"operation": defs["operation"]["enum"],
            "metric": defs["failure"]["properties"]["metric"]["enum"],
            "severity": defs["finding"]["properties"]["severity"]["enum"]}
    library = {}
    for line in printed("words").splitlines():
        name, word = line.split("\t")
        library.setdefault(name, []).append(word)
    return [f"{name}: the schema says {ours.get(name)}, the library {library[name]}"
            for name in library if ours.get(name) != library[name]]


def strictness_problems(validator, document):
    """Add a key, and take one away, everywhere: none of it may pass."""
    problems = []

    def change(place, path):
        if isinstance(place, dict) and path[-1:] != ["counters"]:
            place["colour"] = 1
            if not errors(validator, document):
                problems.append(f"{path}: an unknown key passes")
            del place["colour"]
            for key in list(place):
                if path + [key] != ["perftest"]:  # the one that may be absent
                    kept = place.pop(key)
                    if not errors(validator, document):
                        problems.append(f"{path}: it passes without {key}")
                    place[key] = kept
                change(place[key], path + [key])
        elif isinstance(place, list):
            for i, element in enumerate(place[:3]):
                change(element, path + [i])

    change(document, [])
    return problems


def not_finite_problems():
    try:
        probe = read(printed("not-finite"))
    except ValueError as error:
        return [str(error)]
    return [] if probe["bandwidth_Bps"]["low"] is None else ["what is not a number is not null"]


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    whole = jsonschema.Draft202012Validator(schema)
    probe = jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": "#/$defs/probe"})
    check("the schema and the library know the same words", word_problems(schema))
    examples = {name: read(printed(name)) for name in ("bandwidth", "latency", "two-way", "staged", "longest",
                                                       "perftest-bandwidth", "perftest-latency")}
    for name, example in examples.items():
        check(f"the {name} probe is valid", errors(probe, example))
        check(f"the schema is strict on the {name} probe", strictness_problems(probe, copy.deepcopy(example)))
    check("no NaN and no infinity is written", not_finite_problems())
    both = dict(examples["bandwidth"], latency_ns=examples["latency"]["latency_ns"])
    check("a probe has one metric", [] if errors(probe, both) else ["it passes with two"])
    for path in sys.argv[3:]:
        with open(path, encoding="utf-8") as file:
            document = read(file.read())
        check(f"{path} is valid", errors(whole, document))
        check(f"{path} is of this version", [] if errors(whole, dict(document, version=2)) else ["version 2 passes"])
    finish()


if __name__ == "__main__":
    main()
