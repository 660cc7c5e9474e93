#!/usr/bin/env bash
# Plays films with the stock programs of the players and the plug-ins of .build/plugins, from an origin on loopback
# (Tests/C/origin.py). Tests/Plugins/NAME.sh says what is checked of each. `make plugins` comes before; a plug-in
# that it left out is left out here, and named.
#
#   scripts/check-plugins.sh [mpv|gstreamer|vlc]...
set -euo pipefail
cd "$(dirname "$0")/.."
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(mpv gstreamer vlc)
command -v ffmpeg >/dev/null || {
    echo "check-plugins: nothing is checked: there is no ffmpeg here to make films with" >&2
    exit 0
}
status=0
# Told once more at the end, where a long log is read first.
PLUGIN_FAILURES=$(mktemp "${TMPDIR:-/tmp}/tieredcache-failures-XXXXXX")
export PLUGIN_FAILURES
trap 'rm -f "$PLUGIN_FAILURES"' EXIT
for name in "${names[@]}"; do
    file=(.build/plugins/"$name"/*.so)
    if [ ! -e "${file[0]}" ] || [ ! -e "Tests/Plugins/$name.sh" ]; then
        echo "check-plugins: $name is left out: it is not built" >&2
    else
        "Tests/Plugins/$name.sh" "$(realpath "${file[0]}")" || status=1
    fi
done
cat "$PLUGIN_FAILURES" >&2
exit $status
