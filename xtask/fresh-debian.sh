#!/bin/sh
# Shows that a bare Debian 12 with cargo needs nothing more: makes one with debootstrap, clones the
# commit that is checked out here into it, and runs `cargo xtask demo` there. Needs root and debootstrap.
#
#     xtask/fresh-debian.sh [FOLDER [TASK]]
set -eu

repository=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$(mktemp -d)}
task=${2:-demo}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
rustup_home=${RUSTUP_HOME:-$HOME/.rustup}

cleanup() {
    for place in proc dev/shm dev/pts dev sys root/.cargo/registry root/.rustup; do
        if mountpoint -q "$folder/$place"; then umount "$folder/$place"; fi
    done
}
trap cleanup EXIT

[ -e "$folder/etc/debian_version" ] || debootstrap --variant=minbase bookworm "$folder"
cat >"$folder/etc/apt/sources.list" <<SOURCES
deb http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bookworm-updates main
deb http://deb.debian.org/debian-security bookworm-security main
SOURCES
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf "$HOME/.npmrc"; do
    if [ -e "$file" ]; then
        case $file in "$HOME"/*) to=root ;; *) to=etc ;; esac
        cp "$file" "$folder/$to/"
    fi
done
# Trust whom this machine trusts: its network may need certificates of its own.
cp /etc/ssl/certs/ca-certificates.crt "$folder/root/"
mkdir -p "$folder/root/.cargo/registry" "$folder/root/.rustup"
cp -a "$cargo_home/bin" "$folder/root/.cargo/"
if [ -e "$cargo_home/config.toml" ]; then cp "$cargo_home/config.toml" "$folder/root/.cargo/"; fi
mount --bind "$cargo_home/registry" "$folder/root/.cargo/registry"
mount --bind "$rustup_home" "$folder/root/.rustup"
mount -t proc proc "$folder/proc"
mount -t sysfs sysfs "$folder/sys"
mount --bind /dev "$folder/dev"
mount --bind /dev/pts "$folder/dev/pts"
mount --bind /dev/shm "$folder/dev/shm"

rm -rf "$folder/root/tile"
git clone -q "$repository" "$folder/root/tile"
# Node.js from npm knows no certificates but its own and these.
chroot "$folder" /usr/bin/env -i HOME=/root PATH=/root/.cargo/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
    sh -eu -c '
        command -v cc >/dev/null || {
            apt-get update -q && apt-get install -y -q --no-install-recommends gcc libc6-dev ca-certificates
        }
        cp /root/ca-certificates.crt /etc/ssl/certs/
        cd /root/tile && cargo xtask '"$task"
