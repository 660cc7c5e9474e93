import CLinuxCalls
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension POSIXFileSystem {
    /// `pread(2)` until the buffer is full or the file ends.
    package func read(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> Int {
        var done = 0
        while done < buffer.count, let base = buffer.baseAddress {
            // Again after a short read: read(2) may return less than was asked for, and does above
            // 2 GiB.
            let result = tc_pread(
                file.number,
                base + done,
                buffer.count - done,
                offset + Int64(done)
            )
            try check(Int32(clamping: min(result, 0)), call: .read)
            guard result > 0 else { break }
            done += Int(result)
        }
        return done
    }

    /// `preadv2(2)` with `RWF_NOWAIT`, once.
    package func readWithoutBlocking(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> NonBlocking<Int> {
        guard let base = buffer.baseAddress else { return .ready(0) }
        let result = tc_pread_nowait(file.number, base, buffer.count, offset)
        if result >= 0 { return .ready(Int(result)) }
        if result == -Int64(EAGAIN) { return .wouldBlock }
        throw FileSystemError(.read, errno: Errno(rawValue: Int32(clamping: -result)))
    }

    /// The file itself, if `cachestat(2)` says that all pages are there.
    package func sendable(_ file: OpenFile, range: Range<Int64>) -> Int32? {
        let count = range.upperBound - range.lowerBound
        return tc_is_cached(file.number, range.lowerBound, count) == 1 ? file.number : nil
    }

    /// `pwritev(2)` until both are written.
    package func write(
        _ first: UnsafeRawBufferPointer,
        followedBy second: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int64
    ) throws(FileSystemError) {
        var first = first
        var second = second
        var offset = offset
        while first.count + second.count > 0 {
            let result = tc_pwrite_two(
                file.number,
                first.baseAddress,
                first.count,
                second.baseAddress,
                second.count,
                offset
            )
            try check(Int32(clamping: min(result, 0)), call: .write)
            // A write that makes no progress would spin; the kernel owes us an errno.
            guard result > 0 else { throw FileSystemError(.write, errno: .ioError) }
            offset += result
            let fromFirst = min(Int(result), first.count)
            first = UnsafeRawBufferPointer(rebasing: first[fromFirst...])
            second = UnsafeRawBufferPointer(rebasing: second[(Int(result) - fromFirst)...])
        }
    }

    /// `ftruncate(2)`.
    package func truncate(_ file: OpenFile, to length: Int64) throws(FileSystemError) {
        try check(tc_ftruncate(file.number, length), call: .resize)
    }

    /// `fallocate(2)` with `FALLOC_FL_PUNCH_HOLE`.
    package func punch(_ file: OpenFile, range: Range<Int64>) throws(FileSystemError) {
        guard !range.isEmpty else { return }
        let count = range.upperBound - range.lowerBound
        try check(tc_punch(file.number, range.lowerBound, count), call: .resize)
    }

    /// `fstat(2)`.
    package func status(of file: OpenFile) throws(FileSystemError) -> FileStatus {
        var status = tc_file_status()
        try checkLook(tc_fstat(file.number, &status), call: .inspect)
        return FileStatus(status)
    }

    /// `fstatat(2)` with `AT_SYMLINK_NOFOLLOW`.
    package func status(
        of name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> FileStatus {
        var status = tc_file_status()
        try check(tc_lstatat(directory.number, name, &status), call: .inspect)
        return FileStatus(status)
    }

    /// `fstatvfs(3)`.
    package func volume(of file: OpenFile) throws(FileSystemError) -> VolumeStatus {
        var available: Int64 = 0
        var total: Int64 = 0
        try check(tc_volume(file.number, &available, &total), call: .inspect)
        return VolumeStatus(available: available, total: total)
    }

    /// `readdir(3)`; a name that is not UTF-8 is left out, since it cannot be ours.
    package func list(_ directory: OpenFile) throws(FileSystemError) -> [DirectoryItem] {
        // A stream of its own, because it takes its descriptor over and moves its offset.
        let copy = tc_open_beneath(directory.number, ".", O_RDONLY | O_DIRECTORY, 0, false)
        try check(copy, call: .list)
        guard let stream = fdopendir(copy) else {
            close(OpenFile(number: copy))
            throw FileSystemError(.list, errno: .noMemory)
        }
        defer { closedir(stream) }
        var items: [DirectoryItem] = []
        while let entry = readdir(stream) {
            guard let name = Self.name(of: entry), name != ".", name != ".." else { continue }
            // Some file systems do not tell the kind along with the name.
            guard let kind = Self.kind(of: entry) else {
                let kind = try status(of: name, in: directory).kind
                items.append(DirectoryItem(name: name, kind: kind))
                continue
            }
            items.append(DirectoryItem(name: name, kind: kind))
        }
        return items
    }

    private static func name(of entry: UnsafeMutablePointer<dirent>) -> String? {
        withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            // Swift sees an array of 256 bytes as a tuple.
            let size = MemoryLayout.size(ofValue: pointer.pointee)
            return pointer.withMemoryRebound(to: CChar.self, capacity: size) {
                String(validatingCString: $0)
            }
        }
    }

    private static func kind(of entry: UnsafeMutablePointer<dirent>) -> FileKind? {
        switch Int(entry.pointee.d_type) {
        case Int(DT_UNKNOWN): nil
        case Int(DT_REG): .file
        case Int(DT_DIR): .directory
        default: .other
        }
    }
}

extension FileStatus {
    fileprivate init(_ status: tc_file_status) {
        let kind: FileKind =
            switch status.kind {
            case 1: .file
            case 2: .directory
            default: .other
            }
        self.init(
            kind: kind,
            size: status.size,
            allocatedBytes: status.allocated,
            modified: status.modified,
            changed: status.changed,
            identity: status.identity
        )
    }
}
