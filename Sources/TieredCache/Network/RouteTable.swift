/// The links and addresses of this machine, built from single messages.
///
/// The machine is online if it has an address with a scope beyond the machine, on a link that is
/// up. Whether a route to a certain origin exists, only an attempt can tell.
struct RouteTable: Hashable, Sendable {
    /// One message.
    enum Message: Hashable, Sendable {
        /// A link exists; `isUsable` if it is up, running, and leads out of the machine.
        case link(Int, isUsable: Bool)
        /// A link was removed, with its addresses.
        case linkGone(Int)
        /// An address exists; `isUsable` if its scope exceeds the link.
        case address(String, link: Int, isUsable: Bool)
        /// An address was removed.
        case addressGone(String, link: Int)
    }

    private struct Address: Hashable {
        let text: String
        let link: Int
    }

    private var links: [Int: Bool] = [:]
    private var addresses: [Address: Bool] = [:]

    /// Whether the machine is online, judging by its links and addresses.
    var isOnline: Bool {
        addresses.contains { $0.value && links[$0.key.link] == true }
    }

    /// Applies a message.
    ///
    /// - Returns: the addresses that the machine no longer has. A link that is temporarily down
    ///   keeps its addresses, and connections survive that.
    mutating func didReceive(_ message: Message) -> [String] {
        let before = present
        switch message {
        case .link(let link, let isUsable):
            links[link] = isUsable
        case .linkGone(let link):
            links[link] = nil
            addresses = addresses.filter { $0.key.link != link }
        case .address(let text, let link, let isUsable):
            addresses[Address(text: text, link: link)] = isUsable
        case .addressGone(let text, let link):
            addresses[Address(text: text, link: link)] = nil
        }
        // Of the texts, not of the pairs: an address may move from one link to another.
        return before.subtracting(present).sorted()
    }

    private var present: Set<String> { Set(addresses.filter(\.value).keys.map(\.text)) }
}
