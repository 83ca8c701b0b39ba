"""docs/picture.py LIST WATCH: an SVG of two screens, the texts of these files, for README.md."""
import html
import sys

COLUMN, LINE, MARGIN = 7.8, 18, 14
STYLE = """
rect { fill: #f6f8fa; stroke: #d0d7de }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
  fill: #1f2328; white-space: pre }
.prompt { fill: #0969da } .head { font-weight: bold }
@media (prefers-color-scheme: dark) {
  rect { fill: #151b23; stroke: #3d444d }
  text { fill: #e6edf3 } .prompt { fill: #58a6ff }
}
"""


def screen(command, path):
    """(class, text) of each line."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().rstrip().split("\n")
    return [("prompt", f"$ {command}")] + [
        ("head" if line.startswith("TYPE") else "line", line.rstrip()) for line in lines
    ]


def line(number, kind, text):
    """The width is given, because each reader has another font, and columns must stand below each other."""
    return (
        f'<text x="{MARGIN}" y="{MARGIN + LINE * number + 13}" xml:space="preserve" class="{kind}" '
        f'textLength="{COLUMN * len(text):.1f}" lengthAdjust="spacingAndGlyphs">{html.escape(text)}</text>'
    )


lines = screen("bizlock list", sys.argv[1]) + [("line", "")] + screen("bizlock watch", sys.argv[2])
width = 2 * MARGIN + COLUMN * max(len(text) for _, text in lines)
height = 2 * MARGIN + LINE * len(lines)
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">')
print("<title>bizlock list, and bizlock watch</title>")
print(f"<style>{STYLE}</style>")
print('<rect x="0.5" y="0.5" width="{:.0f}" height="{}" rx="6"/>'.format(width - 1, height - 1))
print("\n".join(line(i, kind, text) for i, (kind, text) in enumerate(lines) if text))
print("</svg>")
