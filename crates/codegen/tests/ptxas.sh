#!/bin/sh
# Stands in for ptxas: reports what the PTX says of the effort that is asked for, `// full: ...` or
# `// little: ...`, and writes the effort's name for machine code. Fails where it says nothing.
effort=full
while [ $# -gt 0 ]; do
    case $1 in
        -O1) effort=little ;;
        -o) shift; output=$1 ;;
        *.ptx) input=$1 ;;
    esac
    shift
done
grep -q "^// $effort: " "$input" || exit 1
sed -n "s,^// $effort: ,,p" "$input" >&2
printf %s "$effort" > "$output"
