import Glibc
import Synchronization
import TieredCacheTesting

/// A server on loopback made of bare system calls, so that it can break every rule of HTTP.
///
/// Each accepted connection runs the script on a thread of its own.
final class RawPeer: Sendable {
    struct Connection: Sendable {
        let descriptor: Int32

        /// Reads up to the empty line that ends a request head; nil where the peer closed.
        func readHead() -> String? {
            var bytes: [UInt8] = []
            while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                var byte: UInt8 = 0
                guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
                bytes.append(byte)
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        func read(count: Int) -> String {
            var bytes = [UInt8](repeating: 0, count: count)
            var filled = 0
            while filled < count {
                let step = bytes.withUnsafeMutableBytes {
                    recv(descriptor, $0.baseAddress?.advanced(by: filled), count - filled, 0)
                }
                guard step > 0 else { break }
                filled += step
            }
            return String(decoding: bytes[..<filled], as: UTF8.self)
        }

        /// Writes all of it; false where the peer has gone.
        @discardableResult
        func write(_ text: String) -> Bool { write(Array(text.utf8)) }

        @discardableResult
        func write(_ bytes: [UInt8]) -> Bool {
            var sent = 0
            while sent < bytes.count {
                let step = bytes.withUnsafeBytes {
                    send(
                        descriptor,
                        $0.baseAddress?.advanced(by: sent),
                        bytes.count - sent,
                        Int32(MSG_NOSIGNAL)
                    )
                }
                guard step > 0 else { return false }
                sent += step
            }
            return true
        }

        /// Sends nothing more; what was written arrives all the same.
        func endOutput() {
            Glibc.shutdown(descriptor, Int32(SHUT_WR))
        }

        /// Blocks until the other side's kernel has taken all that was written.
        func waitUntilTaken() {
            var unsent: Int32 = 0
            while ioctl(descriptor, UInt(TIOCOUTQ), &unsent) == 0, unsent > 0 { usleep(1000) }
        }

        /// Closes with a reset instead of an orderly end.
        func reset() {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(
                descriptor,
                SOL_SOCKET,
                SO_LINGER,
                &option,
                socklen_t(MemoryLayout<linger>.size)
            )
        }

        /// Blocks until the other side closes.
        func waitForClose() {
            var byte: UInt8 = 0
            while recv(descriptor, &byte, 1, 0) > 0 {}
        }
    }

    private let listener: RawListener
    private let accepted = Atomic<Int>(0)

    var port: Int { listener.port }
    /// How many connections were made so far.
    var connections: Int { accepted.load(ordering: .sequentiallyConsistent) }
    var authority: String { "127.0.0.1:\(port)" }

    init(_ script: @escaping @Sendable (Connection) -> Void) {
        let listener = Self.listen()
        self.listener = listener
        let owner = self
        // Only this thread lets the listener go: if another closed it between two calls of
        // `accept`, the next one could take a connection of a later peer with the same number.
        Self.startThread { [weak owner] in
            while let descriptor = listener.acceptDescriptor() {
                owner?.accepted.add(1, ordering: .sequentiallyConsistent)
                Self.startThread {
                    script(Connection(descriptor: descriptor))
                    close(descriptor)
                }
            }
        }
    }

    deinit {
        // Wakes the accepting thread, which then leaves.
        listener.stop()
    }

    private static func listen() -> RawListener {
        do {
            return try RawListener()
        } catch {
            preconditionFailure("\(error)")
        }
    }

    private final class Start {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private static func startThread(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Start(body)).toOpaque()
        let result = pthread_create(
            &thread,
            nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            },
            context
        )
        precondition(result == 0)
        pthread_detach(thread)
    }
}
