import Subprocess
import SystemPackage

/// A file system of one's own, which takes the rights of root.
enum MountNamespace {
    /// Whether this user may mount something in a namespace of its own.
    static func isPermitted() async throws -> Bool {
        let result = try await Subprocess.run(
            .path("/usr/bin/unshare"),
            arguments: [
                "-m", "/bin/mount", "-t", "tmpfs", "-o", "size=64k", "tieredcache", "/mnt",
            ],
            input: .none,
            output: .discarded,
            error: .discarded
        )
        return result.terminationStatus.isSuccess
    }
}
