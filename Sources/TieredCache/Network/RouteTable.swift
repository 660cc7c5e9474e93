/// What is known of this machine's links and addresses, from single messages about them.
///
/// Online is who has an address that reaches beyond the machine, on a link that is up. Whether
/// there is a route to a certain origin is for the attempt to find out.
struct RouteTable: Hashable, Sendable {
    /// One message.
    enum Message: Hashable, Sendable {
        /// A link is there; `isUsable` if it is up, running, and leads out of the machine.
        case link(Int, isUsable: Bool)
        /// A link is gone, and its addresses with it.
        case linkGone(Int)
        /// An address is there; `isUsable` if it reaches beyond the link.
        case address(String, link: Int, isUsable: Bool)
        /// An address is gone.
        case addressGone(String, link: Int)
    }

    private struct Address: Hashable {
        let text: String
        let link: Int
    }

    private var links: [Int: Bool] = [:]
    private var addresses: [Address: Bool] = [:]

    /// Whether there is a way out as far as links and addresses tell.
    var isOnline: Bool {
        addresses.contains { $0.value && links[$0.key.link] == true }
    }

    /// Takes in a message.
    ///
    /// - Returns: the addresses that the machine no longer has. A link that is down only for now
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
        return before.subtracting(present).sorted()
    }

    private var present: Set<String> { Set(addresses.filter(\.value).keys.map(\.text)) }
}
