#!/usr/bin/env bash
# Mounts a volume with Linux's nvme-rdma initiator and its native multipath, and keeps it mounted and under load while
# nodes are killed, stopped, cut off and replaced, and the host loses its way to the leader. The host is the guest that
# package check/guest boots, on the kernel's soft-iWARP (siw). The nodes run on this machine, on hw/iwarp and without cgo,
# each in a network namespace of its own; a bridge joins them with the guest. guest/ has the steps, which ask this script to
# do something to a node.
#
#   test-guest.sh        the leader is killed twice, one is stopped and goes on, one is cut off and back, the host loses its
#                        way to one, both ways and then one way, and gets it back, and a follower is replaced
#   test-guest.sh long   the same with ten kills
#
# It skips nothing. It exits with 123 when the guest's kernel failed or did not boot. check/guest/install.sh installs what it
# needs. It must run as root.
#
# Environment: GODAT_VOLUME_TICK is the nodes' --tick (100ms), and GODAT_VOLUME_SLOW a factor for the time limits of the
# steps (1).
set -euo pipefail

if [[ -z ${GODAT_VOLUME_ALONE:-} ]]; then
  # The guest's kernel may have to be fetched, from a network that the script does not see: its own ones end with it.
  (cd "$(dirname "$0")/../.." && go run ./check/guest/cmd/guest -q -device siw0 -module nvme-rdma -module ext4 -- true)
  GODAT_VOLUME_ALONE=1 exec unshare --net --mount bash "$0" "$@"
fi
cd "$(dirname "$0")/../.."

case ${1:-} in
"") kills=2 ;;
long) kills=10 ;;
*) echo "test-guest.sh [long]" >&2 && exit 2 ;;
esac
for program in nvme fio mkfs.ext4 fsck.ext4 ip; do
  command -v "$program" >/dev/null || { echo "test-guest.sh needs $program" >&2; exit 1; }
done

tick=${GODAT_VOLUME_TICK:-100ms}
slow=${GODAT_VOLUME_SLOW:-1}
work=$(mktemp -d)
share=$work/share
guest=
mkdir "$share"
trap end EXIT

# end ends the guest and all nodes.
end() {
  local file
  if [[ $guest ]]; then kill "$guest" 2>/dev/null || true; fi
  for file in "$work"/*.pid; do
    if [[ -s $file ]]; then kill -KILL "$(<"$file")" 2>/dev/null || true; fi
  done
  rm -rf "$work"
}

export VOLUME_TOKEN="$work/token" # nodes of several machines have certificates

(cd examples/volume && CGO_ENABLED=0 go build -o "$work/volume" .)
go build -o "$work/guest" ./check/guest/cmd/guest
cp examples/nvmeof/guest/{lib,run}.sh examples/volume/guest/*.sh "$work"

host=10.0.2.15 # the guest's address

# Nodes. A node's id makes its addresses: for hosts, and for other nodes.

hosts() { echo "10.0.2.2$1:442$1"; }
nodes() { echo "10.0.2.2$1:7000"; }
members() { cat "$work/members"; }
volume() { "$work/volume" "$@"; }

# machine ID: the network of a node's machine.
machine() {
  ip netns add "n$1"
  ip link add "h$1" type veth peer name eth0 netns "n$1"
  ip link set "h$1" master br0 up
  ip -n "n$1" link set lo up
  ip -n "n$1" addr add "10.0.2.2$1/24" dev eth0
  ip -n "n$1" link set eth0 up
}

# until_true COMMAND...
until_true() {
  for _ in $(seq $((300 * slow))); do
    if "$@"; then return; fi
    sleep 0.2
  done
  echo "waited in vain for: $*"
  false
}

# leads ID: the node leads, as it says.
leads() { [[ $(timeout 5 "$work/volume" status "$(nodes "$1")" 2>/dev/null) == "node $1 leads, term "* ]]; }
leader() {
  local id
  for id in $(members); do
    if leads "$id"; then echo "$id" && return; fi
  done
  false
}

# whole: somebody leads, and all members vote and have all that is sent to them.
whole() {
  local id
  id=$(leader) && volume status "$(nodes "$id")" 2>/dev/null | grep -qx 'copies: 3 of 3'
}

# ended ID: the node's process has ended, even if nobody has waited for it.
ended() { [[ ! -e /proc/$(<"$work/$1.pid")/exe ]]; }
# serves_or_ended ID LINES: it has said so after its first LINES lines.
serves_or_ended() { tail -n "+$(($2 + 1))" "$work/$1.log" | grep -q 'serves hosts on' || ended "$1"; }

# What the guest asks for: do_WORD.

# do_start ID: starts a node, which is made if it is a new one.
do_start() {
  local id=$1 other peers= args before
  args=(--id "$id" --data "$work/v$id" --listen "$(hosts "$id")" --tick "$tick")
  for other in $(members); do
    if ((other != id)); then peers+="$other=$(nodes "$other"),"; fi
  done
  if [[ ! -e $work/v$id ]]; then
    machine "$id"
    args+=(--create --peers "$peers$id=$(nodes "$id")")
    if [[ -s $work/token ]]; then args+=(--token "$(<"$work/token")"); else args+=(--size 128M); fi
    if [[ " $(members) " != *" $id "* ]]; then args+=(--join); fi
  fi
  touch "$work/$id.log"
  before=$(wc -l <"$work/$id.log")
  ip netns exec "n$id" "$work/volume" serve "${args[@]}" >>"$work/$id.log" 2>&1 </dev/null &
  echo $! >"$work/$id.pid"
  disown # so that the shell reports no killed job
  until_true serves_or_ended "$id" "$before"
  if [[ ! -s $work/token ]]; then cp "$work/v$id/token" "$work/token" || true; fi
  if ended "$id"; then
    tail -n 3 "$work/$id.log"
    false
  fi
}

# do_signal ID NAME
do_signal() { kill "-$2" "$(cat "$work/$1.pid")"; }
do_kill() {
  do_signal "$1" KILL
  until_true ended "$1"
}

# do_cut ID, do_mend ID: the node's machine has no network, or has one again.
do_cut() { ip link set "h$1" down; }
do_mend() { ip link set "h$1" up; }
# do_mute ID, do_unmute ID: what the node's machine sends to the host is lost, or comes again. Other nodes get all.
do_mute() { ip -n "n$1" route add blackhole "$host"; }
do_unmute() { ip -n "n$1" route del blackhole "$host"; }

do_members() { members; }
do_whole() { until_true whole; }
do_leads() { leads "$1"; }
do_term() { { volume status "$(nodes "$(leader)")" || true; } | sed -n 's/^node.* term \([0-9]*\);.*/\1/p'; }
do_check() { volume check "$(nodes "$(leader)")"; }

# do_replace: a new node in the place of a follower. It prints both.
do_replace() {
  local id old new
  id=$(leader)
  for old in $(members); do
    if ((old != id)); then break; fi
  done
  new=$(cat "$work/next")
  echo $((new + 1)) >"$work/next"
  do_start "$new"
  # What it says meanwhile is no part of the answer.
  volume replace "$(nodes "$id")" "$old" "$new" "$(nodes "$new")" &>"$work/replaced" || { cat "$work/replaced" && false; }
  members | sed "s/\b$old\b/$new/" >"$work/members.new"
  mv "$work/members.new" "$work/members"
  do_kill "$old"
  echo "$old $new"
}

# do_restore ends all troubles.
do_restore() {
  local id
  for id in $(members); do
    do_mend "$id"
    do_unmute "$id" 2>/dev/null || true
    if ended "$id"; then do_start "$id"; else do_signal "$id" CONT; fi
  done
}

# attend does what the guest asks for, until it ends: see ask in guest/host.sh.
attend() {
  local words status
  while kill -0 "$guest" 2>/dev/null; do
    if [[ -e $share/asked ]]; then
      read -ra words <"$share/asked"
      rm "$share/asked"
      set +e
      (
        set -e
        "do_${words[1]}" "${words[@]:2}"
      ) >"$share/answer.${words[0]}" 2>&1
      status=$?
      set -e
      echo "$status" >"$share/new"
      mv "$share/new" "$share/done.${words[0]}"
    fi
    sleep 0.1
  done
}

ip link set lo up
ip link add br0 type bridge
ip addr add 10.0.2.2/24 dev br0
ip tuntap add dev tap0 mode tap
ip link set tap0 master br0 up
ip link set br0 up
mkdir -p /run/netns
mount -t tmpfs netns /run/netns

echo "1 2 3" >"$work/members"
echo 4 >"$work/next"
for id in $(members); do do_start "$id"; done
nqn=$(sed -n 's/^node 1 of \(.*\) serves hosts on.*/\1/p' "$work/1.log")

nice -n 5 "$work/guest" -q -device siw0 -module nvme-rdma -module ext4 -kernel nvme_core.multipath=Y -tap tap0 \
  -share "$share" -env SHARE="$share" -env WORK="$work" -env TARGET="$(hosts 1)" -env PROVIDER= -env NQN="$nqn" \
  -env SLOW="$slow" -env KILLS="$kills" -timeout "$((60 * slow))m" -- bash "$work/steps.sh" connect survive &
guest=$!
attend
status=0
wait "$guest" || status=$?
guest=
if ((status == 0)); then exit; fi
echo "volume: FAILED, exit status $status"
tail -n 40 "$work"/*.log
exit "$status"
