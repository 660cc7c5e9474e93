import Glibc
import SystemPackage

/// One absolute path for all spellings of a directory, also where the program changes its working
/// directory later.
enum CanonicalPath {
    /// Makes a relative path absolute; follows no links.
    ///
    /// - Parameters:
    ///   - path: a directory, which need not exist.
    ///   - workingDirectory: where relative paths begin; nil if it is gone.
    /// - Returns: the path, absolute.
    /// - Throws: `TIERED_E_INVALID` for a relative path where there is no working directory.
    static func absolute(
        _ path: FilePath,
        in workingDirectory: @autoclosure () -> FilePath?
    ) throws(Status) -> FilePath {
        if path.isAbsolute { return path }
        // Linux says "(unreachable)/..." for one outside of the root of the process.
        guard let directory = workingDirectory(), directory.isAbsolute else { throw .invalid }
        return directory.appending(path.components)
    }

    /// The working directory of the process; nil if it is gone.
    static var workingDirectory: FilePath? { taking(getcwd(nil, 0)) }

    /// Follows the links of an absolute path, as they are now.
    ///
    /// What does not exist is taken by its names. A path that is too long for the system stays as
    /// it is, as nothing can be at its place.
    static func followingLinks(_ path: FilePath) -> FilePath {
        guard path.length < PATH_MAX else { return path }
        var (existing, missing) = (path, [FilePath.Component]())
        while true {
            if let known = taking(existing.withPlatformString({ realpath($0, nil) })) {
                return known.appending(missing.reversed()).lexicallyNormalized()
            }
            guard let last = existing.lastComponent else { return path.lexicallyNormalized() }
            missing.append(last)
            existing.removeLastComponent()
        }
    }

    /// The bytes of a path that a function has allocated, which need not be UTF-8.
    private static func taking(_ path: UnsafeMutablePointer<CChar>?) -> FilePath? {
        guard let path else { return nil }
        defer { free(path) }
        return FilePath(platformString: path)
    }
}
