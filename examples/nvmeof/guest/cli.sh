# The whole command set of nvme-cli: each command gives a status within a second, and none
# leaves the connection in disorder.

# cli_table has each command of `nvme help`, its arguments and the status that the
# specification has for it, in hex: 0 is Success, 285 a Compare Failure, b an Invalid Namespace.
# Optional commands, pages and features that the target does not offer get 1, Invalid Opcode;
# 2, Invalid Field; 109, Invalid Log Page; 10d, Feature Identifier Not Saveable. A dash stands
# for commands that nvme-cli or the kernel answers: they get no status of the target. C is the
# controller, N a disk and F a file of zeros.
cli_table() {
  cat <<'TABLE'
list                       | | -
list-subsys                | | -
show-topology              | | -
version                    | | -
help                       | | -
config                     | --scan | -
gen-hostnqn                | | -
show-hostnqn               | | -
gen-dhchap-key             | | -
check-dhchap-key           | | -
gen-tls-key                | | -
check-tls-key              | | -
id-ctrl                    | C | 0
id-ns                      | C -n 1 | 0
id-ns                      | C -n 77 | 0
id-ns-granularity          | C | 2
id-ns-lba-format           | C -i 0 | 2
list-ns                    | C | 0
list-ctrl                  | C | 2
nvm-id-ctrl                | C | 0
nvm-id-ns                  | C -n 1 | 2
nvm-id-ns-lba-format       | C -i 0 | 2
primary-ctrl-caps          | C | 2
list-secondary             | C | 2
cmdset-ind-id-ns           | C -n 1 | 2
ns-descs                   | C -n 1 | 0
ns-descs                   | C -n 77 | b
id-nvmset                  | C | 2
id-uuid                    | C | 2
id-iocs                    | C | 2
id-domain                  | C | 2
list-endgrp                | C | 2
create-ns                  | C -s 1 -c 1 -f 0 | 1
delete-ns                  | C -n 77 | 1
attach-ns                  | C -n 77 -c 1 | 1
detach-ns                  | C -n 77 -c 1 | 1
get-ns-id                  | N | 0
get-log                    | C -i 2 -l 512 | 0
telemetry-log              | C -o telemetry | 109
fw-log                     | C | 0
changed-ns-list-log        | C | 0
smart-log                  | C | 0
ana-log                    | C | 0
error-log                  | C | 0
effects-log                | C | 0
endurance-log              | C | 109
predictable-lat-log        | C | 109
pred-lat-event-agg-log     | C -e 1 | 109
persistent-event-log       | C -a 0 -l 512 | 109
endurance-event-agg-log    | C -e 1 | 109
lba-status-log             | C | 109
resv-notif-log             | C | 109
boot-part-log              | C -f boot | 109
device-self-test           | C -s 1 | 1
self-test-log              | C | 109
supported-log-pages        | C | 109
fid-support-effects-log    | C | 109
mi-cmd-support-effects-log | C | 109
media-unit-stat-log        | C | 109
supported-cap-config-log   | C | 109
sanitize-log               | C | 109
get-feature                | C -f 7 | 0
get-feature                | C -f 0x77 | 2
set-feature                | C -f 1 -v 0 | 0
set-feature                | C -f 1 -v 0 -s | 10d
get-property               | C -o 0x1c | 0
get-property               | C -o 0x20 | 2
set-property               | C -o 0x1c -v 0 | 2
show-regs                  | C | -
format                     | C -n 1 -l 0 --force | 1
fw-commit                  | C -s 1 -a 1 | 1
fw-download                | C -f F | 1
admin-passthru             | C -o 0x18 | 0
admin-passthru             | C -o 0x55 | 1
io-passthru                | N -o 0 -n 1 | 0
io-passthru                | N -o 0x55 -n 1 | 1
security-send              | C -f F -p 1 -s 1 -t 8 | 1
security-recv              | C -p 0 -s 0 -x 512 -t 512 | 1
get-lba-status             | C -n 1 -s 0 -m 16 -a 16 | 1
capacity-mgmt              | C -o 0 -i 1 | 1
virt-mgmt                  | C -c 1 -r 0 -a 8 -n 0 | 1
rpmb                       | C -c info | -
lockdown                   | C -o 1 -f 0 -p 1 | 1
dir-receive                | C -D 0 -O 1 -l 4096 -n 1 | 1
dir-send                   | C -D 0 -O 1 -T 1 -e 1 -n 1 | 1
sanitize                   | C -a 2 | 1
flush                      | N -n 1 | 0
write                      | N -s 0 -c 0 -z 4096 -d F | 0
read                       | N -s 0 -c 0 -z 4096 -d got | 0
compare                    | N -s 0 -c 0 -z 4096 -d F | 0
compare                    | N -s 0 -c 0 -z 4096 -d other | 285
write-zeroes               | N -s 0 -c 0 | 0
dsm                        | N -n 1 -d -b 1 -s 0 | 0
write-uncor                | N -s 0 -c 0 | 1
verify                     | N -s 0 -c 0 | 1
copy                       | N -d 8 -s 0 -b 0 | 1
resv-acquire               | N -n 1 -c 1 -t 1 | 1
resv-register              | N -n 1 -k 1 | 1
resv-release               | N -n 1 -c 1 -t 1 | 1
resv-report                | N -n 1 | 1
io-mgmt-recv               | N -n 1 -m 1 -l 4096 -d got | 1
io-mgmt-send               | N -n 1 -m 1 | 1
dim                        | -d C -t register | -
ns-rescan                  | C | -
subsystem-reset            | C | -
TABLE
}

# These are what other steps are about: they make and end connections.
cli_connects="discover connect-all connect disconnect disconnect-all reset"

# cli NAME ARGUMENT...: runs a command. cli_got is the status that it got, 0, or a dash if it
# got none and failed. cli_waited is how long it waited, in ms: its time less the processor's.
cli() {
  local times real user system said TIMEFORMAT='%R %U %S'
  cli_got=-
  if times=$( { time nvme "$@" >cli_out 2>&1 </dev/null; } 2>&1); then cli_got=0; fi
  read -r real user system <<<"${times//./}"
  cli_waited=$((10#$real - 10#$user - 10#$system))
  said=$(tr -d '\0' <cli_out)
  if [[ $said =~ NVMe\ [Ss]tatus.*\(0x([0-9a-f]+)\) ]]; then printf -v cli_got %x $((0x${BASH_REMATCH[1]} & 0x7ff)); fi
  if [[ $said == *"unrecognized option"* ]]; then cli_got=usage; fi
}

# cli_row STATUS NAME ARGUMENT...: runs a command of the table, which must wait for no more
# than a second in one of three attempts: the machine may be busy.
cli_row() {
  local want=$1
  shift
  for _ in 1 2 3; do
    cli "$@"
    if [[ $want == - && $cli_got == 0 ]]; then cli_got=-; fi
    if ((cli_waited <= 1000 * SLOW)); then break; fi
  done
  longest=$((cli_waited > longest ? cli_waited : longest))
  if [[ $cli_got == "$want" ]] && ((cli_waited <= 1000 * SLOW)); then return; fi
  say "$*: $cli_got, and not $want, after $cli_waited ms: $(tr -d '\0' <cli_out | tr '\n' ' ' | cut -c1-200)"
  failed=1
}

step_cli() { # 300
  local name arguments want word args failed=0 known=0 longest=0 names=" $cli_connects " before c n
  with 4096
  c=/dev/$(controller) n=$(disk 1)
  before=$(lines)
  head -c 4096 /dev/zero >zeros
  head -c 4096 /dev/urandom >other
  cli_table >table
  while IFS='|' read -r name arguments want; do
    name=${name// /} args=()
    for word in $arguments; do
      case $word in
      C) word=$c ;;
      N) word=$n ;;
      F) word=zeros ;;
      esac
      args+=("$word")
    done
    cli_row ${want} "$name" "${args[@]}"
    names+="$name " known=$((known + 1))
  done <table
  nvme help 2>&1 | sed -n '/implemented sub-commands/,/^$/s/^  \([a-z0-9-]*\) .*/\1/p' >commands
  [[ -s commands ]]
  for name in $(<commands); do
    if [[ $names != *" $name "* ]]; then say "$name is not in the table" && failed=1; fi
  done
  say "$known commands, of which none waited for more than $longest ms"
  live
  if says "$before" 'queue ended'; then false; fi
  ((failed == 0))
}
