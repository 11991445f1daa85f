"""Write docs/poptorch-parity.md."""

from tools.parity.page import PAGE, page

PAGE.write_text(page())
