"""`python -m attnlab.commands`: as `attnlab`."""

import sys

from attnlab.commands import main

sys.exit(main())
