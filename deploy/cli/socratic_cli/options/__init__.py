"""Options that several commands share, and opening what they name."""
