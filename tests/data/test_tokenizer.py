import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.batch import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from attnlab.data.tokenizer import Surface, Tokenizer
from attnlab.data.trainers import BpeTrainer, CharacterTrainer, WordTrainer
from attnlab.errors import ExperimentError

TEXT = [
    "Ein Hund läuft, der andere schläft.",
    "Zwei Hunde laufen schnell – sehr schnell!",
    "나는 학교에 갑니다. 그는 집에 갑니다.",
    "it's a well-known fact; 12.5 % (or so)",
    "the cat sat on the mat and the dog sat on the cat",
] * 3
ALL_TRAINERS = [
    WordTrainer(min_frequency=1),
    CharacterTrainer(),
    BpeTrainer(vocabulary_size=150, min_frequency=1),
    WordTrainer(split="whitespace", min_frequency=1),
]


def name(trainer):
    return f"{type(trainer).__name__}-{getattr(trainer, 'split', '')}"


@pytest.mark.parametrize("trainer", ALL_TRAINERS, ids=name)
def test_tokenizer_known_text_survives_the_round_trip(trainer, tmp_path):
    tokenizer = trainer.train(TEXT)
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    for ids, text in zip(tokenizer.encode_ids(TEXT), TEXT, strict=True):
        assert min(ids) > EOS
        assert tokenizer.decode(ids) == loaded.decode(ids) == text
        assert loaded.encode_ids([text]) == [ids]
    assert loaded.size == tokenizer.size


@pytest.mark.parametrize("trainer", ALL_TRAINERS, ids=name)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_tokenizer_never_yields_a_special_id(trainer, text):
    tokenizer = _trained(trainer)
    (ids,), (offsets,) = tokenizer.encode_ids([text]), tokenizer.offsets([text])
    assert not {PAD, BOS, EOS} & set(ids)
    assert all(0 <= start <= end <= len(text) for start, end in offsets)
    assert len(tokenizer.tokens(ids)) == len(ids) == len(offsets)
    assert isinstance(tokenizer.decode(ids), str)


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_character_tokenizer_is_lossless_for_any_text(text):
    tokenizer = CharacterTrainer().train([text])
    assert tokenizer.decode(tokenizer.encode_ids([text])[0]) == text


@pytest.mark.parametrize("trainer", ALL_TRAINERS, ids=name)
def test_tokenizer_reads_the_text_eos_as_unknown(trainer):
    special = ["a <eos> b", "<eos>", "<pad><bos><unk><eos>", "<eos> <eos> <eos>"] * 20
    for tokenizer in (trainer.train(TEXT), trainer.train(TEXT + special)):
        for ids in tokenizer.encode_ids(special):
            assert not {PAD, BOS, EOS} & set(ids)
            assert ids


@pytest.mark.parametrize("trainer", ALL_TRAINERS, ids=name)
def test_tokenizer_shows_and_decodes_special_tokens(trainer):
    tokenizer = trainer.train(TEXT)
    assert tokenizer.tokens([PAD, UNK, BOS, EOS]) == list(SPECIAL_TOKENS)
    ids = tokenizer.encode_ids(["the cat"])[0]
    assert tokenizer.decode([BOS, *ids, EOS, PAD]) == "the cat"
    assert "<unk>" in tokenizer.decode([*ids, UNK])
    shown = list("the␣cat") if isinstance(trainer, CharacterTrainer) else ["the", "cat"]
    assert tokenizer.tokens(ids) == shown or isinstance(trainer, BpeTrainer)
    assert not any("▁" in token for token in tokenizer.tokens(ids))


def test_offsets_point_into_the_text_before_normalisation():
    text = "한국 ÄB"
    decomposed = unicodedata.normalize("NFD", text)
    tokenizer = CharacterTrainer(normalization="nfc", lowercase=True).train([decomposed])
    assert tokenizer.decode(tokenizer.encode_ids([decomposed])[0]) == text.lower()
    assert [decomposed[a:b] for a, b in tokenizer.offsets([decomposed])[0]] == [
        unicodedata.normalize("NFD", c)[0] for c in text
    ]


def test_word_tokenizer_splits_punctuation_and_restores_spacing():
    tokenizer = WordTrainer(min_frequency=1).train(['She said: "no, (never)!"'])
    ids = tokenizer.encode_ids(['She said: "no, (never)!"'])[0]
    assert tokenizer.tokens(ids) == [
        "She",
        "said",
        ":",
        '"',
        "no",
        ",",
        "(",
        "never",
        ")",
        "!",
        '"',
    ]
    assert tokenizer.decode(ids) == 'She said: "no, (never)!"'


def test_vocabulary_is_bounded_by_size_and_frequency():
    texts = ["a a a b b c"]
    assert WordTrainer(split="whitespace", min_frequency=2).train(texts).size == 4 + 2
    assert (
        WordTrainer(split="whitespace", min_frequency=1, vocabulary_size=5).train(texts).size == 5
    )


def test_joint_tokenizer_has_one_vocabulary():
    source, target = WordTrainer(min_frequency=1, joint=True).train_sides(
        iter(["ein Hund"]), iter(["a dog"])
    )
    assert source is target
    assert source.decode(source.encode_ids(["ein dog"])[0]) == "ein dog"
    separate, _ = WordTrainer(min_frequency=1).train_sides(iter(["ein Hund"]), iter(["a dog"]))
    assert UNK in separate.encode_ids(["ein dog"])[0]


def test_tokenizer_file_is_the_same_bytes_in_another_process(tmp_path):
    program = """
import sys, random
from pathlib import Path
from attnlab.data.trainers import BpeTrainer, WordTrainer
chance = random.Random(1)
words = ["".join(chance.choices("abcdeäö한국어를", k=chance.randint(1, 7))) for _ in range(900)]
texts = [" ".join(chance.choices(words, k=8)) for _ in range(300)]
for trainer in (BpeTrainer(vocabulary_size=200), WordTrainer()):
    for i in range(2):
        name = f"{type(trainer).__name__}-{sys.argv[2]}{i}.json"
        trainer.train(texts).save(Path(sys.argv[1]) / name)
"""
    for process in "ab":
        subprocess.run([sys.executable, "-c", program, str(tmp_path), process], check=True)
    for trainer in ("BpeTrainer", "WordTrainer"):
        files = list(tmp_path.glob(f"{trainer}-*"))
        assert len(files) == 4
        assert len({path.read_bytes() for path in files}) == 1


@pytest.mark.parametrize(
    "trainer", [*ALL_TRAINERS, WordTrainer(normalization="nfc", lowercase=True)], ids=name
)
@given(text=st.text(st.sampled_from("aé\u0301Zß ▁,.1漢한\u1112\u1161"), max_size=12))
def test_surfaces_are_pieces_of_the_text_one_for_each_token(trainer, text):
    tokenizer = _trained(trainer)
    surfaces = [surface.text for surface in tokenizer.surfaces(text)]
    assert len(surfaces) == len(tokenizer.encode_ids([text])[0])
    assert all(surface in text for surface in surfaces)
    assert set("".join(text.split())) <= set("".join(surfaces))  # and nothing of it is lost


@pytest.mark.parametrize("trainer", ALL_TRAINERS, ids=name)
def test_decode_replaces_unknown_tokens_with_given_words_or_unk(trainer):
    tokenizer = trainer.train(TEXT)
    known = tokenizer.encode_ids(["cat"])[0]
    between = "" if isinstance(trainer, CharacterTrainer) else " "
    assert tokenizer.decode(
        [UNK, *known, UNK, EOS], [Surface("Zürich"), Surface("x▁y")]
    ).startswith(f"Zürich{between}cat{between}x")
    assert tokenizer.decode([UNK, *known]) == f"<unk>{between}cat"


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"model": {"type": "Pickle"}}'])
def test_tokenizer_load_of_another_file_is_refused(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(ExperimentError, match=str(path)):
        Tokenizer.load(path)


_CACHE: dict[str, Tokenizer] = {}


def _trained(trainer):
    if repr(trainer) not in _CACHE:
        _CACHE[repr(trainer)] = trainer.train(TEXT)
    return _CACHE[repr(trainer)]


@pytest.mark.parametrize("form", ["nfd", "nfkd"])
@pytest.mark.parametrize("kind", [WordTrainer, BpeTrainer, CharacterTrainer])
def test_what_a_tokenizer_takes_apart_is_put_together_again(kind, form):
    texts = ["나는 학생입니다", "Grüße, Café"]
    tokenizer = kind(normalization=form, min_frequency=1).train(texts)
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_ids(texts)] == texts
