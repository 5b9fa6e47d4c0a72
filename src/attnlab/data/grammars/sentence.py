"""A sentence pair as a grammar writes it: words, and what each of them means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Word(NamedTuple):
    """A word between spaces, and the meanings that it carries in its sentence.

    Two words that share a meaning are linked.

    means: such as `subject` or `verb`; of the article in `l'oiseau`, and of the noun.
    maybe: what it has a part in, such as `verb` of the auxiliary in `habe ... gelesen`: a link
        through it is only possible.
    """

    text: str
    means: frozenset[str]
    maybe: frozenset[str] = frozenset()


def word(text: str, *means: str, maybe: Sequence[str] = ()) -> Word:
    return Word(text, frozenset(means), frozenset(maybe))


def words(text: str, *means: str, maybe: Sequence[str] = ()) -> list[Word]:
    """The words of a text, all of the same meanings: `ice cream`, `my friend`."""
    return [word(each, *means, maybe=maybe) for each in text.split()]


class SentencePair(NamedTuple):
    source: tuple[Word, ...]
    target: tuple[Word, ...]

    @property
    def source_text(self) -> str:
        """It begins with a capital letter and ends without a full stop."""
        text = " ".join(each.text for each in self.source)
        return text[0].upper() + text[1:]

    @property
    def target_text(self) -> str:
        return " ".join(each.text for each in self.target)

    @property
    def links(self) -> str:
        """Sure and possible links in the form that `attnlab.data.pharaoh` reads: `0-0 1?2`."""
        links = []
        for i, ours in enumerate(self.source):
            for j, theirs in enumerate(self.target):
                if ours.means & theirs.means:
                    links.append(f"{i}-{j}")
                elif (ours.means | ours.maybe) & (theirs.means | theirs.maybe):
                    links.append(f"{i}?{j}")
        return " ".join(links)


class Grammar(NamedTuple):
    """All sentences of a grammar.

    lecture: the sentence that lectures show.
    handful: some sentences, most of its pattern, the lecture's among them.
    patterns: the sentences of each pattern.
    """

    lecture: SentencePair
    handful: list[SentencePair]
    patterns: list[list[SentencePair]]


def sentence(source: Sequence[Word], target: Sequence[Word]) -> SentencePair:
    return SentencePair(tuple(source), tuple(target))
