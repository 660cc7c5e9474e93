#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Fetches 256 MiB from nginx on loopback with curl and with `tieredcache prefetch`, in turn.
///
/// Arguments: the program, the number of rounds (7), and a file to which the ratio is added as
/// JSON, for Benchmarks/compare.py. Prints the ratio of the times within a round, its median over
/// the rounds, and how much more memory 256 MiB take than 64 KiB.
@main
struct ColdDownload {
    private static let size = 256 << 20

    static func main() throws {
        guard CommandLine.arguments.count > 1 else {
            throw Failure("say which program: ColdDownload PATH [ROUNDS [FILE]]")
        }
        let program = CommandLine.arguments[1]
        let rounds = CommandLine.arguments.dropFirst(2).first.flatMap { Int($0) } ?? 7
        let place = try Place(fileSizes: ["film": size, "page": 64 << 10])
        defer { place.remove() }
        let origin = try Origin(in: place)
        defer { origin.stop() }
        let contenders = Contenders(program: program, place: place, origin: origin)
        _ = try contenders.curl("film")
        let idle = try contenders.prefetch("page").peak
        var ratios: [Double] = []
        var (ours, theirs, peak) = ([Double](), [Double](), 0)
        for round in 0..<rounds {
            // In turn, so that neither always finds what the other has left in the caches.
            let first = round % 2 == 0 ? try contenders.curl("film") : nil
            let prefetch = try contenders.prefetch("film")
            let curl = try first ?? contenders.curl("film")
            ratios.append(prefetch.seconds / curl.seconds)
            ours.append(prefetch.seconds)
            theirs.append(curl.seconds)
            peak = max(peak, prefetch.peak)
        }
        report(ratios, ours, theirs, growth: peak - idle)
        if CommandLine.arguments.count > 3 {
            try append(median(ratios), to: CommandLine.arguments[3])
        }
    }

    private static func append(_ ratio: Double, to path: String) throws {
        let line =
            "{\"atMost\":1.1,\"peer\":\"curl\",\"ratio\":\(ratio),"
            + "\"row\":\"cold download of 256 MiB\"}\n"
        guard let file = fopen(path, "a") else { throw Failure("cannot write \(path)") }
        let isWritten = fputs(line, file) >= 0
        guard fclose(file) == 0, isWritten else { throw Failure("cannot write \(path)") }
    }

    private static func report(
        _ ratios: [Double],
        _ ours: [Double],
        _ theirs: [Double],
        growth: Int
    ) {
        print("cold download, 256 MiB from nginx on loopback, \(ratios.count) rounds")
        print("  tieredcache prefetch, checksummed: \(rounded(median(ours))) s")
        print("  curl to a file:                    \(rounded(median(theirs))) s")
        print("  ratio, median of the rounds:       \(rounded(median(ratios)))  (at most 1.1)")
        print("  memory beyond a page's:            \(growth >> 10) KiB  (at most 24576)")
    }

    private static func median(_ numbers: [Double]) -> Double {
        let sorted = numbers.sorted()
        return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
    }

    private static func rounded(_ number: Double) -> Double { (number * 100).rounded() / 100 }
}

struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
