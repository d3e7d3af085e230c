"""What the core needs from the outside, as protocols. One contract suite per port."""
