import CLinuxCalls

/// A descriptor that is readable while it is set (eventfd(2)); not for other systems than Linux.
final class EventDescriptor: Sendable {
    /// The descriptor; closed with the last reference to this.
    let number: Int32

    /// Creates a descriptor that is not set; it is closed at exec.
    ///
    /// - Throws: `.localStorage` if the process or the system has none left.
    init() throws(CacheError) {
        number = tc_event_open()
        guard number >= 0 else {
            throw CacheError(.localStorage, "no descriptor is left to wait with")
        }
    }

    deinit { tc_event_close(number) }

    /// Makes it readable, or takes that back; never waits.
    func set(_ isSet: Bool) {
        if isSet { tc_event_set(number) } else { tc_event_clear(number) }
    }
}
