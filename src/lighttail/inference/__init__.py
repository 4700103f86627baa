"""What the rewards of a live experiment show, in intervals that hold however often people look
(docs/inference.md)."""

from lighttail.inference.evidence import BoundedRewards, Evidence, SubGaussianRewards, evidence_of
from lighttail.inference.sequences import (
    Contradicted,
    Lead,
    Limits,
    Sequences,
    confidence_sequences,
    contradiction,
    lead,
    share_mismatch,
)

__all__ = [
    "BoundedRewards",
    "Contradicted",
    "Evidence",
    "Lead",
    "Limits",
    "Sequences",
    "SubGaussianRewards",
    "confidence_sequences",
    "contradiction",
    "evidence_of",
    "lead",
    "share_mismatch",
]
