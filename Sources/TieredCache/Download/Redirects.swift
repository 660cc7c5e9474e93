package import HTTPCaching
package import HTTPTypes

/// The way from the requested URL to the one that answers (RFC 9110 §15.4).
package struct RedirectChain: Hashable, Sendable {
    /// What a response asks the client to do.
    package enum Step: Hashable, Sendable {
        /// It is no redirect.
        case none
        /// Go on at ``RedirectChain/target``.
        case follow
        /// Do not; the reason fits after `the origin redirects `.
        case refuse(String)
    }

    /// Where the next request goes.
    package private(set) var target: TargetURI
    /// Its method; a POST becomes a GET where browsers make it one.
    package private(set) var method: HTTPRequest.Method
    /// Whether the request body goes along.
    package private(set) var keepsBody = true
    /// Whether the way has left the first origin once; credentials then stay at home for good.
    package private(set) var dropsCredentials = false
    /// Where the redirects so far lead that hold for good (301, 308); nil where the first one does
    /// not.
    package private(set) var permanentTarget: TargetURI?
    private var isPermanentSoFar = true
    /// How many redirects were followed.
    package var count: Int { visited.count - 1 }

    private var visited: [Hop]
    /// Whether a response has come from an address of this machine.
    private var hasReachedMachine = false

    /// The narrowest place that the way has been to: from there it may go to places like it.
    ///
    /// Computed where a redirect asks, since most downloads follow none.
    private var reach: TargetURI.Reach {
        hasReachedMachine ? .machine : visited.map(\.target.reach).min() ?? .anywhere
    }

    private struct Hop: Hashable {
        let method: HTTPRequest.Method
        let target: TargetURI
    }

    /// Begins a way.
    ///
    /// - Parameters:
    ///   - target: where it begins.
    ///   - method: the method of the first request.
    ///   - home: the origin that credentials are for; nil for that of `target`.
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

    /// Goes on where permanent redirects were found to lead before; refuses what a redirect could
    /// not do either.
    package mutating func skip(to known: TargetURI) {
        guard !(target.scheme == .https && known.scheme == .http), known != target else { return }
        go(to: Hop(method: method, target: known.withoutUserinfo))
        permanentTarget = target
    }

    /// Goes one step where `response` is a redirect that may be followed.
    ///
    /// - Parameters:
    ///   - response: The head that ``target`` answered with.
    ///   - maximum: How many redirects may be followed in all.
    ///   - staysOutside: Whether the way must not lead from elsewhere to this machine or the next
    ///     cable, where services take who can reach them for a friend.
    /// - Returns: What was decided; the chain has moved only for ``Step/follow``.
    package mutating func follow(
        _ response: HTTPResponse,
        maximum: Int,
        staysOutside: Bool = true
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
        guard !(target.scheme == .https && next.scheme == .http) else {
            return .refuse("from https to http")
        }
        guard !staysOutside || next.reach >= reach else {
            return .refuse("to \(next.origin), an address of \(next.reach.place)")
        }
        let hop = Hop(method: Self.rewritten(method, status: response.status.code), target: next)
        guard !visited.contains(hop) else { return .refuse("in a circle") }
        go(to: hop)
        let mayBeKept =
            !(response.headerFields[.cacheControl] ?? "").lowercased().contains("no-store")
        isPermanentSoFar =
            isPermanentSoFar && mayBeKept && [301, 308].contains(response.status.code)
        if isPermanentSoFar { permanentTarget = target }
        return .follow
    }

    /// The response for ``target`` has come from an address of this machine.
    ///
    /// - Parameter staysOutside: as for ``follow(_:maximum:staysOutside:)``.
    /// - Returns: ``Step/refuse(_:)`` where a redirect has led there by a name.
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

    /// 303 asks for a GET of something else; for 301 and 302 practice has made POST a GET.
    private static func rewritten(
        _ method: HTTPRequest.Method,
        status: Int
    ) -> HTTPRequest.Method {
        switch (status, method) {
        case (303, .head), (303, .get): method
        case (303, _), (301, .post), (302, .post): .get
        default: method
        }
    }
}

extension TargetURI.Reach {
    /// In words that fit after `an address of `.
    fileprivate var place: String {
        switch self {
        case .machine: "this machine"
        case .link: "the local link"
        case .anywhere: "another network"
        }
    }
}
