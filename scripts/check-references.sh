#!/usr/bin/env bash
# Finds references to invariants and response rows that docs/architecture.md does not define: in comments,
# names of tests and pages, such as "(invariants 3 and 9)", "invariant 12", "Row 22:", "rows 3 to 12".
# A reference may be broken over two lines. Prints file:line of each that is unknown, and exits with 1 then.
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/architecture.md

# The headings "### Invariant N: ..." and the first column of the table below "## Response rows".
defined=$(awk '
    /^## / { inRows = ($0 == "## Response rows") }
    /^### Invariant [0-9]+:/ { sub(":", "", $3); print "invariant " $3 }
    inRows && /^\| [0-9]+ \|/ { print "row " $2 }
' "$page")
for kind in invariant row; do
    grep -q "^$kind " <<<"$defined" || {
        echo "check-references: $page defines no $kind" >&2
        exit 1
    }
done
twice=$(sort <<<"$defined" | uniq -d)
if [ -n "$twice" ]; then
    echo "check-references: $page defines more than once: ${twice//$'\n'/, }" >&2
    exit 1
fi

find Sources Tests Fuzzing Benchmarks Examples docs ./*.md -name .build -prune -o -type f \
    \( -name '*.swift' -o -name '*.c' -o -name '*.h' -o -name '*.md' \) -print | sort |
    awk -v defined="$defined" -v page="$page" '
    BEGIN {
        count = split(defined, names, "\n")
        for (i = 1; i <= count; i++) known[names[i]] = 1
    }
    {
        number = 0
        kind = ""
        while ((status = (getline line < $0)) > 0) {
            number++
            scan($0, number, $0 ~ /[.]md$/ ? line : prose(line))
        }
        if (status < 0) {
            print "check-references: cannot read " $0
            unknown++
        }
        close($0)
    }
    END {
        if (unknown) exit 1
        print "check-references: " references " references to invariants and rows are defined"
    }

    # Of a line of code: its comment, else what stands in quotes, as the names of tests do.
    function prose(code,    text) {
        if (code ~ /^[ \t]*\*/) return code
        if (match(code, /(^|[ \t])\/\//)) return substr(code, RSTART)
        text = ""
        while (match(code, /["`][^"`]*["`]/)) {
            text = text " " substr(code, RSTART + 1, RLENGTH - 2)
            code = substr(code, RSTART + RLENGTH)
        }
        return text
    }

    # The kind stays from line to line: a word at the end of one, and numbers at the start of the next,
    # are one reference.
    function scan(file, number, line,    words, word, i, text, found, rest, parts, part, p) {
        sub(/^[ \t]*(\/\/+|#+|\*|-)?[ \t]*/, "", line)
        if (line == "") kind = ""
        gsub(/[("`*\[]/, " ", line)
        words = split(line, word, /[ \t]+/)
        for (i = 1; i <= words; i++) {
            text = word[i]
            if (text == "") continue
            if (text ~ /^[Ii]nvariants?$/) {
                kind = "invariant"
            } else if (text ~ /^[Rr]ows?$/) {
                kind = "row"
            } else if (kind != "" && text !~ /^(and|or|to|through)$/) {
                found = leading(text)
                rest = substr(text, length(found) + 1)
                # 1.5, 64K, 3rd and 100% are numbers of something else.
                if (found == "" || rest ~ /^[A-Za-z%_=\/]|^[.][0-9]/) {
                    kind = ""
                    continue
                }
                parts = split(found, part, /-|–/)
                for (p = 1; p <= parts; p++) check(file, number, kind " " part[p])
                if (rest != "" && rest != ",") kind = ""
            }
        }
    }

    # A number, or two with a dash between them; for a row also a capital letter (not I).
    function leading(text) {
        if (match(text, /^[0-9]+((-|–)[0-9]+)?/)) return substr(text, 1, RLENGTH)
        if (kind == "row" && text ~ /^[A-HJ-Z]([^A-Za-z0-9]|$)/) return substr(text, 1, 1)
        return ""
    }

    function check(file, number, name) {
        references++
        if (name in known) return
        print file ":" number ": " name " is not defined in " page
        unknown++
    }
'
