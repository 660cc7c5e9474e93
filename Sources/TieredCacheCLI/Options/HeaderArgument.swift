import ArgumentParser
import HTTPTypes

/// `--header 'Name: value'`, a field of the request.
struct HeaderArgument: ExpressibleByArgument, Equatable {
    let field: HTTPField

    init?(argument: String) {
        guard let colon = argument.firstIndex(of: ":"),
            let name = HTTPField.Name(String(argument[..<colon]))
        else { return nil }
        let value = argument[argument.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        // HTTPTypes would replace control characters in silence; the user must hear of them.
        guard HTTPField.isValidValue(String(value)) else { return nil }
        field = HTTPField(name: name, value: String(value))
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
