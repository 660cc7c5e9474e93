package import SystemPackage
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Asks an agent at its socket.
///
/// Calls block, for programs that do nothing else meanwhile.
package struct AgentClient: Hashable, Sendable {
    /// The longest answer that is read.
    private static let maximumAnswer = 64 << 20

    /// The path of the socket.
    package let socket: FilePath

    package init(socket: FilePath) {
        self.socket = socket
    }

    /// What calls of an agent fail with.
    package enum Failure: Error, Hashable {
        /// Nothing answers there.
        case noAgent(Errno)
        /// The method refused.
        case refused(RPCError)
        /// The answer was none.
        case noAnswer
    }

    /// Whether a process listens at the socket.
    package var isAnswered: Bool {
        do {
            try connect().close()
            return true
        } catch {
            return false
        }
    }

    /// Calls a method.
    ///
    /// - Returns: what it gives.
    /// - Throws: ``Failure``.
    package func call(
        _ method: String,
        _ parameters: [JSONValue] = []
    ) throws(Failure) -> JSONValue {
        let message: JSONValue = [
            "jsonrpc": "2.0", "id": 1, "method": .string(method), "params": .array(parameters),
        ]
        let bytes = try exchange(Self.request(message.encoded))
        guard let start = bytes.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound,
            let answer = Self.value(Array(bytes[start...]))
        else { throw .noAnswer }
        if let result = answer["result"] { return result }
        guard let text = answer["error"]?["message"]?.string else { throw .noAnswer }
        throw .refused(RPCError(text))
    }

    private static func value(_ bytes: [UInt8]) -> JSONValue? {
        do throws(JSONReader.Failure) {
            return try JSONReader.value(of: bytes)
        } catch {
            return nil
        }
    }

    private static func request(_ body: [UInt8]) -> [UInt8] {
        let head =
            "POST \(AgentHandler.path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n\r\n"
        return Array(head.utf8) + body
    }

    // MARK: The socket

    /// Connects to the socket.
    func connect() throws(Failure) -> FileDescriptor {
        let owner: OwnerSocket
        do {
            owner = try OwnerSocket(at: socket)
        } catch {
            throw .noAgent(error as? Errno ?? .ioError)
        }
        let descriptor = makeSocket()
        guard descriptor >= 0 else { throw .noAgent(Errno(rawValue: errno)) }
        var result: Errno? = .fileNameTooLong
        withExtendedLifetime(owner) {
            UnixAddress.with(Array(owner.path.string.utf8)) { address, length in
                let isConnected = connectSocket(descriptor, address, length) == 0
                result = isConnected ? nil : Errno(rawValue: errno)
            }
        }
        guard let result else { return FileDescriptor(rawValue: descriptor) }
        closeSocket(descriptor)
        throw .noAgent(result)
    }

    private func exchange(_ request: [UInt8]) throws(Failure) -> [UInt8] {
        let descriptor = try connect()
        do {
            return try descriptor.closeAfter {
                try descriptor.writeAll(request)
                var answer: [UInt8] = []
                var part = [UInt8](repeating: 0, count: 64 << 10)
                while answer.count <= Self.maximumAnswer {
                    let count = try part.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                    if count == 0 { return answer }
                    answer += part[..<count]
                }
                throw Failure.noAnswer
            }
        } catch {
            throw .noAnswer
        }
    }
}

// Methods with these names hide the functions.

private func makeSocket() -> CInt {
    socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
}

private func connectSocket(
    _ descriptor: CInt,
    _ address: UnsafePointer<sockaddr>,
    _ length: socklen_t
) -> CInt {
    connect(descriptor, address, length)
}

private func closeSocket(_ descriptor: CInt) {
    close(descriptor)
}
