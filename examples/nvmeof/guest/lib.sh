# What the steps have in common: the target, the initiator and the load.

# The subsystem's name is the target's to say; discovered asks for it.
nqn=$(cat nqn 2>/dev/null || true)
host_a=nqn.2026-01.example.host:a id_a=11111111-1111-4111-8111-111111111111
host_b=nqn.2026-01.example.host:b id_b=22222222-2222-4222-8222-222222222222
memory=33333333-3333-4333-8333-333333333333 # the identity of the disk in memory
missed=99 # the exit status of a step whose figures are less than asked
delay=1 # seconds between the initiator's attempts to connect again
address=${TARGET%:*} port=${TARGET#*:}

say() { echo "# $*"; }

# until_true COMMAND...: waits for what the kernel or the target does on its own. Under
# emulation each program that a look starts takes the processor from those that it waits for.
until_true() {
  for _ in {1..450}; do
    if "$@"; then return; fi
    sleep 0.2
  done
  echo "waited in vain for: $*"
  false
}

# The target. Its process id lies in the file pid, the size of its blocks in the file
# block, and what it says in the file said.

running() { [[ -s pid ]] && kill -0 "$(<pid)" 2>/dev/null; }
ended() { ! running; }
lines() { wc -l <said; }
# says LINES TEXT: the target has said the text after its first LINES lines.
says() { tail -n "+$(($1 + 1))" said | grep -q -- "$2"; }
inside() { [[ -n $PROVIDER ]]; }

# serve BLOCK [DISK...]: starts the target, and waits until it listens. It fails when the
# target has ended. The variables options and ids may have further options of the target, before and
# behind its command. The default
# is a file, and a disk in memory that has its identity again when the target starts again.
serve() {
  local block=$1 args=() disk before
  shift
  if (($# == 0)); then
    set -- disk.img:192M mem:320M
    args=(--id "2=$memory")
  fi
  for disk; do args+=(--disk "$disk"); done
  before=$(lines)
  setsid "$WORK/nvmeof" --provider "$PROVIDER" ${options:-} serve --listen "$TARGET" --block "$block" ${ids:-} "${args[@]}" >>said 2>&1 &
  echo $! >pid
  echo "$block" >block
  until_true serving_or_ended "$before"
  if ended; then
    echo "the target has ended: $(tail -n 1 said)"
    false
  fi
  nqn=$(sed -n 's/^serving \(.*\) on .*/\1/p' said | tail -n 1)
  echo "$nqn" >nqn
}
serving_or_ended() { says "$1" '^serving' || ended; }

# end SIGNAL: ends the target.
end() {
  if running; then kill "-$1" "$(cat pid)"; fi
  until_true ended
}

# The initiator.

# controller [HOST]: the name of the host's controller, as nvme0.
controller() {
  local c name
  for c in /sys/class/nvme/nvme*; do
    if { read -r name <"$c/hostnqn"; } 2>/dev/null && [[ $name == "${1:-$host_a}" ]]; then echo "${c##*/}" && return; fi
  done
  false
}
attached() { controller >/dev/null; }
detached() { ! attached; }
live() {
  local state
  { read -r state <"/sys/class/nvme/$(controller)/state"; } 2>/dev/null && [[ $state == live ]]
}
broken() { ! live; }
# path NAMESPACE [HOST]: the way to a disk over the host's controller, nvme0c1n1, of which
# the kernel makes one disk, /dev/nvme0n1, with the other ways to it.
path() {
  local d id
  for d in "/sys/class/nvme/$(controller "${2:-$host_a}")"/nvme*; do
    if { read -r id <"$d/nsid"; } 2>/dev/null && [[ $id == "$1" ]]; then echo "$d" && return; fi
  done
  false
}
# disk NAMESPACE [HOST]: the device. Its name need not end with the namespace's id: while
# something holds a device that is gone, the kernel does not give its name away.
disk() {
  local p
  p=$(path "$@") && p=${p##*/} && echo "/dev/${p/c*n/n}"
}
# loaded NAMESPACE: I/O is under way on that disk.
loaded() {
  local reads writes
  read -r reads writes <"$(path "$@")/inflight"
  ((reads + writes > 0))
}
has_disk() { local d && d=$(disk "$@") && [[ -b $d ]]; }
failed_attempts() { dmesg | grep -c 'Failed reconnect attempt' || true; }

# discovered asks the target for the subsystem's name.
discovered() {
  nqn=$(nvme discover -t rdma -a "$address" -s "$port" | sed -n 's/^subnqn: *//p' | head -n 1)
  [[ $nqn ]]
}

# attach KEEPALIVE: connects, with a queue of each kind for each processor. Linux sends no
# Keep Alive before it has all queues, which takes a slow machine a while.
attach() {
  local n
  n=$(nproc)
  discovered
  nvme connect -t rdma -a "$address" -s "$port" -n "$nqn" --hostnqn="$host_a" --hostid="$id_a" --nr-io-queues="$n" \
    --nr-write-queues="$n" --queue-size=128 --reconnect-delay="$delay" --keep-alive-tmo="$(($1 * SLOW))" >/dev/null
  has_disks "$host_a"
}
# attach_second connects a second host, which nvme-cli takes for the first one, with
# --duplicate-connect as well. So it asks the kernel as nvme-cli does.
attach_second() {
  echo -n "transport=rdma,traddr=$address,trsvcid=$port,nqn=$nqn,hostnqn=$host_b,hostid=$id_b,nr_io_queues=2,queue_size=128" >/dev/nvme-fabrics
  has_disks "$host_b"
}
has_disks() {
  until_true has_disk 1 "$1"
  until_true has_disk 2 "$1"
}
detach() { if attached; then echo 1 >"/sys/class/nvme/$(controller)/delete_controller"; fi; }

# with BLOCK [KEEPALIVE]: goes on with a target that has blocks of this size, and a live
# connection to it. A Keep Alive time makes it a new connection.
with() {
  if inside && ! { running && [[ $(cat block) == "$1" ]]; }; then
    detach
    end INT
    serve "$1"
  fi
  if attached && { [[ -n ${2:-} ]] || broken; }; then detach; fi
  if detached; then attach "${2:-20}"; fi
}

# Several ways to a disk: targets of one subsystem, each at a port of its own.

# way PORT: the host's controller at a port.
way() {
  local c address
  for c in /sys/class/nvme/nvme*; do
    if { read -r address <"$c/address"; } 2>/dev/null && [[ $address == *trsvcid=$1 ]]; then echo "$c" && return; fi
  done
  false
}

# at PORT STATE: the host has a live path at a port, whose state it knows.
at() {
  local c state ana
  c=$(way "$1")
  { read -r state <"$c/state" && read -r ana <"$(echo "$c"/nvme*n*)/ana_state"; } 2>/dev/null && [[ "$state $ana" == "live $2" ]]
}
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

# The load.

load() { fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --minimal "$@" >fio.out; }

# hammer FIO-ARGUMENT...: writes and verifies in the background, again and again, until relent,
# which waits for the end of a round.
hammer() {
  rm -f enough
  hammering "$@" &
  hammer=$!
}
hammering() {
  local rounds=0
  until [[ -e enough ]]; do
    load --name=load --rw=randwrite --bs=16k --iodepth=8 --size=4M --fsync=64 "$@"
    rounds=$((rounds + 1))
  done
  say "fio wrote and verified 4 MiB $rounds times"
}
relent() {
  touch enough
  wait "$hammer"
}

# keeps DISK MKFS...: makes a file system, and compares what it keeps.
keeps() {
  local disk=$1
  shift
  "$@" "$disk"
  mount "$disk" m
  cp -r "$WORK/hw" "$WORK/mem" m/
  head -c 12000000 /dev/urandom >m/big
  sha256sum m/big >sum
  umount m
  mount "$disk" m
  sha256sum --quiet -c sum
  diff -r "$WORK/hw" m/hw
  umount m
}

# mounted mounts an ext4 with a file whose checksum is known; unharmed compares it, and
# checks the file system.
mounted() {
  mkfs.ext4 -q -F "$(disk 1)"
  mount "$(disk 1)" m
  head -c 12000000 /dev/urandom >m/kept
  sha256sum m/kept >sum
  sync
}
unharmed() {
  umount m
  fsck.ext4 -fn "$(disk 1)" >/dev/null 2>&1
  mount "$(disk 1)" m
  sha256sum --quiet -c sum
  umount m
}
