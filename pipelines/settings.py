"""Write the reference of all settings: docs/settings.md, and docs/settings.schema.json for editors.

python pipelines/settings.py
"""

from __future__ import annotations

from attnlab.experiment.launch import help_shown, mistakes_as_sentences

if __name__ == "__main__":
    with mistakes_as_sentences():
        if not help_shown():
            from attnlab.experiment.settings_page import write

            write()
