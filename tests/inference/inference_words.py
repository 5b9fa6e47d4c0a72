"""What the tests translate and classify."""

SOURCES = ["나는 학교 에 간다", "나는 집 에 간다", "학교", "집 에 나는 <b>", "간다 간다 간다 간다 간다 간다"]
TARGETS = ["i go to school", "i go home", "school & home"]
LABELS = ["일상", "이별", "love"]
