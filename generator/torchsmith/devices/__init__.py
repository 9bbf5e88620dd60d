"""`torchsmith device new`: the folder of a device, to be filled in function by function."""
