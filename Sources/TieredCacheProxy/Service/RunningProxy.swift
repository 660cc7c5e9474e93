import CLinuxCalls
package import SystemPackage
package import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A proxy of another process that serves a cache directory, see ``ServingFile``.
package final class RunningProxy: Sendable {
    private let address: ProxyAddress
    private let file: FileDescriptor

    private init(address: ProxyAddress, file: FileDescriptor) {
        self.address = address
        self.file = file
    }

    deinit {
        // Gives the share of the lock back.
        close(file.rawValue)
    }

    /// Looks for the proxy of a directory and asks it whether it is there, for three seconds at
    /// most.
    ///
    /// It stays there as long as the result lives, unless it is stopped.
    ///
    /// - Returns: nil if there is none, or none that answers as it has to.
    package static func find(in directory: FilePath) -> RunningProxy? {
        do {
            let file = try FileDescriptor.open(
                directory.appending(ServingFile.name),
                .readOnly,
                options: [.noFollow, .nonBlocking, .closeOnExec]
            )
            if let proxy = try open(file) { return proxy }
            try file.close()
        } catch {
            // Without a readable file there is no proxy.
        }
        return nil
    }

    private static func open(_ file: FileDescriptor) throws -> RunningProxy? {
        // One that ends has the whole lock. The share comes first: it cannot end behind the answer.
        guard tc_share(file.rawValue) != 0 else { return nil }
        let identity = try ProxyIdentity.read(file)
        guard let port = identity.port, let token = identity.token else { return nil }
        let address = ProxyAddress(port: port, token: token)
        guard answers(at: address) else { return nil }
        return RunningProxy(address: address, file: file)
    }

    /// Whether the proxy of an address answers there: the number of a process would prove nothing.
    ///
    /// A redirect to the base is an answer that no other server gives. The token goes to no server
    /// of another user, which may have taken the port since.
    static func answers(at address: ProxyAddress) -> Bool {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map { text(of: FilePath($0)) }
        guard isListener(geteuid(), on: address.port, in: tables) else { return false }
        let request = Array(
            """
            HEAD /\(address.token) HTTP/1.1\r\nHost: 127.0.0.1:\(address.port)\r
            Connection: close\r\n\r\n
            """.utf8
        )
        var answer = [UInt8](repeating: 0, count: 4096)
        let count = tc_ask_loopback(
            Int32(address.port),
            request,
            request.count,
            &answer,
            answer.count,
            3000
        )
        guard count > 0 else { return false }
        return isProof(String(decoding: answer[..<Int(count)], as: UTF8.self), of: address)
    }

    /// Whether the head of a response is that of the proxy of an address.
    static func isProof(_ head: String, of address: ProxyAddress) -> Bool {
        head.hasPrefix("HTTP/1.1 308 ")
            && head.lowercased().contains("\r\nlocation: \(address.base.lowercased())\r\n")
    }

    /// Whether a user, and no other, listens on a port, by the tables of the kernel.
    ///
    /// A listener of IPv6 takes connections to 127.0.0.1 as well. Where there is no table nothing is
    /// known, and so nobody listens.
    static func isListener(_ user: uid_t, on port: Int, in tables: [String]) -> Bool {
        let users = tables.flatMap { listeners(in: $0, port: port) }
        return !users.isEmpty && users.allSatisfy { $0 == user }
    }

    /// The users whose sockets listen on a port, by a table of the kernel.
    static func listeners(in table: String, port: Int) -> [uid_t] {
        let digits = String(port, radix: 16, uppercase: true)
        let end = ":" + String(repeating: "0", count: 4 - digits.count) + digits
        return table.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            // Place, local address, remote address, state (0A: it listens), ..., user.
            guard words.count > 7, words[3] == "0A", words[1].hasSuffix(end) else { return nil }
            return uid_t(words[7])
        }
    }

    /// The text of a file of the kernel; empty if there is none.
    private static func text(of path: FilePath) -> String {
        var bytes: [UInt8] = []
        do {
            let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            try file.closeAfter {
                var part = [UInt8](repeating: 0, count: 64 << 10)
                while case let count = try part.withUnsafeMutableBytes({ try file.read(into: $0) }),
                    count > 0
                {
                    bytes += part[..<count]
                }
            }
        } catch {
            // Systems without that table.
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The URL of its status page, which contains the token.
    package var base: String { address.base }

    /// The port.
    package var port: Int { address.port }

    /// The proxied URL of an absolute `http` or `https` URL.
    package func url(for url: String) throws(CacheError) -> String { try address.url(for: url) }
}
