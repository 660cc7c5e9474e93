import HTTPCaching
import HTTPTypes
import TieredCache

/// The fields of a player's request that go to the origin.
enum RelayedFields {
    /// Fields that are between the player and the proxy: what the player accepts, how it caches,
    /// by whom it was sent on; a name that ends with `-` stands for all names that begin with it.
    private static let ofThePlayerAlone: [String] = [
        "accept", "accept-", "cache-control", "expect", "forwarded", "icy-metadata",
        "max-forwards", "pragma", "sec-", "service-worker", "via", "x-forwarded-",
    ]

    /// The fields to send for a player's request.
    ///
    /// Requests that differ in them do not share a transfer, but for the language and the page's
    /// origin, where the response does not vary by these. A browser's cookies belong to other
    /// servers on this machine, because cookies ignore ports, but for those of ``PlayerCookies``;
    /// its other fields tell of its page.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - target: the URL that they are for.
    ///   - cookies: the cookies that the player keeps.
    ///   - includesAll: whether to send more than `Authorization`, `Cookie`, and what origins choose
    ///     a response by.
    /// - Returns: the fields.
    static func of(
        _ request: ServerRequest,
        for target: TargetURI,
        cookies: PlayerCookies,
        includesAll: Bool
    ) -> HTTPFields {
        let isFromBrowser = request.isFromBrowser
        var fields = HTTPFields()
        for field in StoredFields.endToEnd(request.fields) {
            let isRelayed =
                switch field.name {
                case .authorization: !fields.contains(.authorization)
                case .cookie: false
                case _ where CacheRequest.negotiatingFields.contains(field.name.canonicalName):
                    true
                default: includesAll && !isFromBrowser && isForOrigin(field)
                }
            if isRelayed { fields.append(field) }
        }
        // As one field: RFC 6265 §5.4 allows no more in HTTP/1.1.
        fields[values: .cookie] =
            cookies.field(
                of: request.fields[values: .cookie],
                for: target,
                includesOthers: !isFromBrowser
            ).map { [$0] } ?? []
        return fields
    }

    /// Whether it tells of a page of this machine, such as a playlist at the proxy, whose URL has
    /// the proxy's token.
    private static func namesThisMachine(_ field: HTTPField) -> Bool {
        guard field.name == .referer else { return false }
        do throws(TargetURIError) {
            return try TargetURI(field.value).reach == .machine
        } catch {
            return true  // No URL of a page.
        }
    }

    private static func isForOrigin(_ field: HTTPField) -> Bool {
        let name = field.name.canonicalName
        return !CacheRequest.isOwnField(field) && !namesThisMachine(field)
            && !ofThePlayerAlone.contains { $0.hasSuffix("-") ? name.hasPrefix($0) : name == $0 }
    }
}
