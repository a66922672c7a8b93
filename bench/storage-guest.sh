#!/usr/bin/env bash
# Counts how often a storage target and its host wake up and poll for each command, on soft-RoCE
# in the guest, beside Linux's own target, nvmet-rdma. It prints Markdown. What the guest needs,
# check/guest/install.sh installs.
#
#   bench/storage-guest.sh [--write]
#
# With --write it writes bench/STORAGE-guest.md. Each load takes GODAT_BENCH_TURN (1s) in each of
# GODAT_BENCH_TURNS (2) turns.
set -euo pipefail
cd "$(dirname "$0")/.."
case "$#${1:-}" in 0 | 1--write) ;; *) echo "storage-guest.sh takes --write, and nothing else" >&2; exit 2 ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=1 go build -o "$work/bench" ./bench
go build -o "$work/guest" ./check/guest/cmd/guest

cat >"$work/job" <<'JOB'
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
# The guest's console is a terminal, which would get a progress bar.
"$@" 2>"$TMPDIR/errors" || { cat "$TMPDIR/errors" && exit 1; }
JOB

"$work/guest" -q -device rxe0 -module nvmet-rdma -module null_blk -share "$work" -timeout 60m \
  -kernel 'tsc=reliable clocksource=tsc null_blk.memory_backed=1 null_blk.gb=1 null_blk.bs=4096 null_blk.nr_devices=1' -- \
  sh "$work/job" "$work/bench" storage --counts --provider ibv:rxe0 --host 10.0.2.15 --processors 2 --rate 50 \
  --duration "${GODAT_BENCH_TURN:-1s}" --repeats "${GODAT_BENCH_TURNS:-2}" --write --folder "$work"
# Where the guest wrote it is gone with it.
if [[ ${1:-} == --write ]]; then sed "s# --write --folder $work##" "$work/STORAGE-guest.md" >bench/STORAGE-guest.md; fi
