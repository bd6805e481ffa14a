#!/bin/bash
# Installs into a staging tree, builds the examples with what is there alone, lets systemd_test.sh look at its units, and
# a real systemd run them.
set -u
B=$1
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
make --no-print-directory -s B="$B" CUDA=0 DESTDIR="$stage" install > "$stage/log" 2>&1 || { echo "not ok 1 - install"; tail -n 5 "$stage/log"; exit 1; }

# The headers, the library and its flags, from a folder that is not the source tree.
name="the examples are built from what is installed"
export PKG_CONFIG_SYSROOT_DIR=$stage PKG_CONFIG_PATH=$stage/usr/local/lib/pkgconfig
mkdir "$stage/mine"
cp tests/example/*.c "$stage/mine"
said=$(cd "$stage/mine" && for program in world allreduce; do
           ${CC:-gcc} -Wall -Wextra -Werror -o $program $program.c $(pkg-config --cflags --libs shoal) || exit
       done && mkdir saves && ./world saves 1 0 1 && ./world saves 2 0 1 1 2>&1 && ./allreduce 0 17411 2>&1)
if [ "$(tail -n 2 <<< "$said")" = "worker 0 of 1: rows 0 to 1009, seen 1
member 0 of 1: 1" ]; then
    echo "ok 1 - $name"
else
    echo "not ok 1 - $name"
    sed 's/^/# /' <<< "$said"
    exit 1
fi

tests/live/systemd_test.sh "$stage"
code=$?
tests/live/systemd_boot_test.sh "$stage" && exit $code
