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
for tool in valgrind objdump; do
  command -v $tool >/dev/null || { echo "instructions.sh needs $tool (apt-get install valgrind binutils)" >&2; exit 1; }
done

baseline=bench/instructions.txt
n=20000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go test -c -o "$work/bench.test" ./bench

objdump -d --no-show-raw-insn "$work/bench.test" |
  awk '/\tlock |\txchg .*\(/ { sub(":", "", $1); print "0x" $1 }' >"$work/locked"

# locked OUT: how often the run that OUT describes executed an instruction that locks.
# OUT has a line "address line count" for each instruction; the line after "calls="
# counts a call's inside, which has lines of its own.
locked() {
  awk 'NR == FNR { locked[$1] = 1; next }
    /^calls=/ { getline; next }
    $1 in locked { sum += $3 }
    END { print sum + 0 }' "$work/locked" "$1"
}

# within "COUNT LOCKED" LIMIT LOCKS: whether a count is at most 2 % above the recorded one.
within() { awk -v limit="$2" -v locks="$3" '{ exit !(limit > 0 && $1 <= limit * 1.02 && $2 <= locks * 1.02) }' <<<"$1"; }

# count MODE: the second least of a few counts: a consumer that finds nothing yet spins,
# more on a busy machine, and one run far below all others has gone wrong. Only what runs
# inside the workload's function is counted. Without --fair-sched one spinning thread can
# starve the others. A check is content with one count that is near the recorded one, locked ones and all.
count() {
  local mode=$1 now got='' try
  local limit=${recorded[$mode]:-0} locks=${locks[$mode]:-0}
  for try in $(seq 12); do
    now=$(GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1 timeout 100 valgrind --fair-sched=yes \
      --tool=callgrind --dump-instr=yes --compress-pos=no --callgrind-out-file="$work/out" \
      --collect-atstart=no --toggle-collect='godat/bench.pair*.func1' \
      "$work/bench.test" -test.run '^$' -test.bench "^BenchmarkDelivery\$/^mode=$mode\$/" -test.benchtime ${n}x 2>&1 |
      awk -v n=$n '/ns\/op/ { ran = 1 } /Collected/ && ran { printf "%d", $NF / (n + 64) }') || true
    [[ -n $now ]] || continue
    echo "$now $(locked "$work/out" | awk -v n=$n '{ printf "%.1f", $1 / (n + 64) }')" >>"$work/$mode"
    got=$(tail -1 "$work/$mode")
    if ((now >= limit * 98 / 100)) && within "$got" "$limit" "$locks"; then break; fi
    got=$(sort -n "$work/$mode" | sed -n 2p)
    if [[ -n $got && $try -ge $tries ]] && { ((limit == 0)) || within "$got" "$limit" "$locks"; }; then break; fi
  done
  [[ -n $got ]] || { echo "instructions.sh: mode $mode did not run to its end" >&2; return 1; }
  printf '%-8s %s\n' "$mode" "$got"
}

declare -A recorded=() locks=()
tries=5
if [[ ${1-} == --check ]]; then
  tries=2
  while read -r mode instructions locked; do recorded[$mode]=$instructions locks[$mode]=$locked; done <"$baseline"
fi
for mode in poll poll16 wait chan batch oneshot conn; do count "$mode"; done | tee "$work/now"

case "${1-}" in
--record) cp "$work/now" "$baseline" ;;
--check)
  awk 'NR == FNR { was[$1] = $2; locks[$1] = $3; next }
    $2 > was[$1] * 1.02 { printf "%s: %d instructions, %d recorded\n", $1, $2, was[$1]; bad = 1 }
    $3 > locks[$1] * 1.02 { printf "%s: %s locked instructions, %s recorded\n", $1, $3, locks[$1]; bad = 1 }
    END { exit bad }' "$baseline" "$work/now"
  ;;
esac
