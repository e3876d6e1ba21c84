# SPDX-License-Identifier: Apache-2.0
# bash completion for gtopo-bench. Commands and options are those that its help names.
_gtopo_bench() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=$(gtopo-bench help 2> /dev/null | awk '/^  [a-z]/ { print $1 }')
  elif [ "$command" = help ]; then
    words=$(gtopo-bench help 2> /dev/null | awk '/^  [a-z]/ { print $1 }')
  elif [ "$command" = export ] && [ "$COMP_CWORD" -eq 2 ] && [[ $word != -* ]]; then
    words=$(gtopo-bench export --list 2> /dev/null | cut -d' ' -f1)
  elif [ "$before" = --transport ] && [ "$command" = probe ]; then
    words='verbs ofi:shm ofi:tcp copy'
  elif [ "$before" = --transport ]; then
    words='verbs ofi ofi:shm ofi:tcp'
  elif [ "$before" = --operation ]; then
    words='write read send write-imm fetch-add compare-swap'
  elif [ "$before" = --metric ]; then
    words='bandwidth latency both'
  elif [ "$before" = --way ]; then
    words='dma-buf peer-memory staged auto'
  elif [ "$before" = --driver ]; then
    words='auto always never'
  elif [ "$before" = --relaxed-ordering ]; then
    words='on off auto'
  elif [ "$before" = --mtu ]; then
    words='256 512 1024 2048 4096'
  elif [ "$before" = --compat ]; then
    words=perftest
  elif [[ $word == -* ]]; then
    words=$(gtopo-bench "$command" --help 2> /dev/null | grep -oE '^ +(-.,)? +--[a-z-]+' | grep -oE -e '--[a-z-]+')
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o filenames -F _gtopo_bench gtopo-bench
