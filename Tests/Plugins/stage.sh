#!/usr/bin/env bash
# What the checks of all plug-ins share: films, an origin on loopback, and what is counted. Tests/Plugins/NAME.sh
# reads this file, with the file of the plug-in as its argument:
#
#   . "$(dirname "$0")/stage.sh"
#   begin_stage mpv "$1"       makes $work, which goes at the end, $work/films and the origin $url
#   ... checks, each ending in `pass TEXT` or `fail TEXT` ...
#   end_stage                  exits with 1 where one has failed
#
# The films are of four seconds, 320 by 180, each with the same 100 pictures: tail.mp4 (moov last), fast.mp4 (moov
# first), film.mkv, scattered.mp4 (badly interleaved), hls/aes.m3u8 (AES-128), dash/film.mpd. long.mp4 is as long,
# and larger: for what happens in the middle. The cache is in $cache, by TIEREDCACHE_DIRECTORY.

films=(fast.mp4 tail.mp4 film.mkv scattered.mp4 hls/aes.m3u8 dash/film.mpd)
failures=0
player=
origin=
port=

begin_stage() { # NAME PLUG-IN
    player=$1
    plugin=$(realpath "$2")
    root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
    work=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-$player-XXXXXX")
    cache=$work/cache
    # Nothing of the user's is read, and nothing written.
    export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config XDG_CACHE_HOME=$work/home/.cache
    export XDG_DATA_HOME=$work/home/.local/share XDG_RUNTIME_DIR=$work/run TIEREDCACHE_DIRECTORY=$cache LC_ALL=C.UTF-8
    unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY DISPLAY WAYLAND_DISPLAY
    mkdir -p "$work/films/hls" "$work/films/dash" "$HOME" "$work/run"
    chmod 700 "$work/run"
    trap 'stop_origin; rm -rf "$work"' EXIT
    make_films
    start_origin
}

end_stage() {
    [ $failures -eq 0 ] || { echo "check-plugins: $player: $failures checks failed" >&2; exit 1; }
    echo "check-plugins: $player: all checks pass"
    exit 0
}

pass() { echo "check-plugins: $player: $1"; }
fail() {
    echo "check-plugins: $player: FAILED: $1" >&2
    [ ! -s "$work/log" ] || tail -n 8 "$work/log" >&2
    [ -z "${PLUGIN_FAILURES-}" ] || echo "check-plugins: $player: FAILED: $1" >>"$PLUGIN_FAILURES"
    failures=$((failures + 1))
}
figure() { echo "FIGURE $player $1"; }

make() { ffmpeg -nostdin -v error -y "$@"; }

make_films() (
    cd "$work/films"
    make -f lavfi -i testsrc=size=320x180:rate=25:duration=4 -f lavfi -i sine=frequency=440:duration=4 \
        -vf noise=alls=40:allf=t -c:v libx264 -preset ultrafast -g 25 -b:v 3M -pix_fmt yuv420p -c:a aac tail.mp4
    make -i tail.mp4 -c copy -movflags +faststart fast.mp4
    make -i tail.mp4 -c copy film.mkv
    make -i tail.mp4 -vf negate -c:v libx264 -preset ultrafast -g 25 -b:v 3M -c:a copy -movflags +faststart -f mp4 \
        fast.mp4.new
    python3 "$root/Tests/Plugins/scatter.py" tail.mp4 scattered.mp4
    head -c 16 /dev/urandom >hls/film.key
    printf 'film.key\n%s\n' hls/film.key >key.info
    make -i tail.mp4 -c copy -f hls -hls_time 1 -hls_playlist_type vod -hls_key_info_file key.info \
        -hls_segment_filename hls/aes%d.ts hls/aes.m3u8
    make -i tail.mp4 -c copy -f dash -seg_duration 1 -adaptation_sets 'id=0,streams=v id=1,streams=a' \
        -init_seg_name 'init-$RepresentationID$.m4s' -media_seg_name 'part-$RepresentationID$-$Number$.m4s' dash/film.mpd
    make -f lavfi -i testsrc=size=1280x720:rate=25:duration=4 -vf noise=alls=60:allf=t -c:v libx264 \
        -preset ultrafast -g 25 -b:v 40M -pix_fmt yuv420p -movflags +faststart long.mp4
)

# The origin keeps its port, so that URLs stay what they are when it comes back.
start_origin() {
    python3 "$root/Tests/C/origin.py" "$work/films" ${port:+"$port"} >"$work/port" 2>"$work/origin.log" &
    origin=$!
    until [ -s "$work/port" ]; do
        kill -0 $origin
        sleep 0.05
    done
    port=$(cat "$work/port")
    url=http://127.0.0.1:$port
}

stop_origin() {
    [ -n "$origin" ] || return 0
    kill "$origin" 2>/dev/null || true
    wait "$origin" 2>/dev/null || true
    origin=
    rm -f "$work/port"
}

ask() { curl --silent --show-error --noproxy '*' --max-time 10 "$url/$1"; }
forget() { ask forget; }

# Of all paths that begin with one: "REQUESTS BYTES".
counted() { # [PATH]
    ask report | python3 -c 'import json, sys
rows = [row for path, row in json.load(sys.stdin).items() if path.startswith(sys.argv[1])]
print(sum(row["requests"] for row in rows), sum(row["bytes"] for row in rows))' "/${1-}"
}

# The bytes of all files that a film consists of.
film_size() { # FILM
    case $1 in
    */*) cat "$work/films/${1%/*}"/* | wc -c ;;
    *) stat -c %s "$work/films/$1" ;;
    esac
}

# What the origin sent of a film: at most its size and 128 KiB. How many requests that took is told beside those of the
# player alone; the bound for them is half as many again, plus eight.
expect_once() { # FILM REQUESTS-ALONE
    local requests bytes size
    read -r requests bytes < <(counted "$1")
    [[ $1 != */* ]] || read -r requests bytes < <(counted "${1%/*}/")
    size=$(film_size "$1")
    figure "$1: requests $requests, alone $2, bound $(($2 * 3 / 2 + 8)); bytes $bytes of $size"
    [ "$bytes" -le $((size + 131072)) ] || fail "$1: the origin sent $bytes bytes for $size"
    [ "$requests" -le $(($2 * 3 / 2 + 8)) ] || fail "$1: $requests requests, where the player alone makes $2"
}

# Until the origin lets some requests wait, or none; 20 seconds at most.
until_waiting() { # some|none
    local count
    for ((i = 0; i < 400; i++)); do
        count=$(ask waiting) || return 1
        if [[ $1 == some && $count -gt 0 || $1 == none && $count -eq 0 ]]; then return 0; fi
        sleep 0.05
    done
    return 1
}

# The digest of each picture of a file of raw pictures, 320 by 180, in order.
digests() { # FILE
    python3 -c 'import hashlib, sys
size = 320 * 180 * 3 // 2
with open(sys.argv[1], "rb") as file:
    while picture := file.read(size): print(hashlib.md5(picture).hexdigest())' "$1"
}

# The milliseconds since a moment: begin=$(now) ... $(since "$begin")
now() { echo "${EPOCHREALTIME/[.,]/}"; }
since() { echo $((($(now) - $1) / 1000)); }
