#if os(Linux)
import HTTPCaching
import HTTPTypes
import TieredCacheTesting

@testable import TieredCache

/// One state of one resource: each byte follows from its number and the offset.
final class Representation: Sendable {
    let number: Int
    let url: Int
    /// The path that has it.
    let path: String
    let tag: String?
    let bytes: [UInt8]

    init(number: Int, url: Int, path: String, tag: String?, length: Int) {
        self.number = number
        self.url = url
        self.path = path
        self.tag = tag
        var die = Die(seed: UInt64(number) &* 0x2545_F491_4F6C_DD1D)
        var words = [UInt64](repeating: 0, count: (length + 7) / 8)
        for index in words.indices { words[index] = die.next() | 0x0101_0101_0101_0101 }
        bytes = words.withUnsafeBytes { Array($0.prefix(length)) }
    }
}

/// The origin of a simulation: its resources change, move, and answer badly now and then.
final class SimulatedOrigin: Sendable {
    private struct Site {
        var isRedirecting: Bool
        var current: Representation
        var moves = 0
        var mayStore = true
    }

    private struct State {
        var sites: [Site] = []
        /// Everything that any path has ever had, by URL.
        var history: [[Representation]] = []
        var paths: [String: Representation] = [:]
        var count = 0
        /// The URLs with responses that have been bad, or have changed.
        var disturbed: Set<Int> = []
        var die: Die
    }

    static let host = "origin.test"
    private let profile: SimulationProfile
    private let state: Guarded<State>

    init(_ profile: SimulationProfile, die: Die) {
        self.profile = profile
        var state = State(die: die)
        for url in 0..<profile.urls {
            let isRedirecting = profile.redirects && state.die.chance(1, of: 2)
            let length = profile.length(of: url, &state.die)
            let path = isRedirecting ? "/u\(url)/t0" : "/u\(url)"
            let first = Self.make(url, path, length, profile, &state)
            state.sites.append(Site(isRedirecting: isRedirecting, current: first))
            state.history.append([first])
        }
        self.state = Guarded(state)
    }

    private static func make(
        _ url: Int,
        _ path: String,
        _ length: Int,
        _ profile: SimulationProfile,
        _ state: inout State,
        tag: String? = nil
    ) -> Representation {
        state.count += 1
        let isTagged = profile.tags || state.die.chance(2, of: 3)
        let representation = Representation(
            number: state.count,
            url: url,
            path: path,
            tag: tag ?? (isTagged ? "\"r\(state.count)\"" : nil),
            length: length
        )
        state.paths[path] = representation
        return representation
    }

    // MARK: What happens to it

    /// Whether a request for a URL may fail for what the origin has done.
    func isDisturbed(_ url: Int) -> Bool { state.withLock { $0.disturbed.contains(url) } }

    /// Whether a URL has had a representation without an entity tag.
    func isUntagged(_ url: Int) -> Bool { history(of: url).contains { $0.tag == nil } }

    private func didDisturb(_ url: Int) { state.withLock { _ = $0.disturbed.insert(url) } }

    /// Everything that a URL has had so far.
    func history(of url: Int) -> [Representation] { state.withLock { $0.history[url] } }

    /// The URL has another representation from now on.
    func change(_ url: Int) {
        state.withLock { state in
            let keepsLength = state.die.chance(1, of: 2)
            let length =
                keepsLength
                ? state.sites[url].current.bytes.count : profile.length(of: url, &state.die)
            let path = state.sites[url].current.path
            let next = Self.make(url, path, length, profile, &state)
            state.sites[url].current = next
            state.history[url].append(next)
        }
        didDisturb(url)
    }

    /// The URL leads to another path, whose representation has the same tag and length.
    func move(_ url: Int) {
        let hasMoved = state.withLock { state in
            guard state.sites[url].isRedirecting else { return false }
            state.sites[url].moves += 1
            let now = state.sites[url].current
            let path = "/u\(url)/t\(state.sites[url].moves)"
            let count = now.bytes.count
            let next = Self.make(url, path, count, profile, &state, tag: now.tag)
            state.sites[url].current = next
            state.history[url].append(next)
            return true
        }
        if hasMoved { didDisturb(url) }
    }

    /// Whether what the URL answers may be stored.
    func setStorable(_ mayStore: Bool, _ url: Int) {
        state.withLock { $0.sites[url].mayStore = mayStore }
        didDisturb(url)
    }

    // MARK: Responses

    func answer(_ request: TransportRequest) -> ScriptedResponse {
        let path = request.head.path ?? ""
        let parts = path.split(separator: "/")
        guard let first = parts.first, let url = Int(first.dropFirst()) else {
            return ScriptedResponse(status: 404)
        }
        let (response, isBad) = state.withLock { state in
            let delay = Duration.milliseconds(state.die.roll(200))
            if profile.faults, state.die.chance(1, of: 8) {
                return (fault(&state.die), true)
            }
            let site = state.sites[url]
            if site.isRedirecting, parts.count == 1 {
                return (redirect(to: site.current.path, delay), false)
            }
            guard let found = state.paths[path] else {
                return (ScriptedResponse(status: 404), true)
            }
            return content(of: found, request.head.headerFields, site.mayStore, delay, &state.die)
        }
        if isBad { didDisturb(url) }
        return response
    }

    private func fault(_ die: inout Die) -> ScriptedResponse {
        switch die.roll(3) {
        case 0: ScriptedResponse(status: 503)
        case 1: ScriptedResponse(failure: .connect)
        default: .silence
        }
    }

    private func redirect(to path: String, _ delay: Duration) -> ScriptedResponse {
        var response = ScriptedResponse(status: 302, fields: [.location: path])
        response.headDelay = delay
        return response
    }

    private func content(
        of found: Representation,
        _ asked: HTTPFields,
        _ mayStore: Bool,
        _ delay: Duration,
        _ die: inout Die
    ) -> (ScriptedResponse, isBad: Bool) {
        var fields: HTTPFields = [
            .cacheControl: mayStore ? "max-age=\(profile.lifetime)" : "no-store",
            .contentType: "application/octet-stream",
        ]
        fields[.eTag] = found.tag
        if let tag = found.tag, asked[.ifNoneMatch] == tag {
            return (ScriptedResponse(status: 304, fields: fields), false)
        }
        let length = Int64(found.bytes.count)
        var range = 0..<found.bytes.count
        var status = 200
        let isCurrent = asked[.ifRange].map { $0 == found.tag } ?? true
        if let spec = asked[.range].flatMap({ RangeRequest($0)?.specs.first }), isCurrent,
            !(profile.ignoresRanges && die.chance(1, of: profile.rangesPerIgnored))
        {
            guard let part = spec.resolved(completeLength: length) else {
                fields[.contentRange] = "bytes */\(length)"
                return (ScriptedResponse(status: 416, fields: fields), false)
            }
            range = Int(part.lowerBound)..<Int(part.upperBound)
            fields[.contentRange] =
                "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
            status = 206
        }
        fields[.contentLength] = String(range.count)
        let (steps, isCut) = steps(found, range, &die)
        var response = ScriptedResponse(status: status, fields: fields, steps: steps)
        response.headDelay = delay
        response.comesWhole = die.chance(1, of: 2)
        return (response, isCut)
    }

    private func steps(
        _ found: Representation,
        _ range: Range<Int>,
        _ die: inout Die
    ) -> ([ScriptedResponse.Step], isCut: Bool) {
        var steps: [ScriptedResponse.Step] = []
        let size = profile.isFilm(found.url) ? 65_536 : die.pick(profile.chunks)
        let cut =
            profile.cuts && die.chance(1, of: 4)
            ? range.lowerBound + die.roll(range.count + 1) : range.upperBound
        var start = range.lowerBound
        while start < cut {
            let end = min(cut, start + size)
            if die.chance(1, of: profile.chunksPerDelay) {
                steps.append(.delay(.milliseconds(die.roll(50))))
            }
            steps.append(.bytes(Array(found.bytes[start..<end])))
            start = end
        }
        guard cut < range.upperBound else { return (steps, false) }
        steps.append(
            die.chance(1, of: 4) ? .stall : .fail(TransportError(.closedEarly, "the origin cuts"))
        )
        return (steps, true)
    }
}
#endif
