import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct RouteTableTests {
    @Test("Online is an address that leads out, on a link that is up")
    func online() {
        var table = RouteTable()
        #expect(!table.isOnline)
        #expect(table.didReceive(.link(1, isUsable: false)).isEmpty)
        #expect(table.didReceive(.address("127.0.0.1", link: 1, isUsable: false)).isEmpty)
        #expect(!table.isOnline)
        #expect(table.didReceive(.link(2, isUsable: true)).isEmpty)
        #expect(table.didReceive(.address("fe80::1", link: 2, isUsable: false)).isEmpty)
        #expect(!table.isOnline)
        #expect(table.didReceive(.address("192.0.2.1", link: 2, isUsable: true)).isEmpty)
        #expect(table.isOnline)
        #expect(table.didReceive(.link(2, isUsable: false)).isEmpty)
        #expect(!table.isOnline)
        #expect(table.didReceive(.link(2, isUsable: true)).isEmpty)
        #expect(table.isOnline)
    }

    @Test("Addresses are lost one by one, or with their link, unless another link has them too")
    func lost() {
        var table = RouteTable()
        for link in [2, 3] {
            _ = table.didReceive(.link(link, isUsable: true))
            _ = table.didReceive(.address("192.0.2.9", link: link, isUsable: true))
            _ = table.didReceive(.address("2001:db8::\(link)", link: link, isUsable: true))
        }
        #expect(table.didReceive(.addressGone("192.0.2.9", link: 2)).isEmpty)
        #expect(table.didReceive(.addressGone("2001:db8::2", link: 2)) == ["2001:db8::2"])
        #expect(table.isOnline)
        #expect(table.didReceive(.linkGone(3)) == ["192.0.2.9", "2001:db8::3"])
        #expect(!table.isOnline)
        #expect(table.didReceive(.addressGone("192.0.2.9", link: 3)).isEmpty)
    }
}
