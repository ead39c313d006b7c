"""The command, and `python -m auditor`.

`python -m` puts the current folder first on the path, and the current folder may be the audited tree. It is dropped
before anything else is imported, the standard library included.
"""

import sys

if not sys.flags.safe_path and sys.path and __name__ == "__main__":
    del sys.path[0]

from auditor.cli import main

if __name__ == "__main__":
    sys.exit(main())
