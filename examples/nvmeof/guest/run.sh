# How steps run: each as a process with a time limit. The file steps.sh has the steps of a test. It has
# also clean, which leaves nothing of a step that failed; complain, which says what the targets have to say
# of that step; and warn, which says what else they have complained about.

# refused counts the commands that siw refused with ENOTCONN, as a connection had just
# broken. Linux's initiator then reports an I/O error, where it should wait and try again
# as it does with other devices; no target can prevent that.
refused() { dmesg | grep -c 'post_send failed with error code -107' || true; }

# run NAME [ATTEMPT]: runs a step within its time limit, which stands behind its first
# line. It runs a step again, twice at most, in which siw refused commands.
run() {
  local limit begin=$EPOCHREALTIME status=0 took before
  before=$(refused)
  limit=$(sed -n "s/^step_$1() { # //p" "$here"/*.sh)
  (sleep $((limit * SLOW - 3)) && ps -eo pid,stat,wchan:24,args | grep -v ' \[' >stuck) &
  local watch=$!
  rm -f stuck
  timeout -k 20 $((limit * SLOW)) bash "$here/steps.sh" --step "$1" >out 2>&1 || status=$?
  kill "$watch" 2>/dev/null || true
  took=$(awk "BEGIN { printf \"%.1f s\", $EPOCHREALTIME - $begin }")
  grep '^# ' out || true
  if ((status == 0)); then
    echo "PASS $1, $took"
    return
  fi
  if ((${2:-1} < 3 && $(refused) > before)); then
    echo "AGAIN $1, $took: siw refused a command of the initiator, which made an I/O error of it"
    clean
    run "$1" $((${2:-1} + 1))
    return
  fi
  if ((status == missed)); then
    echo "FAIL $1, $took: figures are less than asked"
    return 1
  fi
  echo "FAIL $1, $took: exit status $status, 124 is the time limit of $((limit * SLOW)) s"
  tail -n 40 out
  if [[ -s stuck ]]; then cat stuck; fi
  complain
  echo "the kernel:" && dmesg | tail -n 40
  clean
  false
}

# steps NAME...: runs the steps of these names. As "--step NAME" it is the process of one.
steps() {
  local name failed=0
  if [[ $1 == --step ]]; then
    "step_$2"
    exit
  fi
  cd "$TMPDIR"
  mkdir -p m full
  touch said
  for name; do run "$name" || failed=1; done
  clean
  warn
  exit "$failed"
}
