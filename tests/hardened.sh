#!/bin/bash
# Whether each program is hardened as the Makefile says: a position of its own at each start (PIE), tables that are
# read-only once it runs (full RELRO), no stack that can be executed, checks of the stack and of copies (stack protector,
# FORTIFY), and on x86 landing places for indirect jumps (CET; of our own objects: the C library's have none).
#
#     tests/hardened.sh BUILD_DIR
set -u
B=${1:-build} count=0 failed=0

# ok NAME COMMAND...: the command's answer is the test's.
ok()
{
    local name=$1
    shift
    count=$((count + 1))
    if "$@"; then echo "ok $count - $name"; else echo "not ok $count - $name"; failed=1; fi
}
says() { readelf "$1" -W "$2" | grep -qE "$3"; }
says_not() { ! says "$@"; }

for program in "$B"/bin/shoal* "$B"/bin/zmq-monitor; do
    name=$(basename "$program")
    ok "$name: PIE" says -h "$program" 'Type: +DYN'
    ok "$name: full RELRO" says -d "$program" 'BIND_NOW|Flags: NOW'
    ok "$name: read-only tables" says -l "$program" GNU_RELRO
    ok "$name: a stack without code" says_not -l "$program" 'GNU_STACK.* R?WE '
    ok "$name: stack protector" says --dyn-syms "$program" __stack_chk_fail
    ok "$name: FORTIFY" says --dyn-syms "$program" '__(printf|snprintf|memcpy|fprintf|vsnprintf)_chk'
done
if [ "$(uname -m)" = x86_64 ]; then
    for library in "$B"/libcore.a "$B"/libshells.a "$B"/libshoal.a; do
        objects=$(ar t "$library" | wc -l) marked=$(readelf -nW "$library" | grep -c 'IBT, SHSTK')
        ok "$(basename "$library"): landing places in all $objects objects" [ "$objects" = "$marked" ]
    done
fi
echo "1..$count"
exit $failed
