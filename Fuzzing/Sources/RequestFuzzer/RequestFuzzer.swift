// Feeds the guard of the HTTP server with libFuzzer's inputs, and what it lets through to the
// parser of SwiftNIO, under the laws that the tests know too: both see the same requests (no
// smuggling).
//
// The sources are the proxy's own, since its other parts would have to be built for nothing.

/// What libFuzzer calls for each input.
///
/// - Returns: 0, always: a finding is a trap.
@c(LLVMFuzzerTestOneInput)
public func fuzzOne(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count > 1, count <= 4096 else { return 0 }
    // The first byte says how the others are cut.
    let bytes = Array(UnsafeBufferPointer(start: data + 1, count: count - 1))
    do {
        try RequestLaws.check(bytes, pieces: 1 + Int(data[0] % 16))
    } catch {
        preconditionFailure("\(error)")
    }
    return 0
}
