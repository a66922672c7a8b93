#!/usr/bin/env bash
# Measures hw/ibv beside the C tools of perftest, on soft-RoCE in the guest: pairs of
# runs that take turns in one boot, for a machine that does nothing else. What the
# guest needs, check/guest/install.sh installs.
#
#   bench/ibv.sh [PAIRS]
#
# It prints the medians of the ratios with the extremes, and each pair to the standard error. Half a round trip of 64 bytes: ours /
# ib_send_lat, polled and with events. The same through the whole library, for each way to
# take events, beside the polled ib_send_lat. 64 KiB written: ours /
# ib_write_bw. Writes of 4 KiB per second, 32 outstanding: through the library / on the
# device alone, and examples/dattest / dapltest.
# Last come the crossings into C per operation.
set -euo pipefail
cd "$(dirname "$0")/.."
pairs=${1:-7}

for tool in ib_send_lat ib_write_bw dapltest; do
  command -v "$tool" >/dev/null || { echo "the C program $tool is missing: install perftest, dapl2-utils and libdapl2" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=1
go test -c -tags guest -o "$work/ibv.test" ./hw/ibv
go test -c -tags guest -o "$work/bench.test" ./bench
go build -o "$work/dattest" ./examples/dattest
go build -o "$work/guest" ./check/guest/cmd/guest

# c NAME TOOL FLAGS...: runs both halves of a C tool and prints "NAME c FIGURE".
# ours NAME BENCHMARK UNIT COUNT [PROGRAM]: the same with ours.
cat >"$work/job" <<'JOB'
work=$1 pairs=$2 address=10.0.2.15 port=18515
export DAT_OVERRIDE=$TMPDIR/dat.conf
echo 'rxe u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "eth0 0" ""' >"$DAT_OVERRIDE"

c() {
  name=$1 column=$2 tool=$3
  shift 3
  port=$((port + 1))
  timeout 120 "$tool" -d rxe0 -x 1 -p $port "$@" >/dev/null 2>&1 &
  server=$!
  for i in $(seq 300); do # it listens on TCP for its own handshake
    if grep -qi ":$(printf %04X $port) " /proc/net/tcp /proc/net/tcp6; then break; fi
    sleep 0.1
  done
  figure=$(timeout 120 "$tool" -d rxe0 -x 1 -p $port "$@" $address 2>/dev/null | awk -v c="$column" '/^ *[0-9]/ && NF >= c { f = $c } END { print f }')
  wait $server
  echo "$name c ${figure:?$tool said nothing}"
}

ours() {
  "$work/${5:-ibv.test}" -test.run '^$' -test.bench "^$2\$" -test.benchtime "$4" |
    awk -v name="$1" -v unit="$3" '/^Benchmark/ {
      for (i = 3; i < NF; i += 2) if ($(i + 1) == unit) print name, "ours", $i
      else if ($(i + 1) ~ /\/op$/ && $(i + 1) != "ns/op") print name, $(i + 1), $i }'
}

# dapl WHOSE PROGRAM DEVICE: a performance test of dapltest's, by either program.
dapl() {
  port=$((port + 100))
  "$2" -T S -D "$3" -n $port >"$TMPDIR/server" 2>&1 &
  server=$!
  for i in $(seq 300); do
    if grep -q 'Service Point Ready' "$TMPDIR/server"; then break; fi
    sleep 0.1
  done
  figure=$(timeout 120 "$2" -T P -D "$3" -s $address -n $port -m p -i 2000 -p 32 RW 4096 | awk '/Operation Throughput/ { print $4 }')
  kill $server
  wait $server || true
  echo "dapl $1 ${figure:?$2 said nothing}"
}

for pair in $(seq "$pairs"); do
  c latency 5 ib_send_lat -s 64 -n 1000 # t_typical
  ours latency BenchmarkSendLatency µs/half 1000x
  for way in channel wait poll; do
    ours "$way" "BenchmarkIBVRoundTrip\$/^delivery=$way" µs/half 500x bench.test
  done
  c events 5 ib_send_lat -s 64 -n 500 -e
  ours events BenchmarkSendLatencyWithEvents µs/half 500x
  c bandwidth 4 ib_write_bw -s 65536 -n 500 # the average
  ours bandwidth BenchmarkWriteBandwidth MB/s 500x
  ours writes BenchmarkWrites MB/s 5000x | sed 's/ours/c/'
  ours writes BenchmarkIBVWrites MB/s 5000x bench.test
  dapl c dapltest rxe
  dapl ours "$work/dattest" ibv:rxe0
done
JOB

"$work/guest" -device rxe0 -kernel 'tsc=reliable clocksource=tsc' -timeout 60m -- sh "$work/job" "$work" "$pairs" | tee "$work/log" >&2

# ib_write_bw's megabyte has 2^20 bytes, Go's 10^6.
awk '
  $2 == "c" { c = $1 == "bandwidth" ? $3 * 1.048576 : $3 }
  function ratio(name, of) { n[name]++; r[name, n[name]] = of }
  $2 == "ours" { ratio($1, $3 / c) }
  $2 ~ /\/op$/ { crossing[$1 " " $2] = $3 }
  END {
    for (name in n) {
      for (i = 1; i <= n[name]; i++)
        for (j = i; j > 1 && r[name, j] < r[name, j - 1]; j--) { t = r[name, j]; r[name, j] = r[name, j - 1]; r[name, j - 1] = t }
      median = r[name, int((n[name] + 1) / 2)]
      printf "%s: %.3f%s (median of %d pairs, %.3f to %.3f)\n", name, median, name == "writes" ? " of the device alone" : " of the C tool", n[name], r[name, 1], r[name, n[name]]
    }
    for (name in crossing) print name ": " crossing[name]
  }' "$work/log"
