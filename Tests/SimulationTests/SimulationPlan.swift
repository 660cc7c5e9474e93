#if os(Linux)
import HTTPCaching
import HTTPTypes
import TieredCacheTesting

@testable import TieredCache

/// What one client does, one thing after the other, drawn from a seed.
struct SimulationPlan {
    /// How a URL is read.
    struct Get: CustomStringConvertible {
        var policy = CachePolicy.protocolDefault
        var range: ByteRangeSpec?
        var isPinned = false
        /// Asks for all in one piece, which goes into memory.
        var isWhole = false
        var leases = false
        var isCancelled = false
        /// Stops reading after so many chunks.
        var maximumChunks = Int.max
        /// How long it waits before each chunk, in milliseconds.
        var pause = 0

        var description: String {
            var text = policy.rawValue
            if let range { text += " \(range)" }
            if isPinned { text += " pinned" }
            if isWhole { text += " whole" }
            if leases { text += " lent" }
            if maximumChunks < .max { text += " \(maximumChunks) chunks" }
            if pause > 0 { text += " slowly" }
            if isCancelled { text += " and cancels" }
            return text
        }
    }

    /// The kinds of things that clients do.
    enum Kind: Int, CaseIterable {
        case get, pause, prefetch, keep, maintain, change, end, storageError

        /// How often it is done, in twentieths.
        var usualWeight: Int {
            switch self {
            case .get: 9
            case .keep: 3
            case .pause, .maintain, .change: 2
            case .prefetch, .end, .storageError: 1
            }
        }
    }

    /// What a client is there for.
    enum Role {
        /// Does anything.
        case user
        /// Watches the film, from here or there on.
        case viewer
        /// Brings what takes room, and reads it for a while.
        case bringer
        /// Verifies and repairs.
        case mender
        /// Sees resources change and brings what they are now.
        case changer
    }

    private let profile: SimulationProfile
    private let role: Role
    private var die: Die
    /// Where a viewer is.
    private var position = 0

    init(_ profile: SimulationProfile, client: Int, die: Die) {
        self.profile = profile
        self.die = die
        role = client < profile.roles.count ? profile.roles[client] : .user
    }

    private mutating func get() -> Get {
        var get = Get()
        get.policy = die.pick([
            .protocolDefault, .protocolDefault, .protocolDefault, .cacheElseLoad, .cacheOnly,
            .reload,
        ])
        get.isPinned = profile.pins && die.chance(1, of: 20)
        switch die.roll(6) {
        case 0, 1: get.isWhole = true
        case 2, 3:
            let start = Int64(die.roll(die.pick(profile.lengths)))
            get.range = .bounded(start..<start + 1 + Int64(die.roll(100_000)))
        case 4: get.range = .openEnded(from: Int64(die.roll(die.pick(profile.lengths))))
        default: break
        }
        if die.chance(1, of: 5) { get.maximumChunks = 1 + die.roll(3) }
        get.leases = die.chance(1, of: 3)
        get.isCancelled = die.chance(1, of: 12)
        if die.chance(1, of: 4) { get.pause = die.pick([1, 20, 1000]) }
        return get
    }

    /// Lets a client do the next thing.
    mutating func act(_ client: SimulatedClient) async {
        switch role {
        case .user: await use(client)
        case .viewer: await watch(client)
        case .bringer: await bring(client)
        case .mender: await mend(client)
        case .changer: await renew(client)
        }
    }

    private mutating func mend(_ client: SimulatedClient) async {
        await client.attempt("verifies") { (process) throws(CacheError) in
            _ = try await process.cache.verify(repair: true)
        }
        await client.sleep(.milliseconds(die.roll(300)))
    }

    private mutating func renew(_ client: SimulatedClient) async {
        let url = die.roll(profile.urls)
        client.world.origin.change(url)
        await client.get(url, Get(policy: .reload))
        if die.chance(1, of: 4) { await client.pin(url) }
        // Where few may be open, each look makes another one leave, whose record is read again.
        for url in 0..<profile.urls { await client.checkPromise(url) }
        await client.sleep(.milliseconds(die.roll(300)))
    }

    private mutating func watch(_ client: SimulatedClient) async {
        let length = profile.film ?? 1
        if position == 0 || position >= length || die.chance(1, of: 8) {
            position = length / 4 + die.roll(length * 3 / 4)
        }
        let end = position + 65_536 + die.roll(300_000)
        var get = Get(range: .bounded(Int64(position)..<Int64(end)))
        get.leases = die.chance(1, of: 3)
        get.pause = die.pick([0, 0, 20])
        await client.get(0, get)
        position = end
    }

    private mutating func bring(_ client: SimulatedClient) async {
        var get = Get(policy: die.pick([.protocolDefault, .reload]))
        get.pause = die.pick([0, 20, 100])
        await client.get(1 + die.roll(profile.urls - 1), get)
        await client.sleep(.milliseconds(die.roll(1000)))
    }

    private mutating func use(_ client: SimulatedClient) async {
        let url = die.roll(profile.urls)
        let number = die.roll(1 << 20)
        switch kind() {
        case .get: await client.get(url, get())
        case .pause: await pause(client)
        case .prefetch: await prefetch(client, url)
        case .keep: await keep(client, url, number)
        case .maintain: await maintain(client, number)
        case .change: await change(client, url, number)
        case .end: await end(client, number)
        case .storageError: await storageError(client, url, number)
        }
    }

    private mutating func kind() -> Kind {
        var number = die.roll(profile.weights.reduce(0, +))
        for kind in Kind.allCases {
            number -= profile.weights[kind.rawValue]
            if number < 0 { return kind }
        }
        return .get
    }

    private mutating func pause(_ client: SimulatedClient) async {
        let seconds = die.pick([0.01, 1, 30, 70])
        client.note("sleeps \(seconds) s")
        await client.sleep(.seconds(seconds))
    }

    private mutating func prefetch(_ client: SimulatedClient, _ url: Int) async {
        let bytes: Int64? = die.chance(1, of: 2) ? nil : Int64(1 + die.roll(100_000))
        await client.attempt("prefetches u\(url) \(bytes ?? -1)") { (process) throws(CacheError) in
            _ = try await process.cache.prefetch(client.request(url), bytes: bytes)
        }
    }

    private func keep(_ client: SimulatedClient, _ url: Int, _ number: Int) async {
        switch number % 8 {
        case 0...1 where profile.pins: await client.pin(url)
        case 2...4 where profile.pins: await client.checkPromise(url)
        case 5 where profile.pins:
            await client.get(url, Get(policy: .cacheOnly))
        case 6 where profile.pins && profile.removes:
            await client.voiding([url], "unpins u\(url)") { (process) throws(CacheError) in
                try await process.cache.setPinned(false, for: client.request(url))
            }
        case 7 where profile.removes:
            await client.voiding([url], "removes u\(url)") { (process) throws(CacheError) in
                try await process.cache.remove(client.request(url))
            }
        default: await client.get(url, Get())
        }
    }

    private func maintain(_ client: SimulatedClient, _ number: Int) async {
        switch number % 8 {
        case 7 where profile.trims:
            let bytes = Int64(number) % profile.diskLimit
            await client.attempt("trims to \(bytes)") { (process) throws(CacheError) in
                try await process.cache.trim(to: bytes)
            }
        case 0...3 where profile.verifies:
            await client.attempt("verifies") { (process) throws(CacheError) in
                _ = try await process.cache.verify(repair: number % 16 < 8)
            }
        case 4 where profile.limitChanges:
            await client.setLimit(profile.diskLimit / Int64(1 + number % 3))
        case 5 where profile.removes && number % 64 == 5:
            let all = 0..<profile.urls
            await client.voiding(all, "removes all") { (process) throws(CacheError) in
                try await process.cache.removeAll()
            }
        case 6:
            await client.attempt("lists") { (process) throws(CacheError) in
                _ = try await process.cache.entries()
            }
        default:
            await client.attempt("asks for the path of a body") { (process) throws(CacheError) in
                _ = try await process.cache.fileURL(for: client.request(number % profile.urls))
            }
        }
    }

    private func change(_ client: SimulatedClient, _ url: Int, _ number: Int) async {
        let origin = client.world.origin
        switch number % 4 {
        case 0 where profile.changes:
            client.note("sees u\(url) change")
            origin.change(url)
            if number % 8 < 4 { await client.get(url, Get(policy: .reload)) }
        case 1, 2:
            guard profile.redirects else { return }
            client.note("sees u\(url) move")
            origin.move(url)
        case 3 where profile.noStore:
            client.note("sees u\(url) storable or not")
            origin.setStorable(number % 8 < 4, url)
        default: return
        }
    }

    private func end(_ client: SimulatedClient, _ number: Int) async {
        switch number % 8 {
        case 0 where profile.restarts:
            client.note("restarts the process")
            await client.world.restart()
        case 1 where profile.crashes:
            let outcome = [
                CrashOutcome.everythingKept, .unsyncedLost, .mixed(seed: UInt64(number)),
            ][number / 8 % 3]
            client.note("kills the process: \(outcome)")
            client.world.crash(outcome)
        default: return
        }
    }

    private mutating func storageError(
        _ client: SimulatedClient,
        _ url: Int,
        _ number: Int
    ) async {
        if profile.damage, number % 4 < 2 {
            client.damage(url, number / 4)
            // A client that meets the damage asks for a part; the next may be given what lies around
            // it.
            var get = get()
            (get.policy, get.isCancelled) = (.protocolDefault, false)
            await client.get(url, get)
            await client.get(url, Get())
        }
        if profile.diskFaults, number % 4 == 2 { client.injure(number / 4) }
    }
}
#endif
