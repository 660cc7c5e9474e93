package import HTTPTypes

/// The head of a stored response, with the properties of its request that later decisions need.
///
/// The disk tier stores ``encoded()`` as opaque bytes. ``facts`` are parsed once, when the value is
/// created, so that a hit parses nothing.
package struct StoredResponse: Hashable, Sendable {
    /// Boolean properties; unknown bits are preserved when stored.
    package struct Flags: OptionSet, Hashable, Sendable {
        /// One bit for each property.
        package let rawValue: UInt32

        /// Creates a set from bits.
        package init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        /// Invalidated by an unsafe request: not used without validation (RFC 9111 §4.4).
        package static let invalidated = Flags(rawValue: 1 << 0)
        /// The origin ignores ranges or answers them wrongly; the body is fetched in sequence.
        package static let withoutRanges = Flags(rawValue: 1 << 1)
        /// Stored by the application, not fetched.
        package static let storedByApplication = Flags(rawValue: 1 << 2)
        /// Stored as the origin sent it: redirects not followed, codings not decoded.
        package static let relayed = Flags(rawValue: 1 << 3)
        /// Has no strong validator, or one that other bytes have as well, because these were
        /// decoded on arrival or changed by a proxy (203).
        ///
        /// A later 304 does not confirm its bytes.
        package static let withoutValidator = Flags(rawValue: 1 << 4)
        /// May have been made for one client: it set a cookie, or its request had one.
        ///
        /// No heuristic lifetime applies to it.
        package static let personal = Flags(rawValue: 1 << 5)
        /// Its request had an `Origin`: the origin has said what it allows pages of others.
        package static let crossOrigin = Flags(rawValue: 1 << 6)
    }

    /// The properties of the request that must be stored with the response.
    package struct Origin: Hashable, Sendable {
        /// The method.
        package var method: String
        /// The requested URI, without userinfo, for display.
        package var url: String
        /// The final URI, if redirects led to another one.
        package var finalURL: String?
        /// The explicit key of the entry, if the application chose one.
        package var explicitKey: String?

        /// Creates a description of a request.
        ///
        /// - Parameters:
        ///   - method: the method, by default GET.
        ///   - url: the requested URI; use ``TargetURI/string``, which has no userinfo.
        ///   - finalURL: the final URI, if it is another one.
        ///   - explicitKey: the explicit key of the entry, if any.
        package init(
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

    /// What never changes, in one object for all copies: a response is handed on from part to part.
    private final class Content: Sendable {
        let status: Int
        let fields: HTTPFields
        let requestTime: WallTime
        let responseTime: WallTime
        let origin: Origin
        let selectingFields: [SelectingField]
        let facts: ResponseFacts
        let validator: Validator?

        init(
            status: Int,
            fields: HTTPFields,
            times: (request: WallTime, response: WallTime),
            origin: Origin,
            selectingFields: [SelectingField],
            facts: ResponseFacts
        ) {
            self.status = status
            self.fields = fields
            (requestTime, responseTime) = times
            self.origin = origin
            self.selectingFields = selectingFields
            self.facts = facts
            validator = Validator(of: fields, responseTime: times.response)
        }
    }

    private let content: Content
    /// Properties that are there or not.
    package var flags: Flags

    /// The status code.
    package var status: Int { content.status }
    /// The fields to deliver; see ``StoredFields``.
    package var fields: HTTPFields { content.fields }
    /// When the request was sent.
    package var requestTime: WallTime { content.requestTime }
    /// When the response arrived.
    package var responseTime: WallTime { content.responseTime }
    /// The request that the response answered.
    package var origin: Origin { content.origin }
    /// The selecting request fields; see ``VaryMatch``.
    package var selectingFields: [SelectingField] { content.selectingFields }
    /// The caching properties of the fields.
    package var facts: ResponseFacts { content.facts }

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
    package init(
        status: Int,
        fields: HTTPFields,
        requestTime: WallTime,
        responseTime: WallTime,
        origin: Origin,
        selectingFields: [SelectingField] = [],
        flags: Flags = []
    ) {
        self.flags = flags
        content = Content(
            status: status,
            fields: fields,
            times: (requestTime, responseTime),
            origin: origin,
            selectingFields: selectingFields,
            facts: ResponseFacts(
                status: status,
                fields: fields,
                requestTime: requestTime,
                responseTime: responseTime,
                isPersonal: flags.contains(.personal)
            )
        )
    }

    /// Compares all but the facts, which follow from the rest.
    package static func == (left: StoredResponse, right: StoredResponse) -> Bool {
        left.flags == right.flags
            && (left.content === right.content
                || left.status == right.status && left.fields == right.fields
                    && left.requestTime == right.requestTime
                    && left.responseTime == right.responseTime && left.origin == right.origin
                    && left.selectingFields == right.selectingFields)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(flags)
        hasher.combine(status)
        hasher.combine(fields)
        hasher.combine(responseTime)
        hasher.combine(origin)
    }

    /// A copy with other fields, and with another status if one is given.
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

    /// The strong validator for combining parts of the body, or nil.
    package var validator: Validator? {
        flags.contains(.withoutValidator) ? nil : content.validator
    }

    /// Decides whether the response may be reused for a request; see ``ReuseDecision``.
    ///
    /// - Parameters:
    ///   - request: the caching properties of the request.
    ///   - requestFields: the fields of the request, to compare the selecting ones.
    ///   - rules: the rules of the cache.
    ///   - now: the present.
    /// - Returns: the decision.
    package func reuse(
        for request: RequestFacts,
        requestFields: HTTPFields,
        rules: CacheRules,
        now: WallTime
    ) -> ReuseDecision {
        ReuseDecision(
            stored: facts,
            request: request,
            matchesVary: isSelected(by: requestFields),
            isInvalidated: flags.contains(.invalidated),
            rules: rules,
            now: now
        )
    }

    /// Whether the origin has said what a page of another origin gets.
    ///
    /// Many say it, and name `Origin` in `Vary`, only where the request has the field.
    package var isForPages: Bool {
        flags.contains(.crossOrigin) || fields.contains(.accessControlAllowOrigin)
    }

    /// Whether a request with these fields selects the response (RFC 9111 §4.1).
    package func isSelected(by request: HTTPFields) -> Bool {
        VaryMatch.matches(selectingFields, request: request, language: fields[.contentLanguage])
            && (isForPages || !request.contains(.origin))
    }

    /// The fields to deliver at `now`: the stored ones, with the current `Age` (RFC 9111 §4).
    package func fieldsForReuse(now: WallTime) -> HTTPFields {
        var fields = fields
        fields[.age] = String(max(0, CurrentAge.of(facts, at: now).components.seconds))
        if !fields.contains(.date) {
            fields[.date] = HTTPDate.format(facts.date)
        }
        return fields
    }

    /// The response updated by a 304, or a response to HEAD, that ``Freshening`` has identified
    /// with it.
    ///
    /// - Parameters:
    ///   - answer: the 304, or the response to HEAD. One that is confirmed without a cookie, and
    ///     sets none, is the same for all clients without a cookie.
    ///   - rules: the rules of the cache.
    /// - Returns: the response to store, no longer invalidated.
    package func freshened(by answer: StoredResponse, rules: CacheRules) -> StoredResponse {
        var flags = flags.subtracting([.invalidated, .personal])
            .union(answer.flags.intersection([.personal, .crossOrigin]))
        // A `Last-Modified` that was too recent to be strong when the bytes were stored appears
        // older now, but is still no strong validator of them.
        if validator == nil { flags.insert(.withoutValidator) }
        let known = Set(selectingFields.map(\.name))
        return StoredResponse(
            status: status,
            fields: Freshening.updated(fields, with: answer.fields, rules: rules),
            requestTime: answer.requestTime,
            responseTime: answer.responseTime,
            origin: origin,
            // Fields that the origin names only now have selected nothing before.
            selectingFields: (selectingFields
                + answer.selectingFields.filter { !known.contains($0.name) })
                .sorted { $0.name < $1.name },
            flags: flags
        )
    }
}
