"""Which lesson of the course makes which claim."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lesson:
    """page: its name in docs/course/en and docs/course/ko."""

    page: str

    @property
    def number(self) -> int:
        return int(self.page.split("_")[0])


# By the name of the claim's study.
LESSON_OF_CLAIM = {
    "01_bottleneck": Lesson("02_bottleneck"),
    "02_vanishing_gradients": Lesson("02_bottleneck"),
    "03_dot_or_bahdanau": Lesson("06_bahdanau"),
    "04_scaling": Lesson("05_scores"),
    "05_scores": Lesson("05_scores"),
    "06_query": Lesson("06_bahdanau"),
    "07_projection": Lesson("08_projection"),
    "08_padding": Lesson("09_padding"),
    "09_mask": Lesson("09_padding"),
    "10_input_feeding": Lesson("10_input_feeding"),
    "11_teacher_forcing": Lesson("11_teacher_forcing"),
    "12_bidirectional": Lesson("02_bottleneck"),
    "13_alignments": Lesson("07_f_alpha"),
    "14_explanations": Lesson("12_classifier"),
    "15_worth_of_attention": Lesson("03_attention_function"),
    "16_explanations_by_score": Lesson("12_classifier"),
    "17_trained_without_attention": Lesson("03_attention_function"),
    "18_alignments_of_text": Lesson("07_f_alpha"),
}
