/// An error of a command: one line for people and the exit code for scripts.
struct CommandFailure: Error, Equatable, CustomStringConvertible {
    let status: ExitStatus
    /// The failure, its URL or file, and a remedy.
    let message: String

    init(_ status: ExitStatus, message: String) {
        self.status = status
        self.message = message
    }

    var description: String { message }
}
