import AsyncHTTPClient
import HTTPTypes
import NIOSSL
import SystemPackage
import TieredCache

/// The two clients that are compared.
struct TransportPair: Sendable {
    let transport: NIOTransport
    let client: HTTPClient

    /// Makes both, and shuts them down after a closure.
    ///
    /// - Parameters:
    ///   - certificate: a PEM file that both trust beside the roots of the system; nil for none.
    ///   - body: what is done meanwhile.
    /// - Returns: what `body` returned.
    /// - Throws: what `body` throws.
    static func with<Value>(
        trusting certificate: String? = nil,
        _ body: (TransportPair) throws -> Value
    ) throws -> Value {
        let pair = TransportPair(trusting: certificate)
        let result = Result { try body(pair) }
        try pair.client.syncShutdown()
        try Blocking.run { await pair.transport.shutdown() }
        return try result.get()
    }

    private init(trusting certificate: String?) {
        var configuration = HTTPClient.Configuration()
        if let certificate {
            var security = TLSConfiguration.makeClientConfiguration()
            security.additionalTrustRoots = [.file(certificate)]
            configuration.tlsConfiguration = security
        }
        transport = NIOTransport(additionalTrustRoots: certificate.map { [FilePath($0)] } ?? [])
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }
}

/// Where an origin is, in the form that each client takes.
struct OriginAddress: Sendable {
    let scheme: String
    let authority: String
    let url: String

    init(_ scheme: String, _ authority: String) {
        self.scheme = scheme
        self.authority = authority
        url = "\(scheme)://\(authority)"
    }
}

extension NIOTransport {
    /// Gets what is at a path and reads it to its end, keeping nothing.
    ///
    /// - Parameters:
    ///   - path: the path.
    ///   - origin: where it is.
    /// - Returns: how many bytes there were.
    /// - Throws: what the transport throws; ``BenchFailure`` for another status than 200.
    func length(of path: String, at origin: OriginAddress) async throws -> Int {
        let head = HTTPRequest(
            method: .get,
            scheme: origin.scheme,
            authority: origin.authority,
            path: path
        )
        let response = try await send(TransportRequest(head: head))
        guard response.head.status == .ok else {
            throw BenchFailure("\(origin.url)\(path) said \(response.head.status)")
        }
        var count = 0
        while let chunk = try await response.body.next() { count += chunk.count }
        return count
    }
}

extension HTTPClient {
    /// Gets what is at a path and collects it.
    ///
    /// - Parameters:
    ///   - path: the path of at most 2 MiB.
    ///   - origin: where it is.
    /// - Returns: how many bytes there were.
    /// - Throws: what the client throws; ``BenchFailure`` for another status than 200.
    func length(of path: String, at origin: OriginAddress) async throws -> Int {
        let request = HTTPClientRequest(url: origin.url + path)
        let response = try await execute(request, timeout: .seconds(30))
        guard response.status == .ok else {
            throw BenchFailure("\(request.url) said \(response.status)")
        }
        return try await response.body.collect(upTo: 2 << 20).readableBytes
    }
}
