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
            // There is nobody left to tell.
        }
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
