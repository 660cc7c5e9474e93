import SystemPackage

@_spi(Benchmarks) @testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What was found in all inspections together, to show that they found something.
struct Findings {
    var entries = 0
    var partial = 0
    var bytes: Int64 = 0
    var damaged = 0
}

/// Opens what a killed process left, and looks at every byte of it.
///
/// - Returns: what is wrong; nil if nothing is.
func inspect(_ directory: String, _ findings: inout Findings) -> String? {
    if let problem = checkClaim(directory) { return problem }
    do throws(CacheError) {
        let store = try openStore(directory)
        guard store.access.canWrite else { return "another process owns the directory" }
        for number in 0..<UInt64(24) {
            if let problem = try compare(store, key(number), &findings) { return problem }
        }
        // A write that was cut short may have left a torn block; none that was whole may be
        // damaged.
        findings.damaged += try store.verify(repair: true).damaged
        guard try store.verify(repair: false).damaged == 0 else { return "not repaired" }
        let usage = try store.usage()
        let files = try Files(directory)
        if usage.bytes != files.allocated {
            return "\(usage.bytes) bytes are booked, \(files.allocated) allocated"
        }
        if usage.bytes > usage.limit { return "\(usage.bytes) bytes are above the limit" }
        if usage.entries != files.records.count {
            return "\(usage.entries) entries, \(files.records.count) records"
        }
        return files.leaked.map { "\($0) belongs to nothing" }
    } catch {
        return "\(error)"
    }
}

/// A process that is killed has never written more than it has claimed.
private func checkClaim(_ directory: String) -> String? {
    guard let file = try? FileDescriptor.open(FilePath(directory + "/LOCK"), .readOnly) else {
        return nil  // It was killed before it was there.
    }
    var text = [UInt8](repeating: 0, count: LockFile.length)
    let count = text.withUnsafeMutableBytes { (try? file.read(into: $0)) ?? 0 }
    try? file.close()
    guard let claim = LockFile(String(decoding: text[..<count], as: UTF8.self)).claim,
        let allocated = try? Files(directory).allocated, allocated > claim
    else { return nil }
    return "\(allocated) bytes are allocated, \(claim) claimed"
}

private func compare(
    _ store: DiskStore,
    _ key: CacheKey,
    _ findings: inout Findings
) throws(CacheError) -> String? {
    guard let entry = try store.entry(for: key) else { return nil }
    guard let content = Content(entry.metadata), entry.completeLength == Int64(content.count) else {
        return "\(key) has a head that was never written"
    }
    findings.entries += 1
    if !entry.isComplete { findings.partial += 1 }
    for range in entry.storedRanges.ranges {
        var buffer = [UInt8](repeating: 0, count: Int(range.upperBound - range.lowerBound))
        let count = buffer.withUnsafeMutableBytes { entry.read(at: range.lowerBound, into: $0) }
        findings.bytes += Int64(count)
        let start = Int(range.lowerBound)
        let isRight = content.withBytes(start..<(start + count)) { bytes in
            guard let expected = bytes.baseAddress else { return true }
            return memcmp(buffer, expected, count) == 0
        }
        if !isRight { return "\(key) has wrong bytes in \(range)" }
    }
    return nil
}

/// The files of a cache directory, seen from outside.
private struct Files {
    var allocated: Int64 = 0
    var records: Set<String> = []
    private var others: [String] = []
    private let fileSystem = POSIXFileSystem(mayBlockAnyThread: true)

    init(_ directory: String) throws(CacheError) {
        do throws(FileSystemError) {
            let root = try fileSystem.openRoot(FilePath(directory), creating: false)
            defer { fileSystem.close(root) }
            try visit(root, isRoot: true)
        } catch {
            throw CacheError(.localStorage, "\(error)")
        }
    }

    /// A file below the root that is neither a record nor the only body of one.
    var leaked: String? {
        var stems: Set<String> = []
        return others.first { name in
            let stem = String(name.prefix { $0 != "." })
            return !stems.insert(stem).inserted || !records.contains(stem + ".record")
        }
    }

    private mutating func visit(
        _ directory: OpenFile,
        isRoot: Bool = false
    ) throws(FileSystemError) {
        for item in try fileSystem.list(directory) {
            guard item.kind == .directory else {
                allocated += try fileSystem.status(of: item.name, in: directory).allocatedBytes
                if item.name.hasSuffix(".record") {
                    records.insert(item.name)
                } else if !isRoot {
                    others.append(item.name)
                }
                continue
            }
            let child = try fileSystem.open(item.name, in: directory, mode: .directory)
            defer { fileSystem.close(child) }
            try visit(child)
        }
    }
}
