#!/bin/bash
# The example of a group: three processes sum their buffers, 1 + 2 + 3. One is started 1.5 s after the others, as by
# hand: that time is what is tested, as the others must not give up meanwhile.
#
#     allreduce_test.sh BUILD_DIR
set -u
B=$1
name="an all-reduce of one's own buffer, in at most 40 lines"
ports="17411 17412 17413"
said=$(for place in 0 1 2; do [ $place = 1 ] && sleep 1.5; timeout 20 "$B/example/allreduce" $place $ports 2>&1 & done; wait)
want=$(printf 'member %d of 3: 6\n' 0 1 2)
usage=$("$B/example/allreduce" 2>&1)    # Without arguments it says how it is used
said+=$([ "${usage#usage: }" != "$usage" ] || echo "without arguments: $usage")
if [ "$(sort <<< "$said")" = "$want" ] && [ "$(wc -l < tests/example/allreduce.c)" -le 40 ]; then
    echo "ok 1 - $name"
else
    echo "not ok 1 - $name"
    sed 's/^/# /' <<< "$said"
    exit 1
fi
