#!/usr/bin/env python3
"""report.py RAW SETTING OUT [TEXT...]

RAW: lines of JSON from the programs of tests/bench. SETTING: lines NAME<tab>VALUE about
the machine, the versions and the durability. Writes figures and pictures to the folder
OUT, puts tables between the marks of each TEXT, and prints tables and targets."""
import json
import os
import re
import sys

import report_shared
import report_waits
from formats import count, duration, known, median, number, ranged, share, spread, table
from pictures import draw, draw_waits
from report_short import FOLDERS, short_table

NAMES = {
    "bizlock": "bizlock",
    "floor": "bare statements",
    "limit": "bare batches of 32",
    "textbook": "textbook recipe",
    "get_lock": "GET_LOCK alone",
    "redis_always": "Redis, synced",
    "redis": "Redis, in memory",
    "etcd": "etcd",
    "zookeeper": "ZooKeeper",
}
WAKES = ("get_lock", "redis_always", "redis", "etcd", "zookeeper")
# 120 ns where this took 231. The program of that time takes 3.45 times the ruler of reentry.c.
REENTRY_WANTED = round(3.45 * 120 / 231, 2)
DURABLE = {"bizlock", "floor", "limit", "textbook", "redis_always", "etcd", "zookeeper"}


# ---- figures -----------------------------------------------------------------------


class Figures:
    """What was measured, by contender, work, lanes, hold and kind of lane."""

    def __init__(self, lines):
        self.lines = lines
        self.cells = {}
        for line in lines:
            if line["work"] in ("own", "one"):
                key = (line["contender"], line["work"], line["lanes"], line["hold_us"], line["processes"])
                self.cells.setdefault(key, []).append(line)

    def of(self, name, work, lanes, hold=0, processes=False):
        return self.cells.get((name, work, lanes, hold, processes), [])

    def values(self, name, cell, get):
        return [get(line) for line in self.of(name, *cell)]

    def ratios(self, mine, theirs, cell, get, their_cell=None):
        """Of each turn with itself: neighbours in time."""
        a = {line["turn"]: get(line) for line in self.of(mine, *cell)}
        b = {line["turn"]: get(line) for line in self.of(theirs, *(their_cell or cell))}
        return [a[turn] / b[turn] for turn in sorted(a) if a[turn] is not None and b.get(turn)]

    def alone(self, work, **where):
        return [
            line
            for line in self.lines
            if line["work"] == work and all(line[k] == v for k, v in where.items())
        ]

    def own_lanes(self):
        return sorted({key[2] for key in self.cells if key[1] == "own"})

    def crowds(self):
        return sorted({key[2:] for key in self.cells if key[1] == "one"}, key=lambda c: (c[2], c[1], c[0]))

    def contenders(self, cell):
        return [name for name in NAMES if self.of(name, *cell)]


def pairs_s(line):
    return line["pairs_s"]


def pairs_s_or_one(line):
    """For what is divided by: none at all counts as one pair in all that time."""
    return max(line["pairs_s"], 1000 / line["ms"])


def percentile(kind, which):
    """Nothing to count is no figure."""
    return lambda line: line[kind][which] if line[kind]["n"] else None


HANDOVER = [percentile("handover_us", p) for p in ("p50", "p99")]


def evenness(line):
    return line["least"] / line["most"] if line["most"] else 0


def requests(line):
    return line["requests"] / line["pairs"] if line["pairs"] and line.get("requests", -1) >= 0 else None


def cpu_us(side):
    return lambda line: line[side] * 1000 / line["pairs"] if line["pairs"] and line[side] >= 0 else None


# ---- targets -----------------------------------------------------------------------


class Targets:
    def __init__(self):
        self.rows = []

    def add(self, what, wanted, values, at_most=False, text=number):
        """values: one for each turn, or a single one; their median is judged."""
        values = known(values)
        got = median(values)
        met = None if got is None else got <= wanted if at_most else got >= wanted
        self.rows.append(
            {
                "what": what,
                "wanted": wanted,
                "at_most": at_most,
                "measured": got,
                "min": min(values, default=None),
                "max": max(values, default=None),
                "met": met,
                "text": text(got) if got is not None else "not measured",
            }
        )


def against_peers(t, f):
    for lanes, wanted in ((1, 0.85), (8, 1.2), (64, 2.5)):
        t.add(f"own keys, {lanes} threads, pairs/s against the bare statements", wanted,
              f.ratios("bizlock", "floor", ("own", lanes), pairs_s))
    t.add("own keys, 64 threads, server CPU a pair against bare batches of 32", 1.8,
          f.ratios("bizlock", "limit", ("own", 64), cpu_us("server_cpu_ms"), ("own", 1)), at_most=True)
    for lanes, wanted in ((1, 0.9), (8, 1.0), (64, 1.0)):
        t.add(f"own keys, {lanes} threads, against Redis with every write synced", wanted,
              f.ratios("bizlock", "redis_always", ("own", lanes), pairs_s))
    for peer in ("etcd", "zookeeper"):
        for lanes, wanted in ((1, 2), (8, 2.5), (64, 4)):
            t.add(f"own keys, {lanes} threads, against {NAMES[peer]}", wanted,
                  f.ratios("bizlock", peer, ("own", lanes), pairs_s))
    t.add("own keys, 64 threads, client CPU a pair against Redis with every write synced", 1.2,
          f.ratios("bizlock", "redis_always", ("own", 64), cpu_us("client_cpu_ms")), at_most=True)
    t.add("own keys, 64 threads, against Redis in memory", 0.5,
          f.ratios("bizlock", "redis", ("own", 64), pairs_s))
    for lanes in (16, 64):
        t.add(f"one key, {lanes} threads, no hold, pairs/s against the textbook recipe", 20,
              f.ratios("bizlock", "textbook", ("one", lanes), pairs_s_or_one))


def against_wakers(t, f):
    t.add("hand-over p50, 16 processes, no hold, against Redis, synced", 1.4,
          f.ratios("bizlock", "redis_always", ("one", 16, 0, True), percentile("handover_us", "p50")), at_most=True)
    p99 = percentile("handover_us", "p99")
    for peer in WAKES:
        for lanes, hold, processes in f.crowds():
            cell = ("one", lanes, hold, processes)
            t.add(f"hand-over p99, {crowd_name(lanes, hold, processes)}, against {NAMES[peer]}", 1,
                  f.ratios("bizlock", peer, cell, p99), at_most=True)


def alone(t, f):
    t.add("one key, 16 processes: least/most served", 0.85,
          f.values("bizlock", ("one", 16, 0, True), evenness))
    t.add("re-entry counted in memory, against two mutexes and a look at the clock", REENTRY_WANTED,
          [line["deeper_ns"] / line["ruler_ns"] for line in f.alone("reentry", local=True)], at_most=True)
    t.add("re-entry by the row, statements", 1,
          [line["statements"] for line in f.alone("reentry", local=False)], at_most=True)
    t.add("acquire p50 with 1,000,000 rows against 10", 1.2, growth_ratios(f, 1000000), at_most=True)
    t.add("32 keys in a set against 32 singles", 6,
          [line["together_s"] / line["one_by_one_s"] for line in f.alone("sets", keys=32)])
    for combine in ("on", "off"):
        t.add(f"24 threads, own keys, a binary log, combine={combine}: beside a hold that is renewed every second", 0.9,
              [line["beside_s"] / line["alone_s"] for line in f.alone("beside_renewal", combine=combine)])
    t.add("statements of 64 waiters in 10 s, nothing happening", 10,
          [line["requests"] for line in f.alone("rest", contender="bizlock")], at_most=True)


def growth_ratios(f, rows):
    few = {line["round"]: line["acquire_us"]["p50"] for line in f.alone("growth", rows=10)}
    return [line["acquire_us"]["p50"] / few[line["round"]] for line in f.alone("growth", rows=rows)]


def judge(f, setting):
    t = Targets()
    against_peers(t, f)
    against_wakers(t, f)
    alone(t, f)
    t.add("deadlocks of bizlock in the whole run", 0, [int(setting.get("deadlocks of bizlock", 0))], True)
    return t.rows


def judge_part(part, measured):
    t = Targets()
    part.judge(t, measured)
    return t.rows


# ---- tables ------------------------------------------------------------------------


def middles(f, name, cell, gets):
    """Of durations, for people."""
    return [duration(median(known(f.values(name, cell, get)))) for get in gets]


def crowd_name(lanes, hold, processes):
    held = f"held {hold / 1000:g} ms" if hold else "no hold"
    return f"{lanes} {'processes' if processes else 'threads'}, {held}"


def own_tables(f):
    out = ["### Each its own key", ""]
    for lanes in f.own_lanes():
        cell = ("own", lanes)
        out += [f"{lanes} thread{'s' if lanes > 1 else ''}:", ""]
        rows = []
        for name in f.contenders(cell):
            late = middles(f, name, cell, [percentile("pair_us", p) for p in ("p50", "p99", "p999")])
            cpu = middles(f, name, cell, [cpu_us("server_cpu_ms"), cpu_us("client_cpu_ms")])
            rows.append([NAMES[name], ranged(f.values(name, cell, pairs_s)), *late, *cpu])
        out += table(["", "pairs/s", "p50", "p99", "p99.9", "server CPU a pair", "client CPU a pair"], rows)
    return out


def one_tables(f):
    out = ["### One key", ""]
    for crowd in f.crowds():
        cell = ("one", *crowd)
        out += [f"{crowd_name(*crowd)}:", ""]
        rows = []
        for name in f.contenders(cell):
            lines = f.of(name, *cell)
            hand = middles(f, name, cell, HANDOVER)
            rows.append([
                NAMES[name], ranged(f.values(name, cell, pairs_s)), *hand,
                duration(1000 * max(line["longest_wait_ms"] for line in lines)),
                f"{median(f.values(name, cell, evenness)):.2f}",
                number(median(known(f.values(name, cell, requests)))),
                share(sum(line["to_itself"] for line in lines), sum(line["pairs"] for line in lines)),
            ])
        out += table(["", "pairs/s", "hand-over p50", "p99", "longest wait", "least/most served",
                      "requests a pair", "went to who had it"], rows)
    return out


def alone_tables(f):
    out = ["### bizlock alone", ""]
    rows = [[("in memory" if line["local"] else "by the row"), f"{number(line['deeper_ns'])} ns",
             f"{number(line['back_ns'])} ns", f"{number(line['ruler_ns'])} ns",
             number(line["statements"])]
            for line in middle(f.alone("reentry"), "local", "deeper_ns")]
    out += table(["re-entry", "deeper", "back", "two mutexes and a look at the clock", "statements a call"], rows)
    rows = [[count(line["locks"]), f"{line['lease_ms'] / 1000:g} s", a_minute(line, "renewals"),
             a_minute(line, "statements"), a_minute(line, "server_cpu_ms", 1000),
             a_minute(line, "client_cpu_ms", 1000)] for line in f.alone("renewing")]
    out += table(["held and renewed", "lease", "renewals a minute", "statements", "CPU s of the server",
                  "CPU s of the client"], rows)
    rows = [[line["combine"], number(line["alone_s"]), number(line["beside_s"]), number(line["beside_s"] / line["alone_s"])]
            for line in middle(f.alone("beside_renewal"), "combine", "beside_s")]
    out += table(["combine", "pairs/s of 24 threads, with a binary log", "beside a hold that is renewed", "ratio"], rows)
    rows = [[count(line["rows"]), duration(line["acquire_us"]["p50"]), duration(line["acquire_us"]["p99"]),
             duration(line["pair_us"]["p50"])] for line in middle(f.alone("growth"), "rows", "p50")]
    out += table(["rows of others", "acquire p50", "acquire p99", "pair p50"], rows)
    rows = [[(f"while {count(line['purged'])} stale rows are purged, in {line['seconds']:.1f} s" if line["purged"]
              else f"beside {count(line['rows'])} stale rows"),
             *(duration(line["acquire_us"][p]) for p in ("p50", "p99", "max"))] for line in f.alone("purging")]
    out += table(["the reaper", "acquire p50", "p99", "longest"], rows)
    rows = [[str(line["keys"]), number(line["together_s"]), number(line["one_by_one_s"]),
             number(line["together_s"] / line["one_by_one_s"])]
            for line in middle(f.alone("sets"), "keys", "together_s")]
    out += table(["keys in a set", "keys/s in sets", "keys/s one by one", "ratio"], rows)
    rows = [[count(line["locks"]), f"{line['open_kb']} KB", f"{line['held_kb']} KB", str(line["connections"])]
            for line in f.alone("footprint")]
    out += table(["held", "memory of the process before", "with them", "connections"], rows)
    rows = [[NAMES[line["contender"]], "–" if line["requests"] < 0 else count(line["requests"]),
             f"{line['server_cpu_ms']} ms", f"{line['client_cpu_ms']} ms"] for line in f.alone("rest")]
    out += ["64 waiters of one process, for 10 s in which nothing happens:", ""]
    return out + table(["", "requests", "CPU of the server", "CPU of the clients"], rows)


def a_minute(line, what, per=1):
    return number(line[what] * 60000 / line["ms"] / per)


def middle(lines, by, order):
    """Of several turns with the same `by`, the one in the middle."""
    groups = {}
    for line in lines:
        groups.setdefault(line[by], []).append(line)
    rank = (lambda line: line[order]) if order != "p50" else (lambda line: line["acquire_us"]["p50"])
    return [sorted(group, key=rank)[len(group) // 2] for group in groups.values()]


def target_table(rows):
    sign = {True: "met", False: "**missed**", None: "–"}
    return ["### Targets", ""] + table(
        ["", "wanted", "measured", ""],
        [[r["what"], f"{'at most' if r['at_most'] else 'at least'} {r['wanted']:g}", r["text"], sign[r["met"]]]
         for r in rows])


def setting_table(setting):
    return ["### The machine", ""] + table(["", ""], [[k, v] for k, v in setting.items()])


# ---- writing -----------------------------------------------------------------------


def write_json(out, name, setting, figures):
    with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(figure, ensure_ascii=False) for figure in figures)
        file.write(f'{{"setting": {json.dumps(setting, ensure_ascii=False, indent=1)},\n'
                   f'"figures": [\n{lines}\n]}}\n')


def write_contest(out, setting, f, targets):
    groups = {"own": [], "one": []}
    for (name, work, lanes, hold, processes), lines in f.cells.items():
        cell = {"contender": name, "lanes": lanes, "hold_us": hold, "processes": processes,
                "pairs_s": spread([line["pairs_s"] for line in lines])}
        for kind in ("pair_us", "acquire_us", "handover_us"):
            cell[kind] = {p: median(known([percentile(kind, p)(line) for line in lines]))
                          for p in ("p50", "p99", "p999")}
        for what in ("least", "most", "to_itself", "longest_wait_ms", "server_cpu_ms", "client_cpu_ms", "requests"):
            cell[what] = spread([line.get(what, -1) for line in lines])
        groups[work].append(cell)
    groups["alone"] = [line for line in f.lines if line["work"] not in (*groups, "shared", *report_waits.WORKS)]
    groups["targets"] = targets
    for name, figures in groups.items():
        write_json(out, name, setting, figures)


def put_into(path, texts):
    """Between the marks "<!-- figures: NAME -->" and "<!-- end -->", where there are such."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, lines in texts.items():
        pattern = re.compile(rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)", re.S)
        text = pattern.sub(lambda m: m[1] + "\n" + "\n".join(lines).rstrip() + "\n\n" + m[2], text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def marks(tables, setting, out):
    """The texts by the names of their marks: MySQL's are others than MariaDB's, and the short one
    is of both."""
    below = FOLDERS[setting["server"]]
    names = {name: f"{below}-{name}" if below else name for name in tables}
    return {**{names[name]: text for name, text in tables.items()},
            "short": short_table(os.path.dirname(out) if below else out)}


def report_contest(f, setting, out):
    """Of everything but shared locks and many waits: the targets, and the texts for the marks."""
    targets = judge(f, setting)
    write_contest(out, setting, f, targets)
    draw(f, out, NAMES, DURABLE)
    return targets, {
        "all": own_tables(f) + one_tables(f) + alone_tables(f) + target_table(targets) + setting_table(setting),
    }


def report_part(name, part, measured, setting, out):
    targets = judge_part(part, measured)
    write_json(out, name, setting, measured.lines + targets)
    return targets, {name: part.tables(measured, NAMES) + target_table(targets) + setting_table(setting)}


def report_of_waits(w, setting, out):
    draw_waits(w, out, NAMES, DURABLE)
    return report_part("waits", report_waits, w, setting, out)


def main(raw, setting_file, out, *texts):
    with open(raw, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    with open(setting_file, encoding="utf-8") as file:
        setting = dict(line.rstrip("\n").split("\t", 1) for line in file)
    f, s, w = Figures(lines), report_shared.Shared(lines), report_waits.Waits(lines)
    targets, marked = [], {}
    for measured, report in ((f.cells, lambda: report_contest(f, setting, out)),
                             (s.lines, lambda: report_part("shared", report_shared, s, setting, out)),
                             (w.lines, lambda: report_of_waits(w, setting, out))):
        if measured:
            more, tables = report()
            targets += more
            marked.update(tables)
    for path in texts:
        put_into(path, marks(marked, setting, out))
    print("\n".join(line for text in marked.values() for line in text))
    missed = sum(row["met"] is False for row in targets)
    print(f"{len(targets)} targets, {missed} missed; figures and pictures: {os.path.relpath(out)}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
