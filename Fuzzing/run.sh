#!/bin/sh
# Builds the fuzzers and runs them: FUZZ_SECONDS each, by default 60. An input that traps is left in
# .build/findings, and the exit status is not 0.
set -eu
cd "$(dirname "$0")"

scratch=${FUZZ_SCRATCH:-.build}
swift build --sanitize fuzzer --scratch-path "$scratch"
for fuzzer in RecordFuzzer FieldFuzzer EngineFuzzer PlaylistFuzzer RequestFuzzer ResponseFuzzer; do
    mkdir -p "$scratch/corpus/$fuzzer" "$scratch/findings"
    # What a fuzzer would not guess is in Corpus; what it learns stays out of the repository.
    seeds=Corpus/$fuzzer
    [ -d "$seeds" ] || seeds=
    # Larger than a record's head, so that its lengths and its table are reached.
    "$scratch/debug/$fuzzer" -max_total_time="${FUZZ_SECONDS:-60}" -max_len=1024 -print_final_stats=1 \
        -artifact_prefix="$scratch/findings/$fuzzer-" "$scratch/corpus/$fuzzer" $seeds
done
