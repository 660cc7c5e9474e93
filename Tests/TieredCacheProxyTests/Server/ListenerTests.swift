import Logging
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What becomes of the descriptors at which a server listens.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ListenerTests {
    private struct NoResponder: Responder {
        func respond(
            to request: ServerRequest,
            body: RequestBody,
            with writer: ResponseWriter
        ) async {}
    }

    private func start(at place: HTTPServer.Place) async throws -> HTTPServer {
        try await HTTPServer.start(
            at: place,
            responder: NoResponder(),
            limits: ServerLimits(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// The descriptor at which this process listens on a port of loopback.
    private func listener(on port: Int) throws -> CInt {
        let found = (0..<CInt(4096)).first { descriptor in
            // Its port is in bytes 2 and 3, if it is one of the internet (ip(7)).
            var address = [UInt8](repeating: 0, count: 128)
            var size = socklen_t(address.count)
            let result = address.withUnsafeMutableBytes { bytes in
                let address = bytes.assumingMemoryBound(to: sockaddr.self)
                return getsockname(descriptor, address.baseAddress, &size)
            }
            var (isListening, length) = (CInt(0), socklen_t(MemoryLayout<CInt>.size))
            return result == 0 && size == 16 && Int(address[2]) << 8 + Int(address[3]) == port
                && getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &length) == 0
                && isListening != 0
        }
        return try #require(found)
    }

    @Test func aPortIsFreeThoughAChildHasTheDescriptor() async throws {
        let server = try await start(at: .port(0))
        let port = server.port
        // What a fork gives a child.
        let copy = dup(try listener(on: port))
        try #require(copy >= 0)
        await server.stop()
        try await onThread {
            let failure = #expect(throws: RawConnection.Failure.self) {
                try RawConnection(port: port)
            }
            #expect(failure?.errno == ECONNREFUSED)
        }
        let next = try await start(at: .port(port))
        await next.stop()
        close(copy)
    }

    @Test func theServiceManagerListensOn() async throws {
        let managers = try RawListener()
        let port = managers.port
        let server = try await start(
            at: .descriptor(dup(try listener(on: port)), isSocket: false)
        )
        #expect(server.port == port)
        await server.stop()
        try await onThread {
            // The connection waits for whom the manager starts next.
            _ = try RawConnection(port: port)
        }
        withExtendedLifetime(managers) {}
    }

    @Test func oneThatDoesNotListenIsClosed() async throws {
        var pair: [CInt] = [-1, -1]
        #if canImport(Glibc)
        let kind = CInt(SOCK_STREAM.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        try #require(socketpair(AF_UNIX, kind, 0, &pair) == 0)
        let (given, other) = (pair[0], pair[1])
        await #expect(throws: Errno.invalidArgument) {
            try await start(at: .descriptor(given, isSocket: true))
        }
        try await onThread {
            let rest = try RawConnection(descriptor: other).receive()
            #expect(rest == [])
        }
    }

    @Test func aNameThatIsWantedNoMoreIsLeftToTheNext() async throws {
        let files = try TemporaryDirectory("listeners")
        let next = try SocketListener(in: files.path)
        let threads = IOExecutor(threads: 1, name: "listeners")
        await #expect(throws: Errno.canceled) {
            try await start(
                at: .socket(files.appending(OwnerSocket.name), on: threads, if: { false })
            )
        }
        let directory = files.path
        try await onThread { _ = try connection(toOwnerOf: directory) }
        withExtendedLifetime(next) {}
    }
}
