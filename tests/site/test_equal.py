"""What the page shows is what copier writes, and what it says is what the template says."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from feature_sets import telling_combinations
from rendering import HOSTILE, Renderer, contents
from torchsmith import catalog
from torchsmith.jinja import own
from torchsmith.template import CATALOG

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = [
    # One browser serves all of them.
    pytest.mark.xdist_group("browser"),
]

DTYPES = catalog.dtypes()
PLAIN: dict[str, Any] = {
    "backend_name": "foo",
    "display_name": "Foo",
    "vendor": "Example Vendor",
    "description": "PyTorch on Foo devices",
    "license": "apache-2.0",
    "dtypes": [name for name, row in DTYPES.items() if row["default"]],
    "preset": "full",
    "features": [],
    "device": "simulator",
    "ci_provider": "github",
}
# The sums and not the texts: a megabyte for each render takes a browser long to hand over.
SUMS = """
const [answers, done] = [arguments[0], arguments[arguments.length - 1]];
(async () => {
  const sums = {};
  const hex = (byte) => byte.toString(16).padStart(2, "0");
  for (const [path, text] of torchsmith.render(answers)) {
    const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    sums[path] = [...new Uint8Array(bytes)].map(hex).join("");
  }
  return sums;
})().then(done, (error) => done(String(error)));
"""
# But none and all of the features, which the presets `minimal` and `full` have.
COMBINATIONS = telling_combinations()[1:-1]


def assert_equal(page: WebDriver, render: Renderer, **answers: Any) -> None:
    given = {**PLAIN, **answers}
    asked = {key: value for key, value in given.items() if key != "features"}
    if given["preset"] == "custom":
        asked["features"] = given["features"]
    written = contents(render(**asked))
    shown = page.execute_async_script(SUMS, given)
    wanted = {path: hashlib.sha256(data).hexdigest() for path, data in written.items()}
    different = [path for path in {**wanted, **shown} if wanted.get(path) != shown.get(path)]
    assert different == []


@pytest.mark.nightly
@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda on: "+".join(sorted(on)))
def test_for_every_combination_of_features(
    combination: frozenset[str], page: WebDriver, render: Renderer
) -> None:
    chosen = [id for id in catalog.features() if id in combination]
    assert_equal(page, render, preset="custom", features=chosen)


@pytest.mark.parametrize("preset", catalog.presets())
def test_for_presets(preset: str, page: WebDriver, render: Renderer) -> None:
    assert_equal(page, render, preset=preset)


@pytest.mark.parametrize("license", catalog.load("questions")["license"]["choices"].values())
def test_for_every_licence(license: str, page: WebDriver, render: Renderer) -> None:
    assert_equal(page, render, preset="minimal", license=license, vendor="Acme & Sons")


def test_for_another_device(page: WebDriver, render: Renderer) -> None:
    assert_equal(page, render, preset="minimal", device="opencl")


@pytest.mark.parametrize("ci_provider", ["gitlab", "none"])
def test_for_every_ci_provider(ci_provider: str, page: WebDriver, render: Renderer) -> None:
    assert_equal(page, render, preset="minimal", ci_provider=ci_provider)


def test_for_hostile_answers(page: WebDriver, render: Renderer) -> None:
    assert_equal(page, render, **HOSTILE)
    assert_equal(page, render, vendor="\U0001f525 \ufeff\xa0\xad tab-free \\x", preset="minimal")


def test_for_all_dtypes_and_a_name_of_several_words(page: WebDriver, render: Renderer) -> None:
    assert_equal(
        page, render, backend_name="acme_npu", display_name="Acme Npu", dtypes=list(DTYPES),
        description="yes: a line that is long enough to be folded where PyYAML folds lines, twice "
        "over if need be, since it has some two hundred characters before it comes to an end",
    )  # fmt: skip


def test_names_are_judged_as_the_template_judges_them(page: WebDriver) -> None:
    names = [
        "",
        "foo",
        "acme_npu",
        "Foo",
        "cuda",
        "cudax",
        "1st",
        "a__b",
        "_a",
        "a_",
        "größe",
        "a b",
    ]
    names += ["x" * 50, "x" * 51, "torch", "namespace", "is_leaf", "python", "constructor", "a\n"]
    for group in catalog.load("reserved")["reserved"]["default"]:
        names += group["names"].split()[:40]
    ask = """return arguments[0].map((name) =>
        torchsmith.problems({...arguments[1], backend_name: name}).backend_name ?? "")"""
    said = page.execute_script(ask, names, PLAIN)
    assert dict(zip(names, said, strict=True)) == {
        name: catalog.name_problem(name) for name in names
    }


TEXT = st.text(
    st.one_of(
        st.sampled_from(" :#-?,[]{}&*!|>'\"%@`=~.0123456789abeEtTxyz_+<"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=150,
)
WORDS = st.lists(st.text(st.sampled_from("ab':\"é漢"), min_size=1, max_size=30), max_size=12)
TRICKY = """
    yes Null ~ 1_000 0x1F 1e5 1.5e+3 2001-01-01 12:30:45 << = --- -a ? : #a a: .inf 0o7 010 +.5
"""
ODD = [*TRICKY.split(), "", "- a", "2001-01-01 10:20:30"]


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(texts=st.lists(TEXT | WORDS.map(" ".join) | st.sampled_from(ODD), max_size=15))
def test_texts_are_refused_or_read_back_as_they_were(page: WebDriver, texts: list[str]) -> None:
    """The sentence is the template's, and PyYAML reads the answers file as copier does."""
    ask = """return arguments[0].map((text) => {
        const answers = {...arguments[1], description: text};
        return [torchsmith.problems(answers).description ?? "", torchsmith.answersFile(answers)];
    })"""
    for text, (problem, file) in zip(texts, page.execute_script(ask, texts, PLAIN), strict=True):
        assert problem == text_problem(text)
        if not problem:
            assert yaml.safe_load(file).get("description", PLAIN["description"]) == text


@pytest.mark.parametrize("text", ["a\x85b", "a\u2028b", "a\x9bb", "a\uffffb", "a\x00b", "a\x7fb"])
def test_what_yaml_cannot_hold_on_one_line_is_refused(page: WebDriver, text: str) -> None:
    said = page.execute_script("return torchsmith.problems(arguments[0])", PLAIN | {"vendor": text})
    assert said == {"vendor": "vendor must be one line without blanks around it"}


def text_problem(text: str) -> str:
    """What the template's macro says of a description, as Jinja itself runs it."""
    names: Any = own(CATALOG).get_template("names.jinja").make_module()
    return str(names.text_problem("description", text, 200)).strip()
