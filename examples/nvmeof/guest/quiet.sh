# Steps in which the kernel must have nothing to say: no command runs out of time, and no
# connection breaks.

# disturbances counts what the initiator has said of such things.
disturbances() { dmesg | grep -cE 'nvme.*(error recovery|resetting controller|Reconnecting|timeout)' || true; }
undisturbed() {
  local now
  now=$(disturbances)
  if ((now == $1)); then return; fi
  echo "$((now - $1)) disturbances"
  dmesg | tail -n 20
  false
}

# The initiator is silent for longer than the target waits before it looks after a peer, and
# then sends much at once, on queues for reads and for writes of each processor, for the time
# of 24 looks. siw would break a connection over a read of no octets that comes as it sends.
step_pulses() { # 120
  local options= before jobs=() kind cpu
  detach
  end INT
  if [[ $PROVIDER == iwarp:* ]]; then options='--param keepalive=2s'; fi # it looks each 500 ms
  serve 4096
  attach 20
  before=$(disturbances)
  for kind in randread randwrite; do
    for cpu in $(seq 0 $(($(nproc) - 1))); do jobs+=("--name=$kind$cpu" --rw="$kind" --cpus_allowed="$cpu"); done
  done
  fio --ioengine=libaio --direct=1 --minimal --filename="$(disk 2)" --bs=16k --iodepth=32 --norandommap --size=64M \
    --time_based --runtime=12 --thinktime=520ms --thinktime_blocks=32 "${jobs[@]}" >fio.out
  undisturbed "$before"
  live
  detach
  end INT
}

# Bursts of large writes at once, 33 of 1020 KiB and one of 108 KiB, whose data the target
# reads. Each is answered.
step_bursts() { # 1500
  local before
  with 4096
  before=$(disturbances)
  for _ in $(seq "$BURSTS"); do
    dd if=/dev/zero of="$(disk 2)" bs=33768K count=1 oflag=direct status=none
    undisturbed "$before"
  done
  say "$BURSTS bursts"
}
