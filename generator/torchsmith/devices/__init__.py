"""`torchsmith device new`: the folder of a new device, to be filled in function by function."""
