package import HTTPCaching
package import HTTPTypes

/// The response to a ``RelayRequest`` after the redirects that lead to it.
package struct FollowedRelay: Sendable {
    /// A request, and the head of the response to it.
    package struct Hop: Sendable {
        /// The request as it was relayed.
        package let request: RelayRequest
        /// The status of the response.
        package let status: HTTPResponse.Status
        /// The fields of the response.
        package let fields: HTTPFields
    }

    /// All requests, the client's first.
    package let hops: [Hop]
    /// The response to the last one.
    package let response: RelayResponse
    /// Why the last response is a redirect that was not followed, to follow `the origin redirects `;
    /// nil if it is none.
    package let refusal: String?
    /// Whether there were as many redirects as may be followed, and one more.
    package let isOverLimit: Bool
}

extension MediaCache {
    /// Relays a request without content, and follows redirects by the rules that hold for the
    /// application's own requests: none from https to http, none in a circle, none from elsewhere to
    /// this machine; credentials stay with the first origin.
    ///
    /// Each response is stored and reused by itself, as the origin's fields for it say. The client is
    /// the application, by a client library of its own.
    ///
    /// - Parameters:
    ///   - request: what the client asks for.
    ///   - maximum: how many redirects are followed.
    ///   - keepsCookies: whether what a redirect sets is sent to where it leads.
    /// - Returns: the last response; a redirect that is not followed is a response as well.
    /// - Throws: what ``relay(_:)`` throws.
    package func relay(
        _ request: RelayRequest,
        followingAtMost maximum: Int,
        keepsCookies: Bool = false
    ) async throws(CacheError) -> FollowedRelay {
        let rules = responder.transfers.origins.redirectRules
        var chain = RedirectChain(target: request.target, method: request.method)
        var hops: [FollowedRelay.Hop] = []
        var asked = request
        asked.isForApplication = true
        while true {
            let response = try await relay(asked)
            hops.append(
                FollowedRelay.Hop(
                    request: asked,
                    status: response.status,
                    fields: response.fields
                )
            )
            let head = HTTPResponse(status: response.status, headerFields: response.fields)
            let step = chain.follow(
                head,
                maximum: maximum,
                staysOutside: rules.staysOutside,
                at: keepsCookies ? responder.time.wallTime() : nil
            )
            guard step == .follow else {
                var refusal: String?
                if case .refuse(let reason) = step { refusal = reason }
                return FollowedRelay(
                    hops: hops,
                    response: response,
                    refusal: refusal,
                    isOverLimit: refusal != nil && maximum > 0 && chain.count == maximum
                )
            }
            asked = asked.redirected(along: chain, secretFields: rules.secretFields)
        }
    }

    /// Makes what is stored unusable after a request that changed something and was not relayed
    /// (RFC 9111 §4.4).
    ///
    /// - Parameters:
    ///   - method: the method of the request; a safe one changes nothing.
    ///   - target: its target.
    ///   - status: the status of the response; an error changes nothing.
    ///   - fields: the fields of the response.
    package func invalidate(
        afterMethod method: HTTPRequest.Method,
        target: TargetURI,
        status: Int,
        fields: HTTPFields
    ) async {
        await responder.invalidate(
            afterMethod: method,
            target: target,
            status: status,
            fields: fields
        )
    }
}

extension RelayRequest {
    /// The request for the target that redirects have led to.
    fileprivate func redirected(
        along chain: RedirectChain,
        secretFields: Set<HTTPField.Name>
    ) -> RelayRequest {
        var fields = fields
        if chain.dropsCredentials {
            for name in secretFields { fields[name] = nil }
            fields[.origin] = nil
        }
        if let cookies = chain.cookies.field(for: chain.target, beside: fields[.cookie]) {
            fields[values: .cookie] = [cookies]
        }
        var request = RelayRequest(method: chain.method, target: chain.target, fields: fields)
        request.policy = policy
        request.priority = priority
        request.isForApplication = isForApplication
        return request
    }
}
