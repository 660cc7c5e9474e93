#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A program that ran to its end: how long it took and the most memory it had resident, in bytes.
struct Run {
    let seconds: Double
    let peak: Int

    static func of(_ arguments: [String]) throws -> Run {
        let start = now()
        let process = try spawn(arguments)
        var status: Int32 = 0
        var usage = rusage()
        guard wait4(process, &status, 0, &usage) == process, status == 0 else {
            throw Failure("\(arguments.joined(separator: " ")) failed")
        }
        return Run(seconds: now() - start, peak: usage.ru_maxrss << 10)
    }

    /// Starts a program that is found in the path.
    static func spawn(_ arguments: [String]) throws -> pid_t {
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var process: pid_t = 0
        guard posix_spawnp(&process, arguments[0], nil, nil, &pointers, environ) == 0 else {
            throw Failure("\(arguments[0]) cannot be started")
        }
        return process
    }

    private static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
