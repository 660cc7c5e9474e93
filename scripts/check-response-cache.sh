#!/usr/bin/env bash
# Builds Examples/ResponseCache, a package of its own, into .build/examples-packages, and checks what it promises between
# curl and an upstream server on loopback (Tests/ResponseCache/origin.py):
#
#   one call brings a response that is fresh, for one client after the other, and for twenty at once
#   what is stale costs a 304; what varies by Accept is told apart; what is private is not stored
#   a way out of /api is none
#   SIGTERM ends it, also where a client waits; the next process has what the first has stored
#   without an upstream: what is stored answers, fresh or stale, and 502 for the rest; 504 for one that is silent
#
# SWIFT names another compiler than `swift`. Prints a line for each check, and exits with 1 where one failed.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C # a point in EPOCHREALTIME
work=$(mktemp -d "${TMPDIR:-/tmp}/tieredcache-response-cache-XXXXXX")
upstream=
server=
clients=()
stop() {
    local process
    for process in $server $upstream ${clients[@]+"${clients[@]}"}; do
        kill -KILL "$process" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap stop EXIT
failures=0
first="/api/fresh/a?x=1"

pass() { echo "check-response-cache: $1"; }
fail() {
    echo "check-response-cache: FAILED: $1" >&2
    failures=$((failures + 1))
}

# Run inside the directory: from outside, a relative path to the engine's package is not found. Without what editors and
# debuggers want, which takes a sixth of the time.
build() {
    local scratch=$PWD/.build/examples-packages
    mkdir -p "$scratch"
    (cd Examples/ResponseCache && "${SWIFT:-swift}" build --scratch-path "$scratch" --disable-index-store \
        -debug-info-format none) >"$scratch/build.log" 2>&1 || {
        grep -E "error|warning: unre" "$scratch/build.log" >&2 || cat "$scratch/build.log" >&2
        echo "check-response-cache: Examples/ResponseCache does not build" >&2
        exit 1
    }
    program=$scratch/debug/ResponseCache
}

# Until a file has a line with a port, of a process that runs; it is set in `port`.
read_port() { # FILE PROCESS PATTERN
    port=
    until port=$(sed -nE "s/$3/\1/p" "$1" | head -n 1) && [ -n "$port" ]; do
        kill -0 "$2" || {
            cat "$1" >&2
            exit 1
        }
        sleep 0.05
    done
}

start_upstream() {
    python3 Tests/ResponseCache/origin.py >"$work/upstream" &
    upstream=$!
    read_port "$work/upstream" $upstream '^([0-9]+)$'
    upstream_port=$port
}

start_server() {
    : >"$work/log"
    "$program" "http://127.0.0.1:$upstream_port" "$work/cache" --port 0 >"$work/log" 2>&1 &
    server=$!
    read_port "$work/log" $server '.*listening on 127\.0\.0\.1:([0-9]+).*'
    url=http://127.0.0.1:$port
}

# Ends the server, and sees how and how soon it ends.
end_server() { # WHEN
    local begin=${EPOCHREALTIME/./} status=0 took i
    kill -TERM $server
    for ((i = 0; i < 600; i++)); do
        kill -0 $server 2>/dev/null || break
        sleep 0.05
    done
    kill -KILL $server 2>/dev/null || true
    wait $server || status=$?
    server=
    took=$(((${EPOCHREALTIME/./} - begin) / 1000))
    if [ $status -eq 0 ] && [ $took -le 5000 ]; then pass "ends $took ms after SIGTERM, $1"; else
        fail "ends $took ms after SIGTERM, $1, with status $status: $(tail -n 3 "$work/log")"
    fi
}

# Asks the server; `status`, `field`, $work/head and $work/body are what it answers.
ask() { # PATH [ARGUMENT...]
    local path=$1
    shift
    status=$(curl --silent --max-time 30 --path-as-is --dump-header "$work/head" --output "$work/body" \
        --write-out '%{http_code}' "$@" "$url$path") || status="$status, curl ended with $?"
    field=$(sed -nE 's/^cache-status: (.*)\r$/\1/Ip' "$work/head")
}

# How often the upstream server has answered: in whole, and with 304.
asked() { curl --silent --show-error --max-time 10 "http://127.0.0.1:$upstream_port/asked$1"; }

# What was answered last, and how often the upstream server was asked for it by now.
expect() { # NAME STATUS CACHE-STATUS-PATTERN [PATH ASKED]
    local count=${5-}
    [ -z "$count" ] || count=$(asked "$4")
    if [ "$status" = "$2" ] && [[ $field =~ $3 ]] && [ "$count" = "${5-}" ]; then pass "$1 ($field)"; else
        fail "$1: $status, '$field', upstream asked ${count:-?}, not $2, '$3', ${5:-?}"
    fi
}

expect_body() { # NAME BODY
    if [ "$(cat "$work/body")" = "$2" ]; then pass "$1"; else fail "$1: $(head -c 200 "$work/body")"; fi
}

expect_field() { # NAME PATTERN
    if grep -Eqi "$2" "$work/head"; then pass "$1"; else fail "$1: $(cat "$work/head")"; fi
}

# Connections of clients to the server.
connections() {
    awk -v port=":$(printf %04X "$port")" '$2 ~ port "$" && $4 == "01"' /proc/net/tcp | wc -l
}

check_fresh() {
    ask "$first"
    expect "the first request is a miss" 200 "fwd=uri-miss; stored" "$first" "1 0"
    expect_body "its body is the upstream server's" "$first for */*"
    expect_field "with its type" '^content-type: application/json'
    ask "$first"
    expect "the second is a hit, without a call" 200 "; hit; ttl=" "$first" "1 0"
    expect_body "with the same body" "$first for */*"
    expect_field "and its age" '^age: [0-9]'
    ask "$first" --head
    expect "HEAD is a hit" 200 "; hit; ttl=" "$first" "1 0"
}

check_others() {
    local type
    for type in text/csv text/html text/csv text/html; do ask /api/vary --header "Accept: $type"; done
    expect "of two types each is stored" 200 "; hit; ttl=" /api/vary "2 0"
    expect_body "and answers where it is asked for" "/api/vary for text/html"
    ask /api/private/c
    ask /api/private/c
    expect "what is private is not stored" 200 "fwd=uri-miss" /api/private/c "2 0"
    if grep -qi '^set-cookie' "$work/head"; then fail "the client gets a cookie"; else pass "the client gets no cookie"; fi
    ask /api/fresh/e --header "Cookie: a=b" --header "Authorization: Basic YTpi"
    expect_body "nor does the upstream server" "/api/fresh/e for */*"
    ask /api/missing
    expect "what is not there is 404" 404 "fwd=uri-miss" /api/missing "1 0"
    expect_body "without a body" ""
}

check_stale() {
    ask /api/stale/b
    ask /api/stale/b
    expect "what is stale costs a 304" 200 "fwd=stale; fwd-status=304" /api/stale/b "1 1"
    expect_body "with the body that is stored" "/api/stale/b for */*"
}

check_large() {
    local digest
    digest=$(python3 -c "import hashlib; print(hashlib.sha256(bytes(range(250)) * 80_000).hexdigest())")
    ask /api/large
    ask /api/large
    expect "20 MB are a hit" 200 "; hit; ttl=" /api/large "1 0"
    if [ "$(sha256sum <"$work/body")" = "$digest  -" ]; then pass "and whole"; else fail "and are others"; fi
}

check_ways_out() {
    local path
    for path in /api/../asked /api/%2E%2e/asked /api/.%2e/asked /asked/api /; do
        ask "$path"
        expect "no way leads to $path" 404 "^$"
    done
}

check_crowd() {
    local i
    for ((i = 0; i < 20; i++)); do
        curl --silent --max-time 30 --dump-header "$work/head.$i" "$url/api/held" >"$work/body.$i" &
        clients+=($!)
    done
    for ((i = 0; i < 400 && $(connections) < 20; i++)); do sleep 0.05; done
    curl --silent --max-time 10 "http://127.0.0.1:$upstream_port/release"
    wait "${clients[@]}"
    clients=()
    if [ "$(asked /api/held)" = "1 0" ] && [ "$(cat "$work"/body.* | sort -u)" = "/api/held for */*" ] &&
        [ "$(cat "$work"/body.* | wc -l)" -eq 20 ]; then
        pass "20 clients at once are 1 call ($(cat "$work"/head.* | grep -c '; collapsed') share it)"
    else
        fail "20 clients at once are $(asked /api/held) calls, with $(cat "$work"/body.* | sort | uniq -c)"
    fi
}

check_silence() {
    ask /api/silent
    expect "an upstream server that is silent is 504" 504 "^$"
}

check_end() {
    end_server "where nobody waits"
    start_server
    ask "$first"
    expect "the next process has what is stored" 200 "; hit; ttl=.*detail=disk" "$first" "1 0"
    curl --silent --max-time 30 --output "$work/body" --write-out '%{http_code}' "$url/api/silent" >"$work/status" &
    clients=($!)
    for ((i = 0; i < 400 && $(connections) < 1; i++)); do sleep 0.05; done
    end_server "where a client waits"
    wait "${clients[@]}" || true
    clients=()
    if [ "$(cat "$work/status")" = 000 ]; then pass "whose connection is closed"; else fail "who has an answer"; fi
}

check_without_upstream() {
    start_server
    kill -KILL $upstream
    wait $upstream 2>/dev/null || true
    upstream=
    ask "$first"
    expect "without an upstream server a hit is a hit" 200 "; hit; ttl="
    ask /api/stale/b
    expect "what is stale answers" 200 "fwd=stale; detail=stale"
    expect_body "with the body that is stored" "/api/stale/b for */*"
    ask /api/fresh/new
    expect "what is not stored is 502" 502 "^$"
    end_server "without an upstream server"
}

build
start_upstream
start_server
check_fresh
check_stale
check_others
check_large
check_ways_out
check_crowd
check_silence
check_end
check_without_upstream
[ $failures -eq 0 ] || { echo "check-response-cache: $failures checks failed" >&2; exit 1; }
