import CLinuxCalls
package import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The file `SERVING` in a cache directory: where a proxy listens that lasts, for programs that
/// want a proxied URL.
///
/// `tieredcache serve` and background proxies write it; a proxy that ends with the player of one
/// film does not. It is a hint, like `PROXY`: what it says is believed only after the proxy has
/// proven that it knows the token. Programs that play have a share of the lock on it, so that a
/// background proxy does not end under a player that pauses.
package final class ServingFile: Sendable {
    static let name = "SERVING"

    private let directory: FilePath
    private let file: FileDescriptor

    /// Writes the file of a proxy, in the place of an older one.
    ///
    /// - Throws: the error of the system.
    package init(of proxy: PlayerProxy, in directory: FilePath) throws {
        self.directory = directory
        let path = directory.appending(Self.name)
        // Shares of the lock on an older file are those of another proxy.
        if unlink(path.string) != 0, errno != ENOENT { throw Errno(rawValue: errno) }
        file = try FileDescriptor.open(
            path,
            .readWrite,
            options: [.create, .exclusiveCreate, .noFollow, .closeOnExec],
            permissions: .ownerReadWrite
        )
        let identity = ProxyIdentity(port: proxy.address.port, token: proxy.address.token)
        do {
            // For people: nothing relies on the number of a process.
            _ = try file.writeAll((identity.text + "process \(getpid())\n").utf8)
        } catch {
            try file.close()
            throw error
        }
    }

    deinit {
        // A failing close has given the descriptor back all the same.
        close(file.rawValue)
    }

    /// Removes the file if it is still this proxy's.
    ///
    /// - Parameter unlessUsed: leaves it if a program plays through the proxy.
    /// - Returns: whether the proxy may end.
    @discardableResult
    package func withdraw(unlessUsed: Bool = false) -> Bool {
        if unlessUsed, tc_lock(file.rawValue) == 0 { return false }
        var (own, named) = (stat(), stat())
        let path = directory.appending(Self.name).string
        if fstat(file.rawValue, &own) == 0, lstat(path, &named) == 0, own.st_ino == named.st_ino,
            own.st_dev == named.st_dev
        {
            // One that stays is not believed, since nothing answers there.
            unlink(path)
        }
        return true
    }
}
