import ArgumentParser
import HTTPTypes
import TieredCache

/// `--header 'Name: value'`, a field of the request.
struct HeaderArgument: ExpressibleByArgument, Equatable {
    let field: HTTPField

    init?(argument: String) {
        guard let colon = argument.firstIndex(of: ":"),
            let name = HTTPField.Name(String(argument[..<colon]))
        else { return nil }
        let value = Self.trimmed(argument[argument.index(after: colon)...])
        // HTTPTypes would replace control characters in silence; the user must hear of them.
        guard HTTPField.isValidValue(value) else { return nil }
        field = HTTPField(name: name, value: value)
    }

    /// White space around a value is not part of it (RFC 9110 §5.5).
    private static func trimmed(_ text: Substring) -> String {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        let end = text.lastIndex { !isBlank($0) }.map { text.index(after: $0) }
        return String(text[..<(end ?? text.startIndex)].drop(while: isBlank))
    }
}

extension HeaderArgument {
    /// What to say of a field that a request has from elsewhere; nil for one that is sent as given.
    ///
    /// Dropped in silence, it would leave the user with the wrong bytes.
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
