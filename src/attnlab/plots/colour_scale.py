"""The colours of weights, links and wrong words: one scale for pages and pictures.

A page has them as CSS variables, for a light and a dark ground; a picture takes the light ones.
"""

from __future__ import annotations

from dataclasses import dataclass

LEVELS = 20  # steps between the first and the last colour

RGB = tuple[int, int, int]

_BLACK: RGB = (0, 0, 0)
_WHITE: RGB = (255, 255, 255)
_READABLE = 4.5  # contrast of small type, WCAG 2 level AA


@dataclass(frozen=True)
class ColourScale:
    """Colours on one ground.

    stops: the scale at equal distances, from the ground on.
    ink: the preferred colour of type.
    link: the outline of known links.
    wrong: the type of wrong words.
    """

    stops: tuple[RGB, ...]
    ink: RGB
    link: RGB
    wrong: RGB

    @property
    def colours(self) -> list[RGB]:
        """The colour of each level, from 0 to LEVELS."""
        return [self._mixed(level / LEVELS) for level in range(LEVELS + 1)]

    def _mixed(self, share: float) -> RGB:
        """The colour at a share of the way from the first stop to the last one."""
        last = len(self.stops) - 1
        place = share * last
        lower = min(int(place), last - 1)
        way = place - lower  # from the stop below to the one above

        mixed = []
        for below, above in zip(self.stops[lower], self.stops[lower + 1], strict=True):
            mixed.append(round(below + (above - below) * way))
        red, green, blue = mixed
        return red, green, blue

    def ink_on(self, colour: RGB) -> RGB:
        """The colour of type on a colour of the scale."""
        for candidate in (self.ink, _WHITE, _BLACK):
            if contrast(candidate, colour) >= _READABLE:
                return candidate
        raise AssertionError("black or white is readable on every colour")


LIGHT = ColourScale(
    stops=(
        (255, 255, 255),
        (222, 235, 247),
        (158, 202, 225),
        (66, 130, 198),
        (20, 82, 160),
        (8, 40, 96),
    ),
    ink=(27, 35, 48),
    link=(184, 124, 0),
    wrong=(166, 27, 43),
)
DARK = ColourScale(
    stops=(
        (19, 23, 31),
        (24, 44, 76),
        (30, 74, 135),
        (52, 118, 200),
        (120, 178, 240),
        (214, 234, 255),
    ),
    ink=(228, 233, 241),
    link=(240, 190, 60),
    wrong=(255, 139, 148),
)


def contrast(one: RGB, other: RGB) -> float:
    """The contrast ratio of two colours, from 1 to 21, as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: RGB) -> float:
    linear = []
    for channel in colour:
        share = channel / 255
        linear.append(share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4)
    red, green, blue = linear
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def css_colours() -> str:
    """The style rules of the scale.

    `.heat-<level>` colours by the scale from 0 to 1, `.heat-row-<level>` by that of the row where a
    box `.heat-relative` of the page is checked. Both set `--heat-fill` and `--heat-ink`.
    """
    light, dark = _variables(LIGHT), _variables(DARK)
    rules = [
        f":root {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}",
        f":root[data-theme=dark] {{ {dark} }}",
    ]
    for level in range(LEVELS + 1):
        takes = f"--heat-fill: var(--heat-{level}); --heat-ink: var(--heat-ink-{level});"
        relative = f":root:has(.heat-relative:checked) .heat-row-{level}"
        rules.append(f".heat-{level}, {relative} {{ {takes} }}")
    return "\n".join(rules)


def _variables(scale: ColourScale) -> str:
    variables = []
    for level, colour in enumerate(scale.colours):
        variables.append(f"--heat-{level}: {as_hex(colour)};")
        variables.append(f"--heat-ink-{level}: {as_hex(scale.ink_on(colour))};")
    variables.append(f"--heat-link: {as_hex(scale.link)};")
    variables.append(f"--heat-wrong: {as_hex(scale.wrong)};")
    variables.append(f"--heat-halo: {as_hex(scale.stops[0])};")
    return " ".join(variables)


def as_hex(colour: RGB) -> str:
    return "#" + "".join(f"{channel:02x}" for channel in colour)
