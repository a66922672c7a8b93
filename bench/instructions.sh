#!/usr/bin/env bash
# Counts the instructions of one 64-byte pair (two posts, a copy, two completions
# consumed) for each way of delivery, by callgrind. Unlike times, the counts of two
# runs differ by less than a percent on a busy machine, too.
#
#   bench/instructions.sh           prints the counts
#   bench/instructions.sh --check   fails when one is over 2 % above instructions.txt
#   bench/instructions.sh --record  writes instructions.txt
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "instructions.sh needs valgrind (apt-get install valgrind)" >&2; exit 1; }

baseline=bench/instructions.txt
n=20000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go test -c -o "$work/bench.test" ./bench

# count MODE: prints the least of a few counts, because a consumer that finds no event
# spins, and spins longer on a busy machine. Only the instructions inside the workload's
# function are counted. Without --fair-sched one spinning thread can starve the others.
count() {
  local mode=$1 least='' now try
  local limit=${recorded[$mode]:-0}
  for try in $(seq 12); do
    now=$(GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1 timeout 100 valgrind --fair-sched=yes \
      --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no --toggle-collect='godat/bench.pair*.func1' \
      "$work/bench.test" -test.run '^$' -test.bench "^BenchmarkDelivery\$/^mode=$mode\$/" -test.benchtime ${n}x 2>&1 |
      awk -v n=$n '/ns\/op/ { ran = 1 } /Collected/ && ran { printf "%d", $NF / (n + 64) }') || true
    if [[ -n $now && ( -z $least || $now -lt $least ) ]]; then least=$now; fi
    if [[ -n $least && $try -ge $tries && $least -le $((limit * 102 / 100)) ]]; then break; fi
  done
  [[ -n $least ]] || { echo "instructions.sh: mode $mode did not run to its end" >&2; return 1; }
  printf '%-8s %d\n' "$mode" "$least"
}

declare -A recorded=()
tries=3
if [[ ${1-} == --check ]]; then
  tries=1
  while read -r mode instructions; do recorded[$mode]=$instructions; done <"$baseline"
fi
for mode in poll poll16 wait chan batch oneshot conn; do count "$mode"; done | tee "$work/now"

case "${1-}" in
--record) cp "$work/now" "$baseline" ;;
--check)
  awk 'NR == FNR { was[$1] = $2; next }
    $2 > was[$1] * 1.02 { printf "%s: %d instructions, %d recorded\n", $1, $2, was[$1]; bad = 1 }
    END { exit bad }' "$baseline" "$work/now"
  ;;
esac
