#if canImport(Glibc)
import CLinuxCalls
#elseif canImport(Darwin)
import Darwin
#endif

/// Tells threads apart.
enum ThreadNumber {
    /// A number that no other living thread has.
    static var current: UInt64 {
        #if canImport(Glibc)
        return tc_thread_number()
        #else
        var number: UInt64 = 0
        _ = pthread_threadid_np(nil, &number)
        return number
        #endif
    }
}
