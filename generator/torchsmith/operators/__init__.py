"""`torchsmith op add`: writes the files of a PyTorch operator, with a kernel to fill in."""
