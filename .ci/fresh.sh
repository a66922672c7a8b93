# fresh.sh COMMAND...: runs a command as somebody does who has just got the repository: in a copy
# of the files that git has or would take, with an empty HOME, and so without Go's caches, settings
# and what else this user has made. The stages of one run share the copy and the HOME.
set -euo pipefail
fresh=$CI_TEMP/fresh
if [[ ! -d $fresh ]]; then
  mkdir -p "$fresh/home" "$fresh/tree"
  git ls-files -z --cached --others --exclude-standard --deduplicate |
    while IFS= read -r -d '' file; do if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi; done |
    tar -c --null --no-recursion -T - | tar -x -C "$fresh/tree"
fi
while IFS='=' read -r name _; do
  case $name in GO* | CGO_* | XDG_*) unset "$name" ;; esac
done < <(env)
export HOME=$fresh/home GOFLAGS=-modcacherw # so that the copy can be removed
cd "$fresh/tree"
"$@"
