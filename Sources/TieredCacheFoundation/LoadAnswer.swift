import Foundation
import HTTPCaching
import HTTPTypes
import TieredCache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A response of the cache as Foundation is told of it.
struct LoadAnswer: Sendable {
    /// The head; Foundation itself takes length, MIME type and file name from its fields.
    let response: URLResponse
    /// Whether reading the body needs no wait.
    let isAtHand: Bool
    private let body: ResponseBody
    private let coding: ContentCoding

    /// - Parameters:
    ///   - followed: the last response, and the redirects to it.
    ///   - url: the URL as the application has spelled it.
    init(_ followed: FollowedRelay, url: URL) {
        let last = followed.hops.count > 1 ? followed.hops.last?.request.target.string : nil
        let answer = followed.response
        var fields = answer.fields
        coding = Self.isWhole(followed) ? ContentCoding(in: fields) : .identity
        if coding == .gzip || coding == .deflate {
            fields[.contentEncoding] = nil
            fields[.contentLength] = nil
        }
        response = .of(
            last.flatMap { URL(string: $0) } ?? url,
            status: answer.status.code,
            fields: fields
        )
        body = answer.body
        isAtHand = answer.cacheStatus.isHit && answer.cacheStatus.detail == "memory"
    }

    /// The body, to be read once, decoded where it was coded though nobody had asked for that.
    var bytes: ResponseBody.DecodedBytes { body.decoded(from: coding) }

    /// Reads the body into one piece of at most 1 GiB.
    func collect() async throws(CacheError) -> Data {
        guard coding != .identity else { return try await body.collect() }
        var bytes = bytes
        var data = Data()
        while let piece = try await bytes.next() {
            guard data.count + piece.count <= 1 << 30 else {
                throw CacheError(.invalidArgument, "the decoded body has more than 1 GiB")
            }
            data += piece
        }
        return data
    }

    /// Whether the body is one that can be decoded: no part, and there is one.
    private static func isWhole(_ followed: FollowedRelay) -> Bool {
        followed.response.status != .partialContent && followed.hops.last?.request.method != .head
    }
}

extension URLResponse {
    fileprivate static func of(_ url: URL, status: Int, fields: HTTPFields) -> URLResponse {
        var headers: [String: String] = [:]
        for field in fields {
            let name = field.name.rawName
            headers[name] = headers[name].map { "\($0), \(field.value)" } ?? field.value
        }
        // There is no response only where a URL is none of http.
        return HTTPURLResponse(
            url: url,
            statusCode: status,
            httpVersion: "HTTP/1.1",
            headerFields: headers
        )
            ?? URLResponse(
                url: url,
                mimeType: nil,
                expectedContentLength: -1,
                textEncodingName: nil
            )
    }
}
