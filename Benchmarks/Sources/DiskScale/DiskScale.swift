import Foundation
import SystemPackage

/// Prints what a disk tier of many small entries costs.
///
/// Arguments: `--entries N`, by default 100,000; `--directory DIR`, by default a temporary one,
/// removed at the end. A million entries take 4 GiB and a million inodes.
@main
struct DiskScale {
    static func main() throws {
        var entries = 100_000
        var base = NSTemporaryDirectory()
        var arguments = CommandLine.arguments.dropFirst()
        while let argument = arguments.popFirst() {
            switch argument {
            case "--entries": entries = arguments.popFirst().flatMap { Int($0) } ?? entries
            case "--directory": base = arguments.popFirst() ?? base
            default: throw UsageError()
            }
        }
        let root = FilePath(base).appending("tieredcache-scale-\(getpid())")
        defer {
            do {
                try FileManager.default.removeItem(atPath: root.string)
            } catch {
                print("cannot remove \(root): \(error)")
            }
        }
        try Scale(entries: max(entries, 1000), root: root).run()
    }
}

struct UsageError: Error {}

/// Bytes of this process in memory.
func residentBytes() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// The time that `body` takes, in seconds.
func seconds(_ body: () throws -> Void) rethrows -> Double {
    let start = ContinuousClock.now
    try body()
    let (whole, part) = (ContinuousClock.now - start).components
    return Double(whole) + Double(part) / 1e18
}

/// A line of the report.
func report(_ what: String, _ figure: String) {
    print(what.padding(toLength: 58, withPad: " ", startingAt: 0) + figure)
    fflush(nil)
}
