"""Settings of the garbage collector. It is off during the start, where it would take a quarter of the time of the
imports to scan objects that all stay.
"""

from __future__ import annotations

import gc


def postpone() -> None:
    """Turn the garbage collector off until `collect_from_here`."""
    gc.disable()


def collect_from_here() -> None:
    """Turn the garbage collector on, without the objects that exist already: that shortens each later pause.

    It runs a tenth as often as by default: a step makes many objects without reference cycles, and looking
    through them took 1/40 of the time of a scan of all steps, and found nothing.
    """
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()
