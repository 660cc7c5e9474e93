extension Duration {
    /// The duration in seconds, for rates.
    var totalSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
