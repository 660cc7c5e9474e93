import ArgumentParser
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Parses the arguments, runs the command and converts every error to one line and an exit code.
enum Program {
    static func main() async -> Never {
        // A closed pipe must appear as an error of the write.
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
        } catch let ending as ProgramEnding {
            exit(ending.code)
        } catch {
            finish(with: Ending(error))
        }
        finish(with: Ending(status: .done, output: nil))
    }

    /// Refuses arguments that are not UTF-8: repaired, they would name another file or URL.
    ///
    /// - Throws: ``CommandFailure`` with ``ExitStatus/usage``.
    static func requireUTF8(
        _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>,
        count: Int
    ) throws(CommandFailure) {
        for index in 0..<count {
            guard let argument = arguments[index], String(validatingCString: argument) == nil
            else { continue }
            throw CommandFailure(.usage, message: "argument \(index) is not UTF-8")
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

/// The final output and the exit code.
struct Ending: Equatable {
    var status: ExitStatus
    /// A help text for standard output, or one line for standard error.
    var output: String?

    init(status: ExitStatus, output: String?) {
        self.status = status
        self.output = output
    }

    /// Converts an error of a command or of the parser.
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

    /// The causes of local errors would repeat the message.
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

    /// Finds `tieredcache get --help` at the end of the parser's full message.
    private static func helpCommand(in text: String) -> String {
        // ArgumentParser ends a usage by "See 'tieredcache get --help' for more information."
        let quoted = text.split(separator: "'").last { $0.hasSuffix(" --help") }
        return quoted.map(String.init) ?? "tieredcache --help"
    }
}

extension String {
    /// The text as one line: line breaks and other control characters become spaces.
    var asOneLine: String {
        let controls = unicodeScalars.contains { $0.properties.generalCategory == .control }
        guard controls else { return self }
        let words = split {
            $0.unicodeScalars.contains { $0.properties.generalCategory == .control }
        }
        return words.map(String.init).joined(separator: " ")
    }
}
