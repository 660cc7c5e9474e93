import CTieredCache
import HTTPCaching
import HTTPTypes
import TieredCache

/// What a program asks for, as values of the engine.
struct HostedRequest {
    var request: CacheRequest
    var options = ReaderOptions()

    private static let flags = UInt32(
        TIERED_CACHE_ONLY | TIERED_RELOAD | TIERED_PIN | TIERED_NOT_METERED | TIERED_BACKGROUND
    )
    /// As long as a process runs: 30 years.
    private static let never = Duration.seconds(946_080_000)

    /// Reads the struct of the header.
    ///
    /// - Parameters:
    ///   - pointer: the struct.
    ///   - priority: that of a request without `TIERED_BACKGROUND`.
    ///   - proxy: the proxy of the cache, which has the rules for hosts.
    /// - Throws: `TIERED_E_INVALID`; `TIERED_E_EXCLUDED`.
    init(
        _ pointer: UnsafePointer<tiered_request>?,
        priority: RequestPriority,
        by proxy: HostedProxy
    ) throws(Status) {
        let given = try structure(pointer, empty: tiered_request())
        let rules = proxy.rules
        request = try entryRequest(given.url, given.key, by: rules)
        request.take(try fields(given.fields))
        rules.apply(to: &request)
        try read(flags: given.flags, priority: priority)
        switch given.deadline_ms {
        case 0: break
        case -1: options.deadline = Self.never
        case 1...: options.deadline = .milliseconds(given.deadline_ms)
        default: throw .invalid
        }
        switch given.read_ahead {
        case 0: break
        case -1: options.maximumReadAhead = 0
        case 1...: options.maximumReadAhead = given.read_ahead
        default: throw .invalid
        }
        try proxy.checkUse(of: request.target)
    }

    private mutating func read(
        flags: UInt32,
        priority: RequestPriority
    ) throws(Status) {
        guard flags & ~Self.flags == 0 else { throw .invalid }
        func has(_ flag: Int) -> Bool { flags & UInt32(flag) != 0 }
        let (isCacheOnly, isReload) = (has(TIERED_CACHE_ONLY), has(TIERED_RELOAD))
        guard !isCacheOnly || !isReload else { throw .invalid }
        if isCacheOnly { request.policy = .cacheOnly }
        if isReload { request.policy = .reload }
        if has(TIERED_PIN) { request.options.insert(.pinned) }
        if has(TIERED_NOT_METERED) { request.options.insert(.avoidsExpensiveNetworks) }
        request.priority = has(TIERED_BACKGROUND) ? .background : priority
    }
}

/// The request that names an entry: by a key, else by that of the rules, else by the URL.
func entryRequest(
    _ url: UnsafePointer<CChar>?,
    _ key: UnsafePointer<CChar>?,
    by rules: HostRules
) throws(Status) -> CacheRequest {
    let (url, key) = (try text(url), try optionalText(key))
    return try translating { () throws(CacheError) in
        let request = try CacheRequest(url, key: key)
        guard key == nil, let key = rules.key(for: request.target) else { return request }
        return try CacheRequest(url, key: key)
    }
}

/// The fields of a program's lines, `Name: value`, up to NULL; none for NULL.
///
/// - Throws: `TIERED_E_INVALID`.
func fields(_ lines: UnsafePointer<UnsafePointer<CChar>?>?) throws(Status) -> HTTPFields {
    var fields = HTTPFields()
    for text in try texts(lines) {
        guard let colon = text.firstIndex(of: ":"),
            let name = HTTPField.Name(String(text[..<colon]))
        else { throw .invalid }
        let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        guard HTTPField.isValidValue(String(value)) else { throw .invalid }
        let field = HTTPField(name: name, value: String(value))
        // What the engine sets itself is never sent, and would keep transfers apart.
        if !CacheRequest.isOwnField(field) { fields.append(field) }
    }
    return fields
}

extension CacheRequest {
    /// Takes fields, which come before those of the URL's userinfo.
    mutating func take(_ given: HTTPFields) {
        fields = given + fields.filter { !given.contains($0.name) }
    }
}
