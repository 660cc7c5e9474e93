import Subprocess
import Testing

@testable import TieredCacheCLI

/// How a run of `tieredcache` ended and what it said.
struct ProgramOutcome: Sendable {
    let arguments: [String]
    let status: TerminationStatus
    let output: [UInt8]
    let error: String

    /// Nil where a signal ended it.
    var exitCode: Int32? {
        guard case .exited(let code) = status else { return nil }
        return code
    }

    /// Standard output as text.
    var text: String { String(decoding: output, as: UTF8.self) }
    /// The lines on standard output.
    var lines: [String] { text.split(separator: "\n").map(String.init) }
    /// The lines on standard error.
    var errorLines: [String] { error.split(separator: "\n").map(String.init) }
    /// The last line on standard output as JSON.
    var json: JSONFields { JSONFields(lines.last ?? "") }
    /// The last line on standard error as JSON, where the body has standard output.
    var errorJSON: JSONFields { JSONFields(errorLines.last ?? "") }

    private var told: Comment { "\(arguments) ended with \(status), said: \(error)" }

    /// Exit code 0 and nothing on standard error.
    func expectDone(_ location: SourceLocation = #_sourceLocation) {
        #expect(status == .exited(0), told, sourceLocation: location)
        #expect(error.isEmpty, told, sourceLocation: location)
    }

    /// An exit code and exactly one line on standard error, which holds all of `words`.
    func expectFailure(
        _ code: Int32,
        _ words: String...,
        at location: SourceLocation = #_sourceLocation
    ) {
        #expect(status == .exited(code), told, sourceLocation: location)
        #expect(errorLines.count == 1, told, sourceLocation: location)
        #expect(error.hasPrefix("tieredcache: "), told, sourceLocation: location)
        for word in words {
            #expect(error.contains(word), "\(word) missing: \(error)", sourceLocation: location)
        }
    }

    /// The line that ends `get --json`: these members and the time it took, and no other.
    func expectReport(
        _ url: String,
        status: Int = 200,
        source: String,
        fromCache: Int64 = 0,
        fromOrigin: Int64 = 0,
        at location: SourceLocation = #_sourceLocation
    ) {
        let line = lines.last ?? ""
        let start =
            #"{"bytes":\#(fromCache + fromOrigin),"fromCache":\#(fromCache),"#
            + #""fromOrigin":\#(fromOrigin),"seconds":"#
        let end = #","source":"\#(source)","status":\#(status),"url":"\#(url)"}"#
        #expect(line.hasPrefix(start), "\(line) \(told)", sourceLocation: location)
        #expect(line.hasSuffix(end), "\(line) \(told)", sourceLocation: location)
        let seconds = line.dropFirst(start.count).dropLast(end.count)
        #expect(Double(seconds).map { $0 >= 0 } == true, "\(line)", sourceLocation: location)
    }
}
