import HTTPTypes
import NIOCore

// In the fuzzer, whose module this is a part of, there is none.
#if canImport(HTTPTransport)
import HTTPTransport
#endif

/// What a parser has made of the bytes that answer one request.
struct ResponseReading: Equatable, CustomStringConvertible {
    struct Field: Equatable {
        let name: String
        let value: String
    }

    /// The statuses of all heads, the final one last.
    var statuses: [Int] = []
    /// The fields of the last head.
    var fields: [Field] = []
    var body: [UInt8] = []
    /// Whether the response is complete.
    var hasEnded = false
    var mayPersist = false
    /// Why the bytes were refused.
    var refusal: String?

    var description: String {
        "\(statuses) \(fields.map { "\($0.name): \($0.value)" }) "
            + "\(String(decoding: body, as: UTF8.self).debugDescription) "
            + "\(hasEnded ? "ended" : "not ended") \(mayPersist ? "kept" : "closed") \(refusal ?? "")"
    }

    /// Reads bytes with the parser of the transport.
    ///
    /// - Parameters:
    ///   - bytes: what the peer sends before it closes the connection.
    ///   - size: into pieces of how many bytes they are cut.
    ///   - method: that of the request.
    init(_ bytes: [UInt8], pieces size: Int = .max, method: HTTPRequest.Method = .get) {
        var parser = ResponseParser()
        parser.begin(method)
        var input = bytes[...]
        do throws(ResponseSyntaxError) {
            while !input.isEmpty {
                parser.add(ByteBuffer(bytes: input.prefix(size)))
                input = input.dropFirst(size)
                while let event = try parser.next() { take(event) }
            }
            // A response that has no body ends without another byte.
            while let event = try parser.next() { take(event) }
            if !hasEnded { hasEnded = parser.close() == .end }
        } catch {
            refusal = "\(error)"
        }
    }

    private mutating func take(_ event: ResponseParser.Event) {
        switch event {
        case .head(let head):
            statuses.append(head.response.status.code)
            fields = head.response.headerFields.map {
                Field(name: $0.name.rawName, value: $0.value)
            }
            mayPersist = head.mayPersist
        case .body(let part): body += part.readableBytesView
        case .end: hasEnded = true
        }
    }
}
