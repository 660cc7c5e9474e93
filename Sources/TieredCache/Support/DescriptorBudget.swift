import CLinuxCalls

/// How the descriptors that a process may have are shared out between its clients, its downloads,
/// its files and the runtime beneath.
///
/// Where the table is full, libdispatch ends the process: it opens a file of `/proc` once a second
/// to see whether its threads run, and takes a failure for a thread that was lost. A descriptor is
/// always the lowest free number, so the number says how full the table is: what would get one at
/// or above a ceiling is given back by this program, and what lies above both belongs to the
/// runtime.
package struct DescriptorBudget: Hashable, Sendable {
    /// The first number that no connection may get.
    package let ceiling: Int
    /// The first number that no file may get: files give way to connections to origins.
    package let fileCeiling: Int
    /// How many clients may be connected.
    package let maximumConnections: Int
    /// How many downloads there is room for, at most as many as were asked for.
    package let maximumDownloads: Int
    /// How many files may stay open that are not in use.
    package let maximumIdleFiles: Int

    /// The descriptors of standard streams, threads that serve connections, clocks and the cache
    /// directory.
    private static let base = 24
    /// A connection to the origin, a body, a record, and half an upload with its client.
    private static let perDownload = 4

    /// Divides the descriptors.
    ///
    /// - Parameters:
    ///   - limit: how many descriptors there may be.
    ///   - downloads: how many downloads are wanted at once.
    package init(limit: Int, downloads: Int) {
        // For what this program does not open: libdispatch, the resolver, libraries of the host.
        let reserve = min(max(limit / 8, 8), 64)
        ceiling = max(1, limit - reserve)
        let room = max(0, ceiling - Self.base)
        maximumDownloads = min(downloads, max(1, room / (2 * Self.perDownload)))
        maximumIdleFiles = min(256, max(4, room / 8))
        fileCeiling = max(1, ceiling - maximumDownloads - maximumDownloads / 2)
        maximumConnections = max(
            4,
            room - Self.perDownload * maximumDownloads - maximumIdleFiles
        )
    }

    /// The budget of this process as its limit is now; nil where that is not known.
    package init?(downloads: Int) {
        let limit = tc_descriptor_limit()
        guard limit > 0 else { return nil }
        self.init(limit: Int(limit), downloads: downloads)
    }

    /// From now on the ceilings hold in this process.
    package func apply() {
        tc_set_descriptor_ceilings(Int32(clamping: fileCeiling), Int32(clamping: ceiling))
    }
}
