import HTTPCaching
import SystemPackage
import TieredCache

/// Where the file of a download goes, by its options and its URL.
struct DownloadPath: Hashable {
    /// The directory, as a path from the root.
    let directory: FilePath
    /// The name of the file below it, which may have folders.
    let name: String

    var path: FilePath { directory.appending(name) }

    /// - Parameters:
    ///   - options: with those of the agent.
    ///   - uri: the URL, the end of which is the name where no option gives one.
    /// - Throws: ``DownloadFailure`` for a name that leads out of the directory.
    init(_ options: DownloadOptions, uri: String) throws(DownloadFailure) {
        // Options of the program, or of an earlier version, were not checked.
        guard let text = options["dir"].flatMap({ OptionNames.canonical($0, of: "dir") }) else {
            let given = options["dir"] ?? ""
            throw DownloadFailure(file: "'\(given)' is no path of a directory", code: 28)
        }
        directory = FilePath(text)
        guard let out = options["out"], !out.isEmpty else {
            name = Self.name(of: uri)
            return
        }
        let parts = out.split(separator: "/", omittingEmptySubsequences: false)
        guard !out.utf8.contains(0), !parts.contains(".."), parts.last?.isEmpty == false,
            parts.last != ".", parts.allSatisfy({ $0.utf8.count <= 255 })
        else {
            throw DownloadFailure(
                file: "'\(out)' is no name of a file below the directory",
                code: 28
            )
        }
        name = String(out.drop { $0 == "/" })
    }

    /// The last part of the path of a URL, as one name; `index.html` where there is none.
    static func name(of uri: String) -> String {
        let path = uri.prefix { $0 != "?" && $0 != "#" }
        guard let start = path.firstRange(of: "://")?.upperBound,
            let slash = path[start...].lastIndex(of: "/")
        else { return "index.html" }
        let decoded = String(path[path.index(after: slash)...]).percentDecoded
        let scalars = decoded.unicodeScalars.map { scalar in
            scalar == "/" || scalar.properties.generalCategory == .control ? "_" : scalar
        }
        var name = String(String.UnicodeScalarView(scalars))
        if name.isEmpty { return "index.html" }
        if name == "." || name == ".." { name = "_" + name }
        // Of 255 bytes, with room for the number of a further file.
        while name.utf8.count > 240 { name.removeLast() }
        return name
    }

    /// The same place with a number: `film.1.mp4`, as aria2 names it.
    func numbered(_ number: Int) -> FilePath {
        guard number > 0 else { return path }
        let full = path
        guard let last = full.lastComponent else { return full }
        let folder = full.removingLastComponent()
        guard let suffix = last.extension, !last.stem.isEmpty else {
            return folder.appending("\(last.string).\(number)")
        }
        return folder.appending("\(last.stem).\(number).\(suffix)")
    }
}
