import DequeModule
package import HTTPCaching
import TieredCache

/// What playlists that came through have said about other URLs.
///
/// A media playlist may use variables of the master playlist that led to it, and a key does not
/// show that it is one. Kept in memory alone, for the newest few thousand URLs, and at most a few
/// megabytes: a player that starts reads the playlists first, and so tells it again. All that one
/// master playlist leads to share its variables.
package final class PlaylistRegistry: Sendable {
    /// The variables of one playlist, and how many URLs may import them.
    fileprivate struct Shared {
        let variables: HLSVariables
        var users = 0
    }

    fileprivate struct State {
        /// By URL, under which number its variables are.
        var numbers: [String: Int] = [:]
        var shared: [Int: Shared] = [:]
        var lastNumber = 0
        var keys: Set<String> = []
        /// Every URL, once for each of the two.
        var order = Deque<String>()
        /// What all of it takes, in bytes.
        var size = 0
    }

    /// How many URLs are known.
    static let maximumCount = 4096
    /// What is known takes at most so many bytes.
    static let maximumSize = 4 << 20
    /// What a URL takes beside its own bytes, which two collections share.
    fileprivate static let overhead = 128
    /// What is larger is no key, whatever a playlist says.
    static let maximumKeySize: Int64 = 4096

    private let state = Guarded(State())

    /// Creates an empty memory.
    package init() {}

    /// What is known, in bytes.
    var size: Int { state.withLock { $0.size } }

    /// The variables that a playlist may import.
    func variables(for playlist: TargetURI) -> HLSVariables {
        let url = playlist.string
        return state.withLock { state in
            state.numbers[url].flatMap { state.shared[$0]?.variables } ?? HLSVariables()
        }
    }

    /// Whether a playlist has named the URL as that of a key.
    package func isKey(_ target: TargetURI) -> Bool {
        // Most that is asked for has never been near a playlist.
        guard state.withLock({ !$0.keys.isEmpty }) else { return false }
        let url = target.string
        return state.withLock { $0.keys.contains(url) }
    }

    /// Takes in what an HLS playlist refers to.
    ///
    /// - Parameters:
    ///   - playlist: the playlist, read with the variables that it may import.
    ///   - variables: those that its children may import.
    ///   - location: the URL that it came from.
    func remember(_ playlist: HLSPlaylist, _ variables: HLSVariables, at location: TargetURI) {
        let children =
            playlist.variants.map(\.address) + playlist.renditions.map(\.address)
            + playlist.pictureLists
        let lists = variables.isEmpty ? [] : Self.resolved(children, at: location)
        let keys = Self.resolved(playlist.keys, at: location)
        guard !lists.isEmpty || !keys.isEmpty else { return }
        state.withLock { state in
            state.share(variables, among: lists)
            for url in keys where state.keys.insert(url).inserted { state.add(url) }
            while state.order.count > Self.maximumCount || state.size > Self.maximumSize,
                let oldest = state.order.popFirst()
            {
                state.forget(oldest)
            }
        }
    }

    private static func resolved(_ addresses: [String], at location: TargetURI) -> [String] {
        var room = maximumSize
        return addresses.prefix(maximumCount).compactMap { address in
            // However short the address is, the place that it is resolved against is read.
            room -= location.path.utf8.count + address.utf8.count
            guard room > 0 else { return nil }
            do throws(TargetURIError) {
                return try location.resolving(reference: address).string
            } catch {
                // Keys of rights management have schemes of their own, and never come through here.
                return nil
            }
        }
    }
}

extension PlaylistRegistry.State {
    fileprivate mutating func add(_ url: String) {
        order.append(url)
        size += url.utf8.count + PlaylistRegistry.overhead
    }

    /// Lets all of `urls` import the same variables.
    fileprivate mutating func share(_ variables: HLSVariables, among urls: [String]) {
        for url in urls {
            let old = numbers[url]
            if let old, shared[old]?.variables == variables { continue }
            if shared[lastNumber]?.variables != variables {
                lastNumber += 1
                shared[lastNumber] = .init(variables: variables)
                size += variables.size
            }
            shared[lastNumber]?.users += 1
            numbers[url] = lastNumber
            if let old { release(old) } else { add(url) }
        }
    }

    private mutating func release(_ number: Int) {
        guard let old = shared[number] else { return }
        shared[number]?.users -= 1
        guard old.users == 1 else { return }
        shared[number] = nil
        size -= old.variables.size
    }

    /// Forgets a URL as what imports variables, or as a key.
    ///
    /// One that is both was added twice, and is forgotten as the first thing first.
    fileprivate mutating func forget(_ url: String) {
        size -= url.utf8.count + PlaylistRegistry.overhead
        if let number = numbers.removeValue(forKey: url) {
            release(number)
        } else {
            keys.remove(url)
        }
    }
}
