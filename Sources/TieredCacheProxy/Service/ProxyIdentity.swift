import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The port and the token of a proxy, stored in the cache directory, so that the URLs of players
/// stay valid when the program restarts.
struct ProxyIdentity: Hashable, Sendable {
    var port: Int?
    var token: String?

    /// The name of the file in the cache directory; only its owner may read it.
    static let fileName = "PROXY"

    private static let firstLine = "tieredcache-proxy 1"

    init(port: Int? = nil, token: String? = nil) {
        self.port = port
        self.token = token
    }

    /// Parses the text of a file; unreadable lines are ignored.
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

    /// Reads the identity stored in a directory.
    ///
    /// A file that another user owns or may write to is ignored, because that user would know the
    /// token. The permissions of a file that others can read are corrected.
    static func read(from directory: FilePath) -> ProxyIdentity {
        do {
            // Without blocking, since the name may be a pipe.
            let file = try FileDescriptor.open(
                directory.appending(fileName),
                .readOnly,
                options: [.noFollow, .nonBlocking]
            )
            return try file.closeAfter { try read(file) }
        } catch {
            // There is no readable file: the proxy gets a new identity.
            return ProxyIdentity()
        }
    }

    /// Reads an identity from an open file, by the same rules.
    static func read(_ file: FileDescriptor) throws -> ProxyIdentity {
        guard try claim(file) else { return ProxyIdentity() }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
        return ProxyIdentity(text: String(decoding: bytes[..<count], as: UTF8.self))
    }

    /// Stores the identity in a directory.
    ///
    /// - Parameter directory: the cache directory.
    /// - Throws: the error of the system. The proxy works nevertheless, but gets another address
    ///   the next time.
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

    /// Removes the permissions of all users but the owner.
    ///
    /// - Returns: false if the file is not a regular one of this user, or others could write to it.
    private static func claim(_ file: FileDescriptor) throws -> Bool {
        var status = stat()
        guard fstat(file.rawValue, &status) == 0 else { throw Errno(rawValue: errno) }
        guard status.st_uid == geteuid(), status.st_mode & S_IFMT == S_IFREG else { return false }
        guard status.st_mode & 0o077 != 0 else { return true }
        guard fchmod(file.rawValue, 0o600) == 0 else { throw Errno(rawValue: errno) }
        // Corrected now, but what others could write until now is not believed.
        return status.st_mode & 0o022 == 0
    }
}
