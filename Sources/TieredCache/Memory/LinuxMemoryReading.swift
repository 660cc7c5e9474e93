/// What Linux tells about memory pressure: stall times (PSI) and the limits of our control group.
///
/// Pure: from the texts of the files to a level. Files that are missing (a kernel without PSI,
/// cgroup v1, a machine that is no Linux) are ignored.
struct LinuxMemoryReading: Hashable, Sendable {
    /// Percent of the last ten seconds in which some work waited for memory.
    private(set) var someStall = 0.0
    /// Percent of the last ten seconds in which all work waited for memory.
    private(set) var fullStall = 0.0
    /// The part of the control group's limit that is used by what cannot simply be dropped.
    private(set) var used = 0.0

    /// Takes in a file in the format of `/proc/pressure/memory`; the larger figures win.
    mutating func addPressure(_ text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard let field = words.first(where: { $0.hasPrefix("avg10=") }),
                let percent = Double(field.dropFirst(6)), percent >= 0
            else { continue }
            switch words.first {
            case "some": someStall = max(someStall, percent)
            case "full": fullStall = max(fullStall, percent)
            default: continue
            }
        }
    }

    /// Takes in the files of one control group.
    ///
    /// Pages of files that are not in use are subtracted: the kernel fills a group's memory with
    /// them, and reclaims them without stalling a process.
    ///
    /// - Parameters:
    ///   - current: `memory.current`.
    ///   - high: `memory.high`, the size at which the group is slowed down.
    ///   - max: `memory.max`, the size at which it is killed.
    ///   - stat: `memory.stat`.
    mutating func addGroup(current: String?, high: String?, max: String?, stat: String?) {
        guard let current = current.flatMap(Self.number) else { return }
        let limits = [high, max].compactMap { $0.flatMap(Self.number) }.filter { $0 > 0 }
        guard let limit = limits.min() else { return }
        let idle = stat.flatMap { Self.field("inactive_file", of: $0) } ?? 0
        used = Swift.max(used, Swift.max(0, current - idle) / limit)
    }

    /// The level that the figures amount to.
    var level: MemoryPressureLevel {
        // At the limit itself the kernel kills (memory.max, cgroup-v2.rst), so critical begins
        // below it.
        if fullStall >= 5 || used >= 0.97 { return .critical }
        if someStall >= 10 || fullStall >= 1 || used >= 0.9 { return .warning }
        return .normal
    }

    /// The number in a file of one line; `nil` for `max`, which means no limit.
    private static func number(_ text: String) -> Double? {
        let digits = text.prefix { $0 != "\n" }
        return UInt64(digits).map(Double.init)
    }

    private static func field(_ name: String, of text: String) -> Double? {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, words[0] == name else { continue }
            return UInt64(words[1]).map(Double.init)
        }
        return nil
    }
}
