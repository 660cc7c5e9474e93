#!/usr/bin/env bash
# The plug-in for VLC, in the stock program, with the URL unchanged on its command line. VLC refuses to be root, so it
# runs as nobody there. It never shows the last picture of a transport stream, without the plug-in neither.
#
#   Tests/Plugins/vlc.sh PLUG-IN
set -euo pipefail
. "$(dirname "$0")/stage.sh"
begin_stage vlc "$1"

if ! command -v cvlc >/dev/null; then
    echo "check-plugins: vlc is left out: there is no cvlc here" >&2
    exit 0
fi
# Where nobody may look.
mkdir "$work/plugins" "$work/out"
install -m 644 "$plugin" "$work/plugins/"
as=()
if [ "$(id -u)" = 0 ]; then
    as=(runuser -u nobody --)
    chmod 755 "$work"
    mkdir -p "$cache"
    chown -R nobody "$cache" "$HOME" "$work/run" "$work/out"
fi

# What VLC runs in.
within=()

# Plays and ends: the seconds that it may take, the plug-in's directory or none, and the arguments of VLC.
vlc() { # SECONDS PLUGINS ARGUMENT...
    local seconds=$1 plugins=$2
    shift 2
    timeout --kill-after=5 "$seconds" "${within[@]}" "${as[@]}" env ${plugins:+"VLC_PLUGIN_PATH=$plugins"} \
        cvlc -vv --no-color --play-and-exit "$@" vlc://quit >"$work/log" 2>&1
}

# The digests of the pictures that VLC decodes, written down as fast as they come.
pictures() { # NAME PLUGINS URL ARGUMENT...
    local name=$1 plugins=$2 source=$3 output
    shift 3
    output="#transcode{vcodec=I420,threads=1}:es{access=file,mux=dummy,dst-video=$work/out/$name,dst-audio=$work/out/sound-$name}"
    rm -f "$work/out/$name" "$work/out/sound-$name" "$work/$name.seen"
    vlc 60 "$plugins" --sout "$output" --sout-all "$@" "$source" || return 1
    digests "$work/out/$name" >"$work/$name.seen"
}

wanted() { # FILM: what is to be seen of it
    case $1 in
    *.m3u8) head -n 99 "$work/wanted" ;;
    *) cat "$work/wanted" ;;
    esac
}

same() { wanted "$1" | cmp -s - "$work/$2.seen"; }

clear_cache() { find "$cache" -mindepth 1 -delete; }

make -i "$work/films/tail.mp4" -f rawvideo -pix_fmt yuv420p "$work/raw"
digests "$work/raw" >"$work/wanted"

# Each film: every picture, each byte once, and again without the origin.
for film in "${films[@]}"; do
    name=${film//\//-}
    forget
    pictures "$name" '' "$url/$film" || fail "$film: VLC alone does not play it"
    same "$film" "$name" || fail "$film: VLC alone shows other pictures"
    read -r alone _ < <(counted "${film%/*.*}")
    clear_cache
    forget
    begin=$(now)
    pictures "$name" "$work/plugins" "$url/$film" || fail "$film: does not play"
    figure "$film: played in $(since "$begin") ms"
    same "$film" "$name" || fail "$film: other pictures"
    expect_once "$film" "$alone"
    stop_origin
    begin=$(now)
    pictures "$name" "$work/plugins" "$url/$film" || fail "$film: does not play without the origin"
    figure "$film: played again in $(since "$begin") ms"
    same "$film" "$name" || fail "$film: other pictures without the origin"
    start_origin
    pass "$film: every picture, and again without the origin"
done

# Ten places, of a film that is not stored: what is seen from there to the end.
clear_cache
forget
for place in 3.2 0.4 2.8 0.8 2.4 1.2 2.0 1.6 0.2 3.0; do
    pictures seek "$work/plugins" "$url/fast.mp4" --start-time "$place" || fail "seek to $place: does not play"
    count=$(wc -l <"$work/seek.seen")
    if [ "$count" -lt 15 ] || ! tail -n "$count" "$work/wanted" | tail -n 15 | cmp -s - <(tail -n 15 "$work/seek.seen"); then
        fail "seek to $place: other pictures"
    fi
done
read -r _ bytes < <(counted fast.mp4)
[ "$bytes" -le $(($(film_size fast.mp4) + 131072)) ] || fail "seeks: the origin sent $bytes bytes"
pass "ten places, and no byte twice"

# Trouble at the origin changes no picture.
for path in cut/150000 refuse/1 drop/1 plain moved; do
    clear_cache
    pictures trouble "$work/plugins" "$url/$path/fast.mp4" || fail "$path: does not play"
    same fast.mp4 trouble || fail "$path: other pictures"
done
pass "an origin that cuts, refuses, drops, moves or knows no ranges"

# Fields that VLC is told to send.
clear_cache
pictures fields "$work/plugins" "$url/token/fast.mp4" --http-referrer http://example.com/ || fail "referrer: does not play"
same fast.mp4 fields || fail "referrer: other pictures"
pass "the referrer that VLC is told"
clear_cache
export TIEREDCACHE_HEADER='127.0.0.1 X-Token: yes'
pictures rules "$work/plugins" "$url/token/hls/aes.m3u8" || fail "a rule: does not play"
unset TIEREDCACHE_HEADER
same hls/aes.m3u8 rules || fail "a rule: other pictures"
pass "a playlist and its parts have the fields of a rule"
clear_cache
pictures stored "$work/plugins" "$url/fast.mp4" || fail "exclude: the film is not stored"
for film in fast.mp4 hls/aes.m3u8; do
    forget
    pictures exclude "$work/plugins" "$url/$film" --tieredcache-exclude 127.0.0.1 || fail "exclude: $film does not play"
    same "$film" exclude || fail "exclude: $film has other pictures"
    read -r requests _ < <(counted "${film%/*.*}")
    [ "$requests" -gt 0 ] || fail "exclude: $film is not left alone"
done
pass "a host that is left alone"

# A disk of a megabyte changes no picture.
clear_cache
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
    # shellcheck disable=SC2016 # the inner shell expands these
    within=(unshare --mount sh -c 'mount -t tmpfs -o size=1m,mode=777 none "$0" && exec "$@"' "$cache")
    pictures full "$work/plugins" "$url/fast.mp4" || fail "a full disk: does not play"
    within=()
    same fast.mp4 full || fail "a full disk: other pictures"
    pass "a full disk"
else
    echo "check-plugins: vlc: no mount namespace here, so that no disk is full" >&2
fi

# Another film there: never a mixture, and the next play shows one of them whole.
clear_cache
pictures change "$work/plugins" "$url/change/3/fast.mp4" || true
make -i "$work/films/fast.mp4.new" -f rawvideo -pix_fmt yuv420p "$work/raw.new"
digests "$work/raw.new" >"$work/wanted.new"
if grep -qFxf "$work/wanted" "$work/change.seen" && grep -qFxf "$work/wanted.new" "$work/change.seen"; then
    fail "change: pictures of both films"
fi
pictures change "$work/plugins" "$url/change/3/fast.mp4" || fail "change: does not play again"
cmp -s "$work/change.seen" "$work/wanted.new" || cmp -s "$work/change.seen" "$work/wanted" || fail "change: no film as a whole"
pass "a film that changes"

# Two at once: one owns the directory, the other one fetches through it; where the owner ends before the other one, that
# reads what the owner has stored.
for path in slow/1000000/fast.mp4 fast.mp4; do
    clear_cache
    forget
    pictures first "$work/plugins" "$url/$path" &
    job=$!
    pictures second "$work/plugins" "$url/$path" || fail "two at once, $path: the second does not play"
    wait $job || fail "two at once, $path: the first does not play"
    same fast.mp4 first && same fast.mp4 second || fail "two at once, $path: other pictures"
    read -r _ bytes < <(counted "${path%/fast.mp4}")
    figure "two at once, $path: $bytes bytes of $(film_size fast.mp4)"
    [ "$bytes" -le $(($(film_size fast.mp4) + 131072)) ] || fail "two at once, $path: $bytes bytes"
done
pass "two at once"

# Plays a film whose origin stalls, until it does; leaves $job, and $player_id of VLC itself.
stall() { # WHAT
    "${as[@]}" env "VLC_PLUGIN_PATH=$work/plugins" cvlc --vout=vdummy --aout=adummy --rate 8 \
        "$url/stall/1000000/fast.mp4" >"$work/log" 2>&1 &
    job=$!
    until_waiting some || fail "$1: it does not come to where the origin stalls"
    player_id=$(pgrep -u "$(id -u ${as:+nobody})" -n -f "vlc.*$port/stall/1000000") || fail "$1: there is no VLC"
}

# SIGKILL in the middle: the next one goes on from what is stored.
clear_cache
pictures stored "$work/plugins" "$url/tail.mp4" || fail "guest: the film is not stored"
forget
stall kill
kill -KILL "$player_id"
wait $job || true
until_waiting none || fail "kill: a connection stays"
read -r _ before < <(counted stall/1000000)
forget
stall "kill, the next one"
read -r _ after < <(counted stall/1000000)
figure "killed: $before bytes before, $after after"
[ "$after" -lt $((before / 2 + 65536)) ] || fail "kill: the next one fetched $after bytes again"
pass "SIGKILL in the middle"

# Meanwhile that one owns the directory: another one plays, and what is stored it does not ask for.
forget
pictures guest "$work/plugins" "$url/tail.mp4" || fail "guest: does not play"
same tail.mp4 guest || fail "guest: other pictures"
read -r requests _ < <(counted tail.mp4)
[ "$requests" -eq 0 ] || fail "guest: $requests requests for what is stored"
pass "a directory of another process"

# Stop while the origin stalls: VLC's own end is in it, so that only a hang is told from it.
kill -0 "$player_id" || fail "stop: it has ended before"
begin=$(now)
kill -TERM "$player_id"
timeout 60 tail --pid="$player_id" -f /dev/null || fail "stop: it hangs"
figure "stopped in $(since "$begin") ms while the origin stalls"
kill -KILL "$player_id" 2>/dev/null || true # one that hangs
wait $job || true
pass "stop while the origin stalls"

# Nothing stored and no origin: VLC's own error, and no hang.
clear_cache
stop_origin
vlc 40 "$work/plugins" "$url/fast.mp4" || fail "no network: VLC does not end"
grep -qi 'cannot connect\|connection failed\|unable to open\|HTTP connection failure\|access error' "$work/log" ||
    fail "no network: VLC does not say it"
start_origin
pass "no network: VLC's own error"

# Switched off, and without the file: as if it had never been there.
clear_cache
for how in off option none; do
    plugins=$work/plugins
    words=()
    [ $how != option ] || words=(--no-tieredcache)
    if [ $how = none ]; then plugins=; fi
    if [ $how = off ]; then export TIEREDCACHE_ENABLED=no; else unset TIEREDCACHE_ENABLED; fi
    pictures without "$plugins" "$url/fast.mp4" "${words[@]}" || fail "$how: does not play"
    same fast.mp4 without || fail "$how: other pictures"
    [ -z "$(ls -A "$cache")" ] || fail "$how: something is stored"
done
pass "switched off, and removed"

end_stage
