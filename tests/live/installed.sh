#!/bin/bash
# Installs into a staging tree and lets systemd_test.sh look at it, and a real systemd run it.
set -u
B=$1
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
make --no-print-directory -s B="$B" DESTDIR="$stage" install > "$stage/log" 2>&1 || { echo "not ok 1 - install"; tail -n 5 "$stage/log"; exit 1; }
tests/live/systemd_test.sh "$stage"
code=$?
tests/live/systemd_boot_test.sh "$stage" && exit $code
