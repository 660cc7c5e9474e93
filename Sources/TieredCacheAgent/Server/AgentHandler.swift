import HTTPTypes
import NIOCore
import NIOHTTP1
import TieredCache
import TieredCacheProxy

/// Answers what is asked at `/jsonrpc`: POST, GET, and the beginning of a WebSocket.
struct AgentHandler: MessageHandler {
    static let path = "/jsonrpc"
    /// The longest message; that of aria2 by default.
    static let maximumMessage = 2 << 20

    let calls: AgentCalls
    let agent: Agent
    /// The names by which a client may ask; nil at a socket, which no browser reaches.
    let hosts: AgentHosts?

    func upgrade(for head: HTTPRequestHead) -> ConnectionUpgrade? {
        guard head.method == .GET, Self.isOurs(head.uri),
            head.headers[canonicalForm: "upgrade"].contains(where: {
                $0.lowercased() == "websocket"
            }),
            hosts?.refusal(of: head.headers["host"]) == nil
        else { return nil }
        return AgentSocket.upgrade(head, calls: calls, agent: agent)
    }

    private static func isOurs(_ target: String) -> Bool {
        target.prefix { $0 != "?" } == path
    }

    func answer(_ request: MessageRequest) async -> MessageResponse {
        if let status = hosts?.refusal(of: request.fields[values: .init("host")]) {
            return MessageResponse(status: status)
        }
        guard Self.isOurs(request.target) else { return MessageResponse(status: 404) }
        switch request.method {
        case .post:
            let bytes = Array(request.body.readableBytesView)
            return Self.response(await calls.reply(to: RPCMessage(bytes)).reply, callback: nil)
        case .get:
            let query = RPCQuery(request.target.dropFirst(Self.path.count + 1))
            return Self.response(
                await calls.reply(to: query.message).reply,
                callback: query.callback
            )
        case .options:
            return MessageResponse(status: 200)
        default:
            return MessageResponse(status: 404)
        }
    }

    private static func response(_ reply: RPCReply, callback: String?) -> MessageResponse {
        var fields: HTTPFields = [.cacheControl: "no-cache"]
        var body = ByteBuffer()
        if let callback {
            fields[.contentType] = "text/javascript"
            body.writeString("\(callback)(")
            body.writeBytes(reply.body)
            body.writeString(")")
        } else {
            fields[.contentType] = "application/json-rpc"
            body.writeBytes(reply.body)
        }
        return MessageResponse(status: reply.status, fields: fields, body: body)
    }
}

/// The values of `Host` that a port of 127.0.0.1 answers to: a page on the web can have a name of
/// its own point here.
final class AgentHosts: Sendable {
    private let port = Guarded(0)

    /// Sets the port, which is known when the server listens.
    func allow(port number: Int) { port.withLock { $0 = number } }

    /// The status of the refusal; nil for none.
    func refusal(of hosts: [String]) -> Int? {
        guard hosts.count == 1, let host = hosts.first, !host.isEmpty else { return 400 }
        let port = port.withLock { $0 }
        let allowed = ["127.0.0.1:\(port)", "localhost:\(port)"]
        return allowed.contains(host.lowercased()) ? nil : 421
    }
}

extension HTTPField.Name {
    fileprivate init(_ name: StaticString) {
        guard let name = HTTPField.Name("\(name)") else { preconditionFailure("a name") }
        self = name
    }
}
