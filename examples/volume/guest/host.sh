# The host: its ways to the nodes, the troubles that it sees, and its load.

# ask WORD...: has test-guest.sh do something outside the guest, and prints what that says.
ask() {
  local status number=$BASHPID.${EPOCHREALTIME/./}
  echo "$number $*" >"$SHARE/asked.new"
  mv "$SHARE/asked.new" "$SHARE/asked"
  until [[ -e $SHARE/done.$number ]]; do sleep 0.2; done
  status=$(<"$SHARE/done.$number")
  if ((status)); then cat "$SHARE/answer.$number" >&2; fi
  cat "$SHARE/answer.$number"
  return "$status"
}

# port_of ID: the node's port.
port_of() { echo "442$1"; }

# connect ID: connects to a node as README.md does, but for times: the host tries again
# after a second, and misses a silent node after some seconds.
connect() {
  nvme connect -t rdma -a "10.0.2.2$1" -s "$(port_of "$1")" -n "$NQN" --hostnqn="$host_a" --hostid="$id_a" --nr-io-queues=2 \
    --ctrl-loss-tmo=600 --reconnect-delay="$delay" --keep-alive-tmo="$((5 * SLOW))" >/dev/null
}
# forget ID: ends the host's way to a node.
forget() { echo 1 >"$(way "$(port_of "$1")")/delete_controller"; }

# connected: the host has a way to each node, and one leads. The file members has the nodes.
connected() {
  local id
  ask restore
  ask members >members
  for id in $(<members); do
    if ! way "$(port_of "$id")" >/dev/null; then connect "$id"; fi
  done
  settled
}

# way_disk ID: the device to which a way to a node leads.
way_disk() {
  local d
  d=$(echo "$(way "$(port_of "$1")")"/nvme*n*)
  d=${d##*/}
  echo "/dev/${d/c*n/n}"
}

# Who leads. The host still takes a node that is silent for the leader, so a look at the others finds his successor.

# led [ID]: the host sees a leader, other than this node. The variable leader has it.
led() {
  local id
  for id in $(<members); do
    if [[ $id != "${1:-}" ]] && at "$(port_of "$id")" optimized; then leader=$id && return; fi
  done
  false
}
# known ID: the host has a way to the node again, and knows its state.
known() { at "$(port_of "$1")" non-optimized || at "$(port_of "$1")" optimized; }
# settled: the load has found nothing wrong so far, all nodes have all data, and the host knows their states.
settled() {
  local id
  kill -0 "${hammer:-$$}"
  ask whole
  for id in $(<members); do until_true known "$id"; done
  until_true led
}
# succeeded ID: another node carries the load.
succeeded() {
  until_true led "$1"
  takes_over "$(port_of "$leader")"
}

# left ID: the node is lost to the host, and what was under way to it has gone elsewhere. That
# must not wait until the node is back.
left() {
  until_true lost "$(port_of "$1")"
  until_true idle "$(port_of "$1")"
}
# idle PORT: nothing is under way over the path at a port.
idle() {
  local reads writes
  read -r reads writes <"$(echo "$(way "$1")"/nvme*n*)/inflight"
  ((reads + writes == 0))
}

# Troubles.

# began NAME: a trouble begins now.
began() { echo "$((${EPOCHREALTIME/./} / 1000)) $*" >>troubles; }

leader_is_killed() {
  local dead
  settled
  dead=$leader
  began "node $dead, the leader, was killed"
  ask kill "$dead"
  left "$dead"
  succeeded "$dead"
  ask start "$dead"
  until_true known "$dead"
}

leader_stops_and_goes_on() {
  local silent
  settled
  silent=$leader
  began "node $silent, the leader, stopped"
  ask signal "$silent" STOP
  succeeded "$silent"
  left "$silent"
  began "node $silent went on"
  ask signal "$silent" CONT
  until_true known "$silent"
}

leader_is_cut_off_and_back() {
  local silent
  settled
  silent=$leader
  began "node $silent, the leader, was cut off"
  ask cut "$silent"
  succeeded "$silent"
  left "$silent"
  began "node $silent was back"
  ask mend "$silent"
  until_true known "$silent"
}

# The nodes see each other, so the leader stays, and a follower brings to it what the host writes.
host_loses_its_way_to_the_leader() {
  local lost
  settled
  lost=$leader
  began "node $lost, the leader, was lost to the host"
  ip route add blackhole "10.0.2.2$lost"
  ask mute "$lost"
  goes_on_beside "$lost"
  ip route del blackhole "10.0.2.2$lost"
  ask unmute "$lost"
  until_true known "$lost"
}

# What the host sends still comes to the leader.
host_hears_the_leader_no_more() {
  local mute
  settled
  mute=$leader
  began "the host heard node $mute, the leader, no more"
  ask mute "$mute"
  goes_on_beside "$mute"
  ask unmute "$mute"
  until_true known "$mute"
}

# goes_on_beside ID: the load goes on by followers, and the node leads as before.
goes_on_beside() {
  left "$1"
  until_true carried_beside "$1" "$(($(beside "$1") + 256))"
  ask leads "$1"
}
# beside ID: sectors that were written over the paths to all other nodes.
beside() {
  local id sum=0
  for id in $(<members); do
    if [[ $id != "$1" ]]; then sum=$((sum + $(carried "$(port_of "$id")"))); fi
  done
  echo "$sum"
}
carried_beside() { (($(beside "$1") > $2)); }

# The host finds the new node by discovery, and the old one no more.
follower_is_replaced() {
  local both old new
  settled
  began "a follower was replaced"
  both=$(ask replace)
  read -r old new <<<"$both"
  until_true offers "$leader" "$new"
  until_true withholds "$leader" "$old"
  connect "$new"
  forget "$old"
  ask members >members
  until_true known "$new"
  say "node $new took the place of node $old"
}

# offers ID ANOTHER: discovery at a node names another one.
offers() { nvme discover -t rdma -a "10.0.2.2$1" -s "$(port_of "$1")" | grep -q "^trsvcid: *$(port_of "$2")"; }
withholds() { ! offers "$@"; }

# Load.

# pulse writes 4 KiB ten times a second, until pauses, and notes when and how long.
pulse() {
  rm -f pulse_*.log troubles
  dd if=/dev/zero of=m/pulse bs=1M count=1 conv=fsync status=none
  fio --name=pulse --filename=m/pulse --ioengine=psync --direct=1 --rw=randwrite --bs=4k --size=1M --rate_iops=10 \
    --time_based --runtime=2h --write_lat_log=pulse --log_unix_epoch=1 --minimal >pulse.out 2>/dev/null &
  echo $! >pulse.pid
}

# pauses ends the pulse, and says how long writes took at most in each trouble.
pauses() {
  kill -INT "$(<pulse.pid)"
  wait "$(<pulse.pid)" || true # by a signal
  rm pulse.pid
  [[ $(sed -n 's/^3;fio-[^;]*;pulse;0;\([0-9]*\);.*/\1/p' pulse.out) == 0 ]]
  awk '
    FNR == NR { from[++n] = $1; sub(/^[0-9]* /, ""); name[n] = $0; next }
    {
      while (i < n && from[i + 1] <= $1 + 0) i++
      s = $2 / 1e9
      if (s > most[i]) most[i] = s
      if (s > longest) longest = s
    }
    END {
      for (i = 1; i < n; i++) printf "# %s: a write took %.1f s at most\n", name[i], most[i]
      printf "# the longest pause of I/O: %.1f s\n", longest
    }' troubles pulse_lat.1.log
}

# io_errors counts what the kernel calls an error of a disk or a file system.
io_errors() { dmesg | grep -cE 'I/O error|EXT4-fs (error|warning)|lost async page write|Aborting journal|Remounting filesystem' || true; }
