#!/usr/bin/env bash
# Measures the ways of delivery on verbs, on soft-RoCE and soft-iWARP in the guest, and
# prints Markdown. What the guest needs, check/guest/install.sh installs.
#
#   bench/guest.sh [DEVICE...]
#
# DEVICE is rxe0 or siw0; without one, the script measures both. The guest's processors
# are emulated: differences between ways are those of a slow machine. A turn of a row
# takes GODAT_BENCH_TURN (1s).
set -euo pipefail
cd "$(dirname "$0")/.."
devices=("$@")
if ((${#devices[@]} == 0)); then devices=(rxe0 siw0); fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=1 go build -o "$work/bench" ./bench
go build -o "$work/guest" ./check/guest/cmd/guest

cat >"$work/job" <<'JOB'
bench=$1
shift
# run FLAGS...: the guest's console is a terminal, which would get a progress bar.
run() { "$bench" "$@" 2>"$TMPDIR/errors" || { cat "$TMPDIR/errors" && exit 1; }; }
run delivery "$@" --no-anchors --rate=closed,200
run latency "$@"
run bandwidth "$@" --mode=poll,channel
run connect "$@"
JOB

for device in "${devices[@]}"; do
  # A message takes milliseconds there: a turn is long, to have enough of them.
  "$work/guest" -q -device "$device" -kernel 'tsc=reliable clocksource=tsc' -timeout 30m -- \
    sh "$work/job" "$work/bench" --provider="ibv:$device" --format=markdown --duration="${GODAT_BENCH_TURN:-1s}"
done
