import HTTPCaching
import HTTPTypes

/// 2001-09-09T01:46:40Z: when the responses of these tests arrive.
let received = WallTime(seconds: 1_000_000_000)

extension WallTime {
    /// `seconds` after `received`, as a date.
    static func date(_ seconds: Int64) -> String {
        HTTPDate.format(received.advanced(by: .seconds(seconds)))
    }
}

extension ResponseFacts {
    /// A response that arrived at `received`, sent `delay` before.
    static func make(_ status: Int = 200, _ fields: HTTPFields, delay: Int64 = 0) -> ResponseFacts {
        ResponseFacts(
            status: status,
            fields: fields,
            requestTime: received.advanced(by: .seconds(-delay)),
            responseTime: received
        )
    }
}

extension RequestFacts {
    /// A GET with a `Cache-Control`.
    static func make(_ control: String, policy: CachePolicy = .protocolDefault) -> RequestFacts {
        RequestFacts(fields: [.cacheControl: control], policy: policy)
    }
}
