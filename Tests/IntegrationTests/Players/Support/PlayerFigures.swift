import TieredCache

/// Times and amounts that runs of real players print; nothing depends on them.
enum PlayerFigures {
    static func tell(_ player: String, _ what: String, since start: MonotonicTime) {
        tell(player, what, start.duration(to: SystemTimeSource().monotonicTime()))
    }

    static func tell(_ player: String, _ what: String, _ time: Duration) {
        let milliseconds =
            time.components.seconds * 1000 + time.components.attoseconds / 1_000_000_000_000_000
        print("FIGURE \(player): \(what) after \(milliseconds) ms")
    }

    static func tell(_ player: String, fetched: Int64, needed: Int64) {
        print("FIGURE \(player): \(fetched) bytes fetched, \(needed) distinct bytes in the film")
    }
}
