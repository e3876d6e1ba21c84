# SPDX-License-Identifier: Apache-2.0
# bash completion for gtopo-bench. Commands and options are those that its help names; addresses those of this host.
_gtopo_bench_words() { # COMMAND BEFORE WORD: what may stand there; fails where that is a file
  local command=$1 before=$2 word=$3
  case $before in
    gtopo-bench | help) gtopo-bench help 2> /dev/null | awk '/^  [a-z]/ { print $1 }' ;;
    --transport) [ "$command" = probe ] && echo verbs ofi:shm ofi:tcp copy || echo verbs ofi ofi:shm ofi:tcp ;;
    --operation) echo write read send write-imm fetch-add compare-swap ;;
    --metric) echo bandwidth latency both ;;
    --way) echo dma-buf peer-memory staged auto ;;
    --driver) echo auto always never ;;
    --relaxed-ordering) echo on off auto ;;
    --mtu) echo 256 512 1024 2048 4096 ;;
    --compat) echo perftest ;;
    --output | -o | --map | --overlay | --fsroot | --hwloc-xml | --nccl-xml) return 1 ;;
    *)
      if [[ $word == -* ]]; then
        gtopo-bench "$command" --help 2> /dev/null | grep -oE '^ +(-.,)? +--[a-z-]+' | grep -oE -e '--[a-z-]+'
      elif [ "$before" = export ]; then
        gtopo-bench export --list 2> /dev/null | cut -d' ' -f1
      elif [ "$command" = probe ] || [ "$before" = --only ]; then
        gtopo-bench show 2> /dev/null | grep -oE '\b((numa|gpu)[0-9]+|nic[0-9]+:[0-9]+)\b' | sort -u
      else
        return 1
      fi
      ;;
  esac
}

_gtopo_bench() {
  local line=${COMP_LINE:0:COMP_POINT} words word before offered
  read -ra words <<< "$line" # COMP_WORDS are split at : and =, which addresses and transports have
  word=
  if [[ $line != *[[:space:]] ]]; then
    word=${words[-1]}
    unset 'words[-1]'
  fi
  before=${words[-1]}
  if [[ $word == --*=* ]]; then
    before=${word%%=*} word=${word#*=}
  fi
  [ "${#words[@]}" = 1 ] && before=gtopo-bench
  if offered=$(_gtopo_bench_words "${words[1]-}" "$before" "$word"); then
    mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
  # What bash has split off before the word stands already.
  [[ $COMP_WORDBREAKS == *:* && $word == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%:*}:"}")
}
complete -o filenames -F _gtopo_bench gtopo-bench
