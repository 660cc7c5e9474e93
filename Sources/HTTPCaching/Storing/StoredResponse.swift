public import HTTPTypes

/// The head of a stored response, with what later decisions need to know about its request.
///
/// The disk tier keeps ``encoded()`` as opaque bytes. ``facts`` are parsed once, when the value is
/// made, so that a hit parses nothing.
public struct StoredResponse: Hashable, Sendable {
    /// Properties that are there or not; bits without a meaning yet survive being stored.
    public struct Flags: OptionSet, Hashable, Sendable {
        /// One bit for each property.
        public let rawValue: UInt32

        /// Creates a set from bits.
        public init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        /// Marked unusable without validation by an unsafe request (RFC 9111 §4.4).
        public static let invalidated = Flags(rawValue: 1 << 0)
        /// The origin ignores ranges or answers them wrongly; the body is fetched in sequence.
        public static let withoutRanges = Flags(rawValue: 1 << 1)
        /// Put there by the application rather than fetched.
        public static let storedByApplication = Flags(rawValue: 1 << 2)
        /// Came through as the origin sent it: redirects not followed, codings not decoded.
        public static let relayed = Flags(rawValue: 1 << 3)
        /// Came without a strong validator, or with one that other bytes have as well, because
        /// these were decoded on the way in or changed by a proxy (203); what a 304 says later is
        /// not about its bytes.
        public static let withoutValidator = Flags(rawValue: 1 << 4)
        /// May have been made for one client: it set a cookie, or its request had one.
        ///
        /// So no lifetime is guessed for it.
        public static let personal = Flags(rawValue: 1 << 5)
    }

    /// The request that the response answered, as far as it must be remembered.
    public struct Origin: Hashable, Sendable {
        /// The method.
        public var method: String
        /// The URI that was asked for, without userinfo, as people see it.
        public var url: String
        /// The URI that answered in the end, if redirects led to another.
        public var finalURL: String?
        /// The name under which the application keeps the entry, if it chose one.
        public var explicitKey: String?

        /// Creates a description of a request.
        ///
        /// - Parameters:
        ///   - method: the method, by default GET.
        ///   - url: the URI that was asked for; give ``TargetURI/string``, which has no userinfo.
        ///   - finalURL: the URI that answered, if it is another.
        ///   - explicitKey: the name that the application chose for the entry, if any.
        public init(
            method: String = "GET",
            url: String,
            finalURL: String? = nil,
            explicitKey: String? = nil
        ) {
            self.method = method
            self.url = url
            self.finalURL = finalURL
            self.explicitKey = explicitKey
        }
    }

    /// The status code.
    public let status: Int
    /// The fields to deliver; see ``StoredFields``.
    public let fields: HTTPFields
    /// When the request was sent.
    public let requestTime: WallTime
    /// When the response arrived.
    public let responseTime: WallTime
    /// The request that the response answered.
    public let origin: Origin
    /// The request fields that selected the response; see ``VaryMatch``.
    public let selectingFields: [SelectingField]
    /// Properties that are there or not.
    public var flags: Flags
    /// What the fields say about caching.
    public let facts: ResponseFacts

    /// Creates a stored response and parses its fields.
    ///
    /// - Parameters:
    ///   - status: the status code.
    ///   - fields: the fields to deliver, from ``StoredFields/of(_:rules:)``.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the response arrived.
    ///   - origin: the request that the response answered.
    ///   - selectingFields: from ``VaryMatch/selectingFields(response:request:)``.
    ///   - flags: properties that are there or not.
    public init(
        status: Int,
        fields: HTTPFields,
        requestTime: WallTime,
        responseTime: WallTime,
        origin: Origin,
        selectingFields: [SelectingField] = [],
        flags: Flags = []
    ) {
        self.status = status
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.origin = origin
        self.selectingFields = selectingFields
        self.flags = flags
        self.facts = ResponseFacts(
            status: status,
            fields: fields,
            requestTime: requestTime,
            responseTime: responseTime,
            isPersonal: flags.contains(.personal)
        )
    }

    /// The same with other fields, and with another status if one is given.
    package func with(status: Int? = nil, _ fields: HTTPFields) -> StoredResponse {
        StoredResponse(
            status: status ?? self.status,
            fields: fields,
            requestTime: requestTime,
            responseTime: responseTime,
            origin: origin,
            selectingFields: selectingFields,
            flags: flags
        )
    }

    /// The strong validator by which parts of the body may be joined, or nil.
    public var validator: Validator? {
        guard !flags.contains(.withoutValidator) else { return nil }
        return Validator(of: fields, responseTime: responseTime)
    }

    /// Decides whether the response may answer a request; see ``ReuseDecision``.
    ///
    /// - Parameters:
    ///   - request: what the request says about caching.
    ///   - requestFields: the request's fields, compared where the response varies by them.
    ///   - rules: whose cache this is.
    ///   - now: the present.
    /// - Returns: the decision.
    public func reuse(
        for request: RequestFacts,
        requestFields: HTTPFields,
        rules: CacheRules,
        now: WallTime
    ) -> ReuseDecision {
        ReuseDecision(
            stored: facts,
            request: request,
            matchesVary: VaryMatch.matches(selectingFields, request: requestFields),
            isInvalidated: flags.contains(.invalidated),
            rules: rules,
            now: now
        )
    }

    /// The fields to deliver at `now`: those stored, and the current `Age` (RFC 9111 §4).
    public func fieldsForReuse(now: WallTime) -> HTTPFields {
        var fields = fields
        fields[.age] = String(max(0, CurrentAge.of(facts, at: now).components.seconds))
        if !fields.contains(.date) {
            fields[.date] = HTTPDate.format(facts.date)
        }
        return fields
    }

    /// The response after a 304, or an answer to HEAD, that ``Freshening`` found to be about it.
    ///
    /// - Parameters:
    ///   - answer: the fields of the answer as received.
    ///   - requestTime: when the conditional request was sent.
    ///   - responseTime: when the answer arrived.
    ///   - isPersonal: whether the conditional request had a cookie. What is confirmed for one
    ///     without, and sets none, is what any client without a cookie would get.
    ///   - rules: whose cache this is.
    /// - Returns: the response to store instead, no longer invalidated.
    public func freshened(
        by answer: HTTPFields,
        requestTime: WallTime,
        responseTime: WallTime,
        isPersonal: Bool,
        rules: CacheRules
    ) -> StoredResponse {
        var flags = flags.subtracting([.invalidated, .personal])
        if isPersonal || answer.contains(.setCookie) { flags.insert(.personal) }
        // A date that was too young for the bytes stored is older at the time of the answer, and
        // still says nothing about what was written within that second.
        if validator == nil { flags.insert(.withoutValidator) }
        return StoredResponse(
            status: status,
            fields: Freshening.updated(fields, with: answer, rules: rules),
            requestTime: requestTime,
            responseTime: responseTime,
            origin: origin,
            selectingFields: selectingFields,
            flags: flags
        )
    }
}
