import RawStructuredFieldValues

/// A field value that is a dictionary (RFC 9651 §3.2), such as `max-age=60, no-store`.
///
/// Strict, in contrast to the parser of `Cache-Control`: one error makes the whole field invalid,
/// as RFC 9651 requires of every recipient.
package struct StructuredDictionary: Hashable {
    /// A member's value; parameters are checked and dropped.
    package enum Value: Hashable {
        case boolean(Bool)
        case integer(Int64)
        case string(String)
        case token(String)
        /// A byte sequence, in base64 as received.
        case bytes(String)
        /// A decimal, a date, a display string or an inner list, which no supported field has.
        case other
    }

    /// A key and its value.
    package struct Member: Hashable {
        package let key: String
        package let value: Value
    }

    /// The longest field that is parsed, in bytes: parsing takes quadratic time.
    private static let maximumLength = 4096

    /// The members in order of the first occurrence of their keys; the last value of a repeated key
    /// counts.
    package let members: [Member]

    /// Parses all lines of a field, joined by commas; nil if they are no dictionary or longer than
    /// 4 KiB.
    package init?(_ fieldValue: String) {
        guard fieldValue.utf8.count <= Self.maximumLength else { return nil }
        var parser = StructuredFieldValueParser(Array(fieldValue.utf8))
        do {
            members = try parser.parseDictionaryFieldValue().map {
                Member(key: $0.0, value: Value($0.1))
            }
        } catch {
            return nil
        }
    }
}

extension StructuredDictionary.Value {
    fileprivate init(_ member: ItemOrInnerList) {
        guard case .item(let item) = member else {
            self = .other
            return
        }
        switch item.rfc9651BareItem {
        case .bool(let value): self = .boolean(value)
        case .integer(let value): self = .integer(value)
        case .string(let value): self = .string(value)
        case .token(let value): self = .token(value)
        case .undecodedByteSequence(let value): self = .bytes(value)
        case .decimal, .date, .displayString: self = .other
        }
    }
}
