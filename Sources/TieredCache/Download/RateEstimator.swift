import HTTPCaching

/// Estimates the rate at which bytes arrive: a mean over the recent past with decreasing weights.
///
/// A sample loses half its weight after ``halfLife``. Bytes of 0.2 seconds count as one sample,
/// because the amount between two reads says little.
package struct RateEstimator: Hashable, Sendable {
    /// The time in seconds after which a sample has half its weight.
    private static let halfLife = 2.0
    private static let sampleSeconds = 0.2

    /// The rate in bytes per second, or nil before the first sample is complete.
    package private(set) var bytesPerSecond: Double?

    private var pendingBytes: Int64 = 0
    private var since: MonotonicTime

    package init(now: MonotonicTime) {
        since = now
    }

    /// Adds received bytes.
    package mutating func didReceive(_ count: Int, now: MonotonicTime) {
        pendingBytes += Int64(count)
        let elapsed = Double(since.duration(to: now).saturatedNanoseconds) / 1e9
        guard elapsed >= Self.sampleSeconds else { return }
        let sample = Double(pendingBytes) / elapsed
        if let rate = bytesPerSecond {
            let weight = 1 - Self.powerOfHalf(elapsed / Self.halfLife)
            bytesPerSecond = rate + (sample - rate) * weight
        } else {
            bytesPerSecond = sample
        }
        pendingBytes = 0
        since = now
    }

    /// `0.5 ^ exponent` without a mathematics library: whole halvings, then the interpolation
    /// `1 / (1 + x)`, which is exact at both ends of 0...1 and less than 6 % off between.
    private static func powerOfHalf(_ exponent: Double) -> Double {
        // After two minutes without a byte nothing of the old rate is left.
        guard exponent < 60 else { return 0 }
        var result = 1.0
        var rest = exponent
        while rest >= 1 {
            result /= 2
            rest -= 1
        }
        return result / (1 + rest)
    }
}
