import Glibc
import SystemPackage

/// One absolute path for all spellings of a directory, also where the program changes its working
/// directory later.
enum CanonicalPath {
    /// Follows links, and makes a relative path absolute.
    ///
    /// - Parameters:
    ///   - path: a directory, which need not exist; what does not is taken by its names.
    ///   - workingDirectory: where relative paths begin; nil if it is gone.
    /// - Returns: the path, absolute and without links.
    /// - Throws: `TIERED_E_INVALID` for a relative path where there is no working directory.
    static func of(
        _ path: FilePath,
        in workingDirectory: @autoclosure () -> FilePath? = current
    ) throws(Status) -> FilePath {
        if path.isAbsolute { return ofAbsolute(path) }
        // Linux says "(unreachable)/..." for one outside of the root of the process.
        guard let directory = workingDirectory(), directory.isAbsolute else { throw .invalid }
        return ofAbsolute(directory.appending(path.components))
    }

    private static var current: FilePath? {
        guard let path = getcwd(nil, 0) else { return nil }
        defer { free(path) }
        return FilePath(String(cString: path))
    }

    private static func ofAbsolute(_ path: FilePath) -> FilePath {
        if let known = realpath(path.string, nil) {
            defer { free(known) }
            return FilePath(String(cString: known))
        }
        guard let last = path.lastComponent else { return path }
        return ofAbsolute(path.removingLastComponent()).appending(last).lexicallyNormalized()
    }
}
