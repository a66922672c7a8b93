#!/usr/bin/env bash
# Counts the instructions of one 64-byte pair (two posts, a copy, two completions
# consumed) for each way of delivery, by callgrind: unlike time it repeats to
# less than a percent on a busy machine.
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

# Only what runs inside the workload's function is counted.
for mode in poll poll16 wait chan batch oneshot; do
  GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    --collect-atstart=no --toggle-collect='godat/bench.pair*.func1' \
    "$work/bench.test" -test.run '^$' -test.bench "^BenchmarkDelivery\$/^mode=$mode\$/" -test.benchtime ${n}x 2>&1 |
    awk -v mode=$mode -v n=$n '/Collected/ { printf "%-8s %d\n", mode, $NF / (n + 64) }'
done | tee "$work/now"

case "${1-}" in
--record) cp "$work/now" "$baseline" ;;
--check)
  awk 'NR == FNR { was[$1] = $2; next }
    $2 > was[$1] * 1.02 { printf "%s: %d instructions, %d recorded\n", $1, $2, was[$1]; bad = 1 }
    END { exit bad }' "$baseline" "$work/now"
  ;;
esac
