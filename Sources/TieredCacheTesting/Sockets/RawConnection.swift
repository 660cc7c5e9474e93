#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A blocking TCP connection to a loopback port, for tests that control every byte.
///
/// Blocks its thread: do not use it on the cooperative pool. Every read times out after five
/// minutes, so that a silent server fails a test instead of hanging it.
package final class RawConnection {
    /// A failed system call.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        package let call: String
        package let errno: Int32

        package var description: String { "\(call): errno \(errno)" }
    }

    private let descriptor: Int32

    package init(port: Int, receiveBuffer: Int32? = nil) throws(Failure) {
        descriptor = socket(AF_INET, Int32(streamType), 0)
        guard descriptor >= 0 else { throw Failure(call: "socket", errno: lastError()) }
        Self.setTimeouts(descriptor)
        // Before the connection: the handshake fixes the scale of the window (tcp(7)).
        if var receiveBuffer {
            let size = socklen_t(MemoryLayout<Int32>.size)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, size)
        }
        guard Self.connect(descriptor, port: port) else {
            let failure = Failure(call: "connect", errno: lastError())
            _ = Self.closeDescriptor(descriptor)
            throw failure
        }
    }

    /// Takes ownership of an accepted connection.
    package init(descriptor: Int32) {
        self.descriptor = descriptor
        Self.setTimeouts(descriptor)
    }

    deinit {
        _ = Self.closeDescriptor(descriptor)
    }

    /// Sends the UTF-8 of `text` as it is.
    package func send(_ text: String) throws(Failure) {
        try send(Array(text.utf8))
    }

    /// Sends all of `bytes`.
    package func send(_ bytes: [UInt8]) throws(Failure) {
        var bytes = bytes[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { sendBytes(to: descriptor, bytes: $0) }
            guard count > 0 else { throw Failure(call: "send", errno: lastError()) }
            bytes = bytes.dropFirst(count)
        }
    }

    /// Sends `bytes` until all are sent or the peer has taken none for `timeout`.
    ///
    /// - Parameters:
    ///   - bytes: the bytes to send.
    ///   - timeout: the time limit in milliseconds.
    /// - Returns: the number of sent bytes.
    /// - Throws: ``Failure`` if the connection is closed.
    package func send(
        _ bytes: [UInt8],
        whileTakenWithin timeout: Int32
    ) throws(Failure) -> Int {
        var sent = 0
        while sent < bytes.count {
            var watched = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&watched, 1, timeout) > 0 else { return sent }
            let count = bytes[sent...].withUnsafeBytes { sendSomeBytes(to: descriptor, bytes: $0) }
            guard count > 0 else { throw Failure(call: "send", errno: lastError()) }
            sent += count
        }
        return sent
    }

    /// Ends the connection with a reset, as a crashed peer's kernel does.
    package func reset() {
        // Connecting to AF_UNSPEC resets the connection; the descriptor stays open until `deinit`.
        var address = sockaddr()
        address.sa_family = sa_family_t(AF_UNSPEC)
        _ = connectSocket(descriptor, to: &address, size: socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Sends no more; the peer sees the end of the stream.
    package func finish() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Waits for bytes; returns none at the end of the stream.
    package func receive(atMost limit: Int = 65536) throws(Failure) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = buffer.withUnsafeMutableBytes { receiveBytes(from: descriptor, into: $0) }
        guard count >= 0 else { throw Failure(call: "recv", errno: lastError()) }
        return Array(buffer[..<count])
    }

    /// Waits for exactly `count` bytes, or fewer if the stream ends before.
    package func receive(exactly count: Int) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = try receive(atMost: min(count - bytes.count, 1 << 20))
            guard !more.isEmpty else { return bytes }
            bytes += more
        }
        return bytes
    }

    /// Receives everything up to the end of the stream.
    package func receiveAll() throws(Failure) -> [UInt8] {
        try receive(exactly: .max)
    }

    /// Receives a head, including its empty line.
    package func receiveHead() throws(Failure) -> String {
        var bytes: [UInt8] = []
        while !bytes.ends(with: [13, 10, 13, 10]) {
            let byte = try receive(atMost: 1)
            guard !byte.isEmpty else { break }
            bytes += byte
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Begins to connect, without waiting.
    ///
    /// - Returns: the descriptor, which the caller must close.
    package static func beginConnecting(port: Int) -> Int32 {
        let descriptor = socket(AF_INET, Int32(streamType), 0)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        _ = connect(descriptor, port: port)
        return descriptor
    }

    private static func setTimeouts(_ descriptor: Int32) {
        // A test that goes wrong fails instead of hanging; far above what a loaded machine needs.
        var timeout = timeval(tv_sec: 300, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, size)
    }

    private static func connect(_ descriptor: Int32, port: Int) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connectSocket(descriptor, to: $0, size: socklen_t(MemoryLayout<sockaddr_in>.size))
                    == 0
            }
        }
    }

    private static func closeDescriptor(_ descriptor: Int32) -> Int32 { close(descriptor) }
}

#if canImport(Glibc)
private let streamType = SOCK_STREAM.rawValue
private let noSignal = Int32(MSG_NOSIGNAL)
private let doNotWait = Int32(MSG_DONTWAIT)
#else
private let streamType = SOCK_STREAM
private let noSignal: Int32 = 0
private let doNotWait = MSG_DONTWAIT
#endif

// The class's own names hide these functions from its methods.
private func lastError() -> Int32 { errno }

private func connectSocket(
    _ descriptor: Int32,
    to address: UnsafePointer<sockaddr>,
    size: socklen_t
) -> Int32 {
    connect(descriptor, address, size)
}

private func sendBytes(to descriptor: Int32, bytes: UnsafeRawBufferPointer) -> Int {
    send(descriptor, bytes.baseAddress, bytes.count, noSignal)
}

private func sendSomeBytes(to descriptor: Int32, bytes: UnsafeRawBufferPointer) -> Int {
    send(descriptor, bytes.baseAddress, bytes.count, noSignal | doNotWait)
}

private func receiveBytes(from descriptor: Int32, into bytes: UnsafeMutableRawBufferPointer) -> Int
{
    recv(descriptor, bytes.baseAddress, bytes.count, 0)
}

extension [UInt8] {
    fileprivate func ends(with suffix: [UInt8]) -> Bool {
        self.suffix(suffix.count).elementsEqual(suffix)
    }
}
