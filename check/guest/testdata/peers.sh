# Runs the C tools with both ends in this guest, and fails if one of them fails. The
# test also checks their output, since dapltest exits with 0 even when it failed.
address=10.0.2.15
kind=${GODAT_GUEST_DEVICE%0}
failed=0

# listening PORT: waits until a server listens on PORT, in TCP or in the RDMA CM.
listening() {
  for _ in $(seq 100); do
    if { ss -ltn; rdma resource show cm_id; } | grep -q ":$1 "; then return; fi
    sleep 0.2
  done
  echo "nobody listens on port $1"
  failed=1
}
client() {
  timeout 60 "$@" || { echo "$1 ended with $?"; failed=1; }
}

if [ "$kind" = rxe ]; then
  timeout 120 ibv_rc_pingpong -g 1 -d rxe0 -n 20 >/dev/null &
  listening 18515
  client ibv_rc_pingpong -g 1 -d rxe0 -n 20 $address
  wait
fi
timeout 120 rping -s -a $address -C 3 -V -S 100 >/dev/null 2>&1 &
listening 7174
client rping -c -a $address -C 3 -v -V -S 100
wait
timeout 120 dapltest -T S -D "$kind" >/dev/null 2>&1 &
listening 62000
client dapltest -T T -s $address -D "$kind" -i 20 -t 1 -w 1 client SR 256 server SR 256
exit $failed
