import HTTPCaching

/// How fast bytes arrive: a mean over the recent past, in which older seconds weigh less.
///
/// A sample is half forgotten after ``halfLife``. Bytes are gathered for a fifth of a second
/// before they count as one sample, because what arrives between two reads says little.
package struct RateEstimator: Hashable, Sendable {
    /// After this time a sample weighs half.
    private static let halfLife = 2.0
    private static let sampleSeconds = 0.2

    /// Bytes per second, or nil before the first sample is complete.
    package private(set) var bytesPerSecond: Double?

    private var pendingBytes: Int64 = 0
    private var since: MonotonicTime

    package init(now: MonotonicTime) {
        since = now
    }

    /// Takes in bytes that arrived.
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
