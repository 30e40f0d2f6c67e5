"""What the claims of vladymyrov2024 share."""

from __future__ import annotations

PAPER = "vladymyrov2024"
