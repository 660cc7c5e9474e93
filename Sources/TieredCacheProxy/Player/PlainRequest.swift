import HTTPCaching
import NIOCore
import NIOHTTP1

/// A GET that is determined by its target and at most one range.
///
/// Nearly all requests of players are plain. Reading one looks at each field once and converts none
/// of them.
struct PlainRequest {
    /// The requested range; nil for all.
    private(set) var range: ByteRangeSpec?
    /// The value of `Host`.
    private(set) var host: String?
    /// The value of `Sec-Fetch-Dest`.
    private(set) var destination: String?

    /// Reads a request; nil if it is not plain.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - others: names of fields, in lower case, with any of which a request is not plain.
    init?(_ request: ServerRequest, unless others: Set<String>) {
        guard request.head.method == .GET, !request.hasBody else { return nil }
        var hasRange = false
        for (name, value) in request.head.headers {
            if Self.equals(name, lowercase: "host") {
                host = value
            } else if Self.equals(name, lowercase: "range") {
                guard !hasRange, let asked = RangeRequest(value), asked.specs.count == 1 else {
                    return nil
                }
                hasRange = true
                range = asked.specs.first
            } else if Self.equals(name, lowercase: "sec-fetch-dest") {
                destination = value
            } else if others.contains(name.lowercased()) {
                return nil
            }
        }
    }

    private static func equals(_ name: String, lowercase: StaticString) -> Bool {
        guard name.utf8.count == lowercase.utf8CodeUnitCount else { return false }
        return name.utf8.withContiguousStorageIfAvailable {
            UnsafeRawBufferPointer($0).equalsIgnoringCase(lowercase)
        } ?? false
    }
}
