import HTTPTypes

/// Names that most responses have, so that a head is read without making them again.
enum FieldNames {
    private static let common = [
        "Accept-Ranges", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
        "Access-Control-Allow-Methods", "Access-Control-Allow-Origin",
        "Access-Control-Expose-Headers", "Access-Control-Max-Age", "Age", "Allow", "Alt-Svc",
        "CF-Cache-Status", "CF-RAY", "Cache-Control", "Cache-Status", "Connection",
        "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length",
        "Content-Location", "Content-MD5", "Content-Range", "Content-Security-Policy",
        "Content-Type", "Cross-Origin-Resource-Policy", "Date", "Digest", "ETag", "Expires",
        "Keep-Alive", "Last-Modified", "Link", "Location", "NEL", "P3P", "Pragma",
        "Referrer-Policy", "Report-To", "Repr-Digest", "Retry-After", "Server", "Server-Timing",
        "Set-Cookie", "Strict-Transport-Security", "Timing-Allow-Origin", "Trailer",
        "Transfer-Encoding", "Upgrade", "Vary", "Via", "WWW-Authenticate", "X-Cache",
        "X-Cache-Hits", "X-Content-Type-Options", "X-Frame-Options", "X-Powered-By",
        "X-Request-Id", "X-Served-By", "X-Timer", "X-XSS-Protection", "x-amz-id-2",
        "x-amz-request-id", "x-amz-server-side-encryption", "x-amz-version-id",
    ]

    /// By length, as written and in lower case.
    private static let byLength: [[(spelled: [UInt8], name: HTTPField.Name)]] = {
        var table = [[(spelled: [UInt8], name: HTTPField.Name)]](repeating: [], count: 40)
        for text in Set(common + common.map { $0.lowercased() }) {
            guard let name = HTTPField.Name(text) else { continue }
            table[text.utf8.count].append((Array(text.utf8), name))
        }
        return table
    }()

    /// The name that has this spelling; nil if no field can have it.
    static func name(_ spelled: UnsafeRawBufferPointer) -> HTTPField.Name? {
        if spelled.count < byLength.count {
            for entry in byLength[spelled.count] where spelled.elementsEqual(entry.spelled) {
                return entry.name
            }
        }
        return HTTPField.Name(String(decoding: spelled, as: UTF8.self))
    }
}
