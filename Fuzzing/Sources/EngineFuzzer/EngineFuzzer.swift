// Feeds a whole engine with libFuzzer's inputs, under the law that the tests know too.
//
// What the bytes make is an origin's responses (status, ranges, lengths near the limits of numbers,
// redirects, cuts) and the requests that meet them, before a real cache over a file system in
// memory. Nothing traps, everything ends, and what is delivered is of one representation.

import Dispatch
import Synchronization
import TieredCache

/// What libFuzzer calls for each input.
///
/// - Returns: 0, always: a finding is a trap, or the time that libFuzzer allows.
@c(LLVMFuzzerTestOneInput)
public func fuzzOne(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count > 0, count <= 1024 else { return 0 }
    let input = Array(UnsafeBufferPointer(start: data, count: count))
    let outcome = Outcome()
    Task { outcome.set(await EngineLaw.breach(input)) }
    if let breach = outcome.wait() { fatalError(breach) }
    return 0
}

/// Lets the thread of the fuzzer wait for a task.
private final class Outcome: Sendable {
    private let breach = Mutex<String?>(nil)
    private let isKnown = DispatchSemaphore(value: 0)

    func set(_ value: String?) {
        breach.withLock { $0 = value }
        isKnown.signal()
    }

    func wait() -> String? {
        isKnown.wait()
        return breach.withLock { $0 }
    }
}
