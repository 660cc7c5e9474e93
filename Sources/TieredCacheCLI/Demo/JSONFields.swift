/// The members of one flat line of JSON, as this program's own commands print it.
///
/// Not a parser for JSON at large: nested values end the reading.
struct JSONFields: Equatable {
    private var members: [String: String] = [:]

    init(_ line: some StringProtocol) {
        var rest = Substring(line).drop { $0 != "{" }.dropFirst()
        while let name = Self.string(&rest), rest.popFirst() == ":" {
            members[name] = rest.first == "\"" ? Self.string(&rest) : Self.bare(&rest)
            guard rest.popFirst() == "," else { return }
        }
    }

    /// The text of a string, or of anything else as it is written.
    func text(_ name: String) -> String? { members[name] }

    /// A whole number.
    func integer(_ name: String) -> Int64? { members[name].flatMap { Int64($0) } }

    private static func string(_ rest: inout Substring) -> String? {
        guard rest.first == "\"" else { return nil }
        rest.removeFirst()
        var text = ""
        while let character = rest.popFirst(), character != "\"" {
            text.append(character == "\\" ? rest.popFirst() ?? "\\" : character)
        }
        return text
    }

    private static func bare(_ rest: inout Substring) -> String {
        var text = ""
        while let character = rest.first, character != ",", character != "}" {
            text.append(character)
            rest.removeFirst()
        }
        return text
    }
}
