import ArgumentParser
import HTTPTypes
import TieredCache

/// The argument of `--header`, `Name: value`: a field of the request.
struct HeaderArgument: ExpressibleByArgument, Equatable {
    let field: HTTPField

    init?(argument: String) {
        guard let colon = argument.firstIndex(of: ":"),
            let name = HTTPField.Name(String(argument[..<colon]))
        else { return nil }
        let value = Self.trimmed(argument[argument.index(after: colon)...])
        // HTTPTypes would silently replace control characters, so they are refused here.
        guard HTTPField.isValidValue(value) else { return nil }
        field = HTTPField(name: name, value: value)
    }

    /// Removes whitespace around a value, which is not part of it (RFC 9110 §5.5).
    private static func trimmed(_ text: Substring) -> String {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        let end = text.lastIndex { !isBlank($0) }.map { text.index(after: $0) }
        return String(text[..<(end ?? text.startIndex)].drop(while: isBlank))
    }
}

extension HeaderArgument {
    /// The message for a field that the cache sets itself; nil for a field that is sent as given.
    ///
    /// If such a field were silently dropped, the user would get the wrong bytes.
    var objection: String? {
        guard CacheRequest.isOwnField(field) else { return nil }
        let remedy = field.name == .range ? "use --range" : "leave it out"
        return "--header cannot set '\(field.name)', which the cache sets itself; \(remedy)"
    }
}

extension [HeaderArgument] {
    /// The fields in the order given.
    var fields: HTTPFields {
        var fields = HTTPFields()
        for header in self { fields.append(header.field) }
        return fields
    }
}
