"""Commands that follow and steer experiments that services carry out."""
