/// An error of a command: one line for people and the exit code for scripts.
struct CommandFailure: Error, Equatable, CustomStringConvertible {
    let status: ExitStatus
    /// What failed, for which URL or file, and what to do.
    let message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    var description: String { message }
}
