import DequeModule
package import HTTPCaching
import TieredCache

/// What playlists that came through have said about other URLs.
///
/// A media playlist may use variables of the master playlist that led to it, and a key does not show
/// that it is one. Kept in memory alone, for the newest few thousand URLs: a player that starts
/// reads the playlists first, and so tells it again.
package final class PlaylistMemory: Sendable {
    private struct State {
        var variables: [String: HLSVariables] = [:]
        var keys: Set<String> = []
        var order = Deque<String>()
    }

    private static let maximumCount = 4096
    /// What is larger is no key, whatever a playlist says.
    static let maximumKeySize: Int64 = 4096

    private let state = Guarded(State())

    /// Creates an empty memory.
    package init() {}

    /// The variables that a playlist may import.
    func variables(for playlist: TargetURI) -> HLSVariables {
        state.withLock { $0.variables[playlist.string] ?? HLSVariables() }
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
            for url in lists {
                if state.variables.updateValue(variables, forKey: url) == nil {
                    state.order.append(url)
                }
            }
            for url in keys where state.keys.insert(url).inserted { state.order.append(url) }
            while state.order.count > Self.maximumCount, let oldest = state.order.popFirst() {
                state.variables[oldest] = nil
                state.keys.remove(oldest)
            }
        }
    }

    private static func resolved(_ addresses: [String], at location: TargetURI) -> [String] {
        addresses.prefix(maximumCount).compactMap { address in
            do throws(TargetURIError) {
                return try location.resolving(reference: address).string
            } catch {
                // Keys of rights management have schemes of their own, and never come through here.
                return nil
            }
        }
    }
}
