"""The part of report.py about many waits at once."""
from formats import count, duration, known, median, number, table

WORKS = ("waits", "idle_waits", "fair_waits")
FEW, MANY = (8, False), (1000, False)  # waits; by one thread, not by one each
LOOP = (10000, True)


class Waits:
    """What was measured, by contender, number of waits and kind."""

    def __init__(self, lines):
        self.lines = [line for line in lines if line["work"] in WORKS]

    def of(self, name, cell):
        return [line for line in self.alone("waits") if line["contender"] == name and cell_of(line) == cell]

    def alone(self, work):
        return [line for line in self.lines if line["work"] == work]

    def cells(self):
        return sorted({cell_of(line) for line in self.alone("waits")})

    def values(self, name, cell, get):
        return [get(line) for line in self.of(name, cell)]


def cell_of(line):
    return line["keys"], line["loop"]


def cell_name(cell):
    n, loop = cell
    return f"{count(n)} waits by one thread" if loop else f"{n:,} threads"


def wakeup(which):
    return lambda line: line["wakeup_us"][which] if line["wakeup_us"]["n"] else None


def each(what, per=1):
    """Of one wait; a server's counter, or processor, that nobody could read is no figure."""
    return lambda line: line[what] * per / (line["keys"] * line["rounds"]) if line[what] >= 0 else None


def evenness(line):
    return line["least"] / line["most"] if line["most"] else 0


# ---- targets -----------------------------------------------------------------------


def judge(t, w):
    few = median(known(w.values("bizlock", FEW, wakeup("p50"))))
    for cell in (MANY, LOOP):
        late = known(w.values("bizlock", cell, wakeup("p50")))
        t.add(f"wake-up p50, {cell_name(cell)}, less 3 times that of {FEW[0]}, ms", 2,
              [(us - 3 * few) / 1000 for us in late] if few is not None else [], at_most=True)
        t.add(f"wake-up p99, {cell_name(cell)}, ms", 25,
              [us / 1000 for us in known(w.values("bizlock", cell, wakeup("p99")))], at_most=True)
        t.add(f"statements for each wait, {cell_name(cell)}", 16,
              w.values("bizlock", cell, each("requests")), at_most=True)
        t.add(f"connections, {cell_name(cell)}", 24,
              w.values("bizlock", cell, lambda line: line["connections"]), at_most=True)
    t.add("statements of 64 waiting keys in 10 s, nothing happening", 100,
          [line["requests"] * 10 / line["seconds"] for line in w.alone("idle_waits")
           if line["contender"] == "bizlock"], at_most=True)
    t.add("hot keys, watched against direct waits: least/most served", 0.5,
          [evenness(line) for line in w.alone("fair_waits")])


# ---- tables ------------------------------------------------------------------------


def row_of(name, lines):
    late = [duration(median(known([wakeup(p)(line) for line in lines]))) for p in ("p50", "p99", "max")]
    cpu = [duration(median(known([each(side, 1000)(line) for line in lines])))
           for side in ("server_cpu_ms", "client_cpu_ms")]
    return [name, *late, number(median(known([each("requests")(line) for line in lines]))),
            most(lines, "connections"), most(lines, "waiting_connections"), *cpu]


def most(lines, what):
    return str(max(line[what] for line in lines))


def tables(w, names):
    out = ["### Many waits, each its own key", ""]
    for cell in w.cells():
        out += [f"{cell_name(cell)}:", ""]
        rows = [row_of(names[name], w.of(name, cell)) for name in names if w.of(name, cell)]
        out += table(["", "wake-up p50", "p99", "longest", "requests a wait", "connections", "of who waits",
                      "server CPU a wait", "client CPU a wait"], rows)
    return out + idle_table(w, names) + fair_table(w)


def idle_table(w, names):
    rows = [[names[line["contender"]], count(line["keys"]), f"{line['seconds']:.0f} s", count(line["requests"]),
             str(line["connections"]), f"{line['server_cpu_ms']} ms", f"{line['client_cpu_ms']} ms"]
            for line in w.alone("idle_waits")]
    return table(["nothing happens", "waits", "for", "requests", "connections", "CPU of the server",
                  "CPU of those that wait"], rows)


def fair_table(w):
    rows = [[count(line["hot"]), count(line["cold"]), count(line["direct"]), count(line["watched"]),
             f"{evenness(line):.2f}"] for line in w.alone("fair_waits")]
    return table(["hot keys", "other keys that are waited for", "served, who waits directly", "who watches",
                  "least/most served"], rows)
