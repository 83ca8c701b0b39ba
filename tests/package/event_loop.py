"""event_loop.py PROGRAM SQL...: drives examples/event_loop.c, as its clients do. SQL... is a command
that takes a statement as its last argument, and prints rows."""

import resource
import signal
import socket
import subprocess
import sys

PATIENCE_S = 60  # for what a busy machine does late
MANY = 2000


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.lines = self.socket.makefile()

    def say(self, line):
        self.socket.sendall((line + "\n").encode())

    def hears(self, *begin):
        line = self.lines.readline()
        assert line.split()[: len(begin)] == list(begin), (line, begin)
        return line.split()

    def asks(self, line, *begin):
        self.say(line)
        return self.hears(*begin)

    def goes(self):
        self.lines.close()
        self.socket.close()


def one_after_the_other(port):
    first, second = Client(port), Client(port)
    fence = int(first.asks("lock a", "locked", "a")[2])
    first.asks("lock a", "error", "a")
    second.asks("unlock a", "error", "unlock", "a")
    second.say("lock a")
    first.asks("unlock a", "unlocked", "a")
    assert int(second.hears("locked", "a")[2]) > fence
    first.asks("lock a b", "locked", "a", "b")
    first.asks("unlock a b", "unlocked", "a", "b")
    second.asks("hello", "error", "hello")
    second.asks("lock ", "error")
    first.goes()
    second.goes()


def gone_with_locks_and_waits(port):
    holder, waits, heir = Client(port), Client(port), Client(port)
    holder.asks("lock a", "locked")
    holder.asks("lock b", "locked")
    waits.say("lock a")
    waits.asks("lock c", "locked")
    heir.say("lock c")
    waits.goes()
    heir.hears("locked", "c")
    heir.say("lock a")
    heir.say("lock b")
    holder.goes()
    assert {heir.hears("locked")[1] for _ in "ab"} == {"a", "b"}
    heir.goes()


def too_long_a_line(port):
    client = Client(port)
    client.say("lock " + "x" * 1000)
    try:
        assert client.lines.readline() == ""
    except ConnectionResetError:
        pass


def many(port):
    clients = [Client(port) for _ in range(MANY)]
    holder = Client(port)
    holder.asks("lock hot", "locked")
    for i, client in enumerate(clients):
        client.say(f"lock own-{i}")
        client.say("lock hot")
    for i, client in enumerate(clients):
        client.hears("locked", f"own-{i}")
    holder.say("unlock hot")
    fences = []
    for client in clients[:20]:
        fences.append(int(client.hears("locked", "hot")[2]))
        client.asks("unlock hot", "unlocked", "hot")
    assert fences == sorted(fences)
    for client in clients:
        client.goes()
    holder.hears("unlocked", "hot")
    holder.asks("lock own-7", "locked")
    holder.goes()


def a_loss_is_told(port, sql):
    client = Client(port)
    client.asks("lock a", "locked", "a")
    subprocess.check_call([*sql, "DELETE FROM biz_lock WHERE biz_id = 'a'"])
    client.hears("lost", "a")
    for _ in range(1000):  # until it is given up
        if client.asks("lock a")[0] == "locked":
            break
    client.asks("unlock a", "unlocked", "a")
    client.goes()


def ends_and_gives_back(server, port, sql):
    client = Client(port)
    client.asks("lock a", "locked", "a")
    server.send_signal(signal.SIGTERM)
    assert server.wait(PATIENCE_S) == 0
    assert client.lines.readline() == ""
    rows = subprocess.check_output([*sql, "SELECT COUNT(*) FROM biz_lock"], text=True)
    assert rows.strip() == "0", rows


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = subprocess.Popen([sys.argv[1], "0"], stdout=subprocess.PIPE, text=True)
    sql = sys.argv[2:]
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        one_after_the_other(port)
        gone_with_locks_and_waits(port)
        too_long_a_line(port)
        many(port)
        a_loss_is_told(port, sql)
        ends_and_gives_back(server, port, sql)
    finally:
        server.kill()


main()
