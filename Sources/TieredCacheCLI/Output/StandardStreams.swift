import CLinuxCalls
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Standard error: one line per message, whole.
enum StandardError {
    static func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        do {
            try FileDescriptor.standardError.writeAll(bytes)
        } catch {
            // There is nothing left that could be told.
        }
    }

    /// The same for a process that must not wait: says nothing where the other end takes nothing
    /// now.
    static func writeWithoutWaiting(_ line: String) {
        var wanted = pollfd(
            fd: FileDescriptor.standardError.rawValue,
            events: Int16(POLLOUT),
            revents: 0
        )
        // A pipe that is ready takes a page, which is more than a line.
        guard poll(&wanted, 1, 0) == 1, wanted.revents & Int16(POLLOUT) != 0 else { return }
        write(line)
    }
}

/// Standard output: lines for programs, or the body itself.
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
            throw CommandFailure(.localFailed, "cannot write to standard output: \(error)")
        }
    }
}

/// The three descriptors that every program may count on.
enum StandardStreams {
    /// Puts something in the place of those that the caller has closed.
    ///
    /// Otherwise the next file that is opened gets the number, and a body meant for standard output
    /// is written into a file of the cache. What takes the place fails as a closed one does.
    static func occupyClosed() {
        for descriptor: CInt in 0...2 where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
            // The lowest free number is the one that is missing.
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }
}

/// What is known about a terminal behind a descriptor.
enum Terminal {
    static func isTerminal(_ descriptor: FileDescriptor) -> Bool {
        isatty(descriptor.rawValue) == 1
    }

    /// The width in columns; 80 where it cannot be had.
    static func width(_ descriptor: FileDescriptor) -> Int {
        let width = tc_terminal_width(descriptor.rawValue)
        return width > 0 ? Int(width) : 80
    }
}
