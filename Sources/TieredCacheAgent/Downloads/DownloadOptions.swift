import HTTPTypes
import TieredCache

/// The options of a download, or of the agent, by their names in aria2.
package struct DownloadOptions: Hashable, Sendable {
    /// The most bytes that the options of one download may take.
    static let maximumSize = 64 << 10

    /// The values as they are told.
    package private(set) var values: [String: String]

    /// Creates options from values that were checked before.
    package init(_ values: [String: String] = [:]) {
        self.values = values
    }

    /// Takes options of a call; one that is no text is ignored, as aria2 does.
    ///
    /// - Parameter given: the value of each name; `header` may be a list.
    /// - Throws: ``RPCError`` for a value that is none of the option's, or too many of them. None
    ///   has changed then.
    mutating func take(_ given: [String: JSONValue]) throws(RPCError) {
        var new = values
        for (name, value) in given {
            guard let text = Self.text(of: value, name: name) else { continue }
            guard let canonical = OptionNames.canonical(text, of: name) else {
                throw .option(name)
            }
            new[name] = canonical
        }
        let size = new.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        guard size <= Self.maximumSize else {
            throw RPCError("The options are longer than \(Self.maximumSize) bytes.")
        }
        values = new
    }

    private static func text(of value: JSONValue, name: String) -> String? {
        if let text = value.string { return text }
        guard name == "header", let lines = value.array else { return nil }
        return lines.compactMap(\.string).map { $0 + "\n" }.joined()
    }

    /// The value of an option, the default if it is not given, or nil.
    package subscript(name: String) -> String? {
        values[name] ?? OptionNames.defaults[name]
    }

    /// These options, where others hold for what they do not say.
    func over(_ others: DownloadOptions) -> DownloadOptions {
        DownloadOptions(others.values.merging(values) { _, own in own })
    }

    /// Takes user and password of a URL, where the options have none.
    mutating func take(userinfo: String) {
        guard self["http-user"] == nil else { return }
        let parts = userinfo.split(
            separator: ":",
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        set("http-user", to: String(parts[0]).percentDecoded)
        set("http-passwd", to: parts.count > 1 ? String(parts[1]).percentDecoded : "")
    }

    mutating func set(_ name: String, to value: String?) { values[name] = value }

    // MARK: Meaning

    func isTrue(_ name: String) -> Bool { self[name] == "true" }

    func number(_ name: String) -> Int64 { self[name].flatMap { Int64($0) } ?? 0 }

    /// The fields of the option `header`, in their order.
    var fields: HTTPFields {
        var fields = HTTPFields()
        for line in (self["header"] ?? "").split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2,
                let name = HTTPField.Name(String(parts[0]).trimmingSpaces)
            else { continue }
            fields.append(HTTPField(name: name, value: String(parts[1]).trimmingSpaces))
        }
        return fields
    }

    /// The options as they may be written to disk: without passwords and secret fields.
    ///
    /// - Returns: them, and whether any were left out.
    func withoutSecrets(
        _ secretFields: Set<HTTPField.Name>
    ) -> (options: DownloadOptions, isLess: Bool) {
        var rest = values.filter { !OptionNames.isSecret($0.key) }
        if let header = rest["header"] {
            let kept = header.split(separator: "\n").filter { line in
                let name = line.split(separator: ":").first.map { String($0).trimmingSpaces }
                return name.flatMap { HTTPField.Name($0) }.map { !secretFields.contains($0) }
                    ?? true
            }
            rest["header"] = kept.isEmpty ? nil : kept.map { $0 + "\n" }.joined()
        }
        return (DownloadOptions(rest), rest != values)
    }
}

extension String {
    var trimmingSpaces: String {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
    }
}
