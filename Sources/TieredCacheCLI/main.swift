import ArgumentParser
import Logging
