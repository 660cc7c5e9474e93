import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The port and the token of a proxy, kept with the cache directory, so that a player's URLs stay
/// good when the program restarts.
struct ProxyIdentity: Hashable, Sendable {
    var port: Int?
    var token: String?

    /// The name of the file below the cache directory; only the owner may read it.
    static let fileName = "PROXY"

    private static let firstLine = "tieredcache-proxy 1"

    init(port: Int? = nil, token: String? = nil) {
        self.port = port
        self.token = token
    }

    /// Reads the text of a file; what cannot be read is as if it were not there.
    init(text: String) {
        let lines = text.split(separator: "\n")
        guard lines.first.map(String.init) == Self.firstLine else { return }
        for line in lines.dropFirst() {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            guard words.count == 2 else { continue }
            let value = words[1]
            switch words[0] {
            case "port":
                port = Int(value).flatMap { (1...65_535).contains($0) ? $0 : nil }
            case "token":
                token = ProxyAddress.isToken(value) ? value : nil
            default:
                continue
            }
        }
    }

    /// The text of the file.
    var text: String {
        var text = Self.firstLine + "\n"
        if let port { text += "port \(port)\n" }
        if let token { text += "token \(token)\n" }
        return text
    }

    // MARK: Files

    /// Reads what is kept with a directory.
    ///
    /// A file that others have made or may write to says nothing: they would know the token. One
    /// that they could read until now is closed to them.
    static func read(from directory: FilePath) -> ProxyIdentity {
        do {
            // What is no file must not be waited for.
            let file = try FileDescriptor.open(
                directory.appending(fileName),
                .readOnly,
                options: [.noFollow, .nonBlocking]
            )
            return try file.closeAfter {
                guard try Self.claim(file) else { return ProxyIdentity() }
                var bytes = [UInt8](repeating: 0, count: 4096)
                let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
                return ProxyIdentity(text: String(decoding: bytes[..<count], as: UTF8.self))
            }
        } catch {
            // There is none yet, or it cannot be read: the proxy gets a new one.
            return ProxyIdentity()
        }
    }

    /// Keeps the identity with a directory.
    ///
    /// - Parameter directory: the cache directory.
    /// - Throws: what the system says; the proxy works all the same, under another address the
    ///   next time.
    func write(to directory: FilePath) throws {
        let file = try FileDescriptor.open(
            directory.appending(Self.fileName),
            .writeOnly,
            options: [.create, .noFollow, .nonBlocking],
            permissions: .ownerReadWrite
        )
        try file.closeAfter {
            guard try Self.claim(file) else { throw Errno.notPermitted }
            try file.resize(to: 0)
            _ = try file.writeAll(text.utf8)
        }
    }

    /// Takes a file from all but its owner.
    ///
    /// - Returns: false where it is no file of this user, or others could write to it.
    private static func claim(_ file: FileDescriptor) throws -> Bool {
        var status = stat()
        guard fstat(file.rawValue, &status) == 0 else { throw Errno(rawValue: errno) }
        guard status.st_uid == geteuid(), status.st_mode & S_IFMT == S_IFREG else { return false }
        guard status.st_mode & 0o077 != 0 else { return true }
        guard fchmod(file.rawValue, 0o600) == 0 else { throw Errno(rawValue: errno) }
        return status.st_mode & 0o022 == 0
    }
}
