extension GetCommand {
    func run() async throws {
        let order = try GetOrder(self)
        try OpenFileLimit.require()
        try await Interruption.guarding(
            hint: "go on with the same command, or 'tieredcache resume'"
        ) {
            try await order.run()
        }
    }
}
