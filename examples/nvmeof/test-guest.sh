#!/usr/bin/env bash
# Mounts the disks of this program with Linux's nvme-rdma initiator, in the guest that
# package check/guest boots. The target runs there on hw/iwarp, or on hw/ibv, and the
# initiator on the kernel's soft-iWARP (siw) or soft-RoCE (rxe):
#   - nvme discover and connect
#   - ext4 on a file with blocks of 4096 bytes, xfs on memory with blocks of 512 bytes:
#     make, mount, copy files, unmount, mount again, compare, check the file system
#   - fio writes and verifies at random, 4 KiB at depth 32 on all queues and 1 MiB at
#     depth 4, while the controller is reset
#   - blkdiscard, after which the disk reads as zeros
#   - the target is killed and started again below a mounted file system with fio
#     running; fio and the file system must not notice
#
# The script skips nothing. It exits with 123 when the guest's kernel failed or did not
# boot. check/guest/install.sh installs what it needs.
#
# Environment: GODAT_NVMEOF_PROVIDER is what the target runs on: iwarp:10.0.2.15, which is
# the default, ibv:siw0 or ibv:rxe0. GODAT_GUEST_KILLS is how many times the target is
# killed (2), GODAT_GUEST_RESETS how many times the controller is reset (3), and
# GODAT_GUEST_LIMIT is the time limit (15m).
set -euo pipefail
cd "$(dirname "$0")/../.."

provider=${GODAT_NVMEOF_PROVIDER:-iwarp:10.0.2.15}
device=siw0 cgo=0
if [[ $provider == ibv:* ]]; then device=${provider#ibv:} cgo=1; fi
machine=123 # the exit status of the command guest when the guest's kernel failed
want=9      # steps that must pass

for program in nvme fio mkfs.ext4 mkfs.xfs xfs_repair blkdiscard; do
  command -v "$program" >/dev/null || { echo "test-guest.sh needs $program" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=$cgo go build -o "$work/nvmeof" ./examples/nvmeof
go build -o "$work/guest" ./check/guest/cmd/guest
cp -r hw mem "$work"

cat >"$work/job" <<'JOB'
set -euo pipefail
work=$1 kills=$2 resets=$3 provider=$4 nqn=nqn.2026-01.example.godat:disk
cd "$TMPDIR"
trap 'cat said; dmesg | tail -n 40' ERR

# serve starts the target, and waits until it listens.
serve() {
  "$work/nvmeof" --provider "$provider" serve --listen 10.0.2.15:4420 \
    --disk disk.img:192M --disk mem:320M --block "$1" >>said 2>&1 &
  server=$!
  for _ in $(seq 300); do
    if tail -n "+$((${lines:-0} + 1))" said | grep -q "^serving"; then return; fi
    sleep 0.1
  done
  false
}
stop() {
  kill -INT "$server"
  wait "$server"
  lines=$(wc -l <said)
}
# settled waits for what the kernel does on its own.
settled() {
  for _ in $(seq 600); do
    if "$@"; then return; fi
    sleep 0.1
  done
  false
}
connect() {
  timeout 60 nvme connect -t rdma -a 10.0.2.15 -s 4420 -n "$nqn" -i 2 --reconnect-delay=1 --keep-alive-tmo=20 >/dev/null
  settled test -b /dev/nvme0n1
  settled test -b /dev/nvme0n2
}
disconnect() { nvme disconnect -n "$nqn" >/dev/null; }
live() { [[ $(cat /sys/class/nvme/nvme*/state) == live ]]; }
passed() { echo "step passed: $*"; }
load() { timeout 300 fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --minimal "$@" >fio.out; }

# keeps DISK MKFS... makes a file system, and compares what it keeps.
keeps() {
  local disk=$1
  shift
  timeout 200 "$@" "$disk"
  mount "$disk" m
  cp -r "$work/hw" "$work/mem" m/
  head -c 12000000 /dev/urandom >m/big
  sha256sum m/big >sum
  umount m
  mount "$disk" m
  sha256sum --quiet -c sum
  diff -r "$work/hw" m/hw
  umount m
}

mkdir m
serve 4096
timeout 60 nvme discover -t rdma -a 10.0.2.15 -s 4420 | grep -q "subnqn:  $nqn"
passed discover
connect
passed connect
keeps /dev/nvme0n1 mkfs.ext4 -q
fsck.ext4 -fn /dev/nvme0n1 >/dev/null 2>&1
passed ext4

blkdiscard /dev/nvme0n2
cmp -n 50000000 /dev/nvme0n2 /dev/zero
passed discard
load --name=random --filename=/dev/nvme0n2 --rw=randwrite --bs=4k --iodepth=32 --numjobs=2 --size=8M --offset_increment=8M
passed random 4 KiB
load --name=large --filename=/dev/nvme0n2 --rw=write --bs=1M --iodepth=4 --size=64M
passed sequential 1 MiB

load --name=reset --filename=/dev/nvme0n2 --rw=randwrite --bs=16k --iodepth=8 --size=24M --loops=3 &
fio=$!
for _ in $(seq "$resets"); do
  sleep 1
  nvme reset /dev/nvme0
  settled live
done
wait "$fio"
passed "$resets resets"

mount /dev/nvme0n1 m
load --name=kill --directory=m --rw=randwrite --bs=16k --iodepth=8 --size=24M --loops=4 --fsync=64 &
fio=$!
for _ in $(seq "$kills"); do
  sleep 2
  kill -KILL "$server"
  wait "$server" || true
  lines=$(wc -l <said)
  serve 4096
  settled live
done
wait "$fio"
umount m
fsck.ext4 -fn /dev/nvme0n1 >/dev/null 2>&1
passed "$kills kills"
disconnect
stop

serve 512
connect
[[ $(blockdev --getss /dev/nvme0n2) == 512 ]]
keeps /dev/nvme0n2 mkfs.xfs -q
xfs_repair -n /dev/nvme0n2 >/dev/null 2>&1
passed xfs
disconnect
stop
grep -E 'level=(WARN|ERROR)' said || true # for the reader of a log
JOB

log=$work/log status=0
nice -n 5 "$work/guest" -q -device "$device" -module nvme-rdma -module ext4 -module xfs -timeout "${GODAT_GUEST_LIMIT:-15m}" -- \
  bash "$work/job" "$work" "${GODAT_GUEST_KILLS:-2}" "${GODAT_GUEST_RESETS:-3}" "$provider" >"$log" 2>&1 || status=$?
passed=$(grep -c '^step passed' "$log" || true)
line="nvmeof in the guest, on $provider: $passed steps passed of $want"
if ((status || passed < want)); then
  tail -n 150 "$log" | cut -c1-300
  echo "$line: FAILED (exit status $status)"
  if ((status == machine)); then exit "$machine"; fi
  exit 1
fi
echo "$line"
