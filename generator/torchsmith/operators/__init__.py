"""`torchsmith op add`: an operator of PyTorch's, written down as a kernel to be filled in."""
