#!/usr/bin/env bash
# The steps of test-guest.sh, which runs this in the guest; run.sh of examples/nvmeof says how. The nodes
# are outside. A node's port ends with its id.
#
# Environment: WORK has this file, SHARE is the directory by which a step asks for something outside, TARGET is the first
# node's address and port, NQN the name of the subsystem, KILLS how often the leader is killed, and SLOW a factor for
# the time limits.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
for file in "$here"/*.sh; do
  if [[ $file != */steps.sh ]]; then . "$file"; fi
done

# One node tells of all, and a way to each is one disk.
step_connect() { # 120
  local id
  discovered
  [[ $nqn == "$NQN" ]]
  (($(nvme discover -t rdma -a "$address" -s "$port" | grep -c '^subnqn: *'"$NQN") == 3))
  connected
  for id in $(<members); do [[ $(way_disk "$id") == "$(disk 1)" ]]; done
  say "leader $leader; $(wc -w <members) ways to $(disk 1)"
}

step_survive() { # 1500
  local before elections
  connected
  before=$(io_errors)
  elections=$(ask term)
  mounted
  pulse
  hammer --directory=m
  until_true loaded 1
  for _ in $(seq "$KILLS"); do leader_is_killed; done
  leader_stops_and_goes_on
  leader_is_cut_off_and_back
  host_loses_its_way_to_the_leader
  host_hears_the_leader_no_more
  follower_is_replaced
  began end
  ask whole
  say "$(($(ask term) - elections)) terms for $((KILLS + 2)) leaders that were gone"
  relent
  pauses
  unharmed
  (($(io_errors) == before))
  ask check | sed 's/^/# /'
}

# clean leaves no file system, no controller and no trouble.
clean() {
  local c
  touch enough
  if [[ -s pulse.pid ]]; then kill -KILL "$(<pulse.pid)" 2>/dev/null || true; fi
  umount -l m 2>/dev/null || true
  for c in /sys/class/nvme/nvme*/delete_controller; do
    if [[ -e $c ]]; then echo 1 >"$c"; fi
  done
  ask restore || true
}

# complain says how the host sees the nodes, and what befell them.
complain() {
  local c
  for c in /sys/class/nvme/nvme*; do
    echo "${c##*/} $(cat "$c/address" "$c/state" "$c"/nvme*n*/ana_state 2>/dev/null | tr '\n' ' ')"
  done
  cat troubles 2>/dev/null || true
}
warn() { :; }

steps "$@"
