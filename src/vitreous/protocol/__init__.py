"""The rules of evidence: seeds, splits, stopping, the test ledger. Nothing here needs torch."""
