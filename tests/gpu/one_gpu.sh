#!/usr/bin/env bash
# All checks and the benchmark of two-shot on one GPU.
# Each part has a limit of its own; all together end within 200 s. Results go to stdout and, if
# OUT is set, to $OUT/one_gpu.jsonl. Exits 1 if a part failed.
set -uo pipefail
cd "$(dirname "$0")/../.."
export PYTHONPATH="$PWD/src:$PWD" PYTHONUNBUFFERED=1
log="${OUT:-/tmp}/one_gpu.jsonl"
: >"$log"
failed=0

part() {
    local limit=$1 left=$((190 - SECONDS))
    shift
    [ "$limit" -le "$left" ] || limit=$left
    if [ "$limit" -lt 5 ]; then
        echo "# left out, no time: $*" | tee -a "$log"
        failed=1
        return
    fi
    echo "# $SECONDS s: $*" | tee -a "$log"
    timeout -k 3 "$limit" python3 "$@" 2>&1 | tee -a "$log" || {
        echo "# FAIL (${PIPESTATUS[0]}): $*" | tee -a "$log"
        failed=1
    }
}

part 60 tests/gpu/images.py
part 40 tests/gpu/check_two_shot.py
part 30 tests/gpu/bench_two_shot.py
part 90 tests/gpu/check_one_gpu.py
echo "# $SECONDS s, failed: $failed" | tee -a "$log"
exit "$failed"
