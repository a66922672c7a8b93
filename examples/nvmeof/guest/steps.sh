#!/usr/bin/env bash
# The steps of test-guest.sh, which runs this in the guest: steps.sh NAME... runs the
# steps of these names, each as a process with a time limit, and says of each whether it
# passed. A step finds the target and the connection that the last one left, or makes
# them; after a step that failed there are none.
#
# Environment: WORK has the program and files to copy, TARGET is the target's address and
# port, and PROVIDER what it runs on; without PROVIDER the target is outside the guest.
# RESETS, KILLS and BURSTS are how often, and AMOUNT how many MiB fio writes in a job. SLOW is a
# factor for the time limits.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
for file in "$here"/*.sh; do
  if [[ $file != */steps.sh ]]; then . "$file"; fi
done

step_discover() { # 60
  if inside && ended; then serve 4096; fi
  discovered
  if inside; then [[ $nqn == "$(cat nqn)" ]]; fi
}

step_connect() { # 60
  with 4096 20
  say "$(cat "/sys/class/nvme/$(controller)/queue_count") queues"
}

step_ext4() { # 120
  with 4096
  keeps "$(disk 1)" mkfs.ext4 -q -F
  fsck.ext4 -fn "$(disk 1)" >/dev/null 2>&1
}

step_xfs() { # 120
  with 512
  if inside; then [[ $(blockdev --getss "$(disk 2)") == 512 ]]; fi
  keeps "$(disk 2)" mkfs.xfs -q -f
  xfs_repair -n "$(disk 2)" >/dev/null 2>&1
}

step_discard() { # 60
  with 4096
  load --name=fill --filename="$(disk 2)" --rw=write --bs=1M --iodepth=4 --size=16M --do_verify=0
  blkdiscard "$(disk 2)"
  cmp -n 20000000 "$(disk 2)" /dev/zero # what was written, and some behind it
}

# 4 KiB at random on all queues, 128 commands deep for each of 8 jobs.
step_random() { # 240
  with 4096
  load --name=random --filename="$(disk 2)" --rw=randwrite --bs=4k --iodepth=128 --numjobs=8 \
    --size="${AMOUNT}M" --offset_increment="${AMOUNT}M"
}

step_large() { # 180
  with 4096
  load --name=large --filename="$(disk 2)" --rw=write --bs=1M --iodepth=4 --size="$((AMOUNT * 8))M"
}

# Reads and writes of the same blocks at the same time must break nothing, although their
# bytes change while a CRC is made of them.
step_overlap() { # 120
  local before
  with 4096
  before=$(lines)
  fio --ioengine=libaio --direct=1 --minimal --name=overlap --filename="$(disk 2)" --rw=randrw --bsrange=4k-128k \
    --iodepth=32 --numjobs=4 --size=256k --time_based --runtime=8 --norandommap >fio.out
  live
  if says "$before" 'queue ended'; then false; fi
}

# written [HOST]: sectors that were written over the host's way to disk 2.
written() { awk '{ print $7 }' "$(path 2 "$@")/stat"; }

# Two controllers are two ways to one disk, over which the kernel spreads the load. When one
# goes under load, the other carries all.
step_two_ways() { # 180
  local before
  with 4096
  attach_second
  [[ $(disk 2 "$host_a") == "$(disk 2 "$host_b")" ]]
  echo round-robin | tee /sys/class/nvme-subsystem/*/iopolicy >/dev/null
  before=$(written)
  hammer --filename="$(disk 2)"
  until_true loaded 2
  until_true loaded 2 "$host_b"
  echo 1 >"/sys/class/nvme/$(controller "$host_b")/delete_controller"
  sleep 1
  relent
  (($(written) > before))
  load --name=ways --filename="$(disk 2)" --rw=randwrite --bs=8k --iodepth=16 --size=16M
  detach
}

# reads is how many reads of disk 2 the host has made over its first way.
reads() { awk '{ print $1 }' "$(path 2)/stat"; }
reads_more() { (($(reads) > $1)); }

# A host that connects by a second way while it sends, a little or much, keeps the first one. The target reads from it to see
# that it has that one still.
step_anew() { # 240
  local pace before first c reads
  with 4096
  first=$(controller)
  before=$(lines)
  for pace in 2 20 100 100000; do
    reads=$(reads)
    fio --ioengine=libaio --direct=1 --minimal --name=pace --filename="$(disk 2)" --rw=randread --bs=4k --iodepth=4 \
      --rate_iops="$pace" --cpus_allowed=0 --time_based --runtime=1000 >fio.out &
    until_true reads_more "$reads"
    echo -n "transport=rdma,traddr=$address,trsvcid=$port,nqn=$nqn,hostnqn=$host_a,hostid=$id_a,nr_io_queues=1,queue_size=128,duplicate_connect" >/dev/nvme-fabrics
    kill -INT $!
    wait $! || true
    for c in /sys/class/nvme/nvme*; do
      if [[ ${c##*/} != "$first" ]]; then echo 1 >"$c/delete_controller"; fi
    done
    [[ $(controller) == "$first" ]] && live
  done
  if says "$before" 'broken off'; then false; fi
}

# clean leaves no file system, no controller and no target.
clean() {
  touch enough
  umount -l m full 2>/dev/null || true
  untwin
  if running; then kill -CONT "$(cat pid)" && kill -KILL "$(cat pid)"; fi
  rm -f pid
}

# complain says what the target has to say of a step that failed.
complain() {
  echo "the target:" && tail -n 40 said
  if running; then kill -QUIT "$(cat pid)" && until_true ended && tail -n 400 said | sed -n '/^SIGQUIT/,$p'; fi
}

# warn says what the target has complained about, for the reader of a log.
warn() { grep -E 'level=(WARN|ERROR)' said | tail -n 20 || true; }

steps "$@"
