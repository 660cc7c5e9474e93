/// The output of the demo, and the results of its checks.
struct DemoReport {
    private(set) var checkedClaims = 0
    private(set) var failedClaims: [String] = []
    private let write: (String) -> Void

    /// - Parameter write: writes a line.
    init(write: @escaping (String) -> Void) {
        self.write = write
    }

    /// Starts a part of the demo.
    func heading(_ text: String) { write("\n\(text)") }

    /// Writes a statement that is not checked.
    func say(_ text: String) { write("  \(text)") }

    /// Writes a claim and whether it holds.
    mutating func claim(_ text: String, holds: Bool) {
        checkedClaims += 1
        if !holds { failedClaims.append(text) }
        write("  \(holds ? "ok    " : "FAILED") \(text)")
    }

    /// The last line.
    var summary: String {
        guard failedClaims.isEmpty else {
            return "\(failedClaims.count) of \(checkedClaims) claims failed: "
                + failedClaims.joined(separator: "; ")
        }
        return "All \(checkedClaims) claims hold."
    }
}
