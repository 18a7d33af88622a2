#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs `make demo` and `make test` on a fresh machine: a minimal Debian root with only Python, venv and make, and the
# files of a commit without its history. Prints the duration and the last lines of each.
#
#   tools/fresh_machine.sh [--user] [COMMIT]     as root, or with --user as an unprivileged account
#
# Needs root, debootstrap and tar. Uses this machine's package mirror and pip configuration. Caches the root as
# build/fresh-machine/root.tar; delete that file to rebuild it.
set -euo pipefail
cd "$(dirname "$0")/.."

account=root
if [ "${1:-}" = --user ]; then
    account=tester
    shift
fi
commit=$(git rev-parse --verify "${1:-HEAD}^{commit}")

if [ "$(id -u)" -ne 0 ]; then
    echo "tools/fresh_machine.sh makes a root file system, which needs root: sudo $0" >&2
    exit 2
fi
if ! command -v debootstrap >/dev/null; then
    echo "debootstrap is not installed: apt-get install debootstrap" >&2
    exit 2
fi

place=$PWD/build/fresh-machine
mkdir -p "$place"

# Callers hold a lock. An unfinished root has another name, so it is never used.
make_root() {
    local codename mirror proxy
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    # awk reads to the end instead of calling `exit`: apt-get fails if its output is closed early.
    mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        awk -v name="$codename" '$1 == name && $2 == "main" && !found { found = $3 } END { print found }')
    if [ -z "$mirror" ]; then
        echo "apt knows no mirror of $codename main: see /etc/apt/sources.list" >&2
        return 1
    fi
    proxy=$(apt-config dump --format '%v' Acquire::http::Proxy)
    rm -rf "$place/new"
    http_proxy=${proxy:-${http_proxy:-}} debootstrap --variant=minbase \
        --include=python3,python3-venv,make,ca-certificates "$codename" "$place/new" "$mirror" \
        >"$place/debootstrap.log" 2>&1 || {
        tail -n 20 "$place/debootstrap.log" >&2
        return 1
    }
    chroot "$place/new" useradd --create-home tester
    rm -rf "$place"/new/var/cache/apt/* "$place"/new/var/lib/apt/lists/*
    tar --create --file "$place/root.tar.new" --directory "$place/new" --exclude './dev/*' --exclude './proc/*' .
    rm -rf "$place/new"
    mv "$place/root.tar.new" "$place/root.tar"
}
(flock 9; [ -e "$place/root.tar" ] || make_root) 9>"$place/lock"

root=$(mktemp --directory "$place/run.XXXXXX")
# The mounts are made in a namespace that has ended by then, so rm cannot reach the mounted files.
trap 'rm -rf --one-file-system "$root"' EXIT
tar --extract --file "$place/root.tar" --directory "$root"
chmod 755 "$root"
mkdir "$root/treeclaim"
git archive "$commit" | tar --extract --directory "$root/treeclaim"
chroot "$root" chown --recursive "$account" /treeclaim

# Access to packages needs pip's configuration, the files and folders in it, host names and certificate authorities.
mounts=()
bring() {
    local path=$1
    case $path in "$root"* | /) return ;; esac
    if [ -d "$path" ]; then
        mkdir -p "$root$path"
        mounts+=("$path")
    elif [ -f "$path" ]; then
        mkdir -p "$root$(dirname "$path")"
        rm -f "$root$path"
        cp --dereference "$path" "$root$path"
        chmod a+r "$root$path"
    fi
}
variables=()
while IFS= read -r variable; do
    variables+=("$variable")
done < <(env | grep -E '^(PIP_[A-Z_]+|[a-z]+_proxy|[A-Z]+_PROXY|SSL_CERT_FILE)=' || true)
named=$(printf '%s\n' "${variables[@]}" && python3 -m pip config list --disable-pip-version-check)
python3 -m pip config list --disable-pip-version-check |
    sed -n "s/^global\.\([a-z-]*\)=\(['\"]\)\(.*\)\2$/\1 = \3/p" | { echo "[global]"; sed 's/\\n/\n    /g'; } >"$root/etc/pip.conf"
for path in /etc/resolv.conf /etc/hosts; do bring "$path"; done
for path in $(grep -oE "(file://)?/[A-Za-z0-9._/-]+" <<<"$named"); do
    case $path in
        # The pages of an index link to files beside them.
        file://*) bring "$(dirname "${path#file://}")" ;;
        //*) ;;
        *) bring "$path" ;;
    esac
done

cat >"$root/run.sh" <<'SCRIPT'
set -u
cd /treeclaim
mkdir -p build
failed=0
for target in demo test; do
    begun=$(date +%s)
    make "$target" >"build/$target.log" 2>&1
    status=$?
    tail -n "$([ "$status" -eq 0 ] && echo 4 || echo 60)" "build/$target.log"
    echo "make $target as $(id -un): $(($(date +%s) - begun)) s, exit status $status"
    [ "$status" -eq 0 ] || failed=1
done
exit "$failed"
SCRIPT

# The namespaces end with the run: they kill leftover processes and drop the mounts.
unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
    root=$1 account=$2
    shift 2
    mount --make-rprivate /
    mount --types proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    while [ "$1" != -- ]; do
        mount --bind "$1" "$root$1"
        mount --options remount,bind,ro "$root$1"
        shift
    done
    shift
    home=/root
    [ "$account" = root ] || home=/home/$account
    exec chroot --userspec="$account" "$root" env --ignore-environment \
        HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@" \
        bash /run.sh
' fresh-machine "$root" "$account" "${mounts[@]}" -- "${variables[@]}"
