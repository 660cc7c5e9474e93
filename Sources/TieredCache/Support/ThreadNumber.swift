#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Tells threads apart.
enum ThreadNumber {
    /// A number that no other living thread has.
    static var current: UInt64 {
        #if canImport(Glibc)
        UInt64(pthread_self())
        #else
        UInt64(UInt(bitPattern: pthread_self()))
        #endif
    }
}
