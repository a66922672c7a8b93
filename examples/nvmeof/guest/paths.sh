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

# shown PORT STATE: nvme list-subsys says the same. While no path is usable it can't, since it asks the disk.
shown() { nvme list-subsys "$shared" | grep -q "trsvcid=$1\b.* live $2 *$"; }

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
