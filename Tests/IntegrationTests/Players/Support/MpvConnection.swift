import Testing

@testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// mpv's IPC: lines of JSON over a local socket.
final class MpvConnection: Sendable {
    struct Failure: Error {
        let what: String
    }

    private let descriptor: Int32
    private let io = IOExecutor(threads: 1)
    private let unread = Guarded<[UInt8]>([])

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Connects to an mpv that listens.
    static func open(_ path: String) throws -> MpvConnection {
        guard let descriptor = connect(path) else { throw Failure(what: "cannot reach mpv") }
        return MpvConnection(descriptor)
    }

    private static func connect(_ path: String) -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { room in
            room.copyBytes(from: Array(path.utf8).prefix(room.count - 1))
        }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else {
            Glibc.close(descriptor)
            return nil
        }
        return descriptor
    }

    func close() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    deinit { Glibc.close(descriptor) }

    func send(_ line: String) async throws {
        let bytes = Array((line + "\n").utf8)
        let descriptor = descriptor
        let sent = await io.run {
            Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == bytes.count else { throw Failure(what: "cannot write \(line)") }
    }

    /// The next line that contains a text; others are dropped.
    @discardableResult
    func waitFor(_ text: String) async throws -> String {
        while true {
            let line = try await nextLine()
            if line.contains(text) { return line }
            guard !line.contains(#""event":"end-file""#) else {
                throw Failure(what: "waited for \(text), got \(line)")
            }
        }
    }

    private func nextLine() async throws -> String {
        while true {
            let line = unread.withLock { unread -> String? in
                guard let end = unread.firstIndex(of: 0x0A) else { return nil }
                defer { unread.removeSubrange(...end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            if let line { return line }
            let descriptor = descriptor
            let bytes = await io.run { () -> [UInt8] in
                [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
                    count = max(0, recv(descriptor, buffer.baseAddress, buffer.count, 0))
                }
            }
            guard !bytes.isEmpty else { throw Failure(what: "mpv has gone") }
            unread.withLock { $0 += bytes }
        }
    }
}
