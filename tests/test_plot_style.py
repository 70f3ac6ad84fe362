"""Plots look the same whatever the settings of the user and of the current folder."""

import subprocess
import sys
from pathlib import Path

DRAW = """
import sys
from pathlib import Path
import pandas as pd
from busenv.evaluation.rating_report import draw_intervals
from busenv.train.learning_curve import CurvePoint, draw_curve
table = pd.DataFrame({"won": [0.5], "low": [0.4], "high": [0.6], "par": [0.5]}, index=["a$b_{$c"])
out = Path(sys.argv[1])
draw_intervals(out / "wins.png", table, "title", "note")
draw_curve(out / "curve.png", [CurvePoint(1, 1000, 10, {"random": 0.5})], "title")
"""


def test_a_matplotlibrc_in_the_current_folder_is_not_applied(tmp_path: Path) -> None:
    """Two plots with a settings file in the folder that would run LaTeX, and without it."""
    drawn = []
    for name in ("clean", "hostile"):
        folder = tmp_path / name
        folder.mkdir()
        if name == "hostile":
            (folder / "matplotlibrc").write_text("text.usetex: True\nlines.linewidth: 99\n")
        command = [sys.executable, "-c", DRAW, str(folder)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        drawn.append([(folder / picture).read_bytes() for picture in ("wins.png", "curve.png")])
    assert drawn[0] == drawn[1]
