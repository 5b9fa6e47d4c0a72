"""The command `attnlab`, held against the objects that it asks."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_folders import CLEANING, FORMS, LABELS, SOURCES, write_classifier, write_translator

from attnlab import api
from attnlab.commands import main
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention

ROOT = Path(__file__).resolve().parents[2]
PNG = b"\x89PNG"


@pytest.fixture
def stdin(monkeypatch):
    """Puts bytes, or an iterator of lines, into stdin."""

    def put(content=b"", terminal=False):
        lines = io.BytesIO(content) if isinstance(content, bytes) else content
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=lines, isatty=lambda: terminal))

    put()
    return put


@pytest.fixture
def attnlab(stdin, capsys):
    """Runs a command that must succeed; returns its lines of stdout. It must be quiet on stderr."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        assert out.endswith("\n") or not out
        return out.split("\n")[:-1]

    return run


@pytest.fixture
def translator(translator_folder):
    return api.load(translator_folder)


def line(text: str) -> str:
    return " ".join(text.splitlines())


def test_translate_prints_a_line_for_each_text(attnlab, translator_folder, translator):
    expected = [line(answer.text) for answer in translator(SOURCES)]
    assert any(expected)
    assert attnlab("translate", translator_folder, *SOURCES) == expected
    mixed = attnlab("translate", translator_folder, SOURCES[0], "--batch-size", 2, *SOURCES[1:])
    assert mixed == expected


def test_translate_reads_lines_of_stdin_and_keeps_their_order(
    attnlab, stdin, translator_folder, translator
):
    texts = ["", SOURCES[0], "  ", "\r", SOURCES[4], "", SOURCES[1] + "\x85\u2028학교", "a\rb", ""]
    stdin(
        "".join(f"{text}\n" for text in texts).encode()
        + SOURCES[2].encode()
        + b"\r\n"
        + SOURCES[3].encode()
    )
    texts += SOURCES[2:4]
    expected = [line(translator(text).text) if text.strip() else "" for text in texts]
    assert attnlab("translate", translator_folder, "--batch-size", 3) == expected
    stdin(b"\n\n")
    assert attnlab("translate", translator_folder) == ["", ""]
    assert attnlab("translate", translator_folder) == []


BOM = b"\xef\xbb\xbf"


@pytest.fixture(scope="module")
def cleaning_folders(tmp_path_factory):
    """Model folders of a translator and of a classifier whose training data were cleaned."""
    folder = tmp_path_factory.mktemp("cleaning")
    of_sentences = CLEANING | {"_target_": "attnlab.data.corpus.SentenceCleaning"}
    (folder / "t").mkdir()
    (folder / "c").mkdir()
    return {
        "translate": write_translator(folder / "t", cleaning=CLEANING),
        "classify": write_classifier(folder / "c", of_sentences),
        "score": folder / "t" / "model",
    }


@pytest.fixture
def answers(attnlab):
    """Runs a command; returns its answers with their numbers.

    The texts that were given are left out.
    """

    def run(command, *arguments):
        shown = [json.loads(each) for each in attnlab(command, "--json", *arguments)]
        given = ("text",) if command == "classify" else ("source", "target")
        return [
            {name: value for name, value in each.items() if name not in given} for each in shown
        ]

    return run


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", ["translate", "classify", "score"])
def test_texts_in_another_form_are_answered_as_the_clean_ones(
    answers, stdin, cleaning_folders, command, form
):
    """As arguments, and as lines of a file that Windows wrote."""
    model, change = cleaning_folders[command], FORMS[form]
    clean = [[source] for source in SOURCES]
    if command == "score":
        clean = [[source, "go to school"] for source in SOURCES]
    given = [[change(text) for text in texts] for texts in clean]

    expected = [answers(command, model, *texts)[0] for texts in clean]
    assert [answers(command, model, *texts)[0] for texts in given] == expected
    lines = ["\t".join(texts) + "\r\n" for texts in given]
    stdin(BOM + "".join(lines).encode())
    assert answers(command, model, "--batch-size", 1) == expected


@pytest.mark.parametrize("command", ["translate", "classify", "score"])
def test_byte_order_mark_at_the_start_of_stdin_is_no_text(
    answers, stdin, translator_folder, classifier_folder, command
):
    """A byte order mark at the start is dropped, also for a model that keeps its texts as they are.

    Within the input it is text like any other.
    """
    model = classifier_folder if command == "classify" else translator_folder
    line = "\t".join([SOURCES[0], "go to school"]) if command == "score" else SOURCES[0]
    stdin(f"{line}\n".encode())
    (expected,) = answers(command, model)
    for ending in (b"", b"\n", b"\r\n"):
        stdin(BOM + line.encode() + ending)
        assert answers(command, model) == [expected]
    stdin(f"{line}\n\ufeff{line}\n".encode())
    first, second = answers(command, model, "--batch-size", 1)
    assert first == expected != second


# What stands between two texts, and whether it ends a line.
BETWEEN = {
    "\n": True,
    "\r\n": True,
    "\r": False,
    "\u2028": False,
    "\u2029": False,
    "\x85": False,
    "\x0b": False,
    "\x0c": False,
    "\x1c": False,
    "\x00": False,
}


@pytest.mark.parametrize("between", BETWEEN, ids=ascii)
@pytest.mark.parametrize("command", ["translate", "classify"])
def test_each_line_of_stdin_gives_one_answer(attnlab, stdin, cleaning_folders, command, between):
    """LF and CR LF end a line, and nothing else does."""
    stdin(f"{SOURCES[0]}{between}{SOURCES[1]}\n\n  \n{SOURCES[2]}\r".encode())
    assert len(attnlab(command, cleaning_folders[command])) == (5 if BETWEEN[between] else 4)


def test_carriage_return_at_the_end_of_the_input_is_text(
    attnlab, stdin, translator_folder, translator
):
    """No line feed follows, so that it ends no line."""
    stdin(b"x\r\nx\r")
    shown = [json.loads(each) for each in attnlab("translate", translator_folder, "--json")]
    assert [each["source"] for each in shown] == ["x", "x\r"]


def test_line_break_in_a_translation_is_printed_as_a_space(attnlab, translator_folder):
    forced = [
        argument for step, token in enumerate("a\nb") for argument in ("--force", f"{step}={token}")
    ]
    forced += ["--force", "3=<eos>", SOURCES[0]]
    assert attnlab("translate", translator_folder, *forced) == ["a b"]
    (shown,) = attnlab("translate", translator_folder, *forced, "--json")
    assert json.loads(shown)["text"] == "a\nb"


def test_each_line_is_answered_before_the_next_is_read_at_a_terminal(
    stdin, capsys, translator_folder
):
    printed = []

    def typed():
        for text in SOURCES[:3]:
            printed.append(capsys.readouterr().out.count("\n"))
            yield f"{text}\n".encode()

    stdin(typed(), terminal=True)
    assert main(["translate", str(translator_folder)]) == 0
    assert printed == [0, 1, 1]


def test_n_best_lines_have_number_score_and_translation(attnlab, translator_folder, translator):
    lines = attnlab("translate", translator_folder, "--n-best", 2, *SOURCES[:2], "")
    expected = [
        f"{number}\t{each.score:.4f}\t{line(each.text)}"
        for number, answer in enumerate(translator(SOURCES[:2], n_best=2), 1)
        for each in (answer, *answer.alternatives)
    ]
    assert len(expected) == 4
    assert lines == [*expected, "3\t0.0000\t"]


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (["--beam", "4"], {"beam": 4}),
        (["--set", "search=greedy"], {"search": "greedy"}),
        (["--set", "temperature=5.0", "--set", "seed=3"], {"temperature": 5.0, "seed": 3}),
        (
            ["--set", "max_length=2", "--set", "max_length_ratio=null"],
            {"max_length": 2, "max_length_ratio": None},
        ),
    ],
)
def test_flags_change_the_search(attnlab, translator_folder, translator, flags, settings):
    answers = translator(SOURCES, **settings)
    assert [each.score for each in answers] != [each.score for each in translator(SOURCES)]
    shown = [
        json.loads(each)
        for each in attnlab("translate", translator_folder, "--json", *flags, *SOURCES)
    ]
    assert [each["tokens"] for each in shown] == [each.tokens for each in answers]
    assert [each["score"] for each in shown] == pytest.approx(
        [each.score for each in answers], abs=1e-6
    )


def test_json_has_the_fields_of_a_translation(attnlab, translator_folder, translator):
    best, blank = attnlab("translate", translator_folder, "--json", "--n-best", 2, SOURCES[0], "")
    answer, shown = translator(SOURCES[0], n_best=2), json.loads(best)
    assert shown.keys() == vars(answer).keys()
    assert (shown["source"], shown["source_tokens"]) == (answer.source, answer.source_tokens)
    np.testing.assert_allclose(shown["attention"], answer.attention, atol=1e-6)
    assert [each["text"] for each in shown["alternatives"]] == [
        each.text for each in answer.alternatives
    ]
    nothing = {
        "text": "",
        "tokens": [],
        "score": 0.0,
        "source_tokens": [],
        "attention": None,
        "alternatives": [],
    }
    assert json.loads(blank) == {"source": "", **nothing}


@pytest.mark.parametrize(
    ("flags", "change"),
    [
        (["--intervene", "uniform"], Intervention("uniform")),
        (["--intervene", "permuted", "--seed", "4"], Intervention("permuted", seed=4)),
        (["--hide", "0,4"], Intervention(hide=[0, 4])),
        (["--attention-temperature", "0.2"], Intervention(temperature=0.2)),
        (["--hide", "1", "--heads", "0"], Intervention(hide=[1])),
        (["--force", "0=b"], Intervention(force={0: "b"})),
    ],
)
def test_flags_intervene(attnlab, translator_folder, translator, flags, change):
    answer = translator(SOURCES[0], intervene=change)
    assert not np.array_equal(answer.attention, translator(SOURCES[0]).attention)
    (shown,) = attnlab("translate", translator_folder, "--json", *flags, SOURCES[0])
    assert json.loads(shown)["tokens"] == answer.tokens
    np.testing.assert_allclose(json.loads(shown)["attention"], answer.attention, atol=1e-6)


def test_classify_prints_class_and_probability(attnlab, stdin, classifier_folder, tmp_path):
    classifier = api.load(classifier_folder)
    stdin("\n".join([*SOURCES, "", ""]).encode())
    answers = classifier([*SOURCES, ""])
    assert attnlab("classify", classifier_folder) == [
        f"{each.label}\t{each.probabilities[each.label]:.4f}" for each in answers
    ]
    (shown,) = attnlab("classify", classifier_folder, "--json", "--hide", "1", SOURCES[0])
    hidden, shown = classifier(SOURCES[0], intervene=Intervention(hide=[1])), json.loads(shown)
    assert shown["probabilities"] == pytest.approx(hidden.probabilities)
    assert (list(shown["probabilities"]), shown["label"], shown["tokens"]) == (
        LABELS,
        hidden.label,
        hidden.tokens,
    )
    np.testing.assert_allclose(shown["attention"], hidden.attention, atol=1e-6)


def test_score_of_texts_and_stdin_is_the_log_probability(
    attnlab, stdin, translator_folder, translator
):
    sources, targets = SOURCES[:3], ["go", "", "school a"]
    answers = translator.score(sources, targets)
    totals = [f"{each.total:.4f}" for each in answers]
    assert attnlab("score", translator_folder, sources[0], targets[0]) == totals[:1]
    stdin(
        "".join(
            f"{source}\t{target}\n" for source, target in zip(sources, targets, strict=True)
        ).encode()
    )
    assert attnlab("score", translator_folder) == totals
    (first,) = attnlab("score", translator_folder, sources[0], targets[0], "--tokens")
    named = zip(["g", "o", "<eos>"], answers[0].log_probs, strict=True)
    assert first.split("\t") == [
        totals[0],
        *(f"{token} {log_prob:.4f}" for token, log_prob in named),
    ]
    (shown,) = attnlab(
        "score", translator_folder, sources[0], targets[0], "--json", "--intervene", "uniform"
    )
    uniform = translator.score(sources[0], targets[0], Intervention("uniform"))
    assert json.loads(shown)["total"] == pytest.approx(uniform.total, abs=1e-5) != answers[0].total
    assert json.loads(shown)["log_probs"] == pytest.approx(uniform.log_probs.tolist(), abs=1e-5)


def test_heat_map_is_drawn_of_one_text_and_of_several(
    attnlab, translator_folder, classifier_folder, tmp_path
):
    attnlab("translate", translator_folder, "--heat-map", tmp_path / "one.png", SOURCES[0], "")
    attnlab(
        "score", translator_folder, "--heat-map", tmp_path / "new" / "scored.png", SOURCES[0], "go"
    )
    attnlab("translate", translator_folder, "--heat-map", tmp_path / "many.png", *SOURCES[:2])
    attnlab("translate", translator_folder, "--heat-map", tmp_path / "page.html", *SOURCES[:2])
    attnlab("classify", classifier_folder, "--heat-map", tmp_path / "classes.png", *SOURCES[:2])
    attnlab("classify", classifier_folder, "--heat-map", tmp_path / "classes.html", *SOURCES[:2])
    pictures = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png")}
    assert pictures == {"one.png", "new/scored.png", "many_1.png", "many_2.png", "classes.png"}
    assert all((tmp_path / name).read_bytes().startswith(PNG) for name in pictures)
    assert (tmp_path / "page.html").read_text().count('<figure class="heat-map"') == 2
    assert "간다" in (tmp_path / "classes.html").read_text()


MISTAKES = {
    "no folder": (["translate", "nowhere", "x"], "nowhere must be a model folder"),
    "a classifier translates": (
        ["translate", "{c}", "x"],
        "a model that classifies, which attnlab translate does not take; use attnlab classify",
    ),
    "a translator classifies": (
        ["classify", "{m}", "x"],
        "a model that translates, which attnlab classify does not take; use attnlab translate",
    ),
    "unknown setting": (
        ["translate", "{m}", "x", "--set", "bean=3"],
        "bean is no setting of a search",
    ),
    "setting out of range": (["translate", "{m}", "x", "--beam", "0"], "search.size must be"),
    "n-best beyond the beam": (
        ["translate", "{m}", "x", "--n-best", "9"],
        "n_best must be at most the beam's size",
    ),
    "hidden token beyond the source": (
        ["translate", "{m}", "x", "--hide", "7"],
        "hide must name positions below 2",
    ),
    "temperature": (
        ["translate", "{m}", "x", "--attention-temperature", "0"],
        "temperature must be from 0.001 to 1000, got 0.0",
    ),
    "forced token": (
        ["translate", "{m}", "x", "--force", "0=수"],
        "'수' is no token that the model can write",
    ),
    "device": (
        ["translate", "{m}", "x", "--device", "abacus"],
        "the device abacus cannot be used here: ",
    ),
    "nothing to draw": (
        ["translate", "{m}", "", "--heat-map", "a.png"],
        "there is no attention to draw; a.png is",
    ),
    "unwritable picture": (
        ["translate", "{m}", "x", "--heat-map", "{file}/a.png"],
        "{file} cannot be used: ",
    ),
    "source without target": (["score", "{m}", "x"], "give SOURCE and TARGET"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_reported_as_one_sentence(
    mistake, stdin, capsys, translator_folder, classifier_folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("학교\n집\n")
    Path("empty").touch()
    places = {"m": translator_folder, "c": classifier_folder, "file": "file", "empty": "empty"}
    arguments, sentence = MISTAKES[mistake]
    assert main([argument.format(**places) for argument in arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert sentence.format(**places) in error
    assert {path.name for path in tmp_path.iterdir()} == {"file", "empty"}


def test_model_with_a_class_of_the_user_needs_to_be_allowed(
    attnlab, capsys, translator_folder, tmp_path, monkeypatch
):
    folder = shutil.copytree(translator_folder, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["model"]["attention"]["_target_"] = "attnlab_own_scores.OwnScore"
    (folder / "config.json").write_text(json.dumps(config))
    (tmp_path / "attnlab_own_scores.py").write_text(
        "from attnlab.model.attention.bahdanau import BahdanauScore as OwnScore"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["translate", str(folder), "x"]) == 1
    assert "--allow attnlab_own_scores at the shell" in capsys.readouterr().err
    expected = attnlab("translate", translator_folder, *SOURCES)
    assert attnlab("translate", folder, "--allow", "attnlab_own_scores", *SOURCES) == expected


@pytest.mark.parametrize(
    ("command", "content", "sentence"),
    [
        (
            "translate",
            b"x\nab\xff\n",
            "line 2 of stdin is not UTF-8: byte 3 is 0xff; convert the text first",
        ),
        ("classify", "x\n학교\n".encode("cp949"), "line 2 of stdin is not UTF-8: byte 1 is 0xc7"),
        ("score", "a\tb\n".encode("utf-16"), "line 1 of stdin is not UTF-8 but UTF-16"),
        (
            "translate",
            "Hello\n".encode("utf-16-le"),
            "stdin seems to be UTF-16 without a byte order mark, as every other byte is 0; convert "
            "the text first, from utf-16-le",
        ),
        (
            "score",
            b"a\tb\nno tab\n",
            "line 2 of stdin must be a source, a tab and a target, got 'no tab'",
        ),
        ("score", b"a\tb\tc\n", "line 1 of stdin must be"),
    ],
)
def test_wrong_line_of_stdin_is_reported_with_its_number(
    command, content, sentence, stdin, capsys, translator_folder, classifier_folder
):
    stdin(content)
    assert (
        main([command, str(classifier_folder if command == "classify" else translator_folder)]) == 1
    )
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "texts"), [("translate", ["x"]), ("classify", ["x"]), ("score", ["x", "y"])]
)
def test_argument_that_is_not_utf8_is_reported_with_its_number(
    command, texts, stdin, capsys, translator_folder, classifier_folder
):
    """Python gives the bytes of such an argument as lone surrogates."""
    model = classifier_folder if command == "classify" else translator_folder
    wrong = [*texts[:-1], os.fsdecode(b"\xc7\xd0")]
    assert main([command, str(model), *wrong]) == 1
    error = capsys.readouterr().err
    assert (
        error
        == f"error: text {len(wrong)} of the command line is not UTF-8, got '\\udcc7\\udcd0'\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["transmogrify"],
        ["translate"],
        ["translate", "m", "--beam", "many"],
        ["translate", "m", "--set", "beam"],
        ["translate", "m", "--force", "월"],
        ["translate", "m", "--hide", "a"],
        ["translate", "m", "--heat-map", "a.jpeg"],
        ["classify", "m", "--force", "0=a"],
        ["translate", "m", "--batch-size", "0"],
        ["score", "m", "a", "--batch-size", "-1"],
        ["translate", "m", "--threads", "0"],
    ],
)
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: attnlab" in capsys.readouterr().err


def test_batch_without_texts_is_refused(translator):
    with pytest.raises(ExperimentError, match="batch_size must be 1 or more, got -1"):
        list(translator.stream(["a"], batch_size=-1))


def test_ctrl_c_ends_with_130_and_keeps_what_is_answered(stdin, capsys, translator_folder):
    def typed():
        yield SOURCES[0].encode()
        raise KeyboardInterrupt

    stdin(typed())
    assert main(["translate", str(translator_folder), "--batch-size", "1"]) == 130
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert err == "stopped by Ctrl-C\n"


def test_reader_that_goes_away_ends_the_command_quietly(
    stdin, capsys, translator_folder, monkeypatch
):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["translate", str(translator_folder), *SOURCES]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="only Linux has a device that is always full"
)
def test_full_disk_under_stdout_is_reported(stdin, capsys, translator_folder, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["translate", str(translator_folder), *SOURCES]) == 1
    assert (
        capsys.readouterr().err
        == "error: stdin or stdout cannot be used: No space left on device\n"
    )


def test_progress_of_a_file_is_shown_on_a_terminal_only(
    stdin, capsys, translator_folder, monkeypatch
):
    stdin("\n".join(SOURCES).encode())
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["translate", str(translator_folder)]) == 0
    assert f"{len(SOURCES)}/" in terminal.getvalue()
    assert capsys.readouterr().out.count("\n") == len(SOURCES)
    shown = len(terminal.getvalue())
    assert main(["translate", str(translator_folder), *SOURCES]) == 0
    assert len(terminal.getvalue()) == shown


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )


def test_console_script_answers_help_without_heavy_imports():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["attnlab"].partition(":")
    assert getattr(import_module(module), name) is main
    code = f"""
import sys
from {module} import {name}
try:
    {name}(["--help"])
except SystemExit as ended:
    print(ended.code, *sys.modules, sep="\\n")
"""
    out = run_python(code).stdout
    assert {"translate", "classify", "score"} <= set(out.split())
    assert "\n0\n" in out
    assert not {"torch", "numpy", "pydantic", "hydra", "rich", "matplotlib", "attnlab.api"} & set(
        out.split()
    )


def test_translate_in_a_new_process_is_quiet_and_imports_no_compiler(translator_folder, translator):
    """torch._dynamo takes longer to import than all that a translation needs."""
    code = (
        "import sys; from attnlab.commands import main; "
        "print(main(sys.argv[1:])); print(*sys.modules)"
    )
    done = run_python(code, "translate", str(translator_folder), SOURCES[0])
    text, ended, modules = done.stdout.splitlines()
    assert (text, ended, done.stderr) == (line(translator(SOURCES[0]).text), "0", "")
    unwanted = {
        "torch._dynamo",
        "sympy",
        "datasets",
        "jinja2",
        "matplotlib",
        "mlflow",
        "pytorch_lightning",
        "rich",
    }
    assert not unwanted & set(modules.split())
