package import SystemPackage
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Where the agent of a cache directory listens, and which program it is.
package enum AgentPath {
    /// The socket of a directory, of which nothing else was said.
    package static func socket(of directory: FilePath) -> FilePath {
        let directory = absolute(directory)
        let usual = MediaCache.Configuration.defaultPath.map(absolute)
        guard directory == usual, let runtime = variable("XDG_RUNTIME_DIR").map({ FilePath($0) }),
            runtime.isAbsolute
        else { return directory.appending("AGENT") }
        return runtime.appending("tieredcache.sock")
    }

    /// The path from the root, as the agent works elsewhere.
    package static func absolute(_ path: FilePath) -> FilePath {
        if let resolved = realpath(path.string, nil) {
            defer { free(resolved) }
            return FilePath(platformString: resolved)
        }
        guard !path.isAbsolute, let here = realpath(".", nil) else {
            return path.lexicallyNormalized()
        }
        defer { free(here) }
        return FilePath(platformString: here).pushing(path).lexicallyNormalized()
    }

    /// The program `tieredcache` that the search path leads to; nil where it leads to none.
    static var program: FilePath? {
        let directories = (variable("PATH") ?? "").split(separator: ":").map {
            FilePath(String($0))
        }
        return directories.filter(\.isAbsolute).map { $0.appending("tieredcache") }
            .first { access($0.string, X_OK) == 0 }
    }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }
}

extension DetachedProgram {
    /// An agent.
    ///
    /// - Parameters:
    ///   - file: that of the program `tieredcache`.
    ///   - socket: where the agent is to listen.
    ///   - more: further arguments.
    /// - Returns: how it is started.
    package static func agent(
        file: FilePath?,
        socket: FilePath,
        _ more: [String] = []
    ) -> DetachedProgram {
        DetachedProgram(name: "the agent", remedy: "tieredcache agent", file: file) { directory in
            ["agent", "--background", "--directory", directory.string, "--socket", socket.string]
                + more
        }
    }
}
