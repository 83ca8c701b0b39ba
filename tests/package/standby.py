"""standby.py PROGRAM SQL...: three processes of examples/standby, whose leader is killed, frozen, cut
off and asked to go. By the server's clock there is one leader at a time, and the table shows no write
of a leader that was one no more. SQL... is as in event_loop.py; the server is that of BIZLOCK_HOST,
_SOCKET and _PORT."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

PATIENCE_S = 120  # for what a busy machine does late
LEASE_MS = 4000


class Proxy:
    """Between one process and the server. Shut, it lets nothing through, and loses nothing."""

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.ends = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    @staticmethod
    def dial():
        if os.environ.get("BIZLOCK_SOCKET"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(os.environ["BIZLOCK_SOCKET"])
            return server
        return socket.create_connection(
            (os.environ["BIZLOCK_HOST"], int(os.environ["BIZLOCK_PORT"]))
        )

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            self.gate.wait()
            pair = client, self.dial()
            self.ends += pair
            for way in (pair, pair[::-1]):
                threading.Thread(target=self.pump, args=way, daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                self.gate.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def die(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Standby:
    def __init__(self, *proxies):
        self.proxy = proxies[0]
        hosts = ",".join(f"127.0.0.1:{p.port}" for p in proxies)
        env = {k: v for k, v in os.environ.items() if k not in ("BIZLOCK_SOCKET", "BIZLOCK_PORT")}
        env |= {"BIZLOCK_HOST": hosts, "BIZLOCK_SSL_MODE": "disabled"}
        env |= {"BIZLOCK_LEASE_MS": str(LEASE_MS), "BIZLOCK_IO_TIMEOUT_MS": "60000"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.process = subprocess.Popen([program], env=env, **pipes)
        self.pid = self.process.pid
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def said(self, text):
        return any(text in line for line in self.lines)


def rows(statement):
    out = subprocess.run([*sql, statement], check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in out.splitlines()]


def eventually(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, (what, [s.lines for s in standbys])
        time.sleep(0.05)


def last_writer():
    found = rows("SELECT pid FROM standby_log ORDER BY id DESC LIMIT 1")
    return int(found[0][0]) if found else 0


def leader_after(pid):
    """The one that leads now, and is not that one."""
    eventually(lambda: last_writer() not in (0, pid), "another one has to lead")
    writer = last_writer()
    return next(s for s in standbys if s.pid == writer)


def how_it_began(leader):
    """What the leader said when it got the lead."""
    fence = rows(f"SELECT MAX(fence) FROM standby_log WHERE pid = {leader.pid}")[0][0]
    begin = f"leading, fence {fence}"
    eventually(lambda: leader.said(begin), "the leader has to say so")
    return next(line for line in leader.lines if line.startswith(begin))


def writes_on(standby):
    count = f"SELECT COUNT(*) FROM standby_log WHERE pid = {standby.pid}"
    before = int(rows(count)[0][0])
    eventually(lambda: int(rows(count)[0][0]) > before + 2, "the leader has to write on")


def killed(leader):
    leader.process.kill()
    leader.process.wait()
    heir = leader_after(leader.pid)
    assert "half-done" in how_it_began(heir)
    standbys.remove(leader)
    standbys.append(Standby(Proxy()))
    return heir


def frozen(leader):
    os.kill(leader.pid, signal.SIGSTOP)
    heir = leader_after(leader.pid)
    os.kill(leader.pid, signal.SIGCONT)
    eventually(lambda: leader.said("leading no more"), "a frozen leader has to step down")
    return heir


def cut_off(leader):
    """What it had begun goes to the server when it is late, and must not be committed."""
    leader.proxy.gate.clear()
    heir = leader_after(leader.pid)
    leader.proxy.gate.set()
    eventually(lambda: leader.said("commit: "), "it had begun a transaction")
    eventually(lambda: leader.said("leading no more"), "one that is cut off has to step down")
    return heir


def asked_to_go(leader):
    leader.process.terminate()
    assert leader.process.wait(PATIENCE_S) == 0, leader.lines
    heir = leader_after(leader.pid)
    assert "half-done" not in how_it_began(heir)
    standbys.remove(leader)
    standbys.append(Standby(Proxy()))
    return heir


def fails_over():
    """Two ways to the server, of which the first ends."""
    proxies = Proxy(), Proxy()
    standby = Standby(*proxies)
    standbys.append(standby)
    writes_on(standby)
    proxies[0].die()
    writes_on(standby)


def one_at_a_time():
    """The times of one fence end before those of the next begin."""
    terms = rows(
        "SELECT fence, COUNT(DISTINCT pid), MIN(at), MAX(at) FROM standby_log "
        "GROUP BY fence ORDER BY fence"
    )
    for fence, pids, begin, end in terms:
        assert pids == "1", (fence, pids)
    for earlier, later in zip(terms, terms[1:]):
        assert earlier[3] < later[2], (earlier, later)
    return len(terms)


program, sql = sys.argv[1], sys.argv[2:]
standbys = []
try:
    standbys = [Standby(Proxy()) for _ in range(3)]
    leader = leader_after(0)
    for happens in (killed, frozen, cut_off, asked_to_go, cut_off, killed):
        writes_on(leader)
        leader = happens(leader)
    for standby in standbys:
        eventually(lambda: standby.said("waiting"), "it has to open")
        standby.process.terminate()
        assert standby.process.wait(PATIENCE_S) == 0, standby.lines
    standbys.clear()
    fails_over()
    assert one_at_a_time() >= 7
finally:
    for standby in standbys:
        standby.process.kill()
