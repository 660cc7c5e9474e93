import DequeModule
package import HTTPCaching
import TieredCache

/// The facts that proxied playlists state about other URLs.
///
/// A media playlist may use variables of its master playlist, and a key is not recognisable by its
/// own response. Kept in memory only, for the newest few thousand URLs and at most a few megabytes:
/// players read the playlists first when they start. All media playlists of one master playlist
/// share its variables.
package final class PlaylistRegistry: Sendable {
    /// The variables of one playlist, and the number of URLs that may import them.
    fileprivate struct Shared {
        let variables: HLSVariables
        var users = 0
    }

    fileprivate struct State {
        /// The number of the variables in ``shared``, by URL.
        var numbers: [String: Int] = [:]
        var shared: [Int: Shared] = [:]
        var lastNumber = 0
        var keys: Set<String> = []
        /// All URLs in order of insertion, once for variables and once for a key.
        var order = Deque<String>()
        /// The bytes of all URLs and variables.
        var size = 0
    }

    /// The most URLs.
    static let maximumCount = 4096
    /// The most bytes of URLs and variables.
    static let maximumSize = 4 << 20
    /// The bytes of a URL's slots in two collections, beside its text.
    fileprivate static let overhead = 128
    /// The largest response, in bytes, that is treated as a key.
    static let maximumKeySize: Int64 = 4096

    private let state = Guarded(State())

    /// Creates an empty registry.
    package init() {}

    /// The bytes of all URLs and variables.
    var size: Int { state.withLock { $0.size } }

    /// The variables that a playlist may import.
    func variables(for playlist: TargetURI) -> HLSVariables {
        let url = playlist.string
        return state.withLock { state in
            state.numbers[url].flatMap { state.shared[$0]?.variables } ?? HLSVariables()
        }
    }

    /// Whether a playlist has named the URL as a key.
    package func isKey(_ target: TargetURI) -> Bool {
        // Avoids computing the URL's text where no playlist has named a key.
        guard state.withLock({ !$0.keys.isEmpty }) else { return false }
        let url = target.string
        return state.withLock { $0.keys.contains(url) }
    }

    /// Records the references of an HLS playlist.
    ///
    /// - Parameters:
    ///   - playlist: the playlist, read with the variables that it may import.
    ///   - variables: the variables that its children may import.
    ///   - location: the final URL of the playlist.
    func remember(_ playlist: HLSPlaylist, variables: HLSVariables, at location: TargetURI) {
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
            // Resolving costs as much as the base path, even for a short reference.
            room -= location.path.utf8.count + address.utf8.count
            guard room > 0 else { return nil }
            do throws(TargetURIError) {
                return try location.resolving(reference: address).string
            } catch {
                // Keys of DRM systems have other schemes and are not proxied.
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

    /// Allows all of `urls` to import the same variables.
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

    /// Removes the oldest record of a URL: as an importer of variables, or as a key.
    ///
    /// A URL that is both was added twice; its record as an importer is removed first.
    fileprivate mutating func forget(_ url: String) {
        size -= url.utf8.count + PlaylistRegistry.overhead
        if let number = numbers.removeValue(forKey: url) {
            release(number)
        } else {
            keys.remove(url)
        }
    }
}
