/// The local part of the name of an element.
struct ElementName {
    let local: ArraySlice<UInt8>

    init(_ text: ArraySlice<UInt8>) {
        let name = text.prefix { byte in
            !byte.isXMLSpace && byte != UInt8(ascii: ">") && byte != UInt8(ascii: "/")
        }
        let colon = name.firstIndex(of: UInt8(ascii: ":"))
        local = colon.map { name[($0 + 1)...] } ?? name
    }
}

/// Iterates over the tags and texts of an XML document without building a tree.
///
/// Skips comments, declarations and processing instructions. The input is not trusted: a syntax
/// error ends the iteration.
struct XMLScanner: Sequence, IteratorProtocol {
    enum Piece {
        /// A start tag: its name, the range of its attributes, whether it is an empty-element tag,
        /// and its position.
        case start(ElementName, attributes: Range<Int>, isEmpty: Bool, at: Int)
        case end
        /// Character data, or the content of a CDATA section.
        case text(Range<Int>)
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func next() -> Piece? {
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "<") else { return text() }
            let rest = bytes[position...]
            if rest.starts(with: "<![CDATA[".utf8) {
                let start = position + 9
                guard let end = find("]]>", from: start) else { break }
                position = end + 3
                return .text(start..<end)
            }
            if rest.starts(with: "<!--".utf8) {
                guard let end = find("-->", from: position + 4) else { break }
                position = end + 3
            } else if rest.starts(with: "<?".utf8) {
                guard let end = find("?>", from: position + 2) else { break }
                position = end + 2
            } else if let tag = tag() {
                return tag
            }
        }
        position = bytes.count
        return nil
    }

    private mutating func text() -> Piece {
        let start = position
        position = bytes[start...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
        return .text(start..<position)
    }

    /// Reads one tag; nil for a declaration, and at a syntax error.
    private mutating func tag() -> Piece? {
        let start = position
        guard let close = endOfTag(from: start + 1) else {
            position = bytes.count
            return nil
        }
        position = close + 1
        // A document type ends at its first `>` here, and its rest is text: no entity is ever
        // defined.
        guard start + 1 < close, bytes[start + 1] != UInt8(ascii: "!") else { return nil }
        if bytes[start + 1] == UInt8(ascii: "/") { return .end }
        let isEmpty = bytes[close - 1] == UInt8(ascii: "/")
        let inside = bytes[(start + 1)..<(isEmpty ? close - 1 : close)]
        let name = inside.prefix { !$0.isXMLSpace }
        return .start(
            ElementName(name),
            attributes: name.endIndex..<inside.endIndex,
            isEmpty: isEmpty,
            at: start
        )
    }

    /// The position of the `>` that ends a tag, ignoring quoted ones.
    private func endOfTag(from start: Int) -> Int? {
        var quote: UInt8?
        // A range that ends before its start traps.
        for index in start..<Swift.max(start, bytes.count) {
            let byte = bytes[index]
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            } else if byte == UInt8(ascii: ">") {
                return index
            }
        }
        return nil
    }

    private func find(_ mark: String, from start: Int) -> Int? {
        guard let first = mark.utf8.first, start <= bytes.count else { return nil }
        var index = start
        while let found = bytes[index...].firstIndex(of: first) {
            if bytes[found...].starts(with: mark.utf8) { return found }
            index = found + 1
        }
        return nil
    }
}

/// Iterates over the attributes of a start tag, as ranges of the document.
struct XMLAttributes: Sequence, IteratorProtocol {
    struct Attribute {
        let name: ElementName
        let value: Range<Int>
    }

    private var rest: ArraySlice<UInt8>

    init(_ text: ArraySlice<UInt8>) {
        rest = text
    }

    mutating func next() -> Attribute? {
        rest = rest.drop { $0.isXMLSpace }
        let name = rest.prefix { !$0.isXMLSpace && $0 != UInt8(ascii: "=") }
        var value = rest[name.endIndex...].drop { $0.isXMLSpace }
        guard !name.isEmpty, value.first == UInt8(ascii: "=") else { return nil }
        value = value.dropFirst().drop { $0.isXMLSpace }
        guard let quote = value.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
            let end = value.dropFirst().firstIndex(of: quote)
        else { return nil }
        rest = rest[(end + 1)...]
        return Attribute(name: ElementName(name), value: value.startIndex + 1..<end)
    }
}
