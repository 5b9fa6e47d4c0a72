"""The graded exercises of the course in docs/course/."""
