"""Which packages there are: where dumptui/core and dumptui/tui link to core/ and tui/, they are found through these.

A zip of the repository, or a clone with core.symlinks=false, has two text files in their place: an install would come
out empty, so there the packages are taken from where the links point.
"""

from pathlib import Path

from setuptools import find_packages, setup

WINGS = ("core", "tui")
ROOT = Path(__file__).parent

if all((ROOT / "dumptui" / wing).is_dir() for wing in WINGS):
    setup(packages=find_packages(str(ROOT), include=["dumptui*"]))
else:
    inside = [f"dumptui.{wing}.{one}" for wing in WINGS for one in find_packages(str(ROOT / wing))]
    setup(
        packages=["dumptui", *(f"dumptui.{wing}" for wing in WINGS), *inside],
        package_dir={f"dumptui.{wing}": wing for wing in WINGS},
    )
