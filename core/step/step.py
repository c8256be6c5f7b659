"""One step: rollout samples joined to train rows, and every per-token column put together with its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from dumptui.core.arrays import Bools, Ints
from dumptui.core.errors import DumpError
from dumptui.core.fields.token_field import State, TokenField, empty, overlay, ratio
from dumptui.core.formats.miles.parquet_mirror import read_samples_of
from dumptui.core.formats.miles.train_file import Shard, mostly, read_shard
from dumptui.core.formats.sample import OnRead, Rollout, Sample
from dumptui.core.formats.values import Dumped, Numbers, floats, other_shape
from dumptui.core.parallel.assembly import place
from dumptui.core.parallel.layout_inference import resolve
from dumptui.core.parallel.loss_masks import fill_masks
from dumptui.core.parallel.row_evidence import Evidence, RowVerdict, rounding, same_values
from dumptui.core.parallel.row_matching import Matcher, Row, raw_rewards
from dumptui.core.parallel.shard_group import ENGINE_COLUMN, ShardGroup, SlicingRule, find_slicing_rule, group_shards
from dumptui.core.run.run import StepFiles, read_file

# The name on screen of each per-token column of a train file; any other column keeps its own.
SHOWN_NAMES = {"log_probs": "train_log_probs"}
DUMPED_NAMES = {shown: dumped for dumped, shown in SHOWN_NAMES.items()}
FIELD_ORDER = [
    "train_log_probs",
    "rollout_log_probs",
    "ref_log_probs",
    "teacher_log_probs",
    "lp_diff",
    "imp_ratio",
    "entropy",
    "ref_entropy",
    "teacher_entropy",
    "opd_reverse_kl",
    "advantages",
    "returns",
    "values",
]
# Per-token values that a rollout sample is known to hold, also where their length is wrong.
SAMPLE_FIELDS = ("teacher_log_probs", "opd_reverse_kl")
ORDER_CONTRADICTED = "order contradicted by the rollout file"
ENGINE_COPY_CONTRADICTED = "rollout_log_probs of the train files contradict the rollout file"


@dataclass(eq=False)
class Step:
    """A joined step. Per-token values are read from the files when asked."""

    files: StepFiles
    rollout: Rollout
    shards: list[Shard]
    broken: list[DumpError]
    peers: list[ShardGroup]
    rows: list[Row | None]
    orphans: list[str]
    refused: dict[int, tuple[State, str]]
    raw_rewards: list[object] | None
    evidence: Evidence
    notes: list[str] = field(default_factory=list)
    rollout_problem: DumpError | None = None
    alone: bool = False
    """Whether this is one sample of the step, from its mirror: what only the rollout file has is not known."""
    pause: Callable[[], object] = field(default=lambda: None)
    """Called some ten times a second while fields of a whole step are read; what it raises ends that."""
    _cuts: dict[str, SlicingRule] = field(default_factory=dict)

    @property
    def samples(self) -> tuple[Sample, ...]:
        return self.rollout.samples

    @property
    def trained(self) -> int:
        return sum(row is not None for row in self.rows)

    @property
    def fields(self) -> list[str]:
        """Every per-token field that this step's files hold, in the order they are shown."""
        found = {SHOWN_NAMES.get(name, name) for shard in self.shards for name in (*shard.per_token, *shard.malformed)}
        found.update(self._of_samples)
        if any(sample.rollout_log_probs is not None for sample in self.samples):
            found.add(ENGINE_COLUMN)
        if {"train_log_probs", ENGINE_COLUMN} <= found:
            found.update(("lp_diff", "imp_ratio"))
        return [name for name in FIELD_ORDER if name in found] + sorted(found.difference(FIELD_ORDER))

    @cached_property
    def _of_samples(self) -> frozenset[str]:
        """The keys of the samples that hold one float a response token, known by name or not."""
        names = {name for sample in self.samples for name in sample.extra}
        return frozenset(name for name in names if name in SAMPLE_FIELDS or self._is_per_token(name))

    def _is_per_token(self, name: str) -> bool:
        holders = [sample for sample in self.samples if sample.response_length and name in sample.extra]
        return mostly(lambda sample: is_per_token(sample.extra[name], sample.response_length), holders)

    # Masks -----------------------------------------------------------------------------------------------------

    def masks(self, positions: Ints | None = None) -> TokenField:
        """The loss mask: the trainer's where there is a train row, else the sample's, else all ones.

        Known where its length fits.
        """
        out = self._empty("loss_mask", self._all(positions), np.int8)
        fill_masks(out, self.samples, self.rows, self._by_peers(out.positions), self.evidence)
        return out

    # Fields ----------------------------------------------------------------------------------------------------

    def gather(self, name: str, positions: Ints | None = None) -> TokenField:
        """A field of the given samples, all by default, unmasked.

        Never raises for what a file holds: the states say it.
        """
        wanted = self._all(positions)
        if name == ENGINE_COLUMN:
            return self._engine(wanted)
        if name in ("lp_diff", "imp_ratio"):
            diff = self.difference(wanted, self.masks(wanted))
            return diff if name == "lp_diff" else ratio(diff)
        out = self._from_train(name, DUMPED_NAMES.get(name, name), wanted)
        if name in self._of_samples:
            self._fill_from_samples(out, lambda sample: floats(sample.extra.get(name)))
        return out

    def _all(self, positions: Ints | None) -> Ints:
        return np.arange(len(self.samples)) if positions is None else positions

    def _empty(self, name: str, positions: Ints, dtype: npt.DTypeLike = np.float32) -> TokenField:
        return empty(name, positions, self._lengths[positions], dtype)

    @cached_property
    def _lengths(self) -> Ints:
        return np.array([sample.response_length for sample in self.samples], np.int64)

    def _engine(self, positions: Ints) -> TokenField:
        """The engine's log-probs: the rollout file's copy, which was never sliced, else the train files'."""
        out = self._empty(ENGINE_COLUMN, positions)
        self._fill_from_samples(out, engine_numbers)
        absent = np.array([at for at, state in enumerate(out.states) if state == "not dumped"], np.int64)
        if len(absent):
            overlay(out, absent, self._from_train(ENGINE_COLUMN, ENGINE_COLUMN, positions[absent]))
        return out

    def _fill_from_samples(self, out: TokenField, get: Callable[[Sample], Numbers | None]) -> None:
        for at, position in enumerate(out.positions.tolist()):
            if out.states[at] != "not dumped":
                continue
            try:
                found = get(self.samples[position])
            except DumpError as error:  # a tensor, which is read only here
                out.fail(at, str(error))
                continue
            odd = why_none(self.samples[position], out.name, found)
            if odd is not None:
                out.fail(at, odd)
            elif found is not None:
                fill_whole(out, at, found)

    def difference(self, positions: Ints, mask: TokenField) -> TokenField:
        """train - engine log-prob, where the loss `mask` of the same samples is 1 and both are there."""
        trainer = self.gather("train_log_probs", positions)
        engine, other_copies = self._compared(positions)
        self.pause()
        known = trainer.known & engine.known & mask.known & (mask.values > 0)
        values = trainer.values
        with np.errstate(invalid="ignore"):
            values -= engine.values
        values[~known] = 0
        states, reasons = list(trainer.states), list(trainer.reasons)
        for other in (engine, mask):
            for at, state in enumerate(other.states):
                if state != "ok" and (states[at] == "ok" or (states[at] == "partial" and state != "partial")):
                    states[at], reasons[at] = state, other.reasons[at]
        out = TokenField("lp_diff", positions, trainer.offsets, values, known, states, reasons)
        for peers, ats, rows in self._by_peers(positions):
            out.distrust(ats[self.moved(peers)[rows]], ENGINE_COPY_CONTRADICTED)
        out.distrust(other_copies, ENGINE_COPY_CONTRADICTED)
        return out

    def _compared(self, positions: Ints) -> tuple[TokenField, Ints]:
        """The engine's log-probs to subtract: the train files' copy, which has the trainer's precision, else the
        rollout file's.

        A copy coarser than the trainer's own log-probs would show its rounding as divergence, so then the rollout
        file's is taken. Copies that hold the very same numbers, as nearly all do, are not read a second time. Beside
        them, which samples have copies that contradict each other.
        """
        out = self._engine(positions)
        finer: list[int] = []
        for peers, ats, rows in self._by_peers(positions):
            others = ~self._identical(peers)[rows]
            pairs = zip(ats[others].tolist(), rows[others].tolist(), strict=True)
            finer += [at for at, row in pairs if out.states[at] == "ok" and not coarser(peers, row)]
        copy = self._from_train(ENGINE_COLUMN, ENGINE_COLUMN, positions[finer])
        there = [at for at, state in enumerate(copy.states) if state == "ok"]
        other = [finer[at] for at in there if not self._same_engine(out, finer[at], copy, at)]
        overlay(out, np.array(finer, np.int64)[there], copy, there)
        return out, np.array(other, np.int64)

    def confirmed(self, positions: Ints) -> Bools:
        """Of which samples the train files hold the rollout file's engine log-probs, all of them."""
        mine, copy = self._empty(ENGINE_COLUMN, positions), self._from_train(ENGINE_COLUMN, ENGINE_COLUMN, positions)
        self._fill_from_samples(mine, engine_numbers)
        whole = [mine.one(at)[1].all() and copy.one(at)[1].all() for at in range(len(positions))]
        same = (mine.ok[at] and copy.ok[at] and self._same_engine(mine, at, copy, at) for at in range(len(positions)))
        return np.array([all(both) for both in zip(whole, same, strict=True)], bool)

    def _same_engine(self, out: TokenField, at: int, copy: TokenField, copy_at: int) -> bool:
        """Whether the train files' copy of the engine's log-probs is the one that is shown, but for rounding."""
        (mine, known), (theirs, also_known) = out.one(at), copy.one(copy_at)
        both = known & also_known
        row = self.rows[int(out.positions[at])]
        relative = 0.0 if row is None else coarsest(row.peers, ENGINE_COLUMN, row.row)
        return bool(same_values(theirs[both], mine[both], relative, relative).all())

    def _identical(self, peers: ShardGroup) -> Bools:
        """Per row, whether there is nothing to choose between: all slices of it are the rollout file's."""
        same = np.ones(peers.first.rows, bool)
        for judged in self._judged(peers):
            same &= judged.identical
        return same

    def _from_train(self, name: str, column: str, positions: Ints) -> TokenField:
        out = self._empty(name, positions)
        for peers, ats, rows in self._by_peers(positions):
            self.pause()
            place(peers, column, ats, rows, out, self.cut(column), self.evidence, self._engine_rule(peers))
            if peers.cp_size > 1:
                out.distrust(ats[self.layout_contradicted | self.moved(peers)[rows]], ORDER_CONTRADICTED)
        for at in np.flatnonzero(self._places[0][positions] < 0).tolist():
            out.states[at], out.reasons[at] = self.without_row(int(positions[at]))
        return out

    def without_row(self, position: int) -> tuple[State, str]:
        """The state of the train data of a sample that no train row was joined to, and why there is none."""
        state, why = self.refused.get(position, ("not dumped", ""))
        return state, f"no train row: {why}" if why else "no train row"

    def cut(self, column: str) -> SlicingRule:
        """By which rule a column of the train files was cut."""
        if column not in self._cuts:
            self._cuts[column] = find_slicing_rule(self.peers, column)
        return self._cuts[column]

    def _by_peers(self, positions: Ints) -> list[tuple[ShardGroup, Ints, Ints]]:
        """Per data-parallel shard, which of `positions` are its samples, and their rows."""
        number, row = (column[positions] for column in self._places)
        found = ((peers, np.flatnonzero(number == at)) for at, peers in enumerate(self.peers))
        return [(peers, ats, row[ats]) for peers, ats in found if len(ats)]

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        """The data-parallel shard of each sample, by its place in `peers`, and the row in there; -1 without one."""
        number = {id(peers): at for at, peers in enumerate(self.peers)}
        places = [(-1, -1) if row is None else (number[id(row.peers)], row.row) for row in self.rows]
        shards, rows = np.array(places, np.int64).reshape(-1, 2).T
        return shards, rows

    # Order -----------------------------------------------------------------------------------------------------

    def _engine_rule(self, peers: ShardGroup) -> str | None:
        """How the engine's log-probs of a shard were cut, None where no rule fits."""
        if peers.cp_size == 1:
            return "full"
        rules = self.cut(ENGINE_COLUMN).rules
        return rules[0] if rules else None

    @cached_property
    def layout_contradicted(self) -> bool:
        """Whether the engine's log-probs contradict where sliced rows were put; one row that does speaks for all."""
        moved = {id(peers): self.moved(peers) for peers in self.peers if peers.cp_size > 1}
        sliced = (row for row in self.rows if row is not None and id(row.peers) in moved and not row.tied)
        return any(moved[id(row.peers)][row.row] for row in sliced)

    def moved(self, peers: ShardGroup) -> Bools:
        """Per row, whether a slice of the engine's log-probs holds other values than the rollout file at its places."""
        moved = np.zeros(peers.first.rows, bool)
        for judged in self._judged(peers):
            moved |= judged.moved
        return moved

    def _judged(self, peers: ShardGroup) -> list[RowVerdict]:
        """What the engine's log-probs say, slice by slice; nothing where slices can't be placed."""
        if peers.problem is not None:
            return []
        rule = self._engine_rule(peers)
        return [self.evidence.judge(peers, shard, rule) for shard in first_holders(peers, ENGINE_COLUMN)]


def first_holders(peers: ShardGroup, column: str) -> list[Shard]:
    """The first file of each context-parallel rank that has a column."""
    found: dict[int, Shard] = {}
    for shard, cp_rank in peers.placed():
        if column in shard.per_token:
            found.setdefault(cp_rank, shard)
    return list(found.values())


def coarser(peers: ShardGroup, row: int) -> bool:
    """Whether the train files' copy of the engine's log-probs is coarser than the trainer's own."""
    return coarsest(peers, ENGINE_COLUMN, row) > coarsest(peers, "log_probs", row)


def coarsest(peers: ShardGroup, column: str, row: int) -> float:
    """The relative error of the coarsest copy of a row; 0 where there is none."""
    tensors = (shard.tensor(column, row) for shard in peers.shards)
    return max((rounding(tensor)[0] for tensor in tensors if tensor is not None), default=0.0)


def engine_numbers(sample: Sample) -> Numbers | None:
    return None if sample.rollout_log_probs is None else Numbers(sample.rollout_log_probs, sample.unscored)


def is_per_token(value: object, length: int) -> bool:
    if not isinstance(value, (np.ndarray, Dumped)) or value.shape != (length,):
        return False
    return str(value.dtype).startswith(("float", "bfloat"))


def why_none(sample: Sample, name: str, found: Numbers | None) -> str | None:
    """What a sample holds in place of one value a token; None where it holds nothing."""
    if not sample.response_length or (found is not None and len(found.values)):
        return None
    if found is not None:
        return sample.note_on(name)
    value = sample.extra.get(name)
    if value is None:
        return None
    return f"{name} {other_shape(value, sample.response_length) or 'is not a list of numbers'}"


def fill_whole(out: TokenField, at: int, found: Numbers) -> None:
    values, known = out.one(at)
    if len(found.values) != len(values):
        out.fail(at, f"{out.name} has {len(found.values)} values for {len(values)} response tokens")
        return
    values[:], known[:], out.states[at], out.reasons[at] = found.values, True, "ok", None
    if len(found.gaps):
        known[found.gaps] = False


# Loading --------------------------------------------------------------------------------------------------------


def load(files: StepFiles, on_read: OnRead | None = None) -> Step:
    """Read and join a step. A train file that can't be read costs itself.

    `on_read(done, total)` counts the bytes of all files; the values in the train files are read later. Raises
    DumpError when the rollout file can't be read and nothing stands in for it, BeingWritten when it is not whole yet.
    """
    total = files.rollout_bytes + files.train_bytes

    def on_rollout(done: int, size: int) -> None:
        if on_read is not None:
            on_read(files.rollout_bytes * done // max(size, 1), total)

    shards, broken = read_shards(files, lambda done, size: on_rollout(0, 1))
    rollout, problem = read_samples_of(files, shards, on_rollout)
    return join(files, rollout, shards, broken, problem)


def join(
    files: StepFiles,
    rollout: Rollout,
    shards: list[Shard],
    broken: Sequence[DumpError] = (),
    problem: DumpError | None = None,
) -> Step:
    """Match samples and rows; `broken` are the train files that can't be read, `problem` why the rollout file can't."""
    peers = group_shards(shards)
    evidence = Evidence(rollout.samples)
    matcher = Matcher(rollout.samples, evidence)
    for group in peers:
        matcher.add(group)
    resolve(peers, evidence)
    joined = [shard for group in peers if group.joined and group.all_joined for shard in group.shards]
    return Step(
        files=files,
        rollout=rollout,
        shards=shards,
        broken=list(broken),
        peers=peers,
        rows=matcher.rows,
        orphans=matcher.orphans,
        refused=matcher.refused,
        raw_rewards=raw_rewards(joined, rollout.samples, matcher.rows) if files.rollout or files.mirror else None,
        evidence=evidence,
        notes=[*rollout.notes, *(f"{shard.path.name}: {note}" for shard in shards for note in shard.notes)],
        rollout_problem=problem,
    )


def read_shards(files: StepFiles, on_read: OnRead | None) -> tuple[list[Shard], list[DumpError]]:
    shards: list[Shard] = []
    broken: list[DumpError] = []
    for rank, entry in files.shards:
        try:
            shards += read_file(entry.path, partial(read_shard, step=files.key.step, rank=rank, on_read=on_read))
        except DumpError as error:
            broken.append(error)
    return shards, broken
