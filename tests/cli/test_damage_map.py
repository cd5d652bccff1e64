"""The damage map, drawn from reports made by hand."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from gfcode.cli.damage_map import ASCII, BLOCKS, describe_shard, draw, stray_lines, verdict
from gfcode.pipeline.report import Damage, FrameStatus, SetReport, SetState, ShardReport, Stray


def make_report(
    damage: npt.NDArray[np.uint8], m: int, paths: Sequence[str | None] | None = None, name: str = "big.tar"
) -> SetReport:
    """Make a report that follows from the states of the frames."""
    n, stripes = damage.shape
    if paths is None:
        paths = [f"d/{name}.{index:03}.gfs" for index in range(n)]
    missing = (damage == FrameStatus.MISSING).sum(axis=1)
    bad = (damage != FrameStatus.GOOD).sum(axis=1)
    shards = tuple(
        ShardReport(index, path, FrameStatus.GOOD if path else FrameStatus.MISSING, int(b - g), int(g))
        for index, (path, b, g) in enumerate(zip(paths, bad, missing, strict=True))
    )
    beyond = (damage != FrameStatus.GOOD).sum(axis=0) > m
    state: SetState = "beyond repair" if beyond.any() else "repairable" if bad.any() else "intact"
    return SetReport(
        "0123456789abcdef" * 2, name, stripes * 1000, n - m, m, 8, "packets", "powers", stripes, shards, (), state,
        "xxh3-128: against accidents", 0, 0.0, found=Damage(damage, beyond, np.zeros(stripes, np.bool_)),
    )  # fmt: skip


def rows(lines: list[str], n: int) -> list[str]:
    """Pick the map's characters of each shard: the second word of its line."""
    return [line.split()[1] for line in lines[1 : n + 1]]


def test_a_column_for_each_stripe_where_they_fit() -> None:
    damage = np.zeros((4, 10), np.uint8)
    damage[1] = FrameStatus.MISSING
    damage[2, 7:] = FrameStatus.MISSING
    damage[3, 0] = FrameStatus.CHECKSUM
    damage[3, 5] = FrameStatus.FOREIGN
    paths = ["d/big.tar.000.gfs", None, "d/big.tar.002.gfs", "d/big.tar.003.gfs"]
    lines = draw(make_report(damage, 2, paths), BLOCKS)
    assert lines[0] == "big.tar: 9.8 KiB, 2 + 2 shards, 10 stripes, powers, w = 8, packets, set 01234567"
    assert rows(lines, 4) == ["██████████", "░░░░░░░░░░", "███████░░░", "x████x████"]
    assert lines[1].split()[2:] == ["good", "big.tar.000.gfs"]
    assert lines[2].split()[2:] == ["no", "file"]
    assert lines[3].split()[2:] == ["3", "missing", "big.tar.002.gfs"]
    assert lines[4].split()[2:] == ["2", "damaged", "big.tar.003.gfs"]
    assert lines[5].split() == ["spare", "0111101000"]
    assert "█ good" in lines[6]
    assert "x damaged" in lines[6]
    assert "░ missing" in lines[6]
    assert "a column is a stripe" in lines[6]


@pytest.mark.parametrize("state", [s for s in FrameStatus if s not in {FrameStatus.GOOD, FrameStatus.MISSING}])
def test_every_other_state_is_damage(state: FrameStatus) -> None:
    damage = np.zeros((3, 3), np.uint8)
    damage[0, 1] = state
    assert rows(draw(make_report(damage, 1), ASCII), 3) == ["#x#", "###", "###"]


def test_bins_show_their_worst() -> None:
    """One bad frame among thousands is still seen, and damage is shown before missing."""
    damage = np.zeros((3, 5000), np.uint8)
    damage[0, 4321] = FrameStatus.CHECKSUM
    damage[1, :2500] = FrameStatus.MISSING
    damage[1, 10] = FrameStatus.CHECKSUM
    lines = draw(make_report(damage, 1), replace(ASCII, width=100))
    first, second, third = rows(lines, 3)
    columns = len(first)
    assert first.count("x") == 1
    column = first.index("x")
    assert column * 5000 // columns <= 4321 < (column + 1) * 5000 // columns
    assert second[0] == "x"
    assert set(second[1 : columns // 2]) == {"-"}
    assert set(second[columns // 2 + 1 :]) == {"#"}
    assert set(third) == {"#"}
    assert f"a column is {5000 / columns:.3g} stripes" in lines[5]


def test_spare_counts_the_weakest_stripe_of_a_column() -> None:
    damage = np.zeros((14, 400), np.uint8)
    damage[:5, 399] = FrameStatus.CHECKSUM
    damage[:4, 0] = FrameStatus.CHECKSUM
    line = draw(make_report(damage, 4), BLOCKS)[15].split()[1]
    assert line[0] == "0"
    assert line[-1] == "!"
    assert set(line[1:-1]) == {"4"}
    wide = draw(make_report(np.zeros((14, 4), np.uint8), 12), BLOCKS)
    assert wide[15].split()[1] == "++++"


def test_what_a_second_copy_saves_is_not_beyond_repair() -> None:
    """Frames of second copies count for a stripe, though the map shows the first files only."""
    damage = np.zeros((3, 2), np.uint8)
    damage[:2, 1] = FrameStatus.CHECKSUM
    saved = replace(make_report(damage, 1), found=Damage(damage, *np.zeros((2, 2), np.bool_)), state="repairable")
    assert draw(saved, BLOCKS)[4].split() == ["spare", "10"]
    assert draw(make_report(damage, 1), BLOCKS)[4].split() == ["spare", "1!"]


@pytest.mark.parametrize("width", [40, 57, 80, 200])
@pytest.mark.parametrize("stripes", [0, 1, 39, 100_000])
@pytest.mark.parametrize("n", [2, 14, 300])
def test_no_line_is_wider_than_the_terminal(width: int, stripes: int, n: int) -> None:
    damage = np.zeros((n, stripes), np.uint8)
    damage[n - 1, : stripes // 3] = FrameStatus.CHECKSUM
    damage[n - 1, stripes // 2 :] = FrameStatus.MISSING
    report = make_report(damage, 1, name="a name that is far too long for most terminals " * 3)
    lines = draw(report, replace(BLOCKS, width=width))
    assert max(map(len, lines)) <= width
    assert len(lines) == n + (4 if stripes else 1)
    if stripes:
        assert len({len(row) for row in rows(lines, n)}) == 1
        assert len(rows(lines, n)[0]) >= min(stripes, width // 4)


def test_colours_add_nothing_but_colour() -> None:
    damage = np.zeros((4, 10), np.uint8)
    damage[:3, 3] = FrameStatus.CHECKSUM
    report = make_report(damage, 2)
    import click

    coloured = draw(report, replace(BLOCKS, colour=True))
    assert "\x1b[31mx\x1b[0m" in coloured[1]
    assert [click.unstyle(line) for line in coloured] == draw(report, BLOCKS)


def test_names_with_folders_only_where_they_differ() -> None:
    damage = np.zeros((3, 2), np.uint8)
    spread = draw(make_report(damage, 1, ["a/x.000.gfs", "b/x.001.gfs", "c/x.002.gfs"]), BLOCKS)
    assert [line.split()[-1] for line in spread[1:4]] == ["a/x.000.gfs", "b/x.001.gfs", "c/x.002.gfs"]
    together = draw(make_report(damage, 1, ["a/x.000.gfs", "a/x.001.gfs", None]), BLOCKS)
    assert [line.split()[-1] for line in together[1:4]] == ["x.000.gfs", "x.001.gfs", "file"]


def test_names_cannot_command_the_terminal() -> None:
    damage = np.zeros((2, 2), np.uint8)
    report = make_report(damage, 1, ["d/\x1b[2Jx\n.000.gfs", "d/x.001.gfs"], name="\x1b]0;owned\x07\n")
    for line in [*draw(report, BLOCKS), *stray_lines([Stray("\x1b[31m", "a\nb")]), verdict(report, ["\x1b"])]:
        assert line.isprintable()


def test_faults_of_a_shard() -> None:
    good = ShardReport(0, "x", FrameStatus.GOOD, 0, 0)
    assert describe_shard(good) == "good"
    assert describe_shard(replace(good, path=None, metadata=FrameStatus.MISSING, missing=7)) == "no file"
    worst = replace(good, metadata=FrameStatus.CHECKSUM, damaged=1234, missing=2, trailing=17)
    assert describe_shard(worst) == "metadata, 1,234 damaged, 2 missing, 17 B too long"


def test_verdicts() -> None:
    damage = np.zeros((5, 100), np.uint8)
    assert verdict(make_report(damage, 2), ["d"]) == "intact"
    damage[0, 5] = damage[1, 5] = FrameStatus.CHECKSUM
    repairable = verdict(make_report(damage, 2), ["a dir", "d"])
    assert repairable == "damaged: repairable: run `gfcode repair 'a dir' d`"
    damage[:4, 8:10] = FrameStatus.MISSING
    damage[2:, 20] = FrameStatus.CHECKSUM
    assert verdict(make_report(damage, 2), ["d"]) == (
        "beyond repair: stripes 8-9, 20 (3 of 100) have fewer than the 3 good frames needed"
    )
    damage[:, ::2] = FrameStatus.MISSING
    many = verdict(make_report(damage, 2), ["d"])
    assert many.startswith("beyond repair: stripes 0, 2, 4, 6, 8-10, 12, 14, 16, ... (51 of 100) have ")


def test_many_strays_are_summed_up() -> None:
    strays = [Stray(f"f{i}", "no shard") for i in range(1000)]
    lines = stray_lines(strays)
    assert len(lines) == 21
    assert lines[0] == "not used: f0: no shard"
    assert lines[-1] == "not used: 980 more files (--json lists them)"
