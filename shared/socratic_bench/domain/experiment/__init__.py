"""An experiment: its manifest, its outline, its state."""
