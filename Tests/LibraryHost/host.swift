// A host that is written in Swift: its runtime and Foundation are dynamic, and the library has both
// inside. It casts, encodes, formats and waits with its own, before and after it reads a film
// through the library.
//
//   host URL FILE DIRECTORY
//
// Ends with 1, and says why, where something was not as it has to be (swiftlang/swift #81367).
import CTieredCache
import Foundation

struct Film: Codable, Hashable {
    var title: String
    var length: Int
    var seen: Date
}

enum Trouble: LocalizedError {
    case status(Int64)

    var errorDescription: String? {
        switch self {
        case .status(let number): "status \(number)"
        }
    }
}

func check(_ condition: Bool, _ what: String) {
    guard !condition else { return }
    FileHandle.standardError.write(Data("host.swift: not so: \(what)\n".utf8))
    exit(1)
}

/// What another runtime's conformances, classes and executors would disturb.
func useFoundation() async throws {
    let film = Film(title: "one", length: 1, seen: Date(timeIntervalSince1970: 0))
    let data = try JSONEncoder().encode([film])
    check(
        try JSONDecoder().decode([Film].self, from: data) == [film],
        "a value is encoded and decoded"
    )
    let values: [Any] = [
        film, "text", data, URL(filePath: "/tmp"), Trouble.status(-1), 7 as NSNumber,
    ]
    check(values.compactMap { $0 as? any Hashable }.count == 5, "casts to a protocol")
    check(
        values.compactMap { $0 as? any Error }.first?.localizedDescription == "status -1",
        "an error"
    )
    let formatter = DateFormatter()
    formatter.timeZone = TimeZone(identifier: "UTC")
    formatter.dateFormat = "yyyy"
    check(formatter.string(from: film.seen) == "1970", "a date is formatted")
    check("a,b".components(separatedBy: ",").count == 2, "strings of Foundation")
    let sum = await withTaskGroup(of: Int.self) { group in
        for number in 0..<100 { group.addTask { number } }
        return await group.reduce(0, +)
    }
    check(sum == 4950, "tasks")
    try await Task.sleep(for: .milliseconds(1))
    await withCheckedContinuation { done in
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.001) { done.resume() }
    }
}

func read(_ url: String, _ directory: String) throws -> Data {
    var (cache, stream): (OpaquePointer?, OpaquePointer?)
    var options = tiered_options()
    options.size = MemoryLayout<tiered_options>.size
    let opened = directory.withCString { path in
        options.directory = path
        return tiered_cache_open(&options, &cache)
    }
    guard opened == 0 else { throw Trouble.status(Int64(opened)) }
    defer { tiered_cache_release(cache) }
    var request = tiered_request()
    request.size = MemoryLayout<tiered_request>.size
    let made = url.withCString { url in
        request.url = url
        return tiered_stream_new(cache, &request, &stream)
    }
    guard made == 0 else { throw Trouble.status(Int64(made)) }
    defer { tiered_stream_release(stream) }
    var (film, piece) = (Data(), [UInt8](repeating: 0, count: 65536))
    while true {
        let count = tiered_read(stream, &piece, piece.count)
        guard count >= 0 else { throw Trouble.status(count) }
        guard count > 0 else { return film }
        film += piece.prefix(Int(count))
    }
}

let arguments = CommandLine.arguments
check(arguments.count == 4, "host URL FILE DIRECTORY")
try await useFoundation()
let wanted = try Data(contentsOf: URL(filePath: arguments[2]))
for _ in 0..<3 {
    let got = try await Task.detached { try read(arguments[1], arguments[3]) }.value
    check(got == wanted, "the film")
    try await useFoundation()
}
