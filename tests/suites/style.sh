#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# licence lines, clang-format, sizes, and which room may include what
. "$(dirname "$0")/common.sh"
cd "$source" || exit 1

files() { # PATTERN...: of the project, tracked or about to be
  if [ -e .git ]; then
    git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do [ -e "$file" ] && echo "$file"; done
  else
    find "$@" -type f 2> /dev/null | sed 's|^\./||' |
      grep -vE '^(build|autom4te\.cache|m4/|configure~?$|config\.h\.in|aclocal\.m4|Makefile\.in)' # what is made
  fi
}
c_files() { files lib topo bench include tests | grep -E '\.(c|h)$'; }

has_licence_lines() {
  local file bad=0
  while read -r file; do
    head -3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || { echo "$file" && bad=1; }
  done < <(files . | grep -vE '\.(json|md|xml|txt|xz|gz|bz2|png|svg)$|(^|/)LICENSE$|^(\./)?(tests/data/|tests/fuzz/corpus|build)')
  return $bad
}

is_formatted() {
  command -v clang-format > /dev/null || { echo "there is no clang-format" && return 1; }
  c_files | xargs clang-format --dry-run -Werror 2>&1 | grep -E 'error:' | cut -d: -f1 | sort | uniq -c | grep . &&
    return 1 || return 0
}

has_no_long_file() {
  c_files | xargs wc -l | awk '$2 != "total" && $1 > 600 { print; bad = 1 } END { exit bad }'
}

# A function is what lies between a "{" and a "}" that stand alone at the beginning of a line.
has_no_long_function() {
  c_files | grep '\.c$' | xargs awk '
    /^\{/ { begun = FNR; name = before } /^[a-z].*\(/ { before = $0 }
    /^\}/ && begun { if (FNR - begun > 100) { print FILENAME ":" begun ": " FNR - begun " lines: " name; bad = 1 } begun = 0 }
    END { exit bad }'
}

lib_is_the_map_only() {
  ! files lib | xargs grep -nE '#include <(hwloc|infiniband|rdma|sys/socket|netinet|netdb|pthread|threads)'
}

lib_knows_no_other_room() { ! files lib | xargs grep -nE '#include "(topo|bench)/'; }
topo_and_bench_are_strangers() {
  ! { files topo | xargs grep -nE '#include "bench/' || files bench | xargs grep -nE '#include "topo/'; }
}

cli_is_public_only() {
  ! files bench/cli | xargs grep -nE '#include ("(lib|topo|bench)/|"\.\.)|#include <(hwloc|jansson|infiniband)' |
    grep -vF '#include "lib/file.h"' # which it is built with
}

# Where things vary there is a table; only a registry may know a transport, memory or provider by its name.
nobody_asks_for_a_name() {
  ! files bench topo lib | grep -E '\.[ch]$' | grep -v '/registry\.c$' |
    xargs grep -nE 'if \(.*(transport|provider|memory)(->name|_name)? *(==|!=) *"|strcmp\((transport|provider|memory)(->name)?, *"'
}

the_library_is_quiet() { # it never prints, exits or installs a handler; agents and the command do
  ! files lib topo bench | grep -E '\.c$' | grep -vE '^bench/cli/|/replay\.c$' |
    xargs grep -nE '(^|[^a-z_>.])(printf|puts|perror|exit|abort|signal|sigaction|setenv|putenv|setlocale|sprintf|strcpy|strcat|gets)\('
}

names_no_home() { ! files . | xargs grep -nIE '/(home|Users)/[a-z]+/'; }
scripts_parse() {
  local file bad=0
  for file in $(files tests .ci quickstart | xargs grep -lIE '^#!/bin/(ba)?sh' ); do
    bash -n "$file" || bad=1
  done
  return $bad
}

check "every file names its licence" has_licence_lines
check "C files are formatted (clang-format -i)" is_formatted
check "no file is longer than 600 lines" has_no_long_file
check "no function is longer than 100 lines" has_no_long_function
check "lib/ includes no hardware, sockets, threads" lib_is_the_map_only
check "lib/ includes no other room" lib_knows_no_other_room
check "topo/ and bench/ do not include each other" topo_and_bench_are_strangers
check "bench/cli/ uses public headers only" cli_is_public_only
check "no code asks for a transport by name" nobody_asks_for_a_name
check "the library does not print, exit or handle signals" the_library_is_quiet
check "no home folder is named in the tree" names_no_home
check "shell scripts parse" scripts_parse
finish
