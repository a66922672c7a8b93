#!/bin/busybox sh
# The guest's init: inserts the modules that reach the host's files, mounts them
# read-only, makes the devices, and runs one program in a chroot. /job/settings
# and /job/run are written for each boot. Reports go to the second serial line,
# in the form that console.go reads; everything else to the first.
export PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /host /bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
exec </dev/null >/dev/ttyS0 2>&1
# The line stays open: the end of a process that init has inherited interrupts an open.
exec 3<>/dev/ttyS1
stty raw -echo <&3
. /job/settings

# stty waits until everything that was written to the line has left it. The subshell is
# there for the signals: the end of a process that init has inherited interrupts a write of
# init's own, which printf then gives up.
report() (
  printf '\n%s %s\n' "$SECRET" "$*" >&3
  stty raw -echo <&3
)
# Bytes on their way to the host may be lost when the machine powers off, so init waits
# until the host has answered the last report, but no longer than 60 s: a host that is
# gone does not answer.
halt() {
  read -r -t 60 _ <&3
  poweroff -f
  sleep 60
}
# clock reports a reading of the clock: the time before the host reads its own, and the time
# after the host had read its own for the reading before. The host answers whether the clock
# is right, or is to be read again; see clock.go. The host waits for no longer than the boot
# may take.
clock() {
  read -r before _ </proc/uptime
  (printf '\n%s clock %s\n' "$SECRET" "$before$after" >&3)
  read -r GODAT_GUEST_CLOCK <&3
  read -r after _ </proc/uptime
  after=" $after"
}
fail() {
  report failed "$*"
  halt
}

after=
clock
while read -r module; do
  insmod "$module" || fail "can't insert $module"
done </job/modules

options=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o "$options,cache=loose,ro" host /host || fail "can't mount the host's root"
mount -t proc proc /host/proc
mount -t sysfs sysfs /host/sys
mount -t devtmpfs dev /host/dev
mkdir -p /host/dev/pts /host/dev/shm
mount -t devpts devpts /host/dev/pts
mount -t tmpfs shm /host/dev/shm
mount -t tmpfs run /host/run
mkdir -p /host/run/tmp /host/run/home /host/run/lock
cp /job/run /host/run/job

n=0
for dir in $SHARES; do
  dir=$(cat "/job/share$n")
  mount -t 9p -o "$options" "share$n" "/host$dir" || fail "can't mount $dir to write to"
  n=$((n + 1))
done

for module in $MODULES; do
  chroot /host "$MODPROBE" -C /dev/null -d "$MODULE_ROOT" -S "$KERNEL" "$module" || fail "can't insert the module $module"
done

hostname guest
ip link set lo up
ip link set eth0 up || fail "no network"
ip addr add "$ADDRESS/24" dev eth0
ip -6 addr add "$ADDRESS6/64" dev eth0 2>/dev/null
ip route add default via "$HOST_ADDRESS"
for device in $DEVICES; do
  chroot /host "$RDMA" link add "$device" type "${device%%[0-9_]*}" netdev eth0 || fail "can't make the device $device"
done

while clock && [ "$GODAT_GUEST_CLOCK" = again ]; do sleep 0.5; done
export GODAT_GUEST_CLOCK

# An iWARP device binds a TCP socket to a source port that the connection manager chose
# without asking TCP, and a C program gives up when it is in use. Without this, every
# connection over TCP would hold its port for a minute after its end.
echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets
ulimit -l unlimited
ulimit -n 65536
while [ "$BUSY" -gt 0 ]; do
  while :; do :; done &
  BUSY=$((BUSY - 1))
done
report booted
chroot /host /bin/sh /run/job >&3 2>&1 3>&-
status=$?
kill -9 -1
report exit "$status"
halt
