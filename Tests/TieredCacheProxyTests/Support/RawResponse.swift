import Testing
import TieredCache
import TieredCacheTesting

/// Threads on which tests may block on a socket.
let socketThreads = IOExecutor(threads: 16)

/// What a server has sent back, as it was on the wire.
struct RawResponse: Sendable, CustomStringConvertible {
    let status: Int
    let reason: String
    /// Names in lower case.
    let fields: [(name: String, value: String)]
    var body: [UInt8] = []

    init(head: String) throws {
        let lines = head.components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ", maxSplits: 2).map(String.init)
        try #require(words.count >= 2 && words[0] == "HTTP/1.1", "\(head.debugDescription)")
        status = try #require(Int(words[1]))
        reason = words.count > 2 ? words[2] : ""
        fields = lines.dropFirst().filter { !$0.isEmpty }.map { line in
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            return (parts[0].lowercased(), parts.last.map { String($0.drop { $0 == " " }) } ?? "")
        }
    }

    subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    var text: String { String(decoding: body, as: UTF8.self) }

    var description: String { "\(status) \(fields) \(body.count) bytes" }
}

extension String {
    fileprivate func components(separatedBy separator: String) -> [String] {
        var parts: [String] = []
        var rest = self[...]
        while let range = rest.firstRange(of: separator) {
            parts.append(String(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [String(rest)]
    }
}

extension RawConnection {
    /// Reads one response, framed as its head says.
    ///
    /// - Parameter didReceiveHead: called between head and body.
    func receiveResponse(
        toHead: Bool = false,
        didReceiveHead: () -> Void = {}
    ) throws -> RawResponse {
        var answer = try RawResponse(head: try receiveHead())
        didReceiveHead()
        if toHead || answer.status == 304 || answer.status == 204 || answer.status < 200 {
            return answer
        }
        if answer["transfer-encoding"] == "chunked" {
            answer.body = try receiveChunkedBody()
        } else if let length = answer["content-length"] {
            answer.body = try receive(exactly: try #require(Int(length)))
        } else {
            answer.body = try receiveAll()
        }
        return answer
    }

    func receiveChunkedBody() throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            var line = ""
            while !line.hasSuffix("\r\n") {
                let byte = try receive(atMost: 1)
                guard !byte.isEmpty else { throw CutBody() }
                line += String(decoding: byte, as: UTF8.self)
            }
            guard let size = Int(line.dropLast().prefix { $0 != ";" }, radix: 16) else {
                throw CutBody()
            }
            body += try receive(exactly: size)
            guard try receive(exactly: 2).count == 2 else { throw CutBody() }
            if size == 0 { return body }
        }
    }
}

/// Chunks that do not come to their end, which is what an origin may see and a client must not.
struct CutBody: Error {}

/// Runs blocking calls away from the cooperative pool.
func onThread<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
    try await socketThreads.run { () throws(any Error) in try body() }
}
