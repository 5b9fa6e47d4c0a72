"""One step on the explorer's page: formulas, matrices, and what lights up where one points."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import numpy as np
import pytest
import torch

from attnlab.batch import EOS
from attnlab.tasks.classification.step_numbers import step_numbers as classifier_numbers
from attnlab.tasks.edited_source import Edit
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.step_numbers import step_numbers

TEXT = "May 13"
SCORES = [
    "dot",
    "scaled_dot",
    "general",
    "scaled_luong",
    "concat",
    "bahdanau",
    "normed_bahdanau",
    "cosine",
    "location",
    "uniform",
]


@pytest.fixture
def step_of(visit):
    """Opens the view of a model, with a state of the page."""

    def open_step(models, text=TEXT, context=None, **state):
        seen = visit(models, **(context or {}))
        address = quote(json.dumps({"view": "numbers", "text": text} | state))
        seen.page.goto(f"{seen.address}#{address}")
        seen.wait(text)
        return seen

    return open_step


def of_two_steps(model):
    """The same model, which does not stop at once."""
    with torch.no_grad():
        model.model.output.bias[EOS] -= 9
    return model


def shown_numbers(seen, symbol):
    """All numbers of a symbol, as the page writes them."""
    cells = seen.page.locator(f'[data-cell="{symbol}"]').all_inner_texts()
    return [float(text.replace("−∞", "-inf").replace("−", "-")) for text in cells]


def symbols_of(answer):
    return {record["id"]: record for record in answer["symbols"]}


def lit(seen):
    """The symbol and place of every number that is lit."""
    return {
        (cell.get_attribute("data-cell"), cell.get_attribute("data-place"))
        for cell in seen.page.locator("td.lit").all()
    }


def flat(values):
    numbers = np.array(values, dtype=np.float64).ravel()
    return np.where(np.isnan(numbers), -np.inf, numbers)


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend", "conditional_gru"])
def test_small_matrices_stand_open_with_the_numbers_of_the_analysis(step_of, translator, decoder):
    ours = of_two_steps(translator(decoder=decoder, attention="general"))
    seen = step_of({"a": ours})
    seen.page.get_by_role("button", name="Next step").click()
    seen.page.locator(".steps button[aria-pressed=true]:nth-of-type(3)").wait_for()
    seen.settle()
    ids = analysis.translate(ours, TEXT)["ids"]
    symbols = symbols_of(step_numbers(ours, TEXT, ids, step=1))
    for name in ("h", "e", "α", "c_t", "s_t", "y_t−1"):
        np.testing.assert_allclose(
            shown_numbers(seen, name), flat(symbols[name]["values"]), atol=6e-3, err_msg=name
        )
    numbers = seen.page.locator(".group h2 .number").all_inner_texts()
    assert numbers == sorted(numbers)
    assert numbers[0] == "0"


def test_formulas_of_every_score_hold_their_symbols(step_of, translator):
    models = {score: translator(attention=score) for score in SCORES}
    models["projected"] = translator(attention="general", projection=3, history="coverage", heads=2)
    seen = step_of(models)
    expected = {
        "dot": "e = s_t−1 · h",
        "scaled_dot": "e = s·h / √d",
        "general": "e = s_t−1 · W h",
        "scaled_luong": "e = g s·h",
        "concat": "e = v · T",
        "bahdanau": "e = v · T",
        "normed_bahdanau": "e = g v/|v| · T",
        "cosine": "e = g cos",
        "location": "e = W s[i]",
        "uniform": "e = 0",
    }
    expected["scaled_luong"] = "e = g s·W h"
    for score, formula in expected.items():
        seen.page.locator("header select").select_option(score)
        seen.page.locator(f"select[value={score}]").wait_for()
        seen.settle()
        lines = seen.page.locator(".formula-line").evaluate_all(
            """lines => lines.map((line) =>
                [...line.childNodes].map((part) => part.dataset?.symbol ?? part.data).join(''))"""
        )
        assert formula in lines, lines
    seen.page.locator("header select").select_option("projected")
    seen.page.locator("select[value=projected]").wait_for()
    seen.settle()
    assert seen.page.get_by_role("heading", name="1 Head 0").count() == 1
    assert seen.page.locator('[data-symbol="κ_t^(0)"]').count() > 0


def headings_of_heads(seen):
    return [text for text in seen.page.locator(".group h2").all_inner_texts() if "Head " in text]


def test_chosen_head_shows_its_own_formulas_scores_weights_and_context(step_of, translator):
    ours = translator(heads=2, attention="bahdanau")
    seen = step_of({"a": ours, "b": translator()})
    ids = analysis.translate(ours, TEXT)["ids"]
    answer = step_numbers(ours, TEXT, ids)
    symbols = symbols_of(answer)
    choice = seen.page.get_by_role("group", name="Head that is shown")
    for head in (0, 1):
        choice.get_by_label(f"Head {head}").check()
        seen.settle()
        assert len(headings_of_heads(seen)) == 1
        for name in ("q", "K", "V", "e", "α", "c"):
            expected = flat(symbols[f"{name}^({head})"]["values"])
            found = shown_numbers(seen, f"{name}^({head})")
            np.testing.assert_allclose(found, expected, atol=6e-3, err_msg=name)
            assert shown_numbers(seen, f"{name}^({1 - head})") == []
        # The model's own score is among the five, on the query and keys of this head.
        additive = seen.page.locator("table.five").first.locator("tbody tr").nth(4)
        assert "the model's own weights" in additive.inner_text()
        cells = additive.locator("td").all_inner_texts()
        found = [float(cell.replace("−", "-")) for cell in cells]
        np.testing.assert_allclose(found, symbols[f"e^({head})"]["values"], atol=6e-3)
    assert symbols["α^(0)"]["values"] != symbols["α^(1)"]["values"]

    # A symbol of the head that is not shown, in the formula that joins them, brings it.
    joining = seen.page.locator('.formula-line [data-symbol="c^(0)"]')
    assert joining.get_attribute("aria-expanded") == "false"
    joining.click()
    seen.page.get_by_role("heading", name="1 Head 0").wait_for()
    seen.settle()
    assert len(headings_of_heads(seen)) == 1
    assert joining.last.get_attribute("aria-expanded") == "true"

    choice.get_by_label("all heads").check()
    seen.settle()
    assert len(headings_of_heads(seen)) == 2
    assert seen.page.locator("table.five").count() == 4

    # A model of one head has nothing to choose.
    seen.page.locator("header select").select_option("b")
    choice.wait_for(state="detached")
    seen.settle()
    assert seen.page.locator("table.five").count() == 2
    assert headings_of_heads(seen) == []


def test_pointing_at_a_number_lights_what_it_was_made_of(step_of, translator):
    ours = translator(attention="dot", projection=3)
    seen = step_of({"a": ours})
    seen.page.locator('[data-cell="e"]').nth(2).hover()
    assert lit(seen) == {
        *(("q′", str(place)) for place in range(3)),
        *(("k′", f"2,{place}") for place in range(3)),
    }
    ids = analysis.translate(ours, TEXT)["ids"]
    symbols = symbols_of(step_numbers(ours, TEXT, ids))
    line = seen.page.locator(".arithmetic").inner_text().replace("−", "-")
    terms = line.split(" = ")[1]
    product = sum(
        q * k for q, k in zip(symbols["q′"]["values"], symbols["k′"]["values"][2], strict=True)
    )
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", terms)]
    assert len(numbers) == 6
    assert np.dot(numbers[::2], numbers[1::2]) == pytest.approx(product, abs=0.1)
    assert line.endswith(f"{symbols['e']['values'][2]:.4f}")

    seen.page.locator('[data-cell="c_t"]').nth(1).hover()
    length = len(symbols["α"]["values"])
    assert lit(seen) == {
        *(("α", str(token)) for token in range(length)),
        *(("h", f"{token},1") for token in range(length)),
    }
    # Weights of the model are made of nothing.
    seen.page.locator('[data-cell="W_q"]').first.hover()
    assert lit(seen) == set()
    assert "given" in seen.page.locator(".arithmetic").inner_text()


def test_pointing_at_a_symbol_lights_its_numbers(step_of, translator):
    seen = step_of({"a": translator(attention="dot", projection=3)})
    seen.page.locator('.formula-line [data-symbol="k′"]').first.hover()
    assert {name for name, _ in lit(seen)} == {"k′"}
    assert len(lit(seen)) == seen.page.locator('[data-cell="k′"]').count()


def test_every_number_of_every_mechanism_says_how_it_was_made(step_of, translator):
    models = {
        "lstm": translator(cell="lstm", attention="cosine", scope="local_p_renormalised"),
        "luong": translator(
            decoder="step_then_attend", input_feeding="expected_embedding", cell="rnn"
        ),
        "maxout": translator(readout="maxout", attention="concat", normaliser="sparsemax"),
        "location": translator(attention="location", scope="local_m"),
        "coverage": translator(history="coverage", heads=2, attention="normed_bahdanau"),
        "none": translator(decoder="no_attention"),
    }
    seen = step_of(models)
    for name in models:
        seen.page.locator("header select").select_option(name)
        seen.page.locator(f"select[value={name}]").wait_for()
        seen.settle()
        # Of each symbol the first number, and the line that it writes.
        lines = seen.page.evaluate(
            """() => {
                const cells = [...document.querySelectorAll('[data-cell]')];
                const symbols = new Set(cells.map((cell) => cell.dataset.cell));
                return [...symbols].map((id) => {
                    const cell = cells.find((each) => each.dataset.cell === id);
                    cell.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
                    return [id, document.querySelector('.arithmetic').textContent];
                });
            }"""
        )
        assert len(lines) > 8, name
        for symbol, line in lines:
            assert " = " in line, (name, symbol)
            assert "undefined" not in line, (name, symbol, line)
            assert "NaN" not in line, (name, symbol, line)


def test_arrow_keys_move_from_number_to_number(step_of, translator):
    seen = step_of({"a": translator(attention="dot", projection=3)})
    seen.page.locator('[data-cell="k′"]').first.focus()
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("ArrowRight")
    focused = seen.page.locator(":focus")
    assert focused.get_attribute("data-place") == "1,1"
    assert ("W_k", "1,0") in lit(seen)
    table = seen.page.locator("table:has(:focus)")
    assert table.locator("[tabindex='0']").count() == 1


def test_symbols_fold_and_unfold(step_of, translator):
    seen = step_of({"a": translator()})
    chip = seen.page.locator('figcaption [data-symbol="α"]')
    assert chip.get_attribute("aria-expanded") == "true"
    chip.click()
    seen.settle()
    assert seen.page.locator('[data-cell="α"]').count() == 0
    assert chip.get_attribute("aria-expanded") == "false"
    # A large one is folded until it is opened.
    assert seen.page.locator('[data-cell="W_y"]').count() == 0
    seen.page.locator('figcaption [data-symbol="W_y"]').click()
    seen.settle()
    assert seen.page.locator('[data-cell="W_y"]').count() > 50


def test_mask_after_the_softmax_shows_another_sum(step_of, translator):
    ours = translator()
    seen = step_of({"a": ours}, pads={"before": 0, "behind": 2})
    assert shown_numbers(seen, "e′")[-2:] == [-np.inf, -np.inf]
    assert shown_numbers(seen, "Σα") == [1.0]
    seen.page.get_by_label("zero after the softmax instead").check()
    seen.page.locator('[data-cell="a"]').first.wait_for()
    seen.settle()
    ids = analysis.translate(ours, TEXT)["ids"]
    after = symbols_of(step_numbers(ours, TEXT, ids, edit=Edit(behind=2), masking="after"))
    assert shown_numbers(seen, "α")[-2:] == [0.0, 0.0]
    assert shown_numbers(seen, "Σα") == [pytest.approx(after["Σα"]["values"], abs=6e-3)]
    seen.page.get_by_label("no mask").check()
    seen.page.locator('figure[data-key="e′"]').wait_for(state="detached")
    seen.settle()
    assert seen.page.locator('[data-cell="a"]').count() == 0
    assert shown_numbers(seen, "Σα") == [1.0]


def test_encoder_reads_pads_where_it_is_told(step_of, translator):
    ours = translator(hidden_size=4, bidirectional=False)
    seen = step_of({"a": ours}, pads={"before": 2, "behind": 0})
    assert shown_numbers(seen, "h")[:8] == [0.0] * 8
    seen.page.get_by_label("reads them").check()
    seen.settle()
    ids = analysis.translate(ours, TEXT)["ids"]
    read = symbols_of(step_numbers(ours, TEXT, ids, edit=Edit(before=2), recurrence="read"))
    np.testing.assert_allclose(shown_numbers(seen, "h"), flat(read["h"]["values"]), atol=6e-3)


def test_tensors_of_a_batch_stand_beside_the_product(step_of, translator):
    seen = step_of({"a": translator(attention="dot", projection=3)})
    products = {
        name: seen.page.locator(f'figure[data-key="{name}"] .product').inner_text()
        for name in ("e", "c_t", "k′")
    }
    length = len(TEXT) + 1
    assert "(B, 1, S) = bmm(q′ (B, 1, P), k′ᵀ (B, P, S))" in products["e"]
    assert f"(1, 1, {length}) = bmm((1, 1, 3), (1, 3, {length}))" in products["e"]
    assert "(B, 1, D) = bmm(α (B, 1, S), h (B, S, D))" in products["c_t"]
    assert "(B, S, P) = matmul(h (B, S, D)" in products["k′"]


def test_five_scores_stand_side_by_side(step_of, translator):
    ours = translator(attention="dot")
    seen = step_of({"a": ours})
    ids = analysis.translate(ours, TEXT)["ids"]
    (scores,) = step_numbers(ours, TEXT, ids)["scores"]
    tables = seen.page.locator("table.five")
    for table, name in zip(tables.all(), ("energies", "weights"), strict=True):
        rows = table.locator("tbody tr").all()
        assert len(rows) == len(scores) == 6
        for row, score in zip(rows, scores, strict=True):
            cells = row.locator("td").all_inner_texts()
            found = [float(cell.replace("−", "-")) for cell in cells]
            np.testing.assert_allclose(found, score[name], atol=6e-3)


def test_window_of_a_large_matrix_moves(step_of, translator):
    ours = translator(decoder_hidden_size=40, attention="general")
    seen = step_of({"a": ours})
    chip = seen.page.locator('figcaption [data-symbol="W_s"]')
    chip.click()
    seen.settle()
    figure = seen.page.locator('figure[data-key="W_s"]')
    assert figure.locator("tbody tr").count() == 32
    figure.get_by_role("button", name="later places").first.click()
    figure.get_by_text("G 33–64 / 120").wait_for()
    seen.settle()
    weight = ours.model.decoder.body.cell.cells[0].weight_hh.detach()
    assert shown_numbers(seen, "W_s")[0] == pytest.approx(float(weight[32, 0]), abs=6e-3)


def test_numbers_are_handed_to_files_as_numbers(step_of, translator):
    ours = translator(attention="dot")
    seen = step_of({"a": ours}, pads={"behind": 1})
    ids = analysis.translate(ours, TEXT)["ids"]
    answer = step_numbers(ours, TEXT, ids, edit=Edit(behind=1))
    tables = seen.page.evaluate(
        """async (answer) => {
            const { numbers } = await import("explorer/views/numbers.js");
            return numbers.tables({}, answer);
        }""",
        answer,
    )
    by_name = {table[0][0]: table for table in tables}
    symbols = symbols_of(answer)
    assert by_name["h"][0][1:] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [row[1:] for row in by_name["h"][1:]] == symbols["h"]["values"]
    assert by_name["e′"][0][1:] == answer["source"]
    assert by_name["e′"][1][-1] == "-inf"
    assert by_name["Σα"] == [["Σα"], [symbols["Σα"]["values"]]]
    assert by_name["weights"][1][1:] == answer["scores"][0][0]["weights"]


def test_classifier_has_its_step(step_of, classifier):
    seen = step_of({"a": classifier}, text="good film")
    symbols = symbols_of(classifier_numbers(classifier, "good film"))
    for name in ("q", "α", "d", "p"):
        np.testing.assert_allclose(
            shown_numbers(seen, name), flat(symbols[name]["values"]), atol=6e-3
        )
    seen.page.locator('[data-cell="d"]').first.hover()
    assert ("W c", "0") in lit(seen)


@pytest.mark.parametrize(
    ("locale", "width", "theme"),
    [
        ("en-US", 1280, "light"),
        ("ko-KR", 1280, "dark"),
        pytest.param("ko-KR", 400, "light", marks=pytest.mark.long),
        pytest.param("en-US", 400, "dark", marks=pytest.mark.long),
    ],
)
def test_view_has_no_violations_and_fits(step_of, translator, classifier, locale, width, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    models = {"a": translator(heads=2, history="coverage", attention="general"), "b": classifier}
    context = {"viewport": {"width": width, "height": 900}, "locale": locale}
    for model, text in (("a", TEXT), ("b", "good film")):
        seen = step_of(
            models, text=text, context=context, model=model, theme=theme, pads={"behind": 2}
        )
        assert seen.page.evaluate("document.documentElement.scrollWidth") == width
        found = axe.Axe().run(seen.page, context=".sheet").response["violations"]
        shown = [(each["id"], [node["html"][:120] for node in each["nodes"][:3]]) for each in found]
        assert shown == []


def test_model_without_attention_is_shown_after_one_without_a_mask(step_of, translator):
    models = {"a": translator(), "none": translator(decoder="no_attention")}
    for masking in ("none", "after"):
        seen = step_of(models, sheet={"masking": masking})
        assert seen.page.locator('[data-cell="α"]').count() > 0
        seen.page.get_by_role("combobox", name="Model").select_option("none")
        seen.settle()
        assert seen.page.get_by_role("alert").count() == 0
        assert seen.page.locator(".group").count() > 0


@pytest.mark.parametrize("decoder", ["no_attention", "step_then_attend"])
def test_first_state_is_said_to_come_from_the_encoder(step_of, translator, decoder):
    seen = step_of({"a": of_two_steps(translator(decoder=decoder))})
    state = seen.page.locator('figure[data-key="s_t−1"] figcaption')
    assert "the one context vector" in state.inner_text()
    seen.page.get_by_role("button", name="Next step").click()
    seen.settle()
    assert "hidden state before the step" in state.inner_text()


def test_step_after_another_token_reads_that_token(step_of, translator):
    ours = of_two_steps(translator(input_feeding="softmax_output"))
    base = analysis.translate(ours, TEXT)
    _, other, _ = base["likeliest"][0][1]
    branch = analysis.translate(ours, TEXT, analysis.Intervention(force={0: other}))
    seen = step_of({"a": ours}, step=1, branch=[0, other])
    expected = symbols_of(step_numbers(ours, TEXT, branch["ids"], 1))
    own = symbols_of(step_numbers(ours, TEXT, base["ids"], 1))
    np.testing.assert_allclose(
        shown_numbers(seen, "y_t−1"), flat(expected["y_t−1"]["values"]), atol=0.0051
    )
    assert expected["y_t−1"]["values"] != own["y_t−1"]["values"]
    assert expected["p_t−1"]["values"] == own["p_t−1"]["values"]  # does not know what was chosen
    steps = seen.page.locator(".steps")
    assert steps.locator(".changed").inner_text() == branch["target"][0]
    assert branch["text"] in seen.page.locator("[data-key=steps]").inner_text()

    seen.page.get_by_role("button", name="Back to the model's own").click()
    steps.locator(".changed").wait_for(state="detached")
    seen.settle()
    np.testing.assert_allclose(
        shown_numbers(seen, "y_t−1"), flat(own["y_t−1"]["values"]), atol=0.0051
    )


def test_token_that_cannot_be_written_leaves_the_steps_of_the_translation(step_of, translator):
    ours = of_two_steps(translator())
    seen = step_of({"a": ours}, step=1, branch=[0, "ん"])
    assert seen.page.locator(".group").count() > 0
    assert seen.page.locator(".steps .changed").count() == 0
    seen.problems.clear()  # the browser reports the refusal
