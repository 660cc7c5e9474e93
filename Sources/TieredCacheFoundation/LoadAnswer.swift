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
    /// The body, to be read once.
    let body: ResponseBody
    /// Whether reading the body needs no wait.
    let isAtHand: Bool

    /// The answer to a request of the application's own.
    init(_ response: CacheResponse, url: URL) {
        var fields = response.fields
        fields[.contentLength] = response.length.map(String.init)
        if let name = HTTPField.Name("Cache-Status") {
            fields.append(HTTPField(name: name, value: response.cacheStatus.fieldValue))
        }
        self.response = .of(url, status: response.status.code, fields: fields)
        body = response.body
        isAtHand = response.source == .memory
    }

    /// The answer of an intermediary.
    init(_ followed: FollowedRelay, url: URL) {
        let last = followed.hops.count > 1 ? followed.hops.last?.request.target.string : nil
        response = .of(
            last.flatMap { URL(string: $0) } ?? url,
            status: followed.response.status.code,
            fields: followed.response.fields
        )
        body = followed.response.body
        isAtHand = false
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
