# The target beside the kernel's own, nvmet-rdma, over the same ram disk.

kernel_nqn=nqn.2026-01.example.kernel:disk kernel_port=4421
rounds=7
cells=$(echo {randread,randwrite}:{4k,128k}:{1,32})

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

# measure DISK FIO-ARGUMENT... CELLS: I/Os per second of each cell, a line each.
jobs_of() {
  local cell kind size depth
  for cell in $cells; do
    IFS=: read -r kind size depth <<<"$cell"
    echo "--name=$cell --stonewall --rw=$kind --bs=$size --iodepth=$depth"
  done
}
measure() {
  fio --ioengine=libaio --direct=1 --minimal --filename="$1" --size=96M --time_based --runtime=1500ms $(jobs_of) |
    awk -F';' -v who="$2" '{ print $3, who, $8 + $49 }'
}

# switches: context switches of the system, and those of the target in which it waited.
switches() {
  awk '/^ctxt/ { print $2 }' /proc/stat
  cat /proc/"$(cat pid)"/task/*/status | awk '/^voluntary/ { n += $2 } END { print n }'
}
# count DISK WHO CELL: context switches per I/O.
count() {
  local kind size depth before after n=3000
  IFS=: read -r kind size depth <<<"$3"
  before=$(switches)
  fio --ioengine=libaio --direct=1 --minimal --filename="$1" --size=96M --name=count --rw="$kind" --bs="$size" \
    --iodepth="$depth" --number_ios="$n" >/dev/null
  after=$(switches)
  echo "$3" "$2" $before $after | awk -v n="$n" '{ printf "%s %s %.2f %.2f\n", $1, $2, ($5 - $3) / n, ($6 - $4) / n }'
}

step_beside() { # 1200
  local ours theirs round cell
  serve_from_kernel
  serve 4096 /dev/ram0
  nvme connect -t rdma -a "$address" -s "$port" -n "$nqn" --hostnqn="$host_a" --hostid="$id_a" -i 2 >/dev/null
  nvme connect -t rdma -a "$address" -s "$kernel_port" -n "$kernel_nqn" --hostnqn="$host_b" --hostid="$id_b" -i 2 >/dev/null
  until_true has_disk 1 "$host_a"
  until_true has_disk 1 "$host_b"
  ours=$(disk 1 "$host_a") theirs=$(disk 1 "$host_b")
  rm -f rates counts
  for round in $(seq "$rounds"); do
    if ((round % 2)); then measure "$ours" ours && measure "$theirs" theirs; else measure "$theirs" theirs && measure "$ours" ours; fi
  done >rates
  for cell in randread:4k:{1,32} randwrite:4k:{1,32}; do
    count "$ours" ours "$cell"
    count "$theirs" theirs "$cell"
  done >counts
  report
  nvme disconnect-all
}

# report prints the medians of the rounds, and the median of the rounds' ratios.
report() {
  awk '
    function median(list, n,  i, j, t) {
      for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j-1]; j--) { t = list[j]; list[j] = list[j-1]; list[j-1] = t }
      return list[int((n + 1) / 2)]
    }
    FILENAME == "rates" { k = $1 " " $2; v[k, ++n[k]] = $3; if (!seen[$1]++) order[++cells] = $1 }
    FILENAME == "counts" { all[$1 " " $2] = $3; waits[$1 " " $2] = $4 }
    END {
      print "# I/O, this target and the kernel in I/Os per second, ratio, aim; context switches per I/O of the system with each, waits of this target"
      for (c = 1; c <= cells; c++) {
        cell = order[c]; a = cell " ours"; b = cell " theirs"; m = n[a]
        for (i = 1; i <= m; i++) { r[i] = v[a, i] / v[b, i]; x[i] = v[a, i]; y[i] = v[b, i] }
        aim = cell ~ /:32$/ ? 0.95 : 0.80; ratio = median(r, m)
        line = sprintf("# %-18s %7.0f %7.0f  %.2f  >= %.2f %s", cell, median(x, m), median(y, m), ratio, aim, ratio >= aim ? "met" : "missed")
        if (a in all) line = line sprintf("; %.1f %.1f, %.2f", all[a], all[b], waits[a])
        print line
      }
    }' rates counts
}
