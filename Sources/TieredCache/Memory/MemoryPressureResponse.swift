/// Decides which part of its limit a cache may use under pressure.
///
/// Graded rather than all or nothing: dropping everything at the first sign causes reads that the
/// machine cannot afford then. The shape is CacheLib's, whose monitor also shrinks in steps and
/// grows back more slowly than it shrank.
///
/// | observed | the fraction becomes | not below, above |
/// | --- | --- | --- |
/// | warning | what it was × 0.8 | 0.25 |
/// | critical | what it was × 0.5 | 0.05 |
/// | normal, for the tenth time in a row and each time after it | what it was + 0.05 | 1 |
package struct MemoryPressureResponse: Hashable, Sendable {
    /// The part of the configured limit that may be used now.
    package private(set) var fraction = 1.0
    private var calm = 0

    /// Creates the response of a machine that has memory.
    package init() {}

    /// Takes in one observation.
    ///
    /// - Returns: the new fraction, or `nil` if it stays as it is.
    package mutating func observe(_ level: MemoryPressureLevel) -> Double? {
        let before = fraction
        calm = level == .normal ? calm + 1 : 0
        switch level {
        case .normal where calm >= 10: fraction = min(1, fraction + 0.05)
        case .normal: break
        // A critical level may have gone below the floor of a warning; that value stays.
        case .warning: fraction = min(fraction, max(0.25, fraction * 0.8))
        case .critical: fraction = max(0.05, fraction * 0.5)
        }
        return fraction == before ? nil : fraction
    }
}
