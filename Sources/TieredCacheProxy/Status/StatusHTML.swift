import TieredCache

/// One row of the status page.
struct StatusRow: Hashable, Sendable {
    let url: String
    let status: Int
    let length: Int64?
    let stored: Int64
    let isComplete: Bool
    let isPinned: Bool
    /// Bytes per second since the last view of the page.
    let rate: Int64
    /// Whether the URL alone identifies the entry, so that forms can refer to it.
    let hasForms: Bool

}

extension StatusRow {
    /// Creates the row of an entry with a growth rate in bytes per second.
    init(_ entry: EntrySummary, rate: Int64) {
        self.init(
            url: entry.url.isEmpty ? entry.key.string : entry.url,
            status: entry.status,
            length: entry.length,
            stored: entry.storedBytes,
            isComplete: entry.isComplete,
            isPinned: entry.isPinned,
            rate: entry.isComplete ? 0 : rate,
            hasForms: entry.explicitKey == nil && !entry.url.isEmpty
        )
    }
}

/// Renders the status page; all external text is escaped.
enum StatusHTML {
    private static let style = """
        :root{color-scheme:light dark}
        body{font:15px system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}
        table{border-collapse:collapse;width:100%}td,th{padding:.3em .6em;text-align:left}
        tr:nth-child(even){background:#8881}td.url{word-break:break-all;min-width:12em}
        td:not(.url){white-space:nowrap}progress{display:block;width:9em}
        form{display:inline}dl{display:grid;grid-template-columns:repeat(auto-fill,12em)}
        dd{margin:0 0 .8em;font-weight:600}
        @media(max-width:40em){thead{display:none}tr,td{display:block}progress{width:100%}}
        """

    /// The whole page; it reloads itself every two seconds.
    ///
    /// - Parameters:
    ///   - rows: the entries to show.
    ///   - more: the number of entries that are not shown.
    ///   - usage: the usage of the disk tier; nil if the disk is not usable.
    ///   - statistics: the statistics of the cache.
    ///   - problem: why the disk is not usable; nil if it is.
    /// - Returns: the HTML.
    static func page(
        _ rows: [StatusRow],
        more: Int = 0,
        usage: DiskUsage?,
        statistics: MediaCache.Statistics,
        problem: String? = nil
    ) -> String {
        """
        <!doctype html><html lang="en"><head><meta charset="utf-8"><title>TieredCache</title>
        <meta name="viewport" content="width=device-width,initial-scale=1">
        <meta http-equiv="refresh" content="2"><style>\(style)</style></head><body>
        <h1>TieredCache</h1><dl>\(figures(usage: usage, statistics: statistics))</dl>
        <table><thead><tr><th>URL<th>Status<th>Stored<th>Rate<th></tr></thead><tbody>
        \(rows.map(row).joined(separator: "\n"))
        </tbody></table>\(remark(isEmpty: rows.isEmpty, more: more, problem: problem))
        <p><a href="metrics">Metrics</a></p></body></html>

        """
    }

    /// The text below the table.
    private static func remark(isEmpty: Bool, more: Int, problem: String?) -> String {
        if let problem { return "<p>The disk cannot be used: \(escaped(problem))</p>" }
        if isEmpty { return "<p>Nothing is cached yet.</p>" }
        return more > 0 ? "<p>And \(more) more, used less recently.</p>" : ""
    }

    private static func figures(usage: DiskUsage?, statistics: MediaCache.Statistics) -> String {
        let figures = [
            ("On disk", usage.map { "\(size($0.bytes)) of \(size($0.limit))" } ?? "–"),
            ("Entries", usage.map { "\($0.entries)" } ?? "–"),
            ("Hit ratio", percent(statistics.hitRatio)),
            ("Byte hit ratio", percent(statistics.byteHitRatio)),
            ("From the origin", size(statistics.bytesFromOrigin)),
            ("From the cache", size(statistics.bytesFromCache)),
            ("Downloads", "\(statistics.downloadsStarted)"),
            ("Failed", "\(statistics.downloadsFailed)"),
        ]
        return figures.map { "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>" }.joined()
    }

    private static func row(_ row: StatusRow) -> String {
        let all = row.length.map(size) ?? "?"
        let amount = row.isComplete ? all : "\(size(row.stored)) of \(all)"
        // Without a length the bar is indeterminate.
        let part = row.length.map { length in
            " max=\"\(max(1, length))\" value=\"\(length > 0 ? row.stored : 1)\""
        }
        let bar = "<progress\(part ?? "")></progress>"
        let rate = row.rate > 0 ? "\(size(row.rate))/s" : ""
        let url = escaped(row.url)
        let mark = row.isPinned ? "pinned " : ""
        let pin =
            row.isPinned
            ? form(action: "unpin", url: url, label: "Unpin")
            : form(action: "pin", url: url, label: "Pin")
        let forms =
            row.hasForms ? pin + " " + form(action: "remove", url: url, label: "Remove") : ""
        return "<tr><td class=\"url\">\(url)<td>\(row.status)<td>\(bar) \(amount)"
            + "<td>\(rate)<td>\(mark)\(forms)</tr>"
    }

    private static func form(action: String, url: String, label: String) -> String {
        "<form method=\"post\" action=\"\(action)\">"
            + "<input type=\"hidden\" name=\"url\" value=\"\(url)\"><button>\(label)</button></form>"
    }

    private static func percent(_ ratio: Double?) -> String {
        ratio.map { "\(Int(($0 * 100).rounded())) %" } ?? "–"
    }

    private static func size(_ bytes: Int64) -> String { ByteCountFormat.format(bytes) }

    /// Escapes a text for an element or a quoted attribute.
    static func escaped(_ text: String) -> String {
        // By scalars, because a combining mark would hide the character before it.
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }
}
