#!/usr/bin/env bash
# Finds uses between the folders of Sources/TieredCache that the table "Folders of the engine" in
# docs/architecture.md does not list, rows of it that are not so any more, and uses of a folder that does
# not stand above its user in the table, so that no folders use each other. A use is the name of a type
# that another folder declares at the top level, in code: comments and quoted words do not count. What
# stands beside the folders, such as CacheError and the facade, may use all and be used by all.
# Prints file:line of the first in each file, and exits with 1 then. `--list` prints what each folder uses.
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/architecture.md
source=Sources/TieredCache

# "folder uses" for each name in the last column; a folder without a use gets a line of its own.
listed=$(awk '
    /^### / { inTable = ($0 == "### Folders of the engine") }
    inTable && /^\| `/ {
        count = split($0, column, "|")
        split(column[2], folder, "`")
        print folder[2]
        names = split(column[count - 1], name, "`")
        for (i = 2; i <= names; i += 2) print folder[2], name[i]
    }
' "$page")
grep -q ' ' <<<"$listed" || {
    echo "check-arrows: $page has no table of folders" >&2
    exit 1
}

find "$source" -name '*.docc' -prune -o -name '*.swift' -print | sort |
    awk -v listed="$listed" -v page="$page" -v source="$source" -v mode="${1-}" '
    BEGIN {
        lines = split(listed, line, "\n")
        for (i = 1; i <= lines; i++) {
            if (split(line[i], word, " ") == 1) {
                isFolder[word[1]] = 1
                continue
            }
            isListed[word[1], word[2]] = 1
            # Its own row is there by now.
            if (word[2] == word[1] || !(word[2] in isFolder))
                complain(page ": `" word[1] "` uses `" word[2] "`, which does not stand above it")
        }
    }
    { files[++count] = $0 }
    END {
        for (i = 1; i <= count; i++) read(files[i], 1)
        for (i = 1; i <= count; i++) read(files[i], 2)
        for (i = 1; i <= lines; i++)
            if (split(line[i], word, " ") == 2 && !((word[1], word[2]) in isUsed))
                complain(page ": `" word[1] "` is listed as a user of `" word[2] "` and is none")
        if (mode == "--list") {
            for (pair in isUsed) {
                split(pair, word, SUBSEP)
                print word[1] " -> " word[2] ": " isUsed[pair] | "sort"
            }
            close("sort")
        }
        if (wrong) exit 1
        print "check-arrows: " arrows " arrows between folders are listed"
    }

    function complain(text) { print text; wrong++ }

    function folder(file,    part) {
        file = substr(file, length(source) + 2)
        return split(file, part, "/") > 1 ? part[1] : ""
    }

    # Reads a file: first what it declares, then what it uses.
    function read(file, pass,    from, number, text, status) {
        from = folder(file)
        if (from != "" && !(from in isFolder) && pass == 1 && !(from in isUnknown)) {
            isUnknown[from] = 1
            complain(page ": the folder `" from "` is not in the table")
        }
        number = 0
        isComment = 0
        while ((status = (getline text < file)) > 0) {
            number++
            if (pass == 1) declare(from, text)
            else if (from != "") use(file, from, number, code(text))
        }
        if (status < 0) complain("check-arrows: cannot read " file)
        close(file)
    }

    function declare(from, text,    word, isNested) {
        isNested = sub(/^ +/, "", text) + sub(/^(file)?private +/, "", text)
        sub(/^(@[A-Za-z_]+(\([^)]*\))? +|(public|package|internal|final|indirect|nonisolated) +)*/, "", text)
        if (text !~ /^(class|struct|enum|protocol|actor|typealias) +[A-Za-z_]/) return
        split(text, word, /[^A-Za-z0-9_]+/)
        if (isNested) isOwn[from, word[2]] = 1
        else home[word[2]] = from
    }

    # Of a line: what is neither comment nor quoted.
    function code(text) {
        if (isComment) {
            if (!match(text, /\*\//)) return ""
            text = substr(text, RSTART + 2)
            isComment = 0
        }
        gsub(/"[^"\\]*"/, " ", text)
        sub(/\/\/.*/, "", text)
        gsub(/\/\*([^*]|\*[^\/])*\*\//, " ", text)
        if (match(text, /\/\*/)) {
            text = substr(text, 1, RSTART - 1)
            isComment = 1
        }
        return text
    }

    function use(file, from, number, text,    name, before, to) {
        before = ""
        while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
            name = substr(text, RSTART, RLENGTH)
            before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
            text = substr(text, RSTART + RLENGTH)
            # A member, or a nested type of that name.
            if (before == "." || !(name in home) || (from, name) in isOwn) continue
            to = home[name]
            if (to == "" || to == from) continue
            if (!((from, to) in isUsed)) arrows++
            if (!index(" " isUsed[from, to] " ", " " name " "))
                isUsed[from, to] = isUsed[from, to] (isUsed[from, to] == "" ? "" : " ") name
            if (!((from, to) in isListed) && !((file, to) in isTold)) {
                isTold[file, to] = 1
                complain(file ":" number ": `" from "` uses `" name "` of `" to "`, which " page " does not list")
            }
        }
    }
'
