#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commands, help, usage errors, bad input files: words and exit status. $GTOPO_BENCH is the command.
. "$(dirname "$0")/common.sh"
bench=$GTOPO_BENCH

version_is_that_of_configure() {
  run "$bench" version && status_is 0 && stdout_has "^gtopo-bench [0-9]+\.[0-9]+\.[0-9]+$" &&
    grep -qF "[$(awk '{print $2}' "$work/stdout")]" "$GTOPO_SOURCE/configure.ac"
}

help_names_every_command() {
  run "$bench" help && status_is 0 && stderr_is_empty || return 1
  for command in map show run probe version; do stdout_has "^  $command " || return 1; done
}

help_of_each_command() {
  for command in map show run probe version; do
    run "$bench" "$command" --help && status_is 0 && stdout_has "^Usage: gtopo-bench $command" || return 1
  done
}

usage_error() { # WORDS ARGUMENT...: status 2, nothing on stdout, the words on stderr
  local words=$1
  shift
  run "$bench" "$@"
  status_is 2 && stdout_is_empty && stderr_has "$words"
}

no_command() { run "$bench" && status_is 2 && cat "$work/stdout" "$work/stderr" | grep -q '^Usage: gtopo-bench'; }

a_full_stdout_is_an_error() {
  "$bench" help > /dev/full 2> "$work/stderr"
  status=$?
  status_is 2 && stderr_has "No space left"
}

check "version prints the version" version_is_that_of_configure
check "help names every command" help_names_every_command
check "every command has its help" help_of_each_command
check "help on a full disk exits 2" a_full_stdout_is_an_error
check "no command exits 2 and shows the help" no_command
check "an unknown command exits 2" usage_error "there is no command \"fly\"" fly
check "help of an unknown command exits 2" usage_error "there is no command \"fly\"" help fly
check "an unknown option exits 2" usage_error "--colour" show --colour
check "a surplus argument exits 2" usage_error "unexpected argument" version now
check "--path without its second address exits 2" usage_error "two addresses" show --path a
check "--matrix and --path exclude each other" usage_error "exclude" show --matrix --path a b
check "a tree over NCCL's file exits 2" usage_error "machine by itself" map --nccl-xml a --overlay b
check "a missing tree is named" usage_error "none.json.*No such file" map --overlay "$work/none.json"
check "export without a format exits 2" usage_error "name a format" export
check "an unknown format is named" usage_error 'no format "yaml"' export yaml
formats_are_listed() { run "$bench" export --list && status_is 0 && stderr_is_empty && stdout_has '^nccl +a topology file'; }
check "formats are listed" formats_are_listed
check "a host that is not there is named" usage_error 'no host "z"' export nccl --host z "$GTOPO_SOURCE/tests/fuzz/corpus-map-json/full.json"
check "a map of several hosts wants one named" usage_error 'has 3 hosts' export nccl "$GTOPO_SOURCE/tests/fuzz/corpus-map-json/full.json"
finish
