"""Reads Prometheus' text exposition format 0.0.4 as strictly as promtool does, and then some.

exposition.py FILE: complains of what is wrong, and prints the names. exposition.py FILE NAME: prints
all series of that name. exposition.py FILE 'NAME{label=value,...}': prints the value of that series.
"""
import re
import sys

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|\})')
VALUE = re.compile(r"-?[0-9]+(\.[0-9]+)?$")


def read_sample(line):
    """(name, labels, value) of a line."""
    name = NAME.match(line)
    assert name, f"no name: {line}"
    at, labels = name.end(), {}
    if line[at] == "{":
        at += 1
        while True:
            label = LABEL.match(line, at)
            assert label, f"a bad label: {line}"
            key, value, after = label.groups()
            assert key not in labels, f"a label twice: {line}"
            labels[key] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value)
            at = label.end()
            if after == "}":
                break
    assert line[at] == " ", f"no blank before the value: {line}"
    assert VALUE.match(line[at + 1 :]), f"a bad value: {line}"
    return name[0], labels, line[at + 1 :]


def read(text):
    """All series, as {name: {labels: value}}."""
    assert text.endswith("\n"), "the last line has no end"
    families, family, series = {}, None, 0
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            family, help_text = line[7:].split(" ", 1)
            assert NAME.fullmatch(family) and help_text, f"a bad line: {line}"
            assert family not in families, f"twice: {family}"
            families[family] = None
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name == family and families[family] is None, f"not behind its HELP: {line}"
            assert kind in ("gauge", "counter"), f"a bad type: {line}"
            families[family] = {}
        else:
            name, labels, value = read_sample(line)
            assert name == family and families[family] is not None, f"not of its family: {line}"
            key = tuple(sorted(labels.items()))
            assert key not in families[family], f"a series twice: {line}"
            families[family][key] = value
    return families


def main():
    with open(sys.argv[1], encoding="utf-8", errors="strict", newline="") as file:
        families = read(file.read())
    for wanted in sys.argv[2:]:
        name, brace, labels = wanted.partition("{")
        for key, value in families[name].items():
            shown = ",".join(f"{k}={v}" for k, v in key)
            if not brace:
                print(f"{name}{{{shown}}} {value}")
            elif shown == labels[:-1]:
                print(value)
    if len(sys.argv) == 2:
        print("\n".join(families))


main()
