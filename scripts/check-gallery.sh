#!/usr/bin/env bash
# Builds Examples/Gallery and scrolls a thousand posters with it, JPEGs and PNGs from an origin on loopback: each body
# comes once, the sheet is the one that FFmpeg makes of the same posters, and a second run needs no origin.
#
# EXAMPLES_SCRATCH: where SwiftPM builds; .build/examples-packages by default, with the other packages of Examples.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=${EXAMPLES_SCRATCH:-$PWD/.build/examples-packages}
(cd Examples/Gallery && "${SWIFT:-swift}" build --scratch-path "$scratch" --disable-index-store -debug-info-format none)
program=$scratch/debug/Gallery
work=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-gallery-XXXXXX")
origin=
trap '[ -z "$origin" ] || kill "$origin" 2>/dev/null || true; rm -rf "$work"' EXIT
count=1000

fail() {
    echo "check-gallery: FAILED: $1" >&2
    [ ! -s "$work/log" ] || tail -n 5 "$work/log" >&2
    exit 1
}

mkdir "$work/posters"
for kind in jpg png; do
    ffmpeg -v error -f lavfi -i testsrc2=size=384x216:rate=25 -frames:v $count -q:v 3 "$work/posters/%d.$kind"
done
# Every third one is a PNG.
for ((n = 1; n <= count; n++)); do
    kind=jpg
    ((n % 3)) || kind=png
    echo "$n.$kind"
done >"$work/names"

# With a lifetime, as pictures have; counts what it is asked for.
cat >"$work/origin.py" <<'PYTHON'
import http.server, sys

class Origin(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # What was abandoned.

    def log_message(self, *_):
        print(self.path, file=log, flush=True)

log = open(sys.argv[2], "w")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Origin(*a, directory=sys.argv[1]))
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
mkfifo "$work/port"
python3 "$work/origin.py" "$work/posters" "$work/requests" >"$work/port" &
origin=$!
read -r port <"$work/port"
sed "s|^|http://127.0.0.1:$port/|" "$work/names" >"$work/urls"

show() { # SHEET
    XDG_CACHE_HOME=$work/cache timeout 300 "$program" "$1" <"$work/urls" 2>"$work/log" || fail "the gallery ends with $?"
}
show "$work/sheet.png" | sed 's/^/check-gallery: /'
requests=$(wc -l <"$work/requests")
[ "$requests" -eq $count ] || fail "$requests requests for $count posters"

# The same posters, reduced and tiled by FFmpeg: not the same pixels, but the same pictures.
ffmpeg -v error -i "$work/posters/%d.png" -vf "scale=96:54:flags=area,tile=40x25" -frames:v 1 "$work/expected.png"
psnr=$(ffmpeg -v info -i "$work/sheet.png" -i "$work/expected.png" -lavfi "format=rgb24,psnr" -f null - 2>&1 |
    sed -n 's/.*average:\([0-9.inf]*\).*/\1/p')
[ "$psnr" = inf ] || awk -v psnr="$psnr" 'BEGIN { exit !(psnr >= 25) }' || fail "the sheet is another one: $psnr dB"
echo "check-gallery: the sheet is that of FFmpeg within $psnr dB"

kill "$origin"
wait "$origin" 2>/dev/null || true
origin=
show "$work/again.png" >"$work/out"
cmp -s "$work/sheet.png" "$work/again.png" || fail "without the origin it is another sheet"
echo "check-gallery: the same again without the origin"

# A broken one leaves its cell empty.
head -c 3000 "$work/posters/1.png" >"$work/posters/broken.png"
python3 "$work/origin.py" "$work/posters" "$work/requests" >"$work/port" &
origin=$!
read -r port <"$work/port"
printf 'http://127.0.0.1:%s/%s\n' "$port" broken.png "$port" missing.png "$port" 1.jpg >"$work/urls"
show "$work/broken.png" | grep -q '^4 cannot be shown' || fail "broken pictures are not told"
echo "check-gallery: broken pictures leave their cells empty"
