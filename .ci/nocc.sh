# nocc.sh COMMAND...: runs a command where no C compiler is found. With fresh.sh before it, that is
# also without anything that this user has cached: Go alone.
set -euo pipefail

# A directory with links to all commands but compilers takes the place of PATH.
bin=$CI_TEMP/nocc
if [[ ! -d $bin ]]; then
  new=$(mktemp -d "$bin.XXXXXX")
  IFS=: read -ra dirs <<<"$PATH"
  for dir in "${dirs[@]}"; do
    for tool in "$dir"/*; do
      [[ -x $tool && -f $tool ]] || continue
      case ${tool##*/} in
        *gcc* | *g++* | *clang* | cc | c++ | c89* | c99* | cpp | cpp-* | *-cpp | ld | ld.* | *-ld | *-ld.* | tcc) continue ;;
      esac
      [[ -e $new/${tool##*/} ]] || ln -s "$tool" "$new/${tool##*/}"
    done
  done
  mv -T "$new" "$bin"
fi
export PATH=$bin
unset CC CXX CGO_ENABLED
for compiler in cc gcc clang; do
  if command -v "$compiler"; then echo "$compiler is not hidden"; exit 1; fi
done
# Asked of the go command itself, since a user's settings may say otherwise.
if [[ $(go env CGO_ENABLED) != 0 ]]; then echo "cgo is on without a compiler"; exit 1; fi
"$@"
