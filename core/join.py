"""One step: rollout samples joined to train rows, and every per-token column put together with its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dumptui.core.context_parallel import Array, Ints
from dumptui.core.errors import DumpError
from dumptui.core.flat import Flat, empty, overlay, ratio
from dumptui.core.layout import ENGINE, Peers, group_peers, resolve, same_values
from dumptui.core.match import Matcher, Row
from dumptui.core.placing import place
from dumptui.core.ptfile import read_all
from dumptui.core.run import StepFiles
from dumptui.core.sample import OnRead, Rollout, Sample, read_rollout
from dumptui.core.shard import Shard, read_shard

# The name on screen of each per-token column of a train file; any other column keeps its own.
SHOWN = {"log_probs": "train_log_probs"}
DUMPED = {shown: dumped for dumped, shown in SHOWN.items()}
FIELDS = (
    "train_log_probs rollout_log_probs ref_log_probs teacher_log_probs lp_diff imp_ratio entropy ref_entropy teacher_entropy "
    "opd_reverse_kl advantages returns values"
).split()
# Columns that a rollout sample may hold itself, full length.
FROM_SAMPLE = ("teacher_log_probs", "opd_reverse_kl")


@dataclass(eq=False)
class Step:
    """A joined step. Per-token values are read from the files when asked."""

    files: StepFiles
    rollout: Rollout
    shards: list[Shard]
    broken: list[DumpError]
    peers: list[Peers]
    rows: list[Row | None]
    orphans: list[str]
    raw_rewards: list[object] | None
    notes: list[str] = field(default_factory=list)
    _contradicted: dict[int, str | None] = field(default_factory=dict)

    @property
    def samples(self) -> tuple[Sample, ...]:
        return self.rollout.samples

    @property
    def trained(self) -> int:
        return sum(row is not None for row in self.rows)

    @property
    def fields(self) -> list[str]:
        """Every per-token field that this step's files hold, in the order they are shown."""
        found = {SHOWN.get(name, name) for shard in self.shards for name in shard.per_token}
        found.update(name for name in FROM_SAMPLE if any(name in sample.extra for sample in self.samples))
        if any(sample.rollout_log_probs is not None for sample in self.samples):
            found.add(ENGINE)
        if {"train_log_probs", ENGINE} <= found:
            found.update(("lp_diff", "imp_ratio"))
        return [name for name in FIELDS if name in found] + sorted(found.difference(FIELDS))

    # Masks -----------------------------------------------------------------------------------------------------

    def masks(self, positions: Ints | None = None) -> Flat:
        """The loss mask: the trainer's where there is a train row, else the sample's, else all ones. Known where its length fits."""
        out = self._empty("loss_mask", self._all(positions), np.int8)
        for at, position in enumerate(out.positions):
            values, known = out.one(at)
            mask, reason = self._mask(int(position))
            if reason is None and len(mask) != len(values):
                reason = f"loss_mask has {len(mask)} entries for {len(values)} response tokens"
            if reason is None:
                values[:], known[:], out.states[at] = mask, True, "ok"
            else:
                out.states[at], out.reasons[at] = "unreadable", reason
        return out

    def _mask(self, position: int) -> tuple[Array, str | None]:
        sample, row = self.samples[position], self.rows[position]
        ones = np.ones(sample.response_length, np.int8)
        if row is not None:
            problem = None
            for shard in row.peers.shards:
                tensor = shard.tensor("loss_masks", row.row)
                try:
                    if tensor is not None:
                        return (fit_end(tensor.numpy(), sample.response_length) > 0).astype(np.int8), None
                except DumpError as error:
                    problem = str(error)
            if problem is not None:
                return ones, problem
        if sample.removed:
            return np.zeros_like(ones), None
        return (ones if sample.loss_mask is None else (sample.loss_mask > 0).astype(np.int8)), None

    # Fields ----------------------------------------------------------------------------------------------------

    def gather(self, name: str, positions: Ints | None = None) -> Flat:
        """A field of the given samples, all by default, unmasked. Never raises for what a file holds: the states say it."""
        wanted = self._all(positions)
        if name == ENGINE:
            return self._engine(wanted)
        if name in ("lp_diff", "imp_ratio"):
            diff = self._difference(wanted)
            return diff if name == "lp_diff" else ratio(diff)
        out = self._from_train(name, DUMPED.get(name, name), wanted)
        if name in FROM_SAMPLE:
            self._fill_from_samples(out, lambda sample: sample.extra.get(name))
        return out

    def _all(self, positions: Ints | None) -> Ints:
        return np.arange(len(self.samples)) if positions is None else positions

    def _empty(self, name: str, positions: Ints, dtype: npt.DTypeLike = np.float32) -> Flat:
        return empty(name, positions, [self.samples[position].response_length for position in positions], dtype)

    def _engine(self, positions: Ints) -> Flat:
        """The engine's log-probs: the rollout file's copy, which was never sliced, else the train files'."""
        out = self._empty(ENGINE, positions)
        self._fill_from_samples(out, lambda sample: sample.rollout_log_probs)
        absent = np.array([at for at, state in enumerate(out.states) if state == "not dumped"], np.int64)
        if len(absent):
            overlay(out, absent, self._from_train(ENGINE, ENGINE, positions[absent]))
        return out

    def _fill_from_samples(self, out: Flat, get: Callable[[Sample], object]) -> None:
        for at, position in enumerate(out.positions):
            found = get(self.samples[position])
            if out.states[at] != "not dumped" or not isinstance(found, (list, tuple, np.ndarray)):
                continue
            values, known = out.one(at)
            if len(found) != len(values):
                reason = f"{out.name} has {len(found)} values for {len(values)} response tokens"
                out.states[at], out.reasons[at] = "unreadable", reason
                continue
            values[:], known[:], out.states[at] = found, True, "ok"

    def _difference(self, positions: Ints) -> Flat:
        """train - engine log-prob, where the loss mask is 1 and both are there."""
        trainer, engine, mask = self.gather("train_log_probs", positions), self._compared(positions), self.masks(positions)
        known = trainer.known & engine.known & mask.known & (mask.values > 0)
        with np.errstate(invalid="ignore"):
            values = np.where(known, trainer.values - engine.values, np.float32(0))
        states, reasons = list(trainer.states), list(trainer.reasons)
        for other in (engine, mask):
            for at, state in enumerate(other.states):
                if states[at] == "ok" or (states[at] == "partial" and state == "unreadable"):
                    states[at], reasons[at] = state, other.reasons[at]
        return Flat("lp_diff", positions, trainer.offsets, values, known, states, reasons)

    def _compared(self, positions: Ints) -> Flat:
        """The engine's log-probs to subtract: the train files' copy, which has the trainer's precision, else the rollout file's.

        A copy coarser than the trainer's own log-probs would show its rounding as divergence, so then the rollout file's is taken.
        """
        out = self._engine(positions)
        copy = self._from_train(ENGINE, ENGINE, positions)
        same = [at for at, position in enumerate(positions) if copy.states[at] == "ok" and not self._coarser(int(position))]
        if same:
            overlay(out, np.array(same, np.int64), copy, same)
        return out

    def _coarser(self, position: int) -> bool:
        return self._precision(position, ENGINE) < self._precision(position, "log_probs")

    def _from_train(self, name: str, column: str, positions: Ints) -> Flat:
        out = self._empty(name, positions)
        for peers, wanted in self._by_peers(positions):
            place(peers, column, wanted, out)
        for at, position in enumerate(positions):
            if self.rows[position] is None:
                out.reasons[at] = "no train row"
        if column != ENGINE:
            self._guard(out)
        return out

    def _by_peers(self, positions: Ints) -> list[tuple[Peers, list[tuple[int, int]]]]:
        """Per data-parallel shard, its samples among `positions` as (index in `positions`, row)."""
        wanted: dict[int, list[tuple[int, int]]] = {}
        for at, position in enumerate(positions):
            if (row := self.rows[position]) is not None:
                wanted.setdefault(id(row.peers), []).append((at, row.row))
        return [(peers, wanted[id(peers)]) for peers in self.peers if id(peers) in wanted]

    # Guards ----------------------------------------------------------------------------------------------------

    def _guard(self, out: Flat) -> None:
        """Take back what was joined to another sample's row, or placed by a layout that the engine's log-probs contradict."""
        self._check(np.array([p for p in map(int, out.positions) if p not in self._contradicted], np.int64))
        for at, state in enumerate(out.states):
            if state in ("ok", "partial") and (reason := self._contradicted[int(out.positions[at])]) is not None:
                out.fail(at, reason)

    def _check(self, positions: Ints) -> None:
        self._contradicted.update(dict.fromkeys(map(int, positions)))
        for peers, wanted in self._by_peers(positions):
            self._check_tokens(peers, [(int(positions[at]), row) for at, row in wanted])
        sliced = [p for p in map(int, positions) if (row := self.rows[p]) is not None and row.peers.cp_size > 1]
        if sliced:
            self._check_order(np.array(sliced, np.int64))

    def _check_tokens(self, peers: Peers, wanted: list[tuple[int, int]]) -> None:
        """A resumed run gives the same indices to other samples: equal tokens tell that the row is this sample's."""
        shard = next((shard for shard in peers.shards if "tokens" in shard.columns), None)
        held = [(p, tensor) for p, row in wanted if shard is not None and (tensor := shard.tensor("tokens", row)) is not None]
        try:
            arrays = read_all([tensor for _, tensor in held])
        except DumpError:  # unreadable tokens contradict nothing; the file's damage is said where its values would be shown
            return
        for (position, _), array in zip(held, arrays, strict=True):
            tokens = self.samples[position].tokens
            if len(array) == len(tokens) and not np.array_equal(array, tokens):
                self._contradicted[position] = "the train row holds other tokens than the sample"

    def _check_order(self, positions: Ints) -> None:
        copy = self._from_train(ENGINE, ENGINE, positions)
        for at, position in enumerate(map(int, positions)):
            full, (part, known) = self.samples[position].rollout_log_probs, copy.one(at)
            if full is None or len(full) != len(part) or copy.states[at] not in ("ok", "partial"):
                continue
            equal = same_values(part, full, rounded=self._precision(position, ENGINE) < 23)
            if not (equal | ~known).all():
                self._contradicted[position] = "order contradicted by the rollout file"

    def _precision(self, position: int, column: str) -> int:
        """Mantissa bits of the coarsest copy of a column; 0 where there is none."""
        row = self.rows[position]
        tensors = [] if row is None else [shard.tensor(column, row.row) for shard in row.peers.shards]
        return min((MANTISSA.get(tensor.dtype, 3) for tensor in tensors if tensor is not None), default=0)


MANTISSA = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}


def fit_end(values: Array, length: int) -> Array:
    """The last `length` values: where the trainer's response is the longer, media were expanded in front."""
    return values[len(values) - length :] if len(values) > length else values


# Loading --------------------------------------------------------------------------------------------------------


def load(files: StepFiles, on_read: OnRead | None = None) -> Step:
    """Read and join a step. A train file that can't be read costs itself; raises DumpError when the rollout file can't."""
    if files.rollout is None:
        raise DumpError(files.key.__str__(), "its rollout file is missing")
    rollout = read_rollout(files.rollout.path, files.key.step, files.key.evaluation, on_read)
    shards, broken = read_shards(files, on_read)
    peers = group_peers(shards)
    matcher = Matcher(rollout.samples)
    for group in peers:
        matcher.add(group)
    resolve(peers, [sample.rollout_log_probs for sample in rollout.samples])
    return Step(
        files=files,
        rollout=rollout,
        shards=shards,
        broken=broken,
        peers=peers,
        rows=matcher.rows,
        orphans=matcher.orphans,
        raw_rewards=raw_rewards(shards, matcher.rows),
        notes=[*rollout.notes, *(f"{shard.path.name}: {note}" for shard in shards for note in shard.notes)],
    )


def read_shards(files: StepFiles, on_read: OnRead | None) -> tuple[list[Shard], list[DumpError]]:
    shards: list[Shard] = []
    broken: list[DumpError] = []
    for rank, entry in files.shards:
        try:
            shards += read_shard(entry.path, files.key.step, rank, on_read)
        except DumpError as error:
            broken.append(error)
    return shards, broken


def raw_rewards(shards: Sequence[Shard], rows: Sequence[Row | None]) -> list[object] | None:
    """The batch-global `raw_reward` column by position in the rollout file; None without one whose length fits.

    It counts the whole rollout file, or only the samples that were trained.
    """
    trained = [position for position, row in enumerate(rows) if row is not None]
    for length, places in ((len(rows), range(len(rows))), (len(trained), trained)):
        for shard in shards:
            column = shard.columns.get("raw_reward")
            if isinstance(column, (list, tuple)) and len(column) == length:
                found: list[object] = [None] * len(rows)
                for place_, value in zip(places, column, strict=True):
                    found[place_] = value
                return found
    return None
