// Feeds the parser of responses with libFuzzer's inputs, and SwiftNIO's, under the laws that the
// tests know too: how bytes are cut changes nothing, and what both take, both read alike.
//
// The sources are the transport's own, since a package's interface is no part of its product.

import HTTPTypes

/// What libFuzzer calls for each input.
///
/// - Returns: 0, always: a finding is a trap.
@c(LLVMFuzzerTestOneInput)
public func fuzzOne(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count > 1, count <= 4096 else { return 0 }
    // The first byte says how the others are cut, and for which method.
    let bytes = Array(UnsafeBufferPointer(start: data + 1, count: count - 1))
    do {
        try ResponseLaws.check(
            bytes,
            pieces: 1 + Int(data[0] % 16),
            method: data[0] & 16 == 0 ? .get : .head
        )
    } catch {
        preconditionFailure("\(error)")
    }
    return 0
}
