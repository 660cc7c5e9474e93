extension GetCommand {
    func run() async throws {
        let order = try GetOrder(self)
        try await Interruption.guarding { try await order.run() }
    }
}
