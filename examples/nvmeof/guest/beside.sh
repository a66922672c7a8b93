# The target beside the kernel's own, nvmet-rdma, over the same ram disk.

kernel_nqn=nqn.2026-01.example.kernel:disk kernel_port=4421
rounds=7
cells=$(echo {randread,randwrite}:{4k,128k}:{1,32})
declare -A disks # of the one target and the other, as the initiator sees them

# serve_from_kernel sets up nvmet-rdma with the ram disk.
serve_from_kernel() {
  local root=/sys/kernel/config/nvmet
  mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
  mkdir "$root/subsystems/$kernel_nqn" "$root/ports/1"
  echo 1 >"$root/subsystems/$kernel_nqn/attr_allow_any_host"
  mkdir "$root/subsystems/$kernel_nqn/namespaces/1"
  echo -n /dev/ram0 >"$root/subsystems/$kernel_nqn/namespaces/1/device_path"
  echo 1 >"$root/subsystems/$kernel_nqn/namespaces/1/enable"
  echo rdma >"$root/ports/1/addr_trtype"
  echo ipv4 >"$root/ports/1/addr_adrfam"
  echo "$address" >"$root/ports/1/addr_traddr"
  echo "$kernel_port" >"$root/ports/1/addr_trsvcid"
  ln -s "$root/subsystems/$kernel_nqn" "$root/ports/1/subsystems/"
}

# load_of WHO CELL: fio's arguments for a cell on that target's disk.
load_of() {
  local kind size depth
  IFS=: read -r kind size depth <<<"$2"
  echo "--name=$2/$1 --filename=${disks[$1]} --rw=$kind --bs=$size --iodepth=$depth --size=96M"
}

# measure WHO OTHER: I/Os per second of each cell, the one target's turn right before the
# other's.
measure() {
  local cell who jobs=()
  for cell in $cells; do
    for who; do jobs+=(--stonewall $(load_of "$who" "$cell") --time_based --ramp_time=200ms --runtime=1500ms); done
  done
  fio --ioengine=libaio --direct=1 --minimal "${jobs[@]}" | awk -F'[;/]' '{ print $3, $4, $9 + $50 }'
}

# switches: context switches of the system, and those of the target in which it waited.
switches() {
  awk '/^ctxt/ { print $2 }' /proc/stat
  cat /proc/"$(cat pid)"/task/*/status | awk '/^voluntary/ { n += $2 } END { print n }'
}
# count WHO CELL: context switches per I/O.
count() {
  local before after n=1000
  before=$(switches)
  fio --ioengine=libaio --direct=1 --minimal $(load_of "$@") --number_ios="$n" >/dev/null
  after=$(switches)
  echo "$2" "$1" $before $after | awk -v n="$n" '{ printf "%s %s %.2f %.2f\n", $1, $2, ($5 - $3) / n, ($6 - $4) / n }'
}

step_beside() { # 1200
  local round cell who options= ids="--id $memory"
  serve_from_kernel
  # The kernel's target has no pages that the system writes back beside the load.
  echo 0 >/proc/sys/vm/dirty_writeback_centisecs
  # The kernel's two ends agree on no CRCs, so ours asks for none either.
  if [[ $PROVIDER == iwarp:* ]]; then options="--param crc=false"; fi
  serve 4096 /dev/ram0
  nvme connect -t rdma -a "$address" -s "$port" -n "$nqn" --hostnqn="$host_a" --hostid="$id_a" -i 2 >/dev/null
  nvme connect -t rdma -a "$address" -s "$kernel_port" -n "$kernel_nqn" --hostnqn="$host_b" --hostid="$id_b" -i 2 >/dev/null
  until_true has_disk 1 "$host_a"
  until_true has_disk 1 "$host_b"
  disks=([ours]=$(disk 1 "$host_a") [theirs]=$(disk 1 "$host_b"))
  # All blocks are written once before, as disks are before they are compared: the first access to a
  # page of a mapped disk is a fault.
  for who in ours theirs; do
    fio --ioengine=libaio --direct=1 --minimal --name=fill --filename="${disks[$who]}" --rw=write --bs=1M --iodepth=4 --size=96M >/dev/null
  done
  for round in $(seq "$rounds"); do
    if ((round % 2)); then measure ours theirs; else measure theirs ours; fi
  done >rates
  for cell in $cells; do count ours "$cell" && count theirs "$cell"; done >counts
  nvme disconnect-all
  report
}

# report prints the medians of the rounds, the median of the rounds' ratios, and context
# switches. It fails with the status $missed if a ratio is less than its aim.
report() {
  awk -v missed="$missed" '
    function median(list, n,  i, j, t) {
      for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j-1]; j--) { t = list[j]; list[j] = list[j-1]; list[j-1] = t }
      return list[int((n + 1) / 2)]
    }
    FILENAME == "rates" { k = $1 " " $2; v[k, ++n[k]] = $3; if (n[k] == 1 && $2 == "ours") order[++cells] = $1 }
    FILENAME == "counts" { all[$1 " " $2] = $3; waits[$1 " " $2] = $4 }
    END {
      print "#                           I/Os per second              switches per I/O    waits of"
      print "# I/O                    ours  kernel  ratio   aim        with ours  kernel     ours"
      for (c = 1; c <= cells; c++) {
        cell = order[c]; a = cell " ours"; b = cell " theirs"; m = n[a]
        for (i = 1; i <= m; i++) { r[i] = v[a, i] / v[b, i]; x[i] = v[a, i]; y[i] = v[b, i] }
        aim = cell ~ /:32$/ ? 0.95 : 0.80; ratio = median(r, m)
        if (ratio < aim) status = missed
        printf "# %-18s %8.0f %7.0f  %5.2f  %.2f %s  %9.1f %7.1f  %7.2f\n", cell, median(x, m), median(y, m), ratio, aim,
          ratio < aim ? "missed" : "met   ", all[a], all[b], waits[a]
      }
      exit cells ? status : 1
    }' rates counts
}
