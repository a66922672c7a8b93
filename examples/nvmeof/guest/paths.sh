# Steps about several paths to one disk: two targets serve one file, each at a state of its own.

# station NAME PORT IDS: a target of the shared file, whose state lies in the file NAME/ana.
station() {
  setsid "$WORK/nvmeof" --provider "$PROVIDER" serve --listen "$address:$2" --elsewhere "$address:$((port + 20))" --elsewhere "$address:$((port + 21))" \
    --controllers "$3" --shared --ana "$1/ana" --disk shared.img:64M >"$1/said" 2>&1 &
  echo $! >"$1/pid"
  until_true grep -q '^disk 1' "$1/said"
}

# become NAME STATE: changes the state at a target.
become() {
  echo "$2" >"$1/ana"
  kill -HUP "$(cat "$1/pid")"
}

# way PORT: the host's controller at a port.
way() {
  local c address
  for c in /sys/class/nvme/nvme*; do
    read -r address <"$c/address"
    if [[ $address == *trsvcid=$1 ]]; then echo "$c" && return; fi
  done
  false
}

# at PORT STATE: the host has a live path at a port, whose state it knows. While no path is
# usable, nvme list-subsys can't say so, since it asks the disk.
at() {
  local c state ana
  c=$(way "$1")
  { read -r state <"$c/state" && read -r ana <"$(echo "$c"/nvme*n*)/ana_state"; } 2>/dev/null && [[ "$state $ana" == "live $2" ]]
}
shown() { nvme list-subsys "$shared" | grep -q "trsvcid=$1\b.* live $2 *$"; }
lost() {
  local state
  read -r state <"$(way "$1")/state"
  [[ $state != live ]]
}

# carried PORT: sectors that were written over the path at a port.
carried() {
  local stat
  read -ra stat <"$(echo "$(way "$1")"/nvme*n*)/stat"
  echo "${stat[6]}"
}
carries() { (($(carried "$1") > $2)); }
# takes_over PORT: the path at a port carries writes from now on.
takes_over() { until_true carries "$1" "$(($(carried "$1") + 256))"; }

# The host takes the optimized path, fails over when its target is killed, fails back, and
# follows changes of state, all under load and without an I/O error.
step_paths() { # 240
  local a=$((port + 20)) b=$((port + 21)) idle
  detach
  mkdir -p one two
  echo optimized >one/ana
  echo non-optimized >two/ana
  station one "$a" 1-100
  station two "$b" 101-200
  nvme connect-all -t rdma -a "$address" -s "$a" --hostnqn="$host_a" --hostid="$id_a" -i 2 --reconnect-delay="$delay" >/dev/null
  until_true has_disk_of one
  shared=$(disk_of one)
  until_true at "$a" optimized
  until_true at "$b" non-optimized
  shown "$a" optimized
  shown "$b" non-optimized
  idle=$(carried "$b")
  hammer --filename="$shared"
  takes_over "$a"
  (($(carried "$b") == idle))

  kill -KILL "$(cat one/pid)"
  until_true lost "$a"
  takes_over "$b"
  station one "$a" 1-100
  until_true at "$a" optimized
  takes_over "$a"

  become one change
  become two change
  until_true at "$a" change
  until_true at "$b" change
  become one inaccessible
  become two optimized
  takes_over "$b"
  shown "$a" inaccessible
  become two inaccessible
  become one optimized
  takes_over "$a"
  relent
  (($(ls -d /sys/class/nvme-subsystem/nvme-subsys* | wc -l) == 1))
  rm -f shared.img shared.img.nvme-id
  untwin
}
