/// Appends integers and texts to bytes.
package struct ByteWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func write(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func write(bytes content: some Collection<UInt8>) {
        write(UInt32(clamping: content.count))
        bytes.append(contentsOf: content.prefix(Int(UInt32.max)))
    }

    package mutating func write(text: String) {
        write(bytes: text.utf8)
    }

    package mutating func write(optionalText text: String?) {
        write(UInt8(text == nil ? 0 : 1))
        if let text {
            write(text: text)
        }
    }
}

/// Reads integers and texts from untrusted bytes; returns nil if one is missing.
package struct ByteReader {
    private var rest: ArraySlice<UInt8>

    package init(_ bytes: some Collection<UInt8>) {
        rest = Array(bytes)[...]
    }

    package var isAtEnd: Bool { rest.isEmpty }

    package mutating func read<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
        let width = Number.bitWidth / 8
        guard rest.count >= width else { return nil }
        var number: Number = 0
        for byte in rest.prefix(width).reversed() {
            // Shifting a single byte by its width would lose nothing but is not defined by `<<`.
            number = width == 1 ? Number(truncatingIfNeeded: byte) : number << 8 | Number(byte)
        }
        rest = rest.dropFirst(width)
        return number
    }

    package mutating func readBytes() -> ArraySlice<UInt8>? {
        guard let count = read(UInt32.self), rest.count >= Int(count) else { return nil }
        let bytes = rest.prefix(Int(count))
        rest = rest.dropFirst(Int(count))
        return bytes
    }

    /// Returns nil also if the bytes are not UTF-8.
    package mutating func readText() -> String? {
        readBytes().flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// The outer nil means damage, the inner one an absent text.
    package mutating func readOptionalText() -> String?? {
        switch read(UInt8.self) {
        case 0: .some(nil)
        case 1: readText().map(Optional.some)
        default: nil
        }
    }
}
