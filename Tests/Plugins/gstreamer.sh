#!/usr/bin/env bash
# Plays with GStreamer's own programs and the plug-in: gstreamer.sh PLUG-IN. stage.sh says what there is to play.
#
#   every film       every picture is the file's, each byte came once, and again without the origin, in playbin
#                    and playbin3; requests beside those of souphttpsrc
#   seeks            ten places show the pictures of the file; times beside souphttpsrc
#   rules            playlists and their parts have the fields of a rule for their host, or are left alone
#   troubles         an origin that stalls, cuts, refuses, drops, is slow, or has another film by now; no origin;
#                    SIGKILL; a full disk; a directory of another process; two players at once
#   what is no film  radio with titles, a page, raw sound, errors: as from souphttpsrc, and not kept
#   the plug-in      can be inspected, can be switched off, and leaves nothing behind when it is removed
#   an application   Totem under a virtual display, where both are installed
#
# gstreamer.c is an application that does what gst-play-1.0 cannot be told to do.
set -euo pipefail
. "$(dirname "$0")/stage.sh"
command -v gst-play-1.0 >/dev/null || { echo "check-plugins: gstreamer is left out: no gst-play-1.0" >&2; exit 0; }
begin_stage gstreamer "$1"
place=$XDG_DATA_HOME/gstreamer-1.0/plugins
export GST_REGISTRY=$work/registry
unset GST_PLUGIN_PATH GST_PLUGIN_FEATURE_RANK GST_DEBUG
host=$work/host
radio=
read -r -a flags < <(pkg-config --cflags --libs gstreamer-1.0)
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -o "$host" "$root/Tests/Plugins/gstreamer.c" "${flags[@]}"
install -D -m 644 "$plugin" "$place/libgsttieredcache.so"
trap 'stop_origin; [ -z "$radio" ] || kill "$radio"; rm -rf "$work"' EXIT

# Without the element: souphttpsrc alone. GStreamer keeps such a rank with what it knows of its plug-ins.
bare() { GST_REGISTRY=$work/bare GST_PLUGIN_FEATURE_RANK=tieredcachesrc:NONE "$@"; }
play() { # URL ARGUMENT...: leaves the pictures in $work/pictures, and what was said in $work/log
    local film=$1 status=124 seconds=(60) limit
    shift
    # playbin3 of GStreamer 1.22 waits for ever at the end of some 4 plays in 100, by souphttpsrc too: three tries.
    [[ " $* " != *" --use-playbin3 "* ]] || seconds=(15 15 30)
    for limit in "${seconds[@]}"; do
        [ $status = 124 ] || break
        status=0
        rm -f "$work/pictures"
        timeout "$limit" gst-play-1.0 -q --no-interactive "--videosink=filesink location=$work/pictures sync=false" \
            '--audiosink=fakesink sync=false' "$@" "$film" >"$work/log" 2>&1 </dev/null || status=$?
        [ $status != 124 ] || figure "$film $*: no end within $limit s"
    done
    return $status
}
shows() { # WHAT URL ARGUMENT...: every picture is the film's
    local what=$1 begin
    shift
    begin=$(now)
    if ! play "$@" || [ -s "$work/log" ]; then
        fail "$what is not played"
    elif digests "$work/pictures" | cmp -s - "$work/expected"; then
        pass "$what shows every picture ($(since "$begin") ms)"
    else
        fail "$what shows other pictures"
    fi
}
new_cache() { rm -rf "$cache"; forget; }
mixes() { # FILE: 0 where the pictures are those of two films
    ! digests "$1" | cmp -s -n "$(digests "$1" | wc -c)" - "$work/expected" &&
        ! digests "$1" | cmp -s -n "$(digests "$1" | wc -c)" - "$work/changed"
}

check_plugin() {
    local said
    if said=$(gst-inspect-1.0 tieredcachesrc 2>&1 >"$work/inspected") && [ -z "$said" ] &&
        grep -q 'Rank *primary + ' "$work/inspected" && [ -z "$(gst-inspect-1.0 -b | grep tieredcache)" ]; then
        pass "gst-inspect-1.0 shows it, above souphttpsrc"
    else
        fail "gst-inspect-1.0 complains: $said"
    fi
    if [ -e "$cache" ]; then fail "the scanner of plug-ins has opened a cache"; fi
    # Programs that open a film have it where its URL is http.
    TIEREDCACHE_ENABLED=no "$host" error "$url/fast.mp4" >/dev/null
    if [ -e "$cache" ]; then fail "TIEREDCACHE_ENABLED=no is not heeded"; else pass "TIEREDCACHE_ENABLED=no is heeded"; fi
    bare "$host" error "$url/fast.mp4" >/dev/null
    if [ -e "$cache" ]; then fail "GST_PLUGIN_FEATURE_RANK is not heeded"; else pass "GST_PLUGIN_FEATURE_RANK is heeded"; fi
}

check_films() {
    local film alone begin took
    for film in "${films[@]}"; do
        new_cache
        begin=$(now)
        bare play "$url/$film" || fail "$film is not played by souphttpsrc"
        took=$(since "$begin")
        read -r alone _ < <(counted "${film%/*.*}")
        new_cache
        shows "$film" "$url/$film"
        figure "$film: played by souphttpsrc in $took ms"
        expect_once "$film" "$alone"
        stop_origin
        shows "$film again without the origin" "$url/$film"
        shows "$film without the origin in playbin3" "$url/$film" --use-playbin3
        start_origin
        new_cache
        shows "$film in playbin3" "$url/$film" --use-playbin3
    done
}

check_seeks() {
    local film places=(3000 500 2960 40 1500 3800 2000 1000 3333 0)
    for film in fast.mp4 tail.mp4 film.mkv scattered.mp4; do
        new_cache
        "$host" seeks "file://$work/films/$film" "${places[@]}" >"$work/of-file"
        bare "$host" seeks "$url/$film" "${places[@]}" >"$work/of-soup"
        if "$host" seeks "$url/$film" "${places[@]}" >"$work/seeks" 2>"$work/log" &&
            cmp -s <(cut -d ' ' -f 1,2 "$work/of-file") <(cut -d ' ' -f 1,2 "$work/seeks"); then
            pass "$film shows the picture of each of ${#places[@]} places"
        else
            fail "$film shows other pictures after seeks: $(diff <(cut -d ' ' -f 1,2 "$work/of-file") \
                <(cut -d ' ' -f 1,2 "$work/seeks") | head -n 4)"
        fi
        stop_origin
        "$host" seeks "$url/$film" "${places[@]}" >"$work/again" 2>"$work/log" ||
            fail "$film does not seek without the origin"
        start_origin
        figure "$film: start, then mean and longest seek in ms: $(times "$work/seeks"), souphttpsrc $(times \
            "$work/of-soup"), without the origin $(times "$work/again")"
    done
}
times() { awk 'NR == 1 { printf "%d ", $3; next } { sum += $3; if ($3 > top) top = $3 }
    END { printf "%d %d", sum / (NR - 1), top }' "$1"; }

check_rules() {
    local film
    for film in fast.mp4 hls/aes.m3u8 dash/film.mpd; do
        new_cache
        TIEREDCACHE_HEADER='127.0.0.1 X-Token: yes' shows "token/$film, with the fields of a rule," "$url/token/$film"
    done
    new_cache
    shows "a film that is stored" "$url/fast.mp4"
    for film in fast.mp4 hls/aes.m3u8; do
        forget
        TIEREDCACHE_EXCLUDE=127.0.0.1 shows "$film of a host that is left alone" "$url/$film"
        if [ "$(counted "${film%/*.*}" | cut -d ' ' -f 1)" = 0 ]; then fail "TIEREDCACHE_EXCLUDE is not heeded"; fi
    done
}

check_troubles() {
    local what requests bytes size begin
    for what in cut/200000 refuse/2 drop/2 slow/4000000 plain moved; do
        new_cache
        shows "$what" "$url/$what/tail.mp4"
        read -r requests bytes < <(counted "$what/tail.mp4")
        figure "$what: $requests requests, $bytes bytes of $(stat -c %s "$work/films/tail.mp4")"
    done
    for what in hang stall/300000/long.mp4; do
        new_cache
        if timeout 60 "$host" stop "$url/$what" >"$work/stopped" 2>"$work/log"; then
            figure "/$what: the application is held for milliseconds: $(cat "$work/stopped")"
            pass "/$what: the application stops"
        else
            fail "/$what: the way to NULL failed, or it hangs"
        fi
        until_waiting none || fail "/$what: connections stay open"
    done

    # The file that is there from the second request on has other pictures.
    new_cache
    play "$url/change/2/fast.mp4" || true
    if [ -e "$work/pictures" ] && mixes "$work/pictures"; then fail "a film that changes is mixed with the next one"; fi
    play "$url/change/2/fast.mp4" || fail "the next film is not played"
    if digests "$work/pictures" | cmp -s - "$work/changed"; then pass "a film that changes is the next one then"; else
        fail "the next film shows other pictures"
    fi

    new_cache
    bytes=$(md5sum <"$work/films/long.mp4" | cut -d ' ' -f 1)
    size=$(stat -c %s "$work/films/long.mp4")
    if [ "$("$host" two "$url/long.mp4" | sort -u)" = "$bytes" ] && [ "$(counted long.mp4 | cut -d ' ' -f 2)" -le \
        $((size + 131072)) ]; then
        pass "two pipelines at once fetch each byte once"
    else
        fail "two pipelines at once: $(counted long.mp4) for $size bytes"
    fi

    new_cache
    "$host" two "$url/slow/4000000/long.mp4" >/dev/null 2>&1 &
    begin=$!
    until [ "$(counted slow/4000000/long.mp4 | cut -d ' ' -f 2)" -gt $((size / 2)) ]; do
        kill -0 $begin
        sleep 0.05
    done
    kill -KILL $begin
    wait $begin 2>/dev/null || true
    until_waiting none
    forget
    [ "$("$host" two "$url/slow/4000000/long.mp4" | sort -u)" = "$bytes" ] || fail "after SIGKILL other bytes come"
    read -r _ requests < <(counted slow/4000000/long.mp4)
    figure "after SIGKILL in the middle: $requests bytes of $size"
    if [ "$requests" -le $((size * 3 / 4)) ]; then pass "after SIGKILL the next one goes on"; else
        fail "after SIGKILL $requests bytes of $size are fetched"
    fi
}

check_places() {
    local holder
    new_cache
    mkfifo "$work/in" "$work/out"
    "$host" hold "$url/fast.mp4" <"$work/in" >"$work/out" &
    holder=$!
    exec 4>"$work/in" 5<"$work/out"
    read -r -t 60 _ <&5
    # Another one that has no directory of its own.
    stop_origin
    shows "a directory of another process, without the origin," "$url/fast.mp4"
    start_origin
    shows "what that process does not hold" "$url/film.mkv"
    stop_origin
    shows "what it has stored for another one" "$url/film.mkv"
    start_origin
    echo >&4
    exec 4>&- 5<&-
    wait $holder || fail "the process that holds the directory has failed"

    # A disk of a megabyte.
    new_cache
    if unshare --mount true 2>/dev/null; then
        if unshare --mount bash -c 'mkdir -p "$1" && mount -t tmpfs -o size=1m none "$1" && shift && exec "$@"' - \
            "$cache" "$host" two "$url/long.mp4" >"$work/two" 2>"$work/log" &&
            [ "$(sort -u "$work/two")" = "$(md5sum <"$work/films/long.mp4" | cut -d ' ' -f 1)" ]; then
            pass "a full disk changes no byte"
        else
            fail "a full disk changes what comes"
        fi
    else
        echo "check-plugins: gstreamer: no full disk here: that takes root" >&2
    fi

    rm -rf "$cache"
    : >"$cache" # no directory can be here
    shows "a directory that cannot be" "$url/fast.mp4"
    rm -f "$cache"
    stop_origin
    local begin
    begin=$(now)
    play "$url/fast.mp4" || true # it ends with 0 either way
    if grep -q '^ERROR' "$work/log"; then
        pass "without network and anything held: '$(head -n 1 "$work/log" | cut -c 1-70)...' after $(since "$begin") ms"
    else
        fail "without network and anything held there is no error"
    fi
    start_origin
}

check_others() {
    local port
    make -f lavfi -i sine=frequency=440:duration=6 "$work/sound.mp3"
    rm -f "$work/radio-port"
    python3 "$root/Tests/Plugins/radio.py" "$work/sound.mp3" >"$work/radio-port" &
    radio=$!
    until [ -s "$work/radio-port" ]; do sleep 0.05; done
    port=http://127.0.0.1:$(cat "$work/radio-port")
    for what in "radio.mp3" "late/radio.mp3"; do
        timeout --signal=INT 4 gst-launch-1.0 -t playbin "uri=$port/$what" 'audio-sink=fakesink sync=true' \
            >"$work/log" 2>&1 || true
        if grep -q 'A song' "$work/log"; then pass "/$what plays, with titles"; else fail "/$what has no titles"; fi
    done
    new_cache
    expect "a page comes" "$("$host" error "$port/page.html")" "end 2050"
    # Something, or somebody, may have stored and pinned it before.
    if grep -qr page.html "$cache/entries"; then pass "nothing stored is removed"; else fail "the page was removed"; fi
    expect "raw sound" "$(gst-launch-1.0 -v tieredcachesrc "location=$port/sound.raw" ! fakesink num-buffers=1 \
        2>&1 | grep -m 1 -o 'unaligned-raw.*rate=(int)22050' | cut -d , -f 1)" unaligned-raw
    expect "401" "$("$host" error "$port/secret.mp4")" "gst-resource-error-quark 15 401"
    expect "404" "$("$host" error "$port/nothing.mp4")" "gst-resource-error-quark 3 404"
    "$host" fields "$port/sound.raw?2" >"$work/log" 2>&1 || fail "the fields of a request cannot be set"
    curl --silent --noproxy '*' "$port/asked" >"$work/asked"
    for what in 'User-Agent: Agent/1' 'Cookie: a=1; b=2' 'Referer: http://x/' 'X-Number: 7' 'X-Context: yes'; do
        grep -qi "^$what" "$work/asked" || fail "the origin is not sent '$what': $(cat "$work/asked")"
    done
    expect "the message http-headers" "$(grep -o 'http-status-code=(uint)[0-9]*' "$work/log")" 'http-status-code=(uint)200'
    "$host" cycles "$port/radio.mp3" 40 >"$work/log" 2>&1 || fail "40 cycles of states with radio"
    kill $radio
    wait $radio 2>/dev/null || true
    radio=
    if [ "$(timeout 60 "$host" error "$port/page.html" | cut -d ' ' -f 1)" = end ]; then fail "a page was kept"; fi
    # What is relayed: eight pipelines seek in it. souphttpsrc that is told to seek crashes or hangs in three of four such storms.
    head -c 3000000 /dev/urandom >"$work/films/page.html"
    expect "a storm of seeks in a page" "$(timeout 100 "$host" storm "$url/page.html" "$work/films/page.html" 1000 \
        2>"$work/log")" "wrong 0 troubles 0"
    forget
    new_cache
    expect "half of it is held" "$("$host" held "$url/fast.mp4" | cut -d ' ' -f 1-4 | head -n 2 | paste -sd ' ')" \
        "pull 1 size $(stat -c %s "$work/films/fast.mp4") range 0"
    "$host" cycles "$url/long.mp4" 200 >"$work/log" 2>&1 || fail "200 cycles of states"
    until_waiting none || fail "after 200 cycles connections stay open"
}
expect() { # WHAT HAS WANTED
    if [ "$2" = "$3" ]; then pass "$1: $3"; else fail "$1: '$2' in place of '$3'"; fi
}

# What it shows cannot be compared; that it asks once, and never again without need, can.
check_application() {
    local display=99
    if ! command -v totem >/dev/null || ! command -v Xvfb >/dev/null || ! command -v dbus-run-session >/dev/null; then
        echo "check-plugins: gstreamer: Totem is not checked: it takes totem, xvfb and dbus" >&2
        return 0
    fi
    new_cache
    while [ -e /tmp/.X$display-lock ]; do display=$((display + 1)); done
    Xvfb :$display -screen 0 640x480x24 >/dev/null 2>&1 &
    radio=$! # ends as that one does
    DISPLAY=:$display GDK_BACKEND=x11 LIBGL_ALWAYS_SOFTWARE=1 timeout 25 dbus-run-session -- totem "$url/fast.mp4" \
        >"$work/log" 2>&1 &
    local application=$!
    for ((i = 0; i < 400; i++)); do
        [ "$(counted fast.mp4 | cut -d ' ' -f 2)" -lt "$(stat -c %s "$work/films/fast.mp4")" ] || break
        sleep 0.05
    done
    if [ -d "$cache" ] && [ "$(counted fast.mp4 | cut -d ' ' -f 2)" -ge "$(stat -c %s "$work/films/fast.mp4")" ]; then
        pass "Totem plays through the cache: $(counted fast.mp4) requests and bytes"
    else
        fail "Totem does not play through the cache: $(counted fast.mp4)"
    fi
    kill $application 2>/dev/null || true
    wait $application 2>/dev/null || true
    kill $radio
    wait $radio 2>/dev/null || true
    radio=
}

check_removal() {
    new_cache
    rm "$place/libgsttieredcache.so"
    if gst-inspect-1.0 tieredcachesrc >/dev/null 2>&1; then fail "it is there after it was removed"; fi
    shows "after it was removed, fast.mp4" "$url/fast.mp4"
    if [ -e "$cache" ] || [ "$(counted fast.mp4 | cut -d ' ' -f 1)" != 1 ]; then
        fail "after it was removed something is left of it: $(counted fast.mp4)"
    else
        pass "after it was removed GStreamer is as before"
    fi
}

ffmpeg -nostdin -v error -i "$work/films/tail.mp4" -f rawvideo -pix_fmt yuv420p - >"$work/raw"
digests "$work/raw" >"$work/expected"
ffmpeg -nostdin -v error -i "$work/films/fast.mp4.new" -f rawvideo -pix_fmt yuv420p - >"$work/raw"
digests "$work/raw" >"$work/changed"
checks=(plugin films seeks rules troubles places others application removal)
[ -z "${GSTREAMER_CHECKS-}" ] || read -r -a checks <<<"$GSTREAMER_CHECKS"
for check in "${checks[@]}"; do "check_$check"; done
end_stage
