"""What the services say to each other: CloudEvents 1.0, one file each, one door for decoding."""
