#!/usr/bin/env bash
# Plays films with stock mpv and the plug-in: its file is the argument. scripts/check-plugins.sh runs it.
#
#   every picture equals the file's, each byte comes once, and a second play without the origin asks nothing
#   ten seeks show what they show in the file; mpv quits while the origin says nothing
#   what an origin can do wrong, a full disk, a kill, another owner of the directory, and no network
#   EDL, youtube-dl, fields of the request, prefetching, what is held, options, and the file's removal
set -euo pipefail
. "$(dirname "$0")/stage.sh"
command -v mpv >/dev/null || { echo "check-plugins: mpv is left out: it is not installed" >&2; exit 0; }
begin_stage mpv "$1"

# Decodes all pictures without the sound, for which it would leave out some. Encoding loads no script by itself.
decode() { # URL ARGUMENT...
    rm -f "$work/pictures"
    timeout 120 mpv --msg-level=all=warn --no-audio --o="$work/pictures" --of=rawvideo --ovc=rawvideo \
        "${@:2}" -- "$1" >"$work/log" 2>&1 || return
    digests "$work/pictures" >"$work/shown"
}
with=(--script="$plugin")

same() { # TEXT URL ARGUMENT...
    if decode "$2" "${with[@]}" "${@:3}" && cmp -s "$work/expected" "$work/shown"; then pass "$1"; else
        fail "$1: $(diff "$work/expected" "$work/shown" 2>/dev/null | grep -c '^[<>]') other pictures"
    fi
}

drive() { python3 "$root/Tests/Plugins/mpv-drive.py" "$work/run" "$@"; }

# What it does in the cache, and what is expected of the origin in the end: no request at all.
silent() { # TEXT [PATH]
    local requests bytes
    read -r requests bytes < <(counted "${2-}")
    if [ "$requests" = 0 ]; then pass "$1"; else fail "$1: $requests requests, $bytes bytes"; fi
}

formats() {
    local film alone
    for film in "${films[@]}"; do
        forget
        decode "$url/$film" || fail "$film does not play without the plug-in"
        read -r alone _ < <(counted)
        forget
        same "$film: all pictures are the file's" "$url/$film"
        expect_once "$film" "$alone"
    done
    stop_origin
    for film in "${films[@]}"; do same "$film: all again, without the origin" "$url/$film"; done
    start_origin
    silent "nothing was asked when the origin came back"
}

# A read that waits for ever does so now and then.
often() {
    local i
    for ((i = 0; i < 12; i++)); do
        rm -rf "$cache"
        decode "$url/tail.mp4" "${with[@]}" || break
        cmp -s "$work/expected" "$work/shown" || break
    done
    if [ $i = 12 ]; then pass "tail.mp4: twelve times anew"; else fail "tail.mp4: play $i of twelve"; fi
}

places=(0.52 3.52 1 2.52 0.6 3.8 1.48 2 3 0.2)
seeks() {
    local actions=(start) film
    for place in "${places[@]}"; do actions+=("seek=$place"); done
    rm -rf "$cache"
    drive "${actions[@]}" -- "$work/films/tail.mp4" >"$work/file" || fail "the file itself cannot seek"
    for film in "${films[@]}"; do
        drive "${actions[@]}" -- "$url/$film" >"$work/alone" || fail "$film cannot seek without the plug-in"
        for time in first again; do
            if drive "${actions[@]}" get=path -- "${with[@]}" "$url/$film" >"$work/own" 2>"$work/log" &&
                diff <(grep picture "$work/file") <(grep picture "$work/own") >"$work/log" &&
                grep -qF "path \"$url/$film\"" "$work/own"; then
                pass "$film: ten seeks show the pictures of the file, $time"
            else
                fail "$film: ten seeks show other pictures, $time"
            fi
            [ $time = again ] || figure "$film alone: $(times "$work/alone")"
            figure "$film $time: $(times "$work/own")"
        done
    done
}

# The start, and the slowest and the middle one of the seeks, in milliseconds.
times() { # FILE
    awk '$1 == "start" { start = $2 } $1 == "seek" { print $3 } END { print "start " start > "/dev/stderr" }' "$1" \
        2>"$work/start" | sort -n | awk '{ all[NR] = $1 } END { printf "seek %s ms, at most %s ms", all[int(NR / 2) + 1], all[NR] }'
    echo ", $(cat "$work/start") ms"
}

quits() {
    local path took status
    for path in hang stall/0/fast.mp4 stall/300000/tail.mp4 stall/300000/fast.mp4 stall/1000/hls/aes.m3u8; do
        rm -rf "$cache"
        if drive waiting -- "${with[@]}" "$url/$path" >"$work/own" 2>"$work/log"; then
            read -r _ took status < <(grep quit "$work/own")
            figure "/$path: mpv quits $took ms after it was told, status $status"
            pass "/$path: mpv quits"
        else
            fail "/$path: mpv does not quit"
        fi
        until_waiting none || fail "/$path: connections stay open"
    done
}

troubled_origins() {
    local path new
    for path in cut/200000/fast.mp4 refuse/2/fast.mp4 drop/2/fast.mp4 moved/fast.mp4 plain/fast.mp4 \
        plain/film.mkv; do
        same "/$path: all pictures are the file's" "$url/$path"
    done
    decode "$work/films/fast.mp4.new"
    cp "$work/shown" "$work/new"
    for new in 2 3 4; do
        decode "$url/change/$new/fast.mp4" "${with[@]}" || true
        # The last picture may be one that was cut off.
        sed '$d' "$work/shown" | sort -u >"$work/told"
        if [ -s "$work/told" ] && { [ -z "$(comm -23 "$work/told" <(sort -u "$work/expected"))" ] ||
            [ -z "$(comm -23 "$work/told" <(sort -u "$work/new"))" ]; }; then
            pass "/change/$new/fast.mp4: $(wc -l <"$work/told") pictures of one film"
        else
            fail "/change/$new/fast.mp4: pictures of two films"
        fi
    done
}

full_disk() {
    local namespace=(unshare --mount)
    [ "$(id -u)" = 0 ] || namespace+=(--map-root-user)
    rm -rf "$cache"
    mkdir -p "$cache"
    if ! "${namespace[@]}" mount -t tmpfs -o size=1m,mode=700 none "$cache" 2>/dev/null; then
        echo "check-plugins: mpv: no mount namespace here, so that no disk is full" >&2
        return
    fi
    rm -f "$work/pictures"
    # shellcheck disable=SC2016 # the inner shell expands these
    timeout 120 "${namespace[@]}" sh -c 'mount -t tmpfs -o size=1m,mode=700 none "$1" && shift && exec "$@"' sh "$cache" \
        mpv --msg-level=all=warn --no-audio --o="$work/pictures" --of=rawvideo --ovc=rawvideo "${with[@]}" \
        "$url/fast.mp4" >"$work/log" 2>&1 || true
    digests "$work/pictures" >"$work/shown"
    if cmp -s "$work/expected" "$work/shown"; then pass "a full disk: all pictures are the file's"; else
        fail "a full disk: other pictures"
    fi
}

killed() {
    local bytes=0 requests first size
    rm -rf "$cache"
    forget
    mpv --no-terminal --vo=null --ao=null "${with[@]}" "$url/slow/600000/fast.mp4" &
    local host=$!
    until [ "$bytes" -ge 700000 ]; do
        sleep 0.05
        read -r requests bytes < <(counted slow)
    done
    kill -KILL $host
    wait $host 2>/dev/null || true
    read -r requests first < <(counted slow)
    same "after SIGKILL: all pictures are the file's" "$url/slow/600000/fast.mp4"
    read -r requests bytes < <(counted slow)
    size=$(film_size fast.mp4)
    figure "SIGKILL after $first bytes: $bytes bytes in all of $size, $requests requests"
    # What had come and was not yet a whole block, or on its way.
    [ "$bytes" -le $((size + 393216)) ] || fail "after SIGKILL $bytes bytes came for $size"
}

# A player that has the directory, and another one that gets through it what it misses.
shared_directory() {
    local first second bytes requests
    rm -rf "$cache"
    forget
    same "the film is stored" "$url/fast.mp4"
    python3 "$root/Tests/Plugins/mpv-drive.py" "$work/run" start await=pause=false -- "${with[@]}" "$url/film.mkv" \
        >"$work/owner" 2>&1 & # the process itself, which is to be ended
    local owner=$!
    until grep -q start "$work/owner"; do sleep 0.05; done
    forget
    same "a directory that another player has: plays" "$url/fast.mp4"
    silent "and shares what that one holds" fast.mp4
    same "and plays what is not held" "$url/tail.mp4"
    stop_origin
    same "which the owner has stored" "$url/tail.mp4"
    start_origin
    kill $owner 2>/dev/null || true
    wait $owner 2>/dev/null || true

    rm -rf "$cache"
    forget
    (decode "$url/slow/1000000/fast.mp4" "${with[@]}" && cp "$work/shown" "$work/first") &
    first=$!
    timeout 60 mpv --msg-level=all=warn --no-audio --o="$work/second.raw" --of=rawvideo --ovc=rawvideo "${with[@]}" \
        "$url/slow/1000000/fast.mp4" >/dev/null 2>&1 &
    second=$!
    wait $first || true
    wait $second || true
    digests "$work/second.raw" >"$work/second"
    if cmp -s "$work/first" "$work/expected" && cmp -s "$work/second" "$work/expected"; then
        pass "two players at once: all pictures are the file's, in both"
    else
        fail "two players at once: other pictures"
    fi
    read -r requests bytes < <(counted slow)
    figure "two players at once: $requests requests, $bytes bytes of $(film_size fast.mp4)"
    [ "$bytes" -le $(($(film_size fast.mp4) + 131072)) ] || fail "two players at once: $bytes bytes"
    stop_origin
    same "two players at once: the film is stored" "$url/slow/1000000/fast.mp4"
    start_origin
}

without_network() {
    local begin
    stop_origin
    rm -rf "$cache"
    begin=$(now)
    if decode "$url/fast.mp4" "${with[@]}"; then fail "a film plays that is nowhere"; fi
    if grep -q 'Connection refused' "$work/log" && grep -q "Failed to open.*$url/fast.mp4" "$work/log"; then
        pass "without network and film: mpv's own error, after $(since "$begin") ms"
    else
        fail "without network and film: not mpv's own error"
    fi
    start_origin
}

rewritten() {
    local film edl=edl:// page
    rm -rf "$cache"
    for film in fast.mp4 film.mkv; do edl+="%$((${#url} + 1 + ${#film}))%$url/$film;"; done
    decode "$edl" || fail "an EDL does not play without the plug-in"
    cp "$work/shown" "$work/alone"
    forget
    decode "$edl" "${with[@]}" || fail "an EDL does not play"
    forget
    if decode "$edl" "${with[@]}" && cmp -s "$work/alone" "$work/shown"; then pass "an EDL plays part by part"; else
        fail "an EDL has other pictures"
    fi
    silent "again without a request"

    # youtube-dl, as ytdl_hook runs it: two streams of a page.
    page=$url/page
    cat >"$work/youtube-dl" <<PROGRAM
#!/bin/sh
cat <<'JSON'
{"id": "film", "title": "A film", "extractor": "test", "webpage_url": "$page", "duration": 4, "requested_formats": [
 {"url": "$url/fast.mp4?sign=1", "vcodec": "h264", "acodec": "none", "ext": "mp4", "protocol": "https",
  "http_headers": {"Referer": "$page", "X-Token": "yes"}},
 {"url": "$url/token/tail.mp4", "vcodec": "none", "acodec": "aac", "ext": "mp4", "protocol": "https",
  "http_headers": {"Referer": "$page", "X-Token": "yes"}}]}
JSON
PROGRAM
    chmod +x "$work/youtube-dl"
    local ytdl=(--ytdl=yes --script-opts="ytdl_hook-ytdl_path=$work/youtube-dl" --load-scripts=yes)
    forget
    drive start get=media-title get=path get=stream-open-filename play -- "${with[@]}" "${ytdl[@]}" "$page" \
        >"$work/own" 2>"$work/log" || fail "what youtube-dl finds does not play"
    if grep -qF "path \"$page\"" "$work/own" && grep -q 'tiered://' "$work/own" && grep -q 'A film' "$work/own" &&
        grep -q 'end eof' "$work/own" && ask report | grep -q token/tail.mp4; then
        pass "what youtube-dl finds plays through the cache, with its fields"
    else
        fail "what youtube-dl finds: $(cat "$work/own")"
    fi
    forget
    drive start play -- "${with[@]}" "${ytdl[@]}" "$page" >"$work/own" 2>"$work/log" || fail "it does not play again"
    if ask report | grep -q mp4; then fail "what youtube-dl finds is asked for again"; else
        pass "again the page alone is asked for"
    fi
}

# A key names a film whatever its URL is signed with; a host may be left alone, or all.
options() {
    local requests
    rm -rf "$cache"
    mkdir -p "$XDG_CONFIG_HOME/mpv/script-opts"
    printf '# rules\nkey=127.0.0.1 sign expires\nheader=127.0.0.1 X-Token: yes\n' \
        >"$XDG_CONFIG_HOME/mpv/script-opts/tieredcache.conf"
    same "a signed film" "$url/token/fast.mp4?sign=1&part=2&expires=7"
    forget
    same "signed anew it is the same film" "$url/token/fast.mp4?expires=8&part=2&sign=2"
    silent "and nothing is asked"
    same "a playlist and its parts have the fields of a rule" "$url/token/hls/aes.m3u8"
    forget
    same "again" "$url/token/hls/aes.m3u8"
    silent "and no part of it is asked for" token/hls/aes0.ts
    rm "$XDG_CONFIG_HOME/mpv/script-opts/tieredcache.conf"
    same "fields of mpv's own options are sent" "$url/token/tail.mp4" --http-header-fields='X-Token: yes'
    rm -rf "$cache"
    same "and with a playlist and its parts" "$url/token/hls/aes.m3u8" --http-header-fields='X-Token: yes'
    forget
    same "again" "$url/token/hls/aes.m3u8" --http-header-fields='X-Token: yes'
    silent "and no part of it is asked for" token/hls/aes0.ts
    same "a film is stored" "$url/fast.mp4"
    for option in enabled=no exclude=127.0.0.1; do
        forget
        same "$option plays" "$url/fast.mp4" --script-opts="tieredcache-$option"
        read -r requests _ < <(counted)
        if [ "$requests" -gt 0 ]; then pass "$option: the film comes from the origin"; else fail "$option is not heeded"; fi
    done
    forget
    TIEREDCACHE_EXCLUDE=127.0.0.1 same "so does the environment" "$url/fast.mp4"
    read -r requests _ < <(counted)
    [ "$requests" -gt 0 ] || fail "TIEREDCACHE_EXCLUDE is not heeded"
    : >"$work/none"
    TIEREDCACHE_DIRECTORY=$work/none/cache same "without a directory it plays" "$url/fast.mp4"
    refusals
}

# Lines that cannot be used are told by their numbers: what they say may be a secret.
refusals() {
    local file=$XDG_CONFIG_HOME/tieredcache/plugins.conf line
    mkdir -p "${file%/*}"
    printf '%s\n' 'disk_limit=s3cret' '# none' 'header=s3cret' 'header 127.0.0.1 X-Token: s3cret' 'X-Token: s3cret=' \
        'header=127.0.0.1X-Token:s3cret' 'exclude=user:s3cret@host' 'header=127.0.0.1 X-Token s3cret' >"$file"
    timeout 60 mpv --vo=null --ao=null --frames=1 "${with[@]}" "$url/fast.mp4" >"$work/log" 2>&1 ||
        fail "a film does not play beside lines that cannot be used"
    rm "$file"
    for line in "1: 'disk_limit'" "3: 'header'" 4 5 "6: 'header'" "7: 'exclude'" "8: 'header'"; do
        grep -qF "$file, line $line cannot be used" "$work/log" || fail "nothing is told of line $line"
    done
    if grep -q s3cret "$work/log"; then fail "a secret is told"; else pass "lines that cannot be used are told by number"; fi
}

held() {
    rm -rf "$cache"
    forget
    drive start asked=/film.mkv await=shared-script-properties=tieredcache-ranges get=shared-script-properties \
        send=script-message-to,tieredcache,pin -- "${with[@]}" "$url/fast.mp4" "$url/film.mkv" \
        >"$work/own" 2>"$work/log" || fail "the next film is not prefetched, or nothing is told of this one"
    if grep -qF "\"tieredcache-url\": \"$url/fast.mp4\"" "$work/own" && grep -qE 'ranges": "0-[0-9]+' "$work/own"; then
        pass "the head of the next film is fetched, and scripts learn what is held"
    else
        fail "scripts do not learn what is held: $(cat "$work/own")"
    fi
}

# As people have it: one file, which comes and goes.
installed() {
    rm -rf "$cache"
    local file=$XDG_CONFIG_HOME/mpv/scripts/tieredcache.so
    "$root/scripts/plugins.sh" install user >"$work/log"
    [ -e "$file" ] || fail "the plug-in is not installed"
    mpv --no-terminal --vo=null --ao=null --speed=8 "$url/fast.mp4" || fail "mpv fails with what was installed"
    forget
    mpv --no-terminal --vo=null --ao=null --speed=8 "$url/fast.mp4" || fail "mpv fails with what was installed"
    silent "installed, the second play asks nothing"
    rm -rf "$cache"
    "$root/scripts/plugins.sh" uninstall user >"$work/log"
    [ -e "$file" ] && fail "the plug-in is still there"
    mpv --no-terminal --vo=null --ao=null --speed=8 "$url/fast.mp4" || fail "mpv fails without the plug-in"
    read -r requests bytes < <(counted)
    if [ -e "$cache" ] || [ "$requests" != 1 ]; then fail "something is left of the plug-in: $requests requests"; else
        pass "removed, it is as if it had never been there: $requests request, $bytes bytes"
    fi
}

decode "$work/films/tail.mp4" || fail "the file itself does not play"
cp "$work/shown" "$work/expected"
[ "$(wc -l <"$work/expected")" = 100 ] || fail "the film has not 100 pictures"
checks=(formats often seeks quits troubled_origins full_disk killed shared_directory without_network rewritten options held
    installed)
for check in ${CHECKS:-"${checks[@]}"}; do $check; done
end_stage
