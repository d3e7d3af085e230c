"""Commands that carry out a benchmark, or have it carried out."""
