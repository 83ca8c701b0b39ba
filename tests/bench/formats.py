"""Figures as text, and tables of them."""
import statistics


def median(values):
    return statistics.median(values) if values else None


def spread(values):
    return {"median": median(values), "min": min(values), "max": max(values), "turns": values}


def number(value, digits=3):
    """A figure for people: three digits that count, thousands parted."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    size = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    rounded = round(value, max(0, digits - size) if size else digits)
    if size > digits:
        rounded = round(rounded, digits - size)
    return f"{rounded:,.{max(0, digits - size) if size else 2}f}"


def count(n):
    return f"{n:,}"


def share(part, whole):
    return f"{100 * part / max(1, whole):.0f} %"


def duration(us):
    if us is None:
        return "–"
    if us < 1000:
        return f"{number(us)} µs"
    if us < 1e6:
        return f"{number(us / 1000)} ms"
    return f"{number(us / 1e6)} s"


def known(values):
    return [v for v in values if v is not None]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def ranged(values):
    values = known(values)
    if not values:
        return "–"
    return f"{number(median(values))} ({number(min(values))} to {number(max(values))})"
