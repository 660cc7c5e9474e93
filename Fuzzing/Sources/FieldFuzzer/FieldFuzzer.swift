// Feeds the parsers of fields with libFuzzer's inputs, under the laws that the tests know too.
//
// Whatever a peer sends, a parser makes a value of it or refuses it, never traps, and reads again
// what it has written; a word that nobody knows changes no decision.

/// What libFuzzer calls for each input.
///
/// - Returns: 0, always: a finding is a trap.
@c(LLVMFuzzerTestOneInput)
public func fuzzOne(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count > 0, count <= 4096 else { return 0 }
    let text = String(decoding: UnsafeBufferPointer(start: data, count: count), as: UTF8.self)
    for law in FieldLaws.all {
        precondition(law.holds(text), "\(law.name): \(text.debugDescription)")
    }
    return 0
}
