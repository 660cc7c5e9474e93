import HTTPTypes
import TieredCacheTesting

// What was paid for twice, from the origin's books.
extension Workplace {
    /// The first byte that an exchange was asked for.
    static func start(of exchange: OriginExchange) -> Int64? {
        guard let range = exchange.fields[.range] else { return 0 }
        return Int64(range.dropFirst("bytes=".count).prefix { $0 != "-" })
    }

    /// For each response but the last, how much of what was sent the next one was asked for again.
    ///
    /// What was sent and had not been read lay in the sockets between the two processes: an upper
    /// bound for what the program lost.
    func sentTwice(_ target: String) -> [Int64] {
        let all = exchanges(target)
        return zip(all, all.dropFirst()).compactMap { before, after in
            guard let first = Self.start(of: before), let next = Self.start(of: after) else {
                return nil
            }
            return max(0, first + before.bodyBytesWritten - next)
        }
    }

    /// One line for people: so many bytes per kill.
    static func report(_ title: String, _ bytes: [Int64]) {
        guard let most = bytes.max() else { return }
        let mean = bytes.reduce(0, +) / Int64(bytes.count)
        print("\(title): \(bytes.count) kills, mean \(mean) bytes, most \(most)")
    }
}
