/// A page in the text format of Prometheus, version 0.0.4, read without forgiving anything.
struct PrometheusText {
    /// One line of a family.
    struct Sample: Hashable {
        let name: String
        let labels: [String: String]
    }

    /// What stands together under one name.
    struct Family {
        var help: String?
        var type: String?
        var samples: [Sample: Double] = [:]
    }

    /// Why a page is none.
    struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    private(set) var families: [String: Family] = [:]
    private var open = ""

    /// Reads a page.
    ///
    /// - Throws: ``Malformed`` for the first line that is wrong, or stands in a wrong place.
    init(_ text: String) throws(Malformed) {
        guard text.isEmpty || text.hasSuffix("\n") else {
            throw Malformed(description: "the last line has no end")
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            if line.hasPrefix("#") {
                try takeComment(line)
            } else {
                try takeSample(line)
            }
        }
    }

    private mutating func takeComment(_ line: Substring) throws(Malformed) {
        let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
            .map(String.init)
        guard words.count == 4, words[0] == "#", ["HELP", "TYPE"].contains(words[1]),
            Self.isName(words[2], allowingColon: true)
        else { throw wrong(line) }
        if words[2] != open {
            // The lines of a family stand together.
            guard families[words[2]] == nil else { throw wrong(line) }
            open = words[2]
        }
        var family = families[open, default: Family()]
        guard family.samples.isEmpty else { throw wrong(line) }
        if words[1] == "HELP" {
            guard family.help == nil, !words[3].isEmpty,
                let help = Self.unescaped(words[3], quotes: false)
            else { throw wrong(line) }
            family.help = help
        } else {
            let types = ["counter", "gauge", "histogram", "summary", "untyped"]
            guard family.type == nil, types.contains(words[3]) else { throw wrong(line) }
            family.type = words[3]
        }
        families[open] = family
    }

    private mutating func takeSample(_ line: Substring) throws(Malformed) {
        let name = String(line.prefix { $0 != "{" && $0 != " " })
        var rest = line.dropFirst(name.count)
        var labels: [String: String] = [:]
        if rest.first == "{" {
            guard let (found, after) = Self.labels(rest.dropFirst()) else { throw wrong(line) }
            (labels, rest) = (found, after)
        }
        let sample = Sample(name: name, labels: labels)
        guard name == open, families[name]?.type != nil, rest.first == " ",
            let value = Self.number(rest.dropFirst()),
            families[name]?.samples.updateValue(value, forKey: sample) == nil
        else { throw wrong(line) }
    }

    private func wrong(_ line: Substring) -> Malformed { Malformed(description: "\(line)") }

    /// `name="value",…}`, and what follows.
    private static func labels(_ text: Substring) -> ([String: String], Substring)? {
        var labels: [String: String] = [:]
        var rest = text
        while rest.first != "}" {
            let name = String(rest.prefix { $0 != "=" })
            rest = rest.dropFirst(name.count)
            guard isName(name, allowingColon: false), rest.hasPrefix("=\"") else { return nil }
            rest = rest.dropFirst(2)
            var raw = ""
            while let character = rest.first, character != "\"" {
                raw.append(character)
                rest = rest.dropFirst()
                guard character == "\\" else { continue }
                guard let next = rest.popFirst() else { return nil }
                raw.append(next)
            }
            guard rest.popFirst() == "\"", let value = unescaped(raw, quotes: true),
                labels.updateValue(value, forKey: name) == nil
            else { return nil }
            if rest.first == "," {
                rest = rest.dropFirst()
            } else if rest.first != "}" {
                return nil
            }
        }
        return (labels, rest.dropFirst())
    }

    private static func unescaped(_ text: String, quotes: Bool) -> String? {
        var result = ""
        var rest = text[...]
        while let character = rest.popFirst() {
            guard character == "\\" else {
                result.append(character)
                continue
            }
            switch rest.popFirst() {
            case "\\": result.append("\\")
            case "n": result.append("\n")
            case "\"" where quotes: result.append("\"")
            default: return nil
            }
        }
        return result
    }

    /// A value without a time behind it.
    private static func number(_ text: Substring) -> Double? {
        text.contains { !"0123456789+-.eE".contains($0) } ? nil : Double(text)
    }

    private static func isName(_ name: String, allowingColon: Bool) -> Bool {
        guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= first) else {
            return false
        }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                true
            default: allowingColon && byte == UInt8(ascii: ":")
            }
        }
    }
}
