import HTTPCaching

/// The attribute list of an HLS tag (RFC 8216 §4.2), as ranges of its bytes.
///
/// The input is not trusted: a syntax error ends the list.
struct HLSAttributes<Text: RandomAccessCollection<UInt8>>: Sequence, IteratorProtocol
where Text.SubSequence == Text {
    struct Attribute {
        let name: Text
        /// The value without its quotes.
        let value: Text
        let isQuoted: Bool
    }

    private var rest: Text

    init(_ text: Text) {
        rest = text
    }

    mutating func next() -> Attribute? {
        rest = rest.drop { $0 == UInt8(ascii: ",") || $0 == 0x20 || $0 == 0x09 }
        let name = rest.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ",") }
        guard name.endIndex < rest.endIndex, rest[name.endIndex] == UInt8(ascii: "=") else {
            return nil
        }
        let value = rest[rest.index(after: name.endIndex)...]
        guard value.first == UInt8(ascii: "\"") else {
            let plain = value.prefix { $0 != UInt8(ascii: ",") }
            rest = value[plain.endIndex...]
            return Attribute(name: name, value: plain, isQuoted: false)
        }
        let quoted = value.dropFirst().prefix { $0 != UInt8(ascii: "\"") }
        guard quoted.endIndex < value.endIndex else { return nil }
        rest = value[value.index(after: quoted.endIndex)...]
        return Attribute(name: name, value: quoted, isQuoted: true)
    }

    /// The value of an attribute.
    func value(_ name: String) -> String? {
        for attribute in self where attribute.name.elementsEqual(name.utf8) {
            return TargetURI.reference(attribute.value)
        }
        return nil
    }
}

/// The lines of a playlist, each without its end; the bytes between them are CR LF or LF.
///
/// A byte order mark before the first one belongs to none: RFC 8216 §4.1 forbids it, and it is sent
/// all the same.
struct PlaylistLines: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var position: Int

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        position = bytes.starts(with: mark) ? mark.count : 0
    }

    mutating func next() -> Range<Int>? {
        guard position < bytes.count else { return nil }
        let start = position
        let feed = bytes[start...].firstIndex(of: 0x0A) ?? bytes.count
        position = feed + 1
        let hasReturn = feed < bytes.count && feed > start && bytes[feed - 1] == 0x0D
        return start..<(hasReturn ? feed - 1 : feed)
    }
}
