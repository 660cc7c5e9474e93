import TieredCache
import TieredCacheTesting

/// An origin that a test plays byte by byte.
final class RawOrigin: Sendable {
    /// What happens on a connection: called for each request head that arrives on it.
    ///
    /// The connection goes on with the next head while it returns true.
    typealias Handler = @Sendable (RawConnection, RawRequest) throws -> Bool

    private let listener: RawListener
    private let threads = IOExecutor(threads: 12)
    private let handler: Handler
    private let log = Log()
    private let accepting = Guarded<Task<Void, Never>?>(nil)

    /// Outlives the origin while a connection is open.
    private final class Log: Sendable {
        let requests = Guarded<[RawRequest]>([])
        let connections = Guarded(0)
    }

    init(_ handler: @escaping Handler) throws {
        listener = try RawListener()
        self.handler = handler
        let task = Task { [weak self, threads, listener] in
            while let connection = await threads.run({ Handover(listener.accept()) }).connection {
                self?.serve(connection)
            }
        }
        accepting.withLock { $0 = task }
    }

    var url: String { "http://127.0.0.1:\(listener.port)" }

    /// What has been asked so far.
    var requests: [RawRequest] { log.requests.withLock { $0 } }

    func stop() async {
        listener.stop()
        await accepting.withLock { $0 }?.value
    }

    /// Takes a connection from one thread to another, which is the only one to use it then.
    private struct Handover: @unchecked Sendable {
        let connection: RawConnection?

        init(_ connection: RawConnection?) { self.connection = connection }
    }

    private func serve(_ connection: RawConnection) {
        let number = log.connections.withLock { count in
            count += 1
            return count
        }
        let peer = Handover(connection)
        Task { [threads, handler, log] in
            await threads.run {
                guard let connection = peer.connection else { return }
                do {
                    while let request = try RawRequest(from: connection, number) {
                        log.requests.withLock { $0.append(request) }
                        guard try handler(connection, request) else { return }
                    }
                } catch {
                    // The proxy has closed the connection, as it may at any time.
                }
            }
        }
    }
}

/// The head of a request as the origin got it.
struct RawRequest: Sendable, CustomStringConvertible {
    let method: String
    let target: String
    /// Names in lower case.
    let fields: [(name: String, value: String)]
    /// Which of the origin's connections it came over, counted from 1.
    let connection: Int

    /// Reads a head; nil at the end of the connection.
    init?(from peer: RawConnection, _ connection: Int) throws {
        let head = try peer.receiveHead()
        guard !head.isEmpty else { return nil }
        let lines = head.split(separator: "\r\n").map(String.init)
        let words = lines[0].split(separator: " ").map(String.init)
        // The proxy has left in the middle of it.
        guard words.count == 3, head.hasSuffix("\r\n\r\n") else { return nil }
        (method, target) = (words[0], words[1])
        fields = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            return (parts[0].lowercased(), parts.count > 1 ? String(parts[1].dropFirst()) : "")
        }
        self.connection = connection
    }

    subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    var description: String { "\(method) \(target) \(fields) on \(connection)" }
}

/// Runs blocking calls that go on until they are told to stop, on a thread of their own.
func onOwnThread(_ body: @escaping @Sendable () -> Void) async {
    await IOExecutor(threads: 1).run(body)
}
