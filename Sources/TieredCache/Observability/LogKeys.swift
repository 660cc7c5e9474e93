/// The metadata keys of log messages, so that one spelling is used everywhere.
package enum LogKeys {
    /// The URL, redacted.
    package static let url = "tc_url"
    /// The cache key, redacted.
    package static let key = "tc_key"
    /// The origin's status code.
    package static let status = "tc_status"
    /// An offset into a body, in bytes.
    package static let offset = "tc_offset"
    /// A number of bytes.
    package static let bytes = "tc_bytes"
    /// The number of an attempt, from 1.
    package static let attempt = "tc_attempt"
    /// The time until the next attempt.
    package static let delay = "tc_delay"
    /// A file or directory.
    package static let path = "tc_path"
    /// The error.
    package static let error = "tc_error"
    /// The reason of a decision.
    package static let reason = "tc_reason"
}
