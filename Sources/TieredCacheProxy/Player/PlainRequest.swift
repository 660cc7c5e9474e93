import HTTPCaching
import NIOCore
import NIOHTTP1

/// A GET that has no word about what it wants but its target and at most one range.
///
/// As nearly all requests of players are. Looks at each field once and makes nothing of it.
struct PlainRequest {
    /// The range asked for; nil for everything.
    private(set) var range: ByteRangeSpec?
    /// The host asked.
    private(set) var host: String?
    /// What a browser says that it wants it for.
    private(set) var destination: String?

    /// Reads a request; nil if it is not plain, and to be answered with more care.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - others: names of further fields with which it is not plain, in lower case.
    init?(_ request: ServerRequest, unless others: Set<String>) {
        guard request.head.method == .GET, !request.hasBody else { return nil }
        var hasRange = false
        for (name, value) in request.head.headers {
            if Self.equals(name, "host") {
                host = value
            } else if Self.equals(name, "range") {
                guard !hasRange, let asked = RangeRequest(value), asked.specs.count == 1 else {
                    return nil
                }
                hasRange = true
                range = asked.specs.first
            } else if Self.equals(name, "sec-fetch-dest") {
                destination = value
            } else if others.contains(name.lowercased()) {
                return nil
            }
        }
    }

    private static func equals(_ name: String, _ lowercase: StaticString) -> Bool {
        guard name.utf8.count == lowercase.utf8CodeUnitCount else { return false }
        return name.utf8.withContiguousStorageIfAvailable {
            UnsafeRawBufferPointer($0).equalsIgnoringCase(lowercase)
        } ?? false
    }
}
