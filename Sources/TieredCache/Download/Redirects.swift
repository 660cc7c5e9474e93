package import HTTPCaching
package import HTTPTypes

/// The redirects from the requested URL to the final one (RFC 9110 §15.4).
package struct RedirectChain: Hashable, Sendable {
    /// The consequence of a response.
    package enum Step: Hashable, Sendable {
        /// It is no redirect.
        case none
        /// Continue at ``RedirectChain/target``.
        case follow
        /// Do not follow it; the reason fits after `the origin redirects `.
        case refuse(String)
    }

    /// The URL of the next request.
    package private(set) var target: TargetURI
    /// Its method; a POST becomes a GET as in browsers.
    package private(set) var method: HTTPRequest.Method
    /// The cookies that the redirects have set, for this chain alone.
    package private(set) var cookies = CookieJar()
    /// Whether the request body is sent.
    package private(set) var keepsBody = true
    /// Whether a redirect has left the first origin; credentials are never sent from then on.
    package private(set) var dropsCredentials = false
    /// The target of the permanent redirects (301, 308) at the start of the chain; nil if the first
    /// redirect is temporary.
    package private(set) var permanentTarget: TargetURI?
    private var isPermanentSoFar = true
    /// The number of redirects followed.
    package var count: Int { visited.count - 1 }

    private var visited: [Hop]
    /// Whether a response has come from an address of this machine.
    private var hasReachedMachine = false

    /// The narrowest reach of the URLs so far: redirects may lead to URLs with the same reach.
    ///
    /// Computed when a redirect needs it, since most downloads follow none.
    private var reach: TargetURI.Reach {
        hasReachedMachine ? .machine : visited.map(\.target.reach).min() ?? .anywhere
    }

    private struct Hop: Hashable {
        let method: HTTPRequest.Method
        let target: TargetURI
        /// A redirect to its own URL may set the cookie that it wants there.
        var cookies: String?
    }

    /// Creates a chain without redirects.
    ///
    /// - Parameters:
    ///   - target: the requested URL.
    ///   - method: the method of the first request.
    ///   - home: the origin that may receive credentials; nil for that of `target`.
    package init(
        target: TargetURI,
        method: HTTPRequest.Method,
        home: TargetURI.Origin? = nil
    ) {
        self.target = target.withoutUserinfo
        self.method = method
        visited = [Hop(method: method, target: target.withoutUserinfo)]
        if let home, home != target.origin { dropsCredentials = true }
    }

    /// Continues at the known target of permanent redirects; ignores one that a redirect could not
    /// reach.
    package mutating func skip(to known: TargetURI) {
        guard !(target.scheme == .https && known.scheme == .http), known != target else { return }
        go(to: Hop(method: method, target: known.withoutUserinfo))
        permanentTarget = target
    }

    /// The owner of the directory has followed redirects, if there were any.
    ///
    /// - Parameters:
    ///   - final: The URL that answered.
    ///   - staysOutside: as for ``follow(_:maximum:staysOutside:at:)``.
    /// - Returns: Whether redirects may lead there; else the chain has not changed.
    package mutating func didFollow(to final: TargetURI, staysOutside: Bool) -> Bool {
        guard final != target else { return true }
        guard !(target.scheme == .https && final.scheme == .http),
            !staysOutside || final.reach >= reach
        else { return false }
        go(to: Hop(method: method, target: final.withoutUserinfo))
        return true
    }

    /// Follows `response` if it is an allowed redirect.
    ///
    /// - Parameters:
    ///   - response: The head of the response from ``target``.
    ///   - maximum: The maximum number of redirects in total.
    ///   - staysOutside: Whether redirects must not lead from elsewhere to this machine or the
    ///     local link, where services trust every client that can reach them.
    ///   - responseTime: When the response arrived; nil if its cookies are not for the engine.
    /// - Returns: The decision; the chain has changed only for ``Step/follow``.
    package mutating func follow(
        _ response: HTTPResponse,
        maximum: Int,
        staysOutside: Bool = true,
        at responseTime: WallTime? = nil
    ) -> Step {
        guard [301, 302, 303, 307, 308].contains(response.status.code) else { return .none }
        guard let location = response.headerFields[.location], !location.isEmpty else {
            return .refuse("without saying where to")
        }
        let next: TargetURI
        do {
            next = try target.resolving(reference: location).withoutUserinfo
        } catch {
            return .refuse("to something that is no http URL: \(error)")
        }
        guard count < maximum else { return .refuse("more than \(maximum) times") }
        // Anyone on the path could change a body that was asked for over TLS; AsyncHTTPClient
        // follows these.
        guard !(target.scheme == .https && next.scheme == .http) else {
            return .refuse("from https to http")
        }
        guard !staysOutside || next.reach >= reach else {
            return .refuse("to \(next.origin), an address of \(next.reach.place)")
        }
        var cookies = cookies
        if let responseTime { cookies.take(response.headerFields, from: target, at: responseTime) }
        let hop = Hop(
            method: Self.rewritten(method, status: response.status.code),
            target: next,
            cookies: cookies.field(for: next)
        )
        // With the method: a POST may be redirected to its own URL, as a GET.
        guard !visited.contains(hop) else { return .refuse("in a circle") }
        go(to: hop)
        self.cookies = cookies
        let mayBeKept =
            !(response.headerFields[.cacheControl] ?? "").lowercased().contains("no-store")
            && !response.headerFields.contains(.setCookie)
        isPermanentSoFar =
            isPermanentSoFar && mayBeKept && [301, 308].contains(response.status.code)
        if isPermanentSoFar { permanentTarget = target }
        return .follow
    }

    /// The response for ``target`` came from an address of this machine.
    ///
    /// - Parameter staysOutside: as for ``follow(_:maximum:staysOutside:)``.
    /// - Returns: ``Step/refuse(_:)`` if a redirect has led there by a name.
    package mutating func didReachMachine(staysOutside: Bool) -> Step {
        guard staysOutside, count > 0, reach != .machine else {
            hasReachedMachine = true
            return .none
        }
        return .refuse("to \(target.origin), a name for \(TargetURI.Reach.machine.place)")
    }

    private mutating func go(to hop: Hop) {
        if hop.target.origin != target.origin { dropsCredentials = true }
        if hop.method != method { keepsBody = false }
        target = hop.target
        method = hop.method
        visited.append(hop)
    }

    /// 303 requires a GET of another resource; for 301 and 302 clients turn POST into GET.
    private static func rewritten(
        _ method: HTTPRequest.Method,
        status: Int
    ) -> HTTPRequest.Method {
        switch (status, method) {
        case (303, .head), (303, .get): method
        // RFC 9110 §15.4.2, §15.4.3: allowed for historical reasons, and what servers expect.
        case (303, _), (301, .post), (302, .post): .get
        default: method
        }
    }
}

extension TargetURI.Reach {
    /// The reach in words that fit after `an address of `.
    fileprivate var place: String {
        switch self {
        case .machine: "this machine"
        case .link: "the local link"
        case .anywhere: "another network"
        }
    }
}
