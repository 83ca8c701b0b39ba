"""Pictures by gnuplot: panels of bars, a contender each."""
import statistics
import subprocess

OURS, DISK, MEMORY, LINE = "0x1b6e9c", "0x8a949c", "0xd0d5d9", "0x30363b"
BAR = 0.36  # half of its height
NOTE = "blue: bizlock; dark: on disk before it is granted; light: in memory"


class Panel:
    """bars: (name, value, low, high); the line from low to high crosses the bar."""

    def __init__(self, title, unit, bars, text, log=True, ticks=""):
        self.title, self.unit, self.bars, self.text = title, unit, bars, text
        self.log, self.ticks = log, ticks


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def bound(panel):
    values = [v for bar in panel.bars for v in bar[1:] if v]
    if not panel.log:
        return 0, 1.25 * max(values, default=1)
    return 10 ** exponent(min(values, default=1) / 1.5), 20 * max(values, default=1)


def exponent(value):
    n = 0
    while 10 ** n > value:
        n -= 1
    while 10 ** (n + 1) <= value:
        n += 1
    return n


def colour(name, durable):
    return OURS if name == "bizlock" else DISK if name in durable else MEMORY


def panel_text(index, panel, names, durable, first):
    low_x, high_x = bound(panel)
    n = len(panel.bars)
    rows, ticks, labels = [], [], []
    for i, (name, value, low, high) in enumerate(panel.bars):
        y = n - i
        ticks.append(f'"{names[name] if first else ""}" {y}')
        if value is None:
            continue
        rows.append(f"{low_x} {y} {low_x} {value} {y - BAR} {y + BAR} {colour(name, durable)} {low} {high}")
        labels.append(f'set label "{panel.text(value)}" at {max(value, high)}, {y} offset 0.6, 0 font ",10"')
    return "\n".join(
        [f"$d{index} << END", *rows, "END", "unset label", *labels,
         f'set title "{panel.title}" font ",12"', f'set xlabel "{panel.unit}" font ",10"',
         "set logscale x" if panel.log else "unset logscale x",
         'set format x "%.0s%c"' if panel.log else 'set format x "%g"',
         f"set xtics {panel.ticks or 'autofreq'} nomirror font ',9'",
         f"set xrange [{low_x}:{high_x}]", f"set yrange [0.4:{n + 0.6}]",
         f"set ytics ({', '.join(ticks)}) scale 0",
         f"plot $d{index} using 1:2:3:4:5:6:7 with boxxyerror fs solid noborder lc rgb variable notitle, \\",
         f"     $d{index} using 8:2:8:9 with xerrorbars pt 0 lw 1.4 lc rgb {LINE} notitle", ""])


def picture(path, title, panels, names, durable):
    rows, width = max(7, *(len(panel.bars) for panel in panels)), 150 + 310 * len(panels)
    head = [
        f'set terminal svg noenhanced size {width},{130 + 30 * rows} font "sans-serif,11" background "white"',
        f'set output "{path}"', "set encoding utf8", "unset key", "set border 1",
        "set grid xtics lc rgb '#e4e7ea'",
        f'set multiplot layout 1,{len(panels)} title "{title}" font ",12" '
        f"margins {130 / width:.3f},0.98,0.17,0.80 spacing {20 / width:.3f},0",
    ]
    body = [panel_text(i, panel, names, durable, i == 0) for i, panel in enumerate(panels)]
    subprocess.run(["gnuplot"], input="\n".join(head + body), text=True, check=True)


def count(value):
    return f"{value:,.0f}"


def time(us):
    return f"{us:.0f} µs" if us < 1000 else f"{us / 1000:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"


def share(value):
    return f"{value:.2f}"


def rates(f, title, cell):
    bars = []
    for name in f.contenders(cell):
        values = [line["pairs_s"] for line in f.of(name, *cell)]
        bars.append((name, median(values), min(values), max(values)))
    return Panel(title, "pairs a second", bars, count)


def handovers(f, title, cell):
    bars = []
    for name in f.contenders(cell):
        lines = [line["handover_us"] for line in f.of(name, *cell) if line["handover_us"]["n"]]
        p50, p99 = (median([line[p] for line in lines]) for p in ("p50", "p99"))
        bars.append((name, p50, p50, p99))
    return late_panel(title, bars)


def wakeups(w, title, cell, names):
    bars = []
    for name in names:
        lines = [line["wakeup_us"] for line in w.of(name, cell) if line["wakeup_us"]["n"]]
        if lines:
            p50, p99 = (median([line[p] for line in lines]) for p in ("p50", "p99"))
            bars.append((name, p50, p50, p99))
    return late_panel(title, bars)


def late_panel(title, bars):
    ticks = ", ".join(f'"{time(10 ** n)}" {10 ** n}' for n in range(7))
    return Panel(title, "p50 and p99", bars, time, ticks=f"({ticks})")


def evenness(f, title, cell):
    bars = []
    for name in f.contenders(cell):
        values = [line["least"] / line["most"] if line["most"] else 0 for line in f.of(name, *cell)]
        bars.append((name, median(values), min(values), max(values)))
    return Panel(title, "least/most served", bars, share, log=False)


def plural(lanes):
    return f"{lanes} thread{'s' if lanes > 1 else ''}"


def draw(f, out, names, durable):
    own = [rates(f, plural(n), ("own", n)) for n in f.own_lanes()]
    picture(f"{out}/own.svg", f"Each its own key ({NOTE})", own, names, durable)
    crowds = [c for c in f.crowds() if not c[2]]
    for hold in sorted({c[1] for c in crowds}):
        held = f"held {hold / 1000:g} ms" if hold else "no hold"
        cells = [("one", *c) for c in crowds if c[1] == hold]
        suffix = f"{hold // 1000}ms" if hold else "0ms"
        picture(f"{out}/one-{suffix}.svg", f"One key, {held} ({NOTE})",
                [rates(f, plural(c[1]), c) for c in cells], names, durable)
        picture(f"{out}/handover-{suffix}.svg", f"Release to next acquire, one key, {held} ({NOTE})",
                [handovers(f, plural(c[1]), c) for c in cells], names, durable)
    last, crowd = max(f.own_lanes(), default=0), ("one", 16, 0, True)
    bars = {name: None for name in names if f.of(name, *crowd)}
    own_of = rates(f, f"{last} threads, own keys", ("own", last))
    own_of.bars = [bar for bar in own_of.bars if bar[0] in bars]
    picture(f"{out}/overview.svg", NOTE.capitalize(),
            [own_of, handovers(f, "Hand-over, 16 processes", crowd), evenness(f, "Fairness, 16 processes", crowd)],
            names, durable)


def draw_waits(w, out, names, durable):
    """The fewest and the most: a panel of each number would be too wide."""
    threads, loops = ([c for c in w.cells() if c[1] == loop] for loop in (False, True))
    shown = threads[:1] + threads[1:][-1:] + loops[-1:]
    names_of = {name: names[name] for name in names if any(w.of(name, c) for c in shown)}
    panels = [wakeups(w, f"{c[0]:,} {'waits by one thread' if c[1] else 'threads'}", c, names_of) for c in shown]
    picture(f"{out}/waits.svg", f"Release to the end of the wait ({NOTE})", panels, names, durable)
