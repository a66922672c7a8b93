# Steps in which something fails under load. Nothing that was acknowledged may be lost:
# fio verifies what it wrote, and file systems keep their files.

# back waits until the initiator has connected again. Its next attempt must succeed, but
# an attempt that began before the target was back may fail.
back() {
  local before begin=$EPOCHREALTIME took
  before=$(failed_attempts)
  until_true live
  (($(failed_attempts) - before <= 1))
  took=$(awk "BEGIN { print $EPOCHREALTIME - $begin }")
  longest=$(awk "BEGIN { print ($took > ${longest:-0}) ? $took : ${longest:-0} }")
}

# given_up counts the connections whose first command a target on siw missed. Linux's siw
# sends its answer to a connection before it takes over the socket, and does not look at
# what comes in between until more comes. The initiator gives up after a minute and tries
# again, but its reset fails. A target on another provider misses nothing.
given_up() {
  if [[ $PROVIDER == ibv:siw* ]]; then dmesg | grep -c 'Connect command failed' || true; else echo 0; fi
}

step_resets() { # 600
  local before
  with 4096
  hammer --filename="$(disk 2)"
  for _ in $(seq "$RESETS"); do
    sleep 0.5
    until_true loaded 2
    before=$(given_up)
    nvme reset "/dev/$(controller)" || (($(given_up) > before))
    until_true live
  done
  relent
  say "$RESETS resets"
}

step_kills() { # 900
  with 4096
  mounted
  hammer --directory=m
  for _ in $(seq "$KILLS"); do
    sleep 1.5
    until_true loaded 1
    end KILL
    until_true broken
    serve 4096
    back
  done
  relent
  unharmed
  say "killed $KILLS times; connected again ${longest} s after the target was back, at most; the initiator's delay is $delay s"
}

step_stop() { # 240
  with 4096 5
  mounted
  hammer --directory=m
  until_true loaded 1
  kill -STOP "$(cat pid)"
  until_true broken # after the Keep Alive time
  sleep 5
  kill -CONT "$(cat pid)"
  back
  relent
  unharmed
  say "connected again ${longest} s after the target went on"
  detach
}

step_link() { # 240
  with 4096 5
  mounted
  hammer --directory=m
  until_true loaded 1
  ip link set eth0 down
  until_true broken
  sleep 3
  ip link set eth0 up
  back
  relent
  unharmed
  say "connected again ${longest} s after the link was up"
  detach
}

# The host's controller is deleted under load: its I/O fails, and the target lets go of
# the controller. What was flushed before is there afterwards. fio must not make a file in
# the place of a device that is gone, since the kernel then makes no device of that name.
step_host() { # 240
  local before status=0
  with 4096
  kept
  before=$(lines)
  load --name=lost --filename="$(disk 1)" --offset=32M --rw=randwrite --bs=4k --size=64M --iodepth=64 --numjobs=2 --allow_file_create=0 2>/dev/null &
  local fio=$!
  until_true loaded 1
  echo 1 >"/sys/class/nvme/$(controller)/delete_controller"
  wait "$fio" || status=$?
  ((status != 0)) # otherwise it had nothing under way
  until_true detached
  if inside; then until_true says "$before" 'queue ended.*queue=0'; fi
  with 4096
  kept --verify_only
}

# The guest is killed while step_victim writes; step_survived runs in the next one.
kept() { load --name=kept --filename="$(disk 1)" --rw=randwrite --bs=16k --size=24M --iodepth=8 --end_fsync=1 "$@"; }
step_victim() { # 240
  with 4096 5
  kept
  hammer --filename="$(disk 2)"
  until_true loaded 2
  echo "under load" >/dev/ttyS1
  wait "$hammer"
}
step_survived() { # 120
  with 4096
  kept --verify_only
}

# A file has all its space before it is served. A disk that does not fit is refused, and
# a full file system does not fail the writes of one that is served.
step_full() { # 180
  detach
  end INT
  mount -t tmpfs -o size=64m full full
  if "$WORK/nvmeof" --provider "$PROVIDER" serve --listen "$TARGET" --disk full/disk.img:96M >refused 2>&1; then false; fi
  grep -q 'no space left on device' refused
  rm -f full/disk.img
  serve 4096 full/disk.img:48M mem:320M
  head -c 32M /dev/zero >full/rest 2>/dev/null || true
  (($(stat -f -c %f full) == 0))
  attach 20
  load --name=full --filename="$(disk 1)" --rw=write --bs=128k --iodepth=8 --size=48M --end_fsync=1
  blkdiscard "$(disk 1)"
  load --name=again --filename="$(disk 1)" --rw=randwrite --bs=128k --iodepth=8 --size=48M --end_fsync=1
  detach
  end INT
  umount full
}
