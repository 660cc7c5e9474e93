/// An opaque validator of a representation (RFC 9110 §8.8.3).
public struct EntityTag: Hashable, Sendable, CustomStringConvertible {
    /// Whether the tag promises only equivalence (`W/`), not equality of every byte.
    public let isWeak: Bool
    /// The text between the quotes.
    public let opaque: String

    /// Creates a tag; nil if `opaque` holds a quote, a space or a control character.
    public init?(opaque: String, isWeak: Bool = false) {
        guard opaque.utf8.allSatisfy(Self.isOpaqueCharacter), !Self.isRepaired(opaque) else {
            return nil
        }
        self.isWeak = isWeak
        self.opaque = opaque
    }

    /// Reads a field value that holds one tag, such as `"a1"` or `W/"a1"`; nil for anything else.
    public init?(_ fieldValue: some StringProtocol) {
        var scanner = FieldScanner(fieldValue)
        scanner.skipWhitespace()
        guard let tag = Self(&scanner) else { return nil }
        scanner.skipWhitespace()
        guard scanner.isAtEnd else { return nil }
        self = tag
    }

    init?(_ scanner: inout FieldScanner) {
        var ahead = scanner
        // RFC 9110 §8.8.3: `W` is case-sensitive.
        isWeak = ahead.skip("W")
        guard !isWeak || ahead.skip("/"), ahead.skip("\"") else { return nil }
        opaque = String(decoding: ahead.take(while: Self.isOpaqueCharacter), as: UTF8.self)
        guard ahead.skip("\""), !Self.isRepaired(opaque) else { return nil }
        scanner = ahead
    }

    /// The tag as a field value.
    public var description: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }

    /// Strong comparison: both tags are strong and equal, as ranges require (RFC 9110 §8.8.3.2).
    public func stronglyMatches(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && weaklyMatches(other)
    }

    /// Weak comparison: the texts are equal, regardless of strength (RFC 9110 §8.8.3.2).
    public func weaklyMatches(_ other: EntityTag) -> Bool {
        // Not `==`, which takes canonically equivalent texts for equal: a tag is bytes.
        opaque.utf8.elementsEqual(other.opaque.utf8)
    }

    /// Whether strength and bytes are equal.
    public static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.isWeak == right.isWeak && left.weaklyMatches(right)
    }

    /// Whether the tag contained bytes that are not UTF-8.
    ///
    /// They were all replaced by the same character, so different tags might compare equal.
    private static func isRepaired(_ opaque: String) -> Bool {
        opaque.unicodeScalars.contains("\u{FFFD}")
    }

    private static func isOpaqueCharacter(_ byte: UInt8) -> Bool {
        byte == 0x21 || (byte >= 0x23 && byte != 0x7F)
    }
}
