/// The names of statuses in metrics: few, because each makes a timer and an origin chooses them.
enum StatusName {
    /// The final statuses of IANA's registry (RFC 9110 §16.2), as of 2025.
    private static let registered = Set(
        [Array(200...208), [226], Array(300...305), [307, 308], Array(400...417)].joined()
            + [421, 422, 423, 424, 425, 426, 428, 429, 431, 451]
            + [500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511]
    )

    /// The status, if it is registered; otherwise its class as `4xx`, as clients treat such a
    /// status by its class (RFC 9110 §15), and `_OTHER` outside the classes.
    static func of(_ status: Int) -> String {
        if registered.contains(status) { return String(status) }
        return (100...599).contains(status) ? "\(status / 100)xx" : "_OTHER"
    }
}
