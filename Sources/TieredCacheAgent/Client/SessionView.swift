import TieredCache

/// What an application knows of its downloads: those that have not been acknowledged.
struct SessionView {
    typealias Download = DownloadAgent.Download

    private var downloads: [DownloadID: (place: Int, value: Download)] = [:]
    private var lastPlace = 0

    /// All, in the order in which they were met.
    var all: [Download] { downloads.values.sorted { $0.place < $1.place }.map(\.value) }

    /// Those that change without a notification.
    var moving: [DownloadID] {
        downloads.values.map(\.value).filter { !$0.state.isEnd && $0.state != .paused }
            .map(\.id)
    }

    /// Whether it can change, or is unknown.
    func isOpen(_ id: DownloadID) -> Bool { downloads[id]?.value.state.isEnd != true }

    /// Takes what a download is now.
    ///
    /// - Returns: whether that is new.
    mutating func take(_ download: Download) -> Bool {
        guard let known = downloads[download.id] else {
            lastPlace += 1
            downloads[download.id] = (lastPlace, download)
            return true
        }
        downloads[download.id] = (known.place, download)
        return known.value != download
    }

    /// Takes a list of all: what is not in it is not there any more.
    ///
    /// - Returns: what is new.
    mutating func take(all list: [Download]) -> [Download] {
        let new = list.filter { take($0) }
        let ids = Set(list.map(\.id))
        downloads = downloads.filter { ids.contains($0.key) }
        return new
    }

    /// It was acknowledged, or is not there any more.
    mutating func forget(_ id: DownloadID) {
        downloads[id] = nil
    }
}
