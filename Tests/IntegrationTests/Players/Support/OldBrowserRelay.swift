import TieredCache
import TieredCacheTesting

/// Stands between a browser and a proxy and takes away what only newer browsers say about
/// themselves (`Sec-Fetch-*`), so that what a response says has to suffice.
final class OldBrowserRelay: Sendable {
    private let listener: RawListener
    private let threads = IOExecutor(threads: 24)
    private let accepting = Guarded<Task<Void, Never>?>(nil)

    init(to port: Int) throws {
        listener = try RawListener()
        let task = Task { [weak self, threads, listener] in
            while let connection = await threads.run({ Handover(listener.accept()) }).connection {
                self?.serve(connection, port)
            }
        }
        accepting.withLock { $0 = task }
    }

    /// Where the browser is to go instead of a URL of the proxy.
    func url(_ proxied: String, _ port: Int) -> String {
        proxied.replacing(":\(port)/", with: ":\(listener.port)/")
    }

    func stop() async {
        listener.stop()
        await accepting.withLock { $0 }?.value
    }

    /// Takes a connection from one thread to another, which is the only one to use it then.
    private struct Handover: @unchecked Sendable {
        let connection: RawConnection?

        init(_ connection: RawConnection?) { self.connection = connection }
    }

    /// Passes one request and its response on.
    private func serve(_ connection: RawConnection, _ port: Int) {
        let client = Handover(connection)
        Task { [threads] in
            await threads.run {
                do {
                    try client.connection.map { try Self.pass($0, port) }
                } catch {
                    // The browser or the proxy has left, as either may.
                }
            }
        }
    }

    private static func pass(_ client: RawConnection, _ port: Int) throws {
        let head = try client.receiveHead()
        guard !head.isEmpty else { return }
        let lines = head.split(separator: "\r\n").filter { line in
            let line = line.lowercased()
            return !["sec-fetch-", "host:", "connection:"].contains { line.hasPrefix($0) }
        }
        let server = try RawConnection(port: port)
        let fields = ["Host: 127.0.0.1:\(port)", "Connection: close"]
        let request = lines.map(String.init) + fields
        try server.send(request.joined(separator: "\r\n") + "\r\n\r\n")
        while case let bytes = try server.receive(), !bytes.isEmpty { try client.send(bytes) }
    }
}
