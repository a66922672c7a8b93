# fresh.sh COMMAND...: runs a command as somebody does who has just got the repository: in a copy
# of the files that git has or would take, with an empty HOME, and so without modules, settings and
# what else this user has made. Only what Go compiled stays, which says by sums what it was made of;
# no test's result is taken from there, and lint.sh vets. The stages of one run share the copy and the HOME. The copy has
# its name when it is whole: no stage runs in the half that a full disk has left.
set -euo pipefail
fresh=$CI_FRESH
compiled=$(go env GOCACHE)
if [[ ! -d $fresh ]]; then
  new=$(mktemp -d "$fresh.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  mkdir "$new/home" "$new/tree"
  git ls-files -z --cached --others --exclude-standard --deduplicate |
    while IFS= read -r -d '' file; do if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi; done |
    tar -c --null --no-recursion -T - | tar -x -C "$new/tree"
  mv -T "$new" "$fresh" 2>/dev/null || [[ -d $fresh ]] # another stage was first
fi
while IFS='=' read -r name _; do
  case $name in GO* | CGO_* | XDG_*) unset "$name" ;; esac
done < <(env)
export HOME=$fresh/home GOCACHE=$compiled
export GOFLAGS="-modcacherw -count=1 -vet=off" # the first, so that the copy can be removed
cd "$fresh/tree"
"$@"
