#!/usr/bin/env bash
# Runs each host of Examples/C against an origin on loopback:
#
#   ffmpeg      decodes the same frames as FFmpeg does from the file
#   epoll       a hundred streams in one thread bring the bytes of the file
#   film.py     brings the bytes from a place on
#   agent       has a file brought by the program of .build/debug, which it starts as a child of nobody
#   mpv, gstreamer, vlc   play films with the index in front, behind and in between, without an error, and one
#               from an origin that knows no ranges
#   all in C    end within a second when they are to quit and the origin says nothing: during the opening,
#               a read, and a seek
#
# `make examples` comes before; a host that it left out is left out here. In the end every byte of each film
# has come once from the origin, and the films play without it.
#
# LIBRARY: as in scripts/examples.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
library=$(realpath "${LIBRARY:-.build/library}")
bin=$PWD/.build/examples
work=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-examples-XXXXXX")
origin=
trap '[ -z "$origin" ] || kill $origin 2>/dev/null || true; rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$library
export LC_ALL=C # a point in EPOCHREALTIME
command -v ffmpeg >/dev/null || {
    echo "check-examples: nothing is checked: there is no ffmpeg here to make films with" >&2
    exit 0
}
failures=0
films=(tail.mp4 fast.mp4 film.mkv)

pass() { echo "check-examples: $1"; }
fail() {
    echo "check-examples: FAILED: $1" >&2
    [ ! -s "$work/log" ] || tail -n 5 "$work/log" >&2
    failures=$((failures + 1))
}

# Six seconds with sound, noisy enough to be large.
make_films() {
    ffmpeg -v error -f lavfi -i testsrc=size=320x180:rate=25:duration=6 -f lavfi -i sine=frequency=440:duration=6 \
        -vf noise=alls=40:allf=t -c:v libx264 -preset ultrafast -g 50 -b:v 3M -pix_fmt yuv420p -c:a aac \
        "$work/films/tail.mp4"
    ffmpeg -v error -i "$work/films/tail.mp4" -c copy -movflags +faststart "$work/films/fast.mp4"
    ffmpeg -v error -i "$work/films/tail.mp4" -c copy "$work/films/film.mkv"
}

start_origin() {
    python3 Tests/C/origin.py "$work/films" >"$work/port" &
    origin=$!
    until [ -s "$work/port" ]; do
        kill -0 $origin
        sleep 0.05
    done
    url=http://127.0.0.1:$(cat "$work/port")
}

ask() { curl --silent --show-error --max-time 10 "$url/$1"; }

# Plays all films to their ends.
plays() { # NAME ARGUMENT...: the arguments follow the URL
    local name=$1 film
    shift
    [ -x "$bin/$name" ] || return 0
    for film in "${films[@]}"; do
        if timeout 60 "$bin/$name" "$url/$film" "$@" >"$work/out" 2>"$work/log" &&
            [ "$(cat "$work/out")" = "ended: at the end" ]; then
            pass "$name plays $film to its end"
        else
            fail "$name does not play $film: $(head -n 3 "$work/out")"
        fi
    done
}

# Until the origin lets some requests wait, or none; 20 seconds at most.
until_waiting() { # some|none
    local count
    for ((i = 0; i < 400; i++)); do
        count=$(ask waiting) || exit
        if [[ $1 == some && $count -gt 0 || $1 == none && $count -eq 0 ]]; then return 0; fi
        sleep 0.05
    done
    return 1
}

# Ends a host when the origin has stopped bringing bytes, and sees how long that takes.
quits() { # NAME PATH WHEN ARGUMENT...
    local name=$1 path=$2 when=$3 host begin took
    shift 3
    [ -x "$bin/$name" ] || return 0
    # It hands our signal on, and kills what does not heed it.
    XDG_CACHE_HOME=$work/stalled timeout --kill-after=30 120 "$bin/$name" "$url/$path" "$@" \
        >/dev/null 2>"$work/log" &
    host=$!
    until_waiting some || fail "$name does not ask the origin for /$path"
    sleep 0.2 # it is in the call by now
    begin=${EPOCHREALTIME/./}
    kill -TERM $host
    wait $host 2>/dev/null || true
    took=$(((${EPOCHREALTIME/./} - begin) / 1000))
    if [ $took -le 1000 ]; then pass "$name ends $took ms after a signal, during $when"; else
        fail "$name ends $took ms after a signal, during $when"
    fi
    rm -rf "$work/stalled"
    until_waiting none || fail "connections of $name stay open"
}

same_frames() { # FILM [PATH]
    local path=${2:-$1}
    [ -x "$bin/ffmpeg" ] || return 0
    # Stream, size and digest of each frame; the order of two streams is the decoder's.
    ffmpeg -v error -i "$work/films/$1" -map 0 -c:v rawvideo -c:a pcm_f32le -f framemd5 - |
        awk -F ', *' '!/^#/ { print $1 ", " $5 ", " $6 }' | sort -s -n -t , -k 1,1 >"$work/expected"
    if ! timeout 60 "$bin/ffmpeg" "$url/$path" 2>"$work/log" | sort -s -n -t , -k 1,1 >"$work/frames"; then
        fail "ffmpeg ends with an error at $1"
    elif [ -s "$work/expected" ] && cmp -s "$work/expected" "$work/frames"; then
        pass "ffmpeg decodes the $(wc -l <"$work/frames") frames of $path"
    else
        fail "ffmpeg decodes other frames of $1 than the file has: $(diff "$work/expected" "$work/frames" | head -n 3)"
    fi
}

same_bytes() { # FILM
    local place=1000003
    if timeout 60 python3 Examples/C/film.py "$url/$1" $place 2>"$work/log" |
        cmp - <(tail -c +$((place + 1)) "$work/films/$1"); then
        pass "film.py brings $1 from a place on"
    else
        fail "film.py brings other bytes of $1"
    fi
    if timeout 60 "$bin/first" "$url/$1" 2>"$work/log" | cmp - "$work/films/$1"; then
        pass "the first program of docs/c-hosts.md brings $1"
    else
        fail "the first program of docs/c-hosts.md brings other bytes of $1"
    fi
    if timeout 60 "$bin/epoll" "$url/$1" 100 2>"$work/log" | cmp - "$work/films/$1"; then
        pass "a hundred streams of epoll bring $1"
    else
        fail "epoll brings other bytes of $1"
    fi
}

# The path of the file is the last word. The agent ends by itself when nobody has asked it for half a minute.
brings() { # FILM
    [ -x "$bin/agent" ] && [ -x .build/debug/tieredcache ] || return 0
    if PATH=$PWD/.build/debug:$PATH XDG_CACHE_HOME=$work/agent XDG_RUNTIME_DIR='' \
        timeout 60 "$bin/agent" "$work/files" "$url/plain/$1" >"$work/out" 2>"$work/log" &&
        [ "$(tail -n 1 "$work/out")" = "stored as $work/files/$1" ] && cmp -s "$work/files/$1" "$work/films/$1"; then
        pass "agent has $1 brought by another process"
    else
        fail "agent does not bring $1: $(tail -n 1 "$work/out")"
    fi
    [ ! -S "$work/agent/tieredcache/AGENT" ] || curl --silent --max-time 10 --output /dev/null \
        --unix-socket "$work/agent/tieredcache/AGENT" http://localhost/jsonrpc \
        --data '{"jsonrpc": "2.0", "id": 1, "method": "aria2.shutdown"}' || fail "the agent cannot be ended"
}

mkdir "$work/films"
make_films
start_origin
for film in "${films[@]}"; do
    same_bytes "$film"
    same_frames "$film"
done
same_frames fast.mp4 plain/fast.mp4
same_frames tail.mp4 plain/tail.mp4
films+=(plain/film.mkv)
brings tail.mp4
plays mpv vo=null ao=null ao-null-untimed=yes untimed=yes
plays gstreamer fakesink
plays vlc --vout=dummy --aout=dummy --quiet --rate=8
for film in "${films[@]}"; do
    size=$(stat -c %s "$work/films/${film#plain/}") sent=$(ask "sent/$film")
    if [ "$sent" = "$size" ]; then pass "each byte of $film came once from the origin"; else
        fail "$sent bytes came from the origin for the $size of $film"
    fi
done

for when in "hang:the opening" "stall/300000/tail.mp4:a seek to the index" "stall/300000/fast.mp4:a read"; do
    path=${when%%:*} when=${when#*:}
    quits mpv "$path" "$when" vo=null ao=null
    quits gstreamer "$path" "$when" fakesink
    quits vlc "$path" "$when" --vout=dummy --aout=dummy --quiet
    quits ffmpeg "$path" "$when"
    quits epoll "$path" "$when" 100
done
quits mpv stall/300000/fast.mp4 "a seek" vo=null ao=null start=5

# The origin has gone: what is stored plays.
kill $origin
wait $origin 2>/dev/null || true
origin=
same_bytes fast.mp4
same_frames fast.mp4

[ $failures -eq 0 ] || { echo "check-examples: $failures checks failed" >&2; exit 1; }
