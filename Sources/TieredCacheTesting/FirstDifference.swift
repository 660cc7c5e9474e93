#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Where two bodies begin to differ.
///
/// To be used in place of `==` in an expectation: Swift Testing describes two collections that are
/// not equal by their shortest edit script, which takes hours for bodies of megabytes, so that a
/// test that fails looks like one that hangs.
///
/// - Parameters:
///   - found: what came; nil differs from everything else.
///   - expected: what should have come.
/// - Returns: the first position at which they differ, or the shorter one's length; nil where they
///   are the same.
package func firstDifference<Element: Equatable>(
    _ found: (some Collection<Element>)?,
    _ expected: (some Collection<Element>)?
) -> Int? {
    guard let found, let expected else { return (found == nil) == (expected == nil) ? nil : 0 }
    if areSameBytes(found, expected) { return nil }
    var position = 0
    var rest = expected.makeIterator()
    for element in found {
        guard element == rest.next() else { return position }
        position += 1
    }
    return rest.next() == nil ? nil : position
}

/// Whether two bodies that are in one piece each are the same bytes, in the time of a copy.
private func areSameBytes<Element>(
    _ first: some Collection<Element>,
    _ second: some Collection<Element>
) -> Bool {
    guard Element.self == UInt8.self else { return false }
    let isSame = first.withContiguousStorageIfAvailable { first in
        second.withContiguousStorageIfAvailable { second in
            guard first.count == second.count else { return false }
            guard let one = first.baseAddress, let other = second.baseAddress else { return true }
            return memcmp(one, other, first.count) == 0
        }
    }
    return isSame == .some(.some(true))
}
