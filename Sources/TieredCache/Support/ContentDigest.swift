/// A digest of a whole representation.
public struct ContentDigest: Hashable, Sendable, CustomStringConvertible {
    /// The supported algorithms; the names are those of RFC 9530 §5.
    public enum Algorithm: String, Hashable, Sendable, CaseIterable {
        /// MD5: detects accidents, not attacks.
        case md5
        /// SHA-256.
        case sha256 = "sha-256"

        /// The length of a digest in bytes.
        public var length: Int { self == .md5 ? 16 : 32 }
    }

    /// The algorithm.
    public let algorithm: Algorithm
    /// The digest.
    public let bytes: [UInt8]

    /// Creates a digest; nil if the number of bytes does not fit the algorithm.
    public init?(_ algorithm: Algorithm, bytes: [UInt8]) {
        guard bytes.count == algorithm.length else { return nil }
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Creates a digest from hexadecimal digits of either case; nil for anything else.
    public init?(_ algorithm: Algorithm, hexadecimal text: String) {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count == 2 * algorithm.length, !digits.contains(nil) else { return nil }
        let values = digits.compactMap { $0 }
        self.init(
            algorithm,
            bytes: stride(from: 0, to: values.count, by: 2).map {
                UInt8(values[$0] << 4 | values[$0 + 1])
            }
        )
    }

    /// `sha-256=` and hexadecimal digits.
    public var description: String {
        let digits = bytes.map { byte in
            let text = String(byte, radix: 16)
            return text.utf8.count < 2 ? "0" + text : text
        }
        return "\(algorithm.rawValue)=" + digits.joined()
    }
}
