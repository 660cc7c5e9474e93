import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

/// A server on a free port of 127.0.0.1 that gives each request to a client.
struct ForwardingServer: Sendable {
    private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

    let origin: String
    let client: any ForwardingClient

    /// Serves until the process ends.
    func run() async throws {
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
        // A pipe would keep what is printed until much more is.
        let line = "listening on http://127.0.0.1:\(server.channel.localAddress?.port ?? 0)\n"
        try FileHandle.standardOutput.write(contentsOf: Data(line.utf8))
        try await withThrowingDiscardingTaskGroup { group in
            try await server.executeThenClose { connections in
                for try await connection in connections {
                    group.addTask { await serve(connection) }
                }
            }
        }
    }

    private func serve(_ connection: Connection) async {
        do {
            try await connection.executeThenClose { parts, writer in
                var parts = parts.makeAsyncIterator()
                while case .head(let head)? = try await parts.next() {
                    var sent = ByteBuffer()
                    while case .body(var part)? = try await parts.next() { sent.writeBuffer(&part) }
                    let (response, body) = await response(to: head, body: sent)
                    try await writer.write(.head(response))
                    if head.method != .HEAD { try await writer.write(.body(.byteBuffer(body))) }
                    try await writer.write(.end(nil))
                }
            }
        } catch {
            // The other side has gone, and nobody is left to be told.
        }
    }

    private func response(
        to head: HTTPRequestHead,
        body: ByteBuffer
    ) async -> (HTTPResponseHead, ByteBuffer) {
        var request = head
        request.uri = origin + head.uri
        // SwiftNIO would write `MSEARCH`.
        if head.method == .MSEARCH { request.method = .RAW(value: "M-SEARCH") }
        request.headers = head.headers.forwarded
        do {
            var (response, body) = try await client.response(to: request, body: body)
            // To HEAD it is the length that the body of a response to GET has.
            let length = head.method == .HEAD ? response.headers["Content-Length"].first : nil
            response.headers = response.headers.forwarded
            response.headers.add(
                name: "Content-Length",
                value: length ?? "\(body.readableBytes)"
            )
            return (response, body)
        } catch {
            let text = ByteBuffer(string: "\(error)")
            let fields: HTTPHeaders = ["Content-Length": "\(text.readableBytes)"]
            return (.init(version: .http1_1, status: .badGateway, headers: fields), text)
        }
    }
}

extension HTTPHeaders {
    /// Those that an intermediary forwards (RFC 9110 §7.6.1); both sides make `Host` and
    /// `Content-Length` themselves.
    fileprivate var forwarded: HTTPHeaders {
        let own = [
            "connection", "content-length", "host", "keep-alive", "proxy-connection", "te",
            "trailer", "transfer-encoding", "upgrade",
        ]
        var fields = self
        for name in own + self[canonicalForm: "connection"].map(String.init) {
            fields.remove(name: name)
        }
        return fields
    }
}
