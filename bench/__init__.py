"""What does tidegate cost? Paired measurements, printed as ratios within one run."""
