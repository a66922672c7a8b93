#!/usr/bin/env bash
# Mounts the disks of this program with Linux's nvme-rdma initiator, in the guest that
# package check/guest boots, on the kernel's soft-iWARP (siw) or soft-RoCE (rxe). Each step
# has a time limit, and prints whether it passed and how long it took; guest/ has them.
#
#   test-guest.sh            the target in the guest: the steps of a few minutes
#   test-guest.sh third N    of these, discover, connect, and each third one of the others, from N
#   test-guest.sh long [STEP...]  the target in the guest: all steps, or these, as often as
#                            they are worth
#   test-guest.sh outside    the target on this machine, on hw/iwarp: over QEMU's user
#                            network, and over a tap device in a network namespace, where
#                            the guest is killed under load too
#   test-guest.sh beside     the target and the kernel's (nvmet-rdma), compared: a table of
#                            ratios, and a failure when one is less than its aim. It takes
#                            6 minutes, and means something on a quiet machine only
#   test-guest.sh STEP...    these steps
#
# The script skips nothing. It exits with 123 when the guest's kernel failed or did not
# boot. check/guest/install.sh installs what it needs. It must run as root.
#
# Environment: GODAT_NVMEOF_PROVIDER is what the target in the guest runs on:
# iwarp:10.0.2.15, which is the default, ibv:siw0 or ibv:rxe0. GODAT_NVMEOF_SLOW is a
# factor for the time limits of the steps (1).
set -euo pipefail
cd "$(dirname "$0")/../.."

provider=${GODAT_NVMEOF_PROVIDER:-iwarp:10.0.2.15}
slow=${GODAT_NVMEOF_SLOW:-1}
machine=123 # the exit status of the command guest when the guest's kernel failed
device=siw0 cgo=0
if [[ $provider == ibv:* ]]; then device=${provider#ibv:} cgo=1; fi

for program in nvme fio mkfs.ext4 mkfs.xfs xfs_repair blkdiscard unshare ip; do
  command -v "$program" >/dev/null || { echo "test-guest.sh needs $program" >&2; exit 1; }
done

# The target outside the guest is alone in a network namespace, which ends with the script.
if [[ ${1:-} == outside && -z ${GODAT_NVMEOF_ALONE:-} ]]; then
  GODAT_NVMEOF_ALONE=1 exec unshare --net bash "$PWD/examples/nvmeof/test-guest.sh" outside
fi

work=$(mktemp -d)
server=
trap 'if [[ $server ]]; then kill -KILL "$server"; fi; rm -rf "$work"' EXIT
CGO_ENABLED=$cgo go build -o "$work/nvmeof" ./examples/nvmeof
go build -o "$work/guest" ./check/guest/cmd/guest
cp -r hw mem examples/nvmeof/guest/*.sh "$work"

# guest PROVIDER TARGET GUEST-ARGUMENT... -- STEP...: runs steps in a guest.
guest() {
  local on=$1 target=$2 args=()
  shift 2
  while [[ $1 != -- ]]; do args+=("$1") && shift; done
  shift
  exec nice -n 5 "$work/guest" -q -device "$device" -module nvme-rdma -module ext4 -module xfs -kernel "$kernel" \
    -env WORK="$work" -env PROVIDER="$on" -env TARGET="$target" -env SLOW="$slow" \
    -env RESETS="$resets" -env KILLS="$kills" -env BURSTS="$bursts" -env AMOUNT="$amount" \
    -timeout "$((60 * slow))m" "${args[@]}" -- bash "$work/steps.sh" "$@"
}

# boot is guest, and fails if a step does.
boot() {
  local status=0
  echo "nvmeof: target ${1:-outside the guest}, at $2"
  (guest "$@") || status=$?
  if ((status == 0)); then return; fi
  echo "nvmeof: FAILED, exit status $status"
  if ((status == machine)); then exit "$machine"; fi
  exit 1
}

# until_said FILE TEXT
until_said() {
  for _ in $(seq $((900 * slow))); do
    if grep -q -- "$2" "$1"; then return; fi
    sleep 0.2
  done
  echo "waited in vain for: $2" && tail -n 60 "$1"
  exit 1
}

# serve ADDRESS [ARGUMENT...]: serves on this machine.
serve() {
  : >"$work/said"
  "$work/nvmeof" --provider "iwarp:$1" "${@:2}" serve --listen "$1:4420" --disk "$work/disk.img:192M" --disk mem:320M >>"$work/said" 2>&1 &
  server=$!
  until_said "$work/said" '^serving'
}

# stop stops that target, and shows its complaints.
stop() {
  kill -INT "$server" && wait "$server"
  server=
  grep -E 'level=(WARN|ERROR)' "$work/said" | tail -n 20 || true
}

# outside runs the steps with the target on this machine.
outside() {
  local steps=(discover connect ext4 xfs discard random large overlap two_ways resets link host) victim queue
  ip link set lo up
  # The user network cuts the stream of bytes anew, and siw misreads a CRC that is cut.
  serve 127.0.0.1 --param crc=false
  boot "" 10.0.2.2:4420 -- "${steps[@]}"
  stop

  ip tuntap add dev tap0 mode tap
  ip addr add 10.0.2.2/24 dev tap0
  ip link set tap0 up
  serve 10.0.2.2
  boot "" 10.0.2.2:4420 -tap tap0 -- "${steps[@]}"
  guest "" 10.0.2.2:4420 -tap tap0 -- connect victim >"$work/victim" 2>&1 &
  victim=$!
  until_said "$work/victim" '^under load'
  : >"$work/said"
  kill -KILL "$victim"
  wait "$victim" 2>/dev/null || true # so that the shell reports no killed job
  until_said "$work/said" 'neither a command nor a Keep Alive'
  for queue in 0 1 2 3 4; do until_said "$work/said" "queue ended.*queue=$queue "; done
  echo "PASS a host that was killed: its Keep Alive time ended its controller and all queues"
  boot "" 10.0.2.2:4420 -tap tap0 -- connect survived
  stop
}

kernel="nvme_core.multipath=Y brd.rd_nr=1 brd.rd_size=131072"
quick=(discover connect cli ext4 discard random large overlap resets kills stop two_ways anew twins one_name paths spellings pulses bursts full xfs)
all=(discover connect cli ext4 discard random large overlap two_ways anew twins one_name paths spellings resets kills stop pulses bursts host full xfs)
# While the link is down, sends of soft-RoCE's connection manager fail or never complete
# (cm_destroy_id_wait_timeout). From then on it receives nothing until the device is made
# anew, which ends the host's controller.
if [[ $device != rxe0 ]]; then all+=(link); fi
resets=3 kills=2 bursts=10 amount=2
case ${1:-} in
"") boot "$provider" 10.0.2.15:4420 -- "${quick[@]}" ;;
third)
  steps=(discover connect)
  for i in "${!quick[@]}"; do
    if ((i > 1 && i % 3 == ${2:?a number} % 3)); then steps+=("${quick[i]}"); fi
  done
  boot "$provider" 10.0.2.15:4420 -- "${steps[@]}"
  ;;
long)
  resets=50 kills=20 bursts=200 amount=16
  shift
  boot "$provider" 10.0.2.15:4420 -cpus 4 -- "${@:-${all[@]}}"
  ;;
outside) outside ;;
beside) boot "$provider" 10.0.2.15:4420 -module nvmet-rdma -module brd -- beside ;;
*) boot "$provider" 10.0.2.15:4420 -- "$@" ;;
esac
