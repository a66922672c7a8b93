# Steps about the names of disks: the kernel makes one disk of two that have one identity.

# twin NAME PORT [OPTION...]: another target, in a folder of its own and on another port. It
# runs the same command as the other twin, as on another machine.
twin() {
  mkdir -p "$1"
  (cd "$1" && exec setsid "$WORK/nvmeof" --provider "$PROVIDER" serve --listen "$address:$2" "${@:3}" --disk disk.img:64M) >"$1/said" 2>&1 &
  echo $! >"$1/pid"
  until_true grep -q '^disk 1' "$1/said"
  nvme connect -t rdma -a "$address" -s "$2" -n "$(sed -n 's/^serving \(.*\) on .*/\1/p' "$1/said")" --hostnqn="$host_a" --hostid="$id_a" -i 2 >/dev/null
}

# disk_of NAME: the device that has the identity of a twin's disk.
disk_of() {
  local d uuid
  uuid=$(sed -n 's/^disk 1:.* UUID \([^,]*\),.*/\1/p' "$1/said")
  for d in /sys/block/nvme*n*; do
    if [[ $(cat "$d/uuid" 2>/dev/null) == "$uuid" && -b /dev/${d##*/} ]]; then echo "/dev/${d##*/}" && return; fi
  done
  false
}
has_disk_of() { disk_of "$1" >/dev/null; }

# untwin ends both twins.
untwin() {
  timeout 100 nvme disconnect-all || true
  cat one/pid two/pid 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
  rm -rf one two
}

step_twins() { # 240
  detach
  twin one "$((port + 10))"
  twin two "$((port + 11))"
  until_true has_disk_of one
  until_true has_disk_of two
  [[ $(disk_of one) != "$(disk_of two)" ]]
  (($(ls -d /sys/class/nvme-subsystem/nvme-subsys* | wc -l) == 2))
  # Each has what was written to it, at the same places at the same time.
  load --name=one --filename="$(disk_of one)" --rw=randwrite --bs=16k --iodepth=8 --size=6M --randseed=1 --end_fsync=1 &
  fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --minimal --name=two --filename="$(disk_of two)" --rw=randwrite \
    --bs=16k --iodepth=8 --size=6M --randseed=2 --end_fsync=1 >fio2.out
  wait $!
  load --name=one --filename="$(disk_of one)" --rw=randwrite --bs=16k --iodepth=8 --size=6M --randseed=1 --verify_only
  # The one is not asked for what the other had.
  kill -KILL "$(cat two/pid)"
  load --name=one --filename="$(disk_of one)" --rw=randwrite --bs=16k --iodepth=8 --size=6M --randseed=1 --end_fsync=1
  untwin
}

# Two targets that an operator gave one name have two disks all the same: the kernel refuses
# the second one in the first one's place.
step_one_name() { # 240
  detach
  twin one "$((port + 10))" --subsystem nqn.2026-01.example.twins:disk
  until_true has_disk_of one
  load --name=one --filename="$(disk_of one)" --rw=randwrite --bs=16k --iodepth=8 --size=6M --end_fsync=1
  twin two "$((port + 11))" --subsystem nqn.2026-01.example.twins:disk
  until_true mixed_up
  if has_disk_of two; then false; fi
  load --name=one --filename="$(disk_of one)" --rw=randwrite --bs=16k --iodepth=8 --size=6M --verify_only
  untwin
}
mixed_up() { dmesg | grep -q "IDs don't match for shared namespace"; }

# A target that is killed, and started again with another spelling of its file's name, or
# with the file elsewhere, is the same disk for the file system that is mounted.
step_spellings() { # 240
  local spelling
  with 4096
  mounted
  hammer --directory=m
  ln -sf "$PWD/disk.img" link
  for spelling in ./disk.img "$PWD/disk.img" link moved/image; do
    until_true loaded 1
    end KILL
    until_true broken
    if [[ $spelling == moved/image ]]; then
      mkdir -p moved
      mv disk.img moved/image
      mv disk.img.nvme-id moved/image.nvme-id
    fi
    serve_as "$spelling"
    back
  done
  relent
  unharmed
  detach
  end INT
  mv moved/image disk.img
  mv moved/image.nvme-id disk.img.nvme-id
}
serve_as() {
  local ids="--id 2=$memory"
  serve 4096 "$1:192M" mem:320M
}
