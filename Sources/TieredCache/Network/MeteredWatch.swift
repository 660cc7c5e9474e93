#if os(Linux)
import CLinuxCalls

/// Whether the network has costs per byte, by NetworkManager, and by the portal where that does not
/// know; belongs to one thread at a time.
final class MeteredWatch {
    private let networkManager: MessageBus
    private let portal: MessageBus

    /// - Parameters:
    ///   - system: the bus of NetworkManager; nothing is connected yet.
    ///   - session: that of the portal.
    init(system: MessageBus.Place = .system, session: MessageBus.Place = .session) {
        networkManager = MessageBus(system, asking: [TC_BUS_NETWORK_MANAGER])
        portal = MessageBus(session, asking: [TC_BUS_PORTAL])
    }

    /// Waits for the first answers, for `limit` at most for each of the two.
    func settle(within limit: Duration) {
        networkManager.settle(within: limit)
        if Self.isMetered(networkManager: manager, portal: nil) == nil {
            portal.settle(within: limit)
        }
    }

    /// Takes what has been said since; waits for the portal for a second where it was not asked before.
    func process() {
        networkManager.process()
        guard Self.isMetered(networkManager: manager, portal: nil) == nil else { return }
        portal.process()
        if !portal.isSettled { portal.settle(within: .seconds(1)) }
    }

    /// Nil where neither knows.
    var isMetered: Bool? {
        Self.isMetered(networkManager: manager, portal: portal.answer(TC_BUS_PORTAL))
    }

    private var manager: Int64? { networkManager.answer(TC_BUS_NETWORK_MANAGER) }

    /// What the numbers mean: of NetworkManager's `Metered` 1 is yes, 2 no, 3 and 4 are the same by
    /// a guess, and of the portal's `GetMetered` 1 is yes.
    static func isMetered(networkManager: Int64?, portal: Int64?) -> Bool? {
        switch networkManager {
        case 1, 3: true
        case 2, 4: false
        default: portal.map { $0 == 1 }
        }
    }
}
#endif
