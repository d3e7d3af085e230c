"""The curator: folds scores and failures into cells, each exactly once."""
