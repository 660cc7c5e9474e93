#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The content of LOCK: the owner of the directory, and the claim.
///
/// Always 64 bytes, so that writing it anew is one write in place. Older versions write the process
/// number alone, and with that take the claim away, which they would not keep.
struct LockFile {
    static let length = 64

    /// The owner's process number, for messages.
    private(set) var owner: Int32?
    /// The claim: an upper bound of the bytes allocated in the directory; `nil` if there is none.
    private(set) var claim: Int64?

    /// The content that this process writes.
    init(claim: Int64?) {
        owner = getpid()
        self.claim = claim
    }

    /// Decodes the content of LOCK, which may be anything.
    init(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        owner = Int32(text.prefix { !$0.isWhitespace })
        guard lines.count > 1 else { return }
        let words = lines[1].split(separator: " ")
        guard words.count == 2, let number = Int64(words[0]),
            // A sum with it must not overflow, whatever the file says.
            (0..<(1 << 60)).contains(number),
            Self.checksum(of: number) == words[1]
        else { return }
        claim = number
    }

    /// The bytes of the file.
    var encoded: [UInt8] {
        var text = "\(owner ?? 0)\n"
        if let claim { text += "\(claim) \(Self.checksum(of: claim))" }
        let padding = max(0, Self.length - 1 - text.utf8.count)
        return Array(text.utf8) + [UInt8](repeating: UInt8(ascii: " "), count: padding)
            + [UInt8(ascii: "\n")]
    }

    /// Writes it over what is there.
    func write(to file: OpenFile, _ fileSystem: any FileSystem) throws(FileSystemError) {
        try fileSystem.write(encoded, to: file, at: 0)
    }

    private static func checksum(of claim: Int64) -> String {
        String(Array("\(claim)".utf8).withUnsafeBytes { checksumOf($0[...]) }, radix: 16)
    }
}
