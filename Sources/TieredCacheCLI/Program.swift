import ArgumentParser
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Parses the arguments, runs the command and turns every error into one line and an exit code.
enum Program {
    static func main() async -> Never {
        // A reader that closes its end of a pipe must show up as an error of that write.
        signal(SIGPIPE, SIG_IGN)
        StandardStreams.occupyClosed()
        do {
            try requireUTF8(CommandLine.unsafeArgv, count: Int(CommandLine.argc))
            try RootCommand.requireKnownCommand(in: CommandLine.arguments.dropFirst())
            var command = try RootCommand.parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            finish(with: Ending(error))
        }
        finish(with: Ending(status: .done, output: nil))
    }

    /// Refuses arguments that are no text: repaired, they would name another file or URL.
    ///
    /// - Throws: ``CommandFailure`` with ``ExitStatus/usage``.
    static func requireUTF8(
        _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>,
        count: Int
    ) throws(CommandFailure) {
        for index in 0..<count {
            guard let argument = arguments[index], String(validatingCString: argument) == nil
            else { continue }
            throw CommandFailure(.usage, "argument \(index) is not UTF-8")
        }
    }

    private static func finish(with ending: Ending) -> Never {
        if let output = ending.output {
            if ending.status == .done {
                print(output)
            } else {
                StandardError.write("tieredcache: \(output)")
            }
        }
        fflush(nil)
        exit(ending.status.rawValue)
    }
}

/// What is said at the end, and the exit code.
struct Ending: Equatable {
    var status: ExitStatus
    /// A help text for standard output, or one line for standard error.
    var output: String?

    init(status: ExitStatus, output: String?) {
        self.status = status
        self.output = output
    }

    /// Translates what a command threw, or what the parser did.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure:
            self.init(status: failure.status, output: failure.message.asOneLine)
        case let error as CacheError:
            self.init(status: ExitStatus(error.code), output: Self.line(error).asOneLine)
        case is CancellationError:
            self.init(status: .interrupted, output: "interrupted; what arrived is kept")
        default:
            self.init(parser: error)
        }
    }

    /// The causes of local trouble repeat the message in the words of the system call.
    private static func line(_ error: CacheError) -> String {
        ExitStatus(error.code) == .localFailed ? error.message : error.description
    }

    private init(parser error: any Error) {
        guard RootCommand.exitCode(for: error) != .success else {
            self.init(status: .done, output: RootCommand.fullMessage(for: error))
            return
        }
        let message = RootCommand.message(for: error).asOneLine
        let help = Self.helpCommand(in: RootCommand.fullMessage(for: error))
        self.init(status: .usage, output: "\(message); see '\(help)'")
    }

    /// Finds `tieredcache get --help` in the parser's longer text, which ends with it.
    private static func helpCommand(in text: String) -> String {
        let quoted = text.split(separator: "'").last { $0.hasSuffix(" --help") }
        return quoted.map(String.init) ?? "tieredcache --help"
    }
}

extension String {
    /// Errors are one line: breaks and other control characters become spaces.
    var asOneLine: String {
        let controls = unicodeScalars.contains { $0.properties.generalCategory == .control }
        guard controls else { return self }
        let words = split {
            $0.unicodeScalars.contains { $0.properties.generalCategory == .control }
        }
        return words.map(String.init).joined(separator: " ")
    }
}
