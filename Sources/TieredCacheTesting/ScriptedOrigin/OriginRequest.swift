import HTTPTypes
import NIOHTTP1

/// The parts of a request that the origin's rules need.
struct OriginRequest: Sendable {
    var method: String
    var target: String
    var fields: HTTPFields
    /// Whether the client allows another request on the connection.
    var keepsAlive: Bool
    /// Whether the version is HTTP/1.1: HTTP/1.0 has no chunked coding.
    var isVersion11: Bool

    init(
        method: String = "GET",
        target: String = "/",
        fields: HTTPFields = [:],
        keepsAlive: Bool = true,
        isVersion11: Bool = true
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.keepsAlive = keepsAlive
        self.isVersion11 = isVersion11
    }

    init(_ head: HTTPRequestHead) {
        var fields = HTTPFields()
        for (name, value) in head.headers {
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        self.init(
            method: head.method.rawValue,
            target: head.uri,
            fields: fields,
            keepsAlive: head.isKeepAlive,
            isVersion11: head.version != .http1_0
        )
    }
}
