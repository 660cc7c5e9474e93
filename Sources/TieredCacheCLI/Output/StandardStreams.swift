import CLinuxCalls
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Writes to standard error: one line for each message.
enum StandardError {
    static func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        do {
            try FileDescriptor.standardError.writeAll(bytes)
        } catch {
            // The failure cannot be reported anywhere.
        }
    }

    /// Writes without blocking: drops the line if the other end takes nothing now.
    static func writeWithoutWaiting(_ line: String) {
        var wanted = pollfd(
            fd: FileDescriptor.standardError.rawValue,
            events: Int16(POLLOUT),
            revents: 0
        )
        // A pipe that is ready takes at least a page, which is longer than a line.
        guard poll(&wanted, 1, 0) == 1, wanted.revents & Int16(POLLOUT) != 0 else { return }
        write(line)
    }
}

/// Writes to standard output: lines for programs, or the body.
enum StandardOutput {
    static func writeLine(_ line: String) throws(CommandFailure) {
        try send(Array((line + "\n").utf8))
    }

    static func write(_ bytes: UnsafeRawBufferPointer) throws(CommandFailure) {
        try send(bytes)
    }

    private static func send(_ bytes: some Sequence<UInt8>) throws(CommandFailure) {
        do {
            try FileDescriptor.standardOutput.writeAll(bytes)
        } catch {
            throw CommandFailure(.localFailed, message: "cannot write to standard output: \(error)")
        }
    }
}

/// The three descriptors that every program expects to be open.
enum StandardStreams {
    /// Opens `/dev/null` for those that the caller has closed.
    ///
    /// Otherwise the next opened file gets the number, and a body for standard output would be
    /// written into a file of the cache. Opened in the wrong direction, they fail as closed ones
    /// do.
    static func occupyClosed() {
        for descriptor: CInt in 0...2 where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
            // The lowest free number is the missing one.
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }
}

/// The properties of a terminal.
enum Terminal {
    static func isTerminal(_ descriptor: FileDescriptor) -> Bool {
        isatty(descriptor.rawValue) == 1
    }

    /// The width in columns; 80 if unknown.
    static func width(_ descriptor: FileDescriptor) -> Int {
        let width = tc_terminal_width(descriptor.rawValue)
        return width > 0 ? Int(width) : 80
    }
}
