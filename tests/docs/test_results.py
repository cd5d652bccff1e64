"""Tables and findings on pages are what the results that are kept say."""

import pytest

from bench.experiment_findings import findings
from bench.pages import PAGES, ROOT, main, sections, write


@pytest.mark.parametrize("page", PAGES)
def test_pages_say_what_the_results_say(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "<!-- begin " in text
    assert write(page=text, made=sections(ROOT / "bench/results")) == text, "run `python -m bench.pages`"


def test_nothing_is_left_to_write() -> None:
    assert main(["--check"]) == 0


def test_sections_that_nothing_makes_are_an_error() -> None:
    with pytest.raises(KeyError, match="no-such"):
        write("<!-- begin no-such -->\n<!-- end no-such -->\n", {})
    assert write("a\n<!-- begin b -->\nold\n<!-- end b -->\nc", {"b": "new\n"}).splitlines()[3] == "new"


def test_findings_follow_from_the_figures() -> None:
    """What was expected is confirmed or refuted by the figures, whatever they are."""
    names = (
        "Vandermonde, tables", "Cauchy, bit matrix", "good Cauchy, bit matrix", "good Cauchy, compressed",
        "good Cauchy, fused, scheduled", "searched matrix, fused, scheduled", "powers, simd engine",
        "Vandermonde, simd engine",
    )  # fmt: skip

    def cases(seconds: dict[str, float]) -> list[dict[str, object]]:
        return [
            {
                "sweep": "m", "operation": operation, "m": m,
                "cpu_seconds_per_gb": {name: m * seconds[name] for name in names},
                "median": {name: 1 / (m * seconds[name]) for name in names},
            }
            for operation in ("encode", "decode")
            for m in range(1, 9)
        ]  # fmt: skip

    falling = dict(zip(names, (0.9, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1), strict=True))
    told = [line.partition("**")[2].partition("**")[0] for line in findings(cases(falling))]
    assert told[0] == "Vandermonde by tables falls fastest: confirmed in seconds, confirmed in proportion."
    assert told[1:] == [
        "Cauchy is ahead: confirmed for m ≥ 2",
        "Improvement raises throughput and lowers CPU time: confirmed.",
        "That the Vandermonde matrix is to blame: refuted.",
    ]
    rising = dict(zip(names, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.4), strict=True))
    told = [line.partition("**")[2].partition("**")[0] for line in findings(cases(rising))]
    assert told[0].startswith("Vandermonde by tables falls fastest: refuted in seconds")
    assert told[1:] == [
        "Cauchy is ahead: refuted for m ≥ 2",
        "Improvement raises throughput and lowers CPU time: refuted.",
        "That the Vandermonde matrix is to blame: confirmed.",
    ]
