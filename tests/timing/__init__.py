"""Scripts that time things, and share the tests' helpers."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
