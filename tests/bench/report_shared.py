"""The part of report.py about shared locks."""
from formats import duration, known, median, number, ranged, share, table

PLAIN = {"plain-own": "bizlock, not shared, each its own key", "plain-one": "bizlock, not shared"}


class Shared:
    """What was measured, by contender, kind, lanes and the number of that kind."""

    def __init__(self, lines):
        self.lines = [line for line in lines if line["work"] == "shared"]

    def of(self, name, kind, lanes, n=0):
        cell = (name, kind, lanes, n)
        return [x for x in self.lines if (x["contender"], x["kind"], x["lanes"], x["n"]) == cell]

    def ratios(self, mine, theirs):
        """Of the pairs of each turn with itself: neighbours in time."""
        b = {line["turn"]: line["pairs_s"] for line in self.of(*theirs)}
        return [line["pairs_s"] / b[line["turn"]] for line in self.of(*mine) if b.get(line["turn"])]


def judge(t, s):
    t.add("64 threads share a key, pairs/s against locks of their own", 0.8,
          s.ratios(("bizlock", "share", 64), ("bizlock", "plain-own", 64)))


# ---- tables ------------------------------------------------------------------------


def cpu(side):
    return lambda line: line[side] * 1000 / line["pairs"] if line["pairs"] and line[side] >= 0 else None


def late(which, p):
    return lambda line: line[which][p] if line[which]["n"] else None


def middle(lines, get):
    return duration(median(known([get(line) for line in lines])))


def row_of(name, lines, gets):
    return [name, ranged([line["pairs_s"] for line in lines]), *(middle(lines, get) for get in gets)]


def rows_of(s, names, cells, gets, more=lambda lines: []):
    """cells: (kind, lanes, n). All contenders of the first, then of the next."""
    rows = []
    for kind, lanes, n in cells:
        for name in names:
            lines = s.of(name, kind, lanes, n)
            if lines:
                rows.append(row_of(PLAIN.get(kind, names[name]), lines, gets) + more(lines))
    return rows


CPU = [cpu("server_cpu_ms"), cpu("client_cpu_ms")]
CPU_HEAD = ["server CPU a pair", "client CPU a pair"]


def plain_table(s, names, title, cells):
    rows = rows_of(s, names, cells, [late("acquire_us", "p50"), late("acquire_us", "p99"), *CPU])
    return [title, ""] + table(["", "pairs/s", "acquire p50", "p99", *CPU_HEAD], rows) if rows else []


def alone_table(s, names, title, cells):
    """Those that share, and those that have it alone."""
    gets = [late("acquire_us", "p50"), late("alone_us", "p50"), late("alone_us", "p99")]
    rows = rows_of(s, names, cells, gets, lambda lines: [
        duration(1000 * max(line["longest_alone_ms"] for line in lines)) if any(
            line["longest_alone_ms"] for line in lines) else "–",
        number(median([line["alone"] * 1000 / line["ms"] for line in lines])),
        share(sum(line["alone"] for line in lines), sum(line["pairs"] for line in lines)),
        *(middle(lines, get) for get in CPU)])
    head = ["", "pairs/s", "acquire p50, shared", "alone", "alone p99", "alone, longest", "alone/s", "alone, of all"]
    return [title, ""] + table(head + CPU_HEAD, rows) if rows else []


def tables(s, names):
    out = ["### Shared locks", ""]
    for lanes in sorted({x["lanes"] for x in s.lines if x["kind"] == "share" and not x["n"]}):
        out += plain_table(s, names, f"{lanes} thread{'s share' if lanes > 1 else ' shares'} one key:",
                           [("share", lanes, 0), ("plain-own", lanes, 0)])
    for lanes, n in sorted({(x["lanes"], x["n"]) for x in s.lines if x["kind"] == "mix"}):
        out += alone_table(s, names, f"{lanes} threads, one key; {n} of 100 acquisitions are to have it alone:",
                           [("mix", lanes, n), ("plain-one", lanes, 0)])
    for lanes, n in sorted({(x["lanes"], x["n"]) for x in s.lines if x["kind"] == "share" and x["n"]}):
        out += plain_table(s, names, f"{lanes} threads, one key, which {n} share at most:",
                           [("share", lanes, n), ("plain-one", lanes, 0)])
    for lanes in sorted({x["lanes"] for x in s.lines if x["kind"] == "beside"}):
        out += alone_table(s, names, f"{lanes} threads share one key, and one more wants it alone all the time:",
                           [("beside", lanes, 0)])
    return out
