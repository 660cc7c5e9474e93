/// The options of aria2 that mean something here, and what a value of each may be.
///
/// Any other one is stored and told again, and changes nothing.
enum OptionNames {
    /// What a value has to be.
    enum Form {
        case any
        case truth
        /// A whole number from these on.
        case number(ClosedRange<Int64>)
        /// Bytes a second: digits, and K or M behind them for 1024 and its square; 0 for no limit.
        case rate
        /// Lines of a field each, as a list or as one text.
        case fields
        /// A name of a session.
        case session
        /// Names of conditions, with commas between.
        case conditions
        /// `md5=` or `sha-256=` and hexadecimal digits.
        case checksum
        /// A path from the root: the agent has no directory that its clients know.
        case directory
        /// Nothing but the empty text: there is no such function.
        case refused
    }

    static let forms: [String: Form] = [
        "all-proxy": .refused, "all-proxy-passwd": .refused, "all-proxy-user": .refused,
        "allow-overwrite": .truth,
        "auto-file-renaming": .truth,
        "checksum": .checksum,
        "continue": .truth,
        "dir": .directory,
        "gid": .any,
        "header": .fields,
        "http-passwd": .any,
        "http-proxy": .refused,
        "http-user": .any,
        "https-proxy": .refused,
        "max-concurrent-downloads": .number(1...64),
        "max-connection-per-server": .number(1...16),
        "max-download-limit": .rate,
        "max-overall-download-limit": .rate,
        "max-tries": .number(0...1_000_000),
        "no-proxy": .refused,
        "out": .any,
        "pause": .truth,
        "referer": .any,
        "require": .conditions,
        "retry-wait": .number(0...600),
        "session": .session,
        "split": .number(1...1024),
        "timeout": .number(1...600),
        "user-agent": .any,
    ]

    /// The options that hold for the agent as a whole.
    static let global: Set = ["max-concurrent-downloads", "max-overall-download-limit"]

    /// The options that one download has, and the agent as a whole has not.
    static let local: Set = ["checksum", "gid", "out", "pause", "session"]

    /// Whether it is never written to disk.
    static func isSecret(_ name: String) -> Bool { name.hasSuffix("-passwd") }

    /// Where nothing else is said.
    static let defaults: [String: String] = [
        "allow-overwrite": "false", "auto-file-renaming": "true", "continue": "false",
        "max-concurrent-downloads": "5", "max-connection-per-server": "1",
        "max-download-limit": "0", "max-overall-download-limit": "0", "max-tries": "5",
        "retry-wait": "0", "split": "5", "timeout": "60",
    ]

    /// The value in the form in which it is told; nil for one that is none of the option's.
    static func canonical(_ text: String, of name: String) -> String? {
        switch forms[name] ?? .any {
        case .any: text
        case .truth: ["true", "false"].contains(text) ? text : nil
        case .number(let range): Int64(text).flatMap { range.contains($0) ? String($0) : nil }
        case .rate: rate(text).map(String.init)
        case .fields: text.split(separator: "\n").allSatisfy(isField) ? text : nil
        case .session: SessionForm.isName(text) ? text : nil
        case .conditions: Condition.list(text).map { Condition.text($0) }
        case .checksum: DownloadChecksum(text) == nil ? nil : text
        case .directory: text.hasPrefix("/") && !text.utf8.contains(0) ? text : nil
        case .refused: text.isEmpty ? text : nil
        }
    }

    /// Bytes a second.
    static func rate(_ text: String) -> Int64? {
        var digits = text[...]
        var unit: Int64 = 1
        switch digits.last {
        case "k", "K": unit = 1 << 10
        case "m", "M": unit = 1 << 20
        default: break
        }
        if unit > 1 { digits.removeLast() }
        guard let number = Int64(digits), number >= 0 else { return nil }
        let (rate, overflow) = number.multipliedReportingOverflow(by: unit)
        return overflow ? nil : rate
    }

    private static func isField(_ line: Substring) -> Bool {
        line.split(separator: ":", maxSplits: 1).count == 2 && !line.utf8.contains(13)
    }
}
