"""A client of the agent at its socket, for the checks of this folder."""

import base64
import json
import os
import socket


class Refused(Exception):
    """The error of a method."""


class Closed(Exception):
    """The agent has closed a WebSocket."""


def message(method, parameters):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).encode()


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(path)
    return connection


def post(connection, data, host="localhost"):
    """The answer to a message; closes the connection."""
    head = f"POST /jsonrpc HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    with connection:
        connection.sendall(head.encode() + data)
        answer = b""
        while part := connection.recv(1 << 20):
            answer += part
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


def call(path, method, *parameters):
    """The result of a method."""
    answer = post(connect(path), message(method, parameters))
    if "error" in answer:
        raise Refused(f"{method}: {answer['error']['message']}")
    return answer["result"]


class WebSocket:
    """RFC 6455, as far as the agent speaks it."""

    def __init__(self, path):
        self.connection = connect(path)
        key = base64.b64encode(os.urandom(16)).decode()
        self.connection.sendall(
            "GET /jsonrpc HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes:
            self.fill()
        head, self.bytes = self.bytes.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise Closed(head)

    def fill(self):
        part = self.connection.recv(1 << 16)
        if not part:
            raise Closed
        self.bytes += part

    def take(self, count):
        while len(self.bytes) < count:
            self.fill()
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def send(self, method, *parameters):
        data = message(method, parameters)
        length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
        self.connection.sendall(b"\x81" + length + b"\0\0\0\0" + data)

    def receive(self):
        """The next message."""
        length = self.take(2)[1] & 127
        if length in (126, 127):
            length = int.from_bytes(self.take(2 if length == 126 else 8), "big")
        return json.loads(self.take(length))

    def until(self, text):
        """The bytes that come up to some text, frames and all."""
        told, self.bytes = self.bytes, b""
        while text not in told:
            self.fill()
            told, self.bytes = told + self.bytes, b""
        return told

    def close(self):
        self.connection.close()
