#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The position at which two bodies begin to differ.
///
/// Use it instead of `==` in an expectation: Swift Testing describes unequal collections by their
/// shortest edit script, which takes hours for bodies of megabytes, so that a failing test seems to
/// hang.
///
/// - Parameters:
///   - found: the actual body; nil differs from everything else.
///   - expected: the expected body.
/// - Returns: the first position at which they differ, or the length of the shorter one; nil if
///   they are equal.
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

/// Whether two contiguous bodies of bytes are equal, by `memcmp`.
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
