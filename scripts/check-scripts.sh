#!/usr/bin/env bash
# Finds errors in the shell scripts and workflow files of the repository without running them: `bash -n` for
# each script, shellcheck where it is installed, scripts/check-workflows.py where python3 has a YAML parser.
# Says what it could not check. Exits with 1 where something is wrong.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts=(.ci/run scripts/*.sh Tests/Plugins/*.sh Benchmarks/*.sh Fuzzing/*.sh)
for script in "${scripts[@]}"; do bash -n "$script"; done
checked="bash -n"

if command -v shellcheck >/dev/null; then
    shellcheck "${scripts[@]}"
    checked+=", shellcheck"
else
    echo "check-scripts: shellcheck is not installed; the scripts were parsed only" >&2
fi

if python3 -c 'import yaml' 2>/dev/null; then
    python3 scripts/check-workflows.py
else
    echo "check-scripts: python3 or its yaml module is not installed; the workflows were not checked" >&2
fi
echo "check-scripts: ${#scripts[@]} scripts pass $checked"
