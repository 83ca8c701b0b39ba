"""The table of README.md, from what the last runs with both servers have left in results/."""
import json
import os

from formats import duration, median, number, table

FOLDERS = {"MariaDB": "", "MySQL": "mysql"}  # below results/
HEAD = ["", "on disk", "pairs/s, 1 thread", "8", "64", "hand-over p50", "p99", "least/most served"]


def figures(folder, name):
    try:
        with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
            return json.load(file)["figures"]
    except FileNotFoundError:
        return []


def cell(lines, name, lanes, processes):
    return next((x for x in lines if (x["contender"], x["lanes"], x["processes"], x["hold_us"]) ==
                 (name, lanes, processes, 0)), None)


def evenness(crowd):
    turns = zip(crowd["least"]["turns"], crowd["most"]["turns"])
    return median([least / most if most else 0 for least, most in turns])


def row(folder, name, title):
    own, crowd = figures(folder, "own"), cell(figures(folder, "one"), name, 16, True)
    if not own or not crowd:
        return []
    pairs = [cell(own, name, n, False) for n in (1, 8, 64)]
    hand = crowd["handover_us"]
    return [[title, "yes", *(number(x["pairs_s"]["median"]) if x else "–" for x in pairs),
             duration(hand["p50"]), duration(hand["p99"]), f"{evenness(crowd):.2f}"]]


def short_table(results):
    """bizlock on both; and, of the first run that is there, what one would write without it, and
    the fastest peer that syncs, too."""
    folders = {server: os.path.join(results, below) for server, below in FOLDERS.items()}
    rows = []
    for server, folder in folders.items():
        rows += row(folder, "bizlock", f"bizlock on {server}")
    for server, folder in folders.items():
        rows += row(folder, "textbook", f"textbook recipe on {server}")
    redis = [row(folder, "redis_always", "Redis, synced") for folder in folders.values()]
    return table(HEAD, rows + next((found for found in redis if found), []))
