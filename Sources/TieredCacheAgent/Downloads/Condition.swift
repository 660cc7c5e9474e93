/// What the machine has to be like for a download to run: the option `require`.
package enum Condition: String, CaseIterable, Hashable, Sendable {
    /// There is a network.
    case network
    /// The network has no costs per byte.
    case unmetered
    /// The machine does not run on its battery.
    case charging
    /// Its users do nothing.
    case idle
    /// The volume of the cache has room: ``MachineState/lowStorage``.
    case storage

    /// Those of a list with commas between, in the order above; nil where one is none.
    package static func list(_ text: String) -> [Condition]? {
        let names = text.split(separator: ",").map { String($0).trimmingSpaces }
        let found = Set(names.compactMap(Condition.init))
        guard names.allSatisfy({ Condition(rawValue: $0) != nil }) else { return nil }
        return allCases.filter(found.contains)
    }

    /// The list as an option has it.
    package static func text(_ conditions: [Condition]) -> String {
        conditions.map(\.rawValue).joined(separator: ",")
    }
}

/// What is known of the machine; nil is unknown.
package struct MachineState: Hashable, Sendable {
    /// A volume with fewer bytes free than this, and than a twentieth of its size, has no room: as
    /// Android has it.
    static let lowStorage: Int64 = 500 << 20

    package var isOnline: Bool?
    package var isMetered: Bool?
    package var isOnBattery: Bool?
    package var isIdle: Bool?
    package var isStorageLow: Bool?

    /// Creates a state of which nothing is known.
    package init() {}

    /// Whether a condition holds; nil where that is unknown.
    func holds(_ condition: Condition) -> Bool? {
        switch condition {
        case .network: isOnline
        case .unmetered: isMetered.map { !$0 }
        case .charging: isOnBattery.map { !$0 }
        case .idle: isIdle
        case .storage: isStorageLow.map { !$0 }
        }
    }

    /// Whether a volume has no room.
    static func isLow(free: Int64, size: Int64) -> Bool { free < min(lowStorage, size / 20) }
}
