#!/usr/bin/env bash
# Builds the plug-ins for players into .build/plugins, each as one file with the library linked in and hidden:
#
#   mpv/tieredcache.so               needs the headers of libmpv-dev, and links none of it
#   gstreamer/libgsttieredcache.so   libgstreamer-plugins-base1.0-dev
#   vlc/libtieredcache_plugin.so     libvlccore-dev, of VLC 3.0
#
#   scripts/plugins.sh [mpv|gstreamer|vlc]...                            builds these, or all
#   scripts/plugins.sh install user|system [PREFIX [DESTDIR]]            copies what is built to where players look
#   scripts/plugins.sh uninstall user|system [PREFIX [DESTDIR]]          removes it there
#
# A plug-in exports what Plugins/NAME/symbols lists, and nothing else; scripts/link.sh says how it is linked. Where
# the headers of a player are missing, its plug-in is left out, and named. The objects of the library are built first, if needed.
#
# CC: the C compiler. LIBRARY_SCRATCH: as in scripts/library.sh. PLUGIN_SYMBOLS=yes: keeps symbols.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/link.sh
out=$PWD/.build/plugins
names=(mpv gstreamer vlc)

product() { # NAME: its file
    case $1 in
    mpv) echo mpv/tieredcache.so ;;
    gstreamer) echo gstreamer/libgsttieredcache.so ;;
    vlc) echo vlc/libtieredcache_plugin.so ;;
    *)
        echo "plugins: there is no plug-in for $1" >&2
        exit 64
        ;;
    esac
}

modules() { # NAME: those of pkg-config that it takes headers from
    case $1 in
    mpv) echo mpv ;;
    gstreamer) echo gstreamer-base-1.0 gio-2.0 ;;
    vlc) echo vlc-plugin ;;
    esac
}

place() { # NAME user|system PREFIX: the directory in which the player looks
    local multiarch data=${XDG_DATA_HOME:-$HOME/.local/share}
    if [ "$2" = user ]; then
        case $1 in
        mpv) echo "${XDG_CONFIG_HOME:-$HOME/.config}/mpv/scripts" ;;
        gstreamer) echo "$data/gstreamer-1.0/plugins" ;;
        vlc) echo "$data/vlc/plugins" ;; # for VLC_PLUGIN_PATH: it has no directory of the user
        esac
        return
    fi
    multiarch=$("${CC:-cc}" -print-multiarch 2>/dev/null || true)
    case $1 in
    mpv) echo /etc/mpv/scripts ;;
    gstreamer) echo "$3/lib/${multiarch:+$multiarch/}gstreamer-1.0" ;;
    vlc) echo "$3/lib/${multiarch:+$multiarch/}vlc/plugins/access" ;;
    esac
}

if [[ ${1-} == install || ${1-} == uninstall ]]; then
    [[ ${2-} == user || ${2-} == system ]] || { echo "usage: plugins.sh $1 user|system [PREFIX [DESTDIR]]" >&2; exit 64; }
    for name in "${names[@]}"; do
        file=$(product "$name")
        target=${4-}$(place "$name" "$2" "${3:-/usr}")/${file##*/}
        if [ "$1" = uninstall ]; then
            [ ! -e "$target" ] || { rm "$target" && echo "plugins: removed $target"; }
        elif [ -e "$out/$file" ]; then
            install -D -m 644 "$out/$file" "$target"
            echo "plugins: $target"
            if [ "$name $2" = "vlc user" ]; then
                echo "plugins: VLC looks there where VLC_PLUGIN_PATH=${target%/*} is in its environment"
            fi
        fi
    done
    exit 0
fi

wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=("${names[@]}")
possible=()
for name in "${wanted[@]}"; do
    file=$(product "$name")
    rm -f "$out/$file"
    read -r -a needed <<<"$(modules "$name")"
    sources=(Plugins/"$name"/*.c)
    if [ ! -e "${sources[0]}" ]; then
        echo "plugins: $name is left out: it has no sources" >&2
    elif ! pkg-config --exists "${needed[@]}"; then
        echo "plugins: $name is left out: pkg-config does not know all of ${needed[*]}" >&2
    else
        possible+=("$name")
    fi
done
[ ${#possible[@]} -gt 0 ] || exit 0
objects=$(scripts/library.sh objects | tail -n 1)
version=$(sed -n 's/.*version: "\(.*\)",/\1/p' Sources/TieredCacheCLI/RootCommand.swift)

build() { # NAME
    local file flags libraries work source map
    local -a compiled=() needed
    file=$out/$(product "$1")
    work=$out/$1/objects
    rm -rf "$work"
    mkdir -p "$work"
    read -r -a needed <<<"$(modules "$1")"
    read -r -a flags <<<"$(pkg-config --cflags "${needed[@]}")"
    libraries=()
    # The functions of mpv are those of the program that loads the plug-in.
    [ "$1" = mpv ] || read -r -a libraries <<<"$(pkg-config --libs "${needed[@]}")"
    for source in Plugins/common/*.c Plugins/"$1"/*.c; do
        # Of the player's headers no warning counts.
        "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -g -fPIC -ffunction-sections -fdata-sections -Wall -Wextra -Werror \
            "-DTIEREDCACHE_VERSION=\"$version\"" -I Sources/CTieredCache/include -I Plugins/common "${flags[@]/#-I/-isystem}" -pthread \
            -c "$source" -o "$work/${source//\//-}.o"
        compiled+=("$work/${source//\//-}.o")
    done
    link_shared "$file.new" "Plugins/$1/symbols" "$objects" "${compiled[@]}" "${libraries[@]/#-Wl,/-Xlinker }"
    rm -rf "$work"
    [ "${PLUGIN_SYMBOLS-}" = yes ] || strip --strip-unneeded --remove-section=.comment "$file.new"
    if ! exported "$file.new" | diff - <(LC_ALL=C sort "Plugins/$1/symbols") >&2; then
        echo "plugins: $1 exports (<) other names than Plugins/$1/symbols lists (>)" >&2
        exit 1
    fi
    if needs_swift "$file.new" >&2; then
        echo "plugins: $1 needs what a machine without Swift has not" >&2
        exit 1
    fi
    readelf --dynamic --wide "$file.new" | grep NODELETE >/dev/null || {
        echo "plugins: $1 could be unloaded" >&2
        exit 1
    }
    mv "$file.new" "$file"
    echo "plugins: $file, $(stat -c %s "$file") bytes"
}
for name in "${possible[@]}"; do build "$name"; done
