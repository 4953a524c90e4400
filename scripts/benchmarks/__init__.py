"""Benchmarks of tfray beside TensorFlow; `scripts/bench.py` is the entry.

- `cases/`: what is measured, written once for both sides against TensorFlow 1's names; one file a benchmark.
- `side.py`: the process that opens a case and times its steps; `tfray_side.py`, `tensorflow_side.py` and
  `floor_side.py` say what is special to each implementation. Only the first imports tfray, only the second TensorFlow.
- `sides.py`: starting these processes and talking to them; `processes.py`: their processor time, holding them on one
  core, and processes that keep the others busy (`spinner.py`).
- `measure.py`: warming up, alternating between the sides, statistics; `memory.py`: memory of whole process trees.
- `machine.py`, `roofline.py`, `setting.py`: what figures are measured on, its limits, and under which conditions.
- `report.py`: the table; `json_lines.py`: the same as lines of JSON, and those committed in `figures/`; `markdown.py`:
  the README's table made from them.
"""
