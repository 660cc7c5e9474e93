import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A listener at the owner's socket that says what the test wants, or nothing.
final class SocketListener: Sendable {
    private let descriptor: Int32

    /// Listens; the system takes connections that nothing accepts.
    init(in directory: FilePath) throws {
        let socket = try OwnerSocket(in: directory)
        unlink(socket.path.string)
        descriptor = try withAddress(of: socket) { descriptor, address, size in
            bind(descriptor, address, size) == 0 && listen(descriptor, 16) == 0
        }
    }

    deinit { close(descriptor) }

    /// Refuses further connections.
    func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Answers the next connection: reads a head, sends the bytes, and closes.
    ///
    /// - Parameters:
    ///   - bytes: what is sent.
    ///   - beforeClosing: called when all is sent.
    func answer(_ bytes: [UInt8], beforeClosing: () -> Void) throws {
        try answer(bytes) { (_: RawConnection) in beforeClosing() }
    }

    /// As the other one; the rest is sent at the connection.
    func answer(_ bytes: [UInt8], rest: (RawConnection) throws -> Void = { _ in }) throws {
        let client = accept(descriptor, nil, nil)
        try #require(client >= 0)
        let connection = RawConnection(descriptor: client)
        _ = try connection.receiveHead()
        try connection.send(bytes)
        try rest(connection)
    }
}

/// Connects to the owner of a directory.
func connection(toOwnerOf directory: FilePath) throws -> RawConnection {
    let socket = try OwnerSocket(in: directory)
    return RawConnection(
        descriptor: try withAddress(of: socket) { descriptor, address, size in
            connect(descriptor, address, size) == 0
        }
    )
}

/// Makes a descriptor, and uses it with an address.
private func withAddress(
    of path: OwnerSocket,
    _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Bool
) throws -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.path.string.utf8)
    try withUnsafeMutableBytes(of: &address.sun_path) { room in
        try #require(bytes.count < room.count)
        room.copyBytes(from: bytes)
    }
    #if canImport(Glibc)
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
    let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    let isDone = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
            body(descriptor, generic, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    try #require(isDone)
    return descriptor
}
